//! The result of the reference, and comparing a tensor with it.

use std::fmt;
use std::ops::RangeInclusive;

use tilewright_kernel::ElementType;

use super::column::{Column, Range};
use super::interval::Interval;
use super::tensor::{Values, decode};
use crate::element::Element;
use crate::error::{Error, Mismatch, Result};
use crate::launch::GivenTensor;
use crate::tensor::Input;

/// Every output that a kernel's algorithm admits for some arguments: the oracle of a test.
///
/// ```
/// # use tilewright::{Device, EmulatorOptions, Tensor, schedule};
/// schedule! {
///     kernel RowSum(x: f32[M, N]) -> (s: f32[M]) {
///         s[i] = sum(|j| x[i, j]);
///         launch threads(64);
///         schedule s { split i by 64 -> b, t; bind b: grid; bind t: thread; }
///     }
/// }
/// # fn main() -> tilewright::Result<()> {
/// # let device = Device::emulator(EmulatorOptions::default());
/// let x = Tensor::from_slice(&device, &[0.1_f32; 600], [2, 300])?;
/// let mut s = Tensor::zeros(&device, [2])?;
/// let admissible = RowSum { x: &x, s: &mut s }.reference()?;
/// RowSum { x: &x, s: &mut s }.launch(&device)?;
/// let agreement = admissible.check("s", &s)?;
/// assert!(agreement.worst <= 1.0);
/// # Ok(()) }
/// ```
///
/// An algorithm denotes a set of outputs: float sums may be taken in any order, and `approx::` functions may be off by
/// a stated bound. Where nothing is free the set is one value, and a check compares bit by bit (any NaN equals any
/// other). The sets hold every admissible output, with one exception: those that rest on a `fold` whose `merge` rounds
/// are estimates ([`ReferenceOutput::is_estimate`]).
#[derive(Clone, Debug)]
pub struct Reference {
    kernel: String,
    outputs: Vec<Output>,
}

/// The admissible values of one output.
#[derive(Clone, Debug)]
pub(super) struct Output {
    pub(super) name: String,
    pub(super) element: ElementType,
    pub(super) values: Values,
    /// Whether they rest on an estimate.
    pub(super) estimate: bool,
}

/// One output of a [`Reference`].
#[derive(Clone, Copy, Debug)]
pub struct ReferenceOutput<'a> {
    kernel: &'a str,
    name: &'a str,
    element: ElementType,
    values: &'a Values,
    estimate: bool,
}

/// The admissible values of one element.
#[derive(Clone, Debug, PartialEq)]
pub enum Admissible {
    /// Of a float.
    Float(Interval),
    /// Of an integer or `bool`: all in the range.
    Integer(RangeInclusive<i128>),
    /// Of an integer: one of these, ascending.
    OneOf(Vec<i128>),
}

/// How well a tensor agrees with a reference.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Agreement {
    /// Number of elements compared.
    pub elements: usize,
    /// Number of elements for which one value only was admissible.
    pub exact: usize,
    /// Largest distance from the middle of an admissible interval, as a part of half its width: 0 is the middle, 1 the
    /// very end.
    pub worst: f64,
    /// Whether the sets are an estimate: [`ReferenceOutput::is_estimate`].
    pub estimate: bool,
    /// The widest admissible interval; none if there is none but single values.
    pub widest: Option<Width>,
    /// The one that is widest as a part of its value.
    pub relative: Option<Width>,
    /// Largest distance from the middle of an admissible interval, and the position in row-major order where it is.
    pub farthest: Option<(f64, usize)>,
    /// Elements that are NaN or infinite.
    pub found: Specials,
    /// Elements that may be: the comparison tells little there.
    pub admitted: Specials,
}

/// An admissible interval that is no single value.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Width {
    /// Its element, in row-major order.
    pub position: usize,
    /// Its smallest number.
    pub lo: f64,
    /// Its largest number.
    pub hi: f64,
}

/// How many elements are not finite numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Specials {
    /// NaN.
    pub nan: usize,
    /// Infinity of either sign.
    pub infinite: usize,
}

impl Width {
    /// How wide it is.
    pub fn width(&self) -> f64 {
        self.hi - self.lo
    }

    /// The same as a part of its largest magnitude: 2 if it holds as much below zero as above. An end that is infinite
    /// makes it infinite.
    pub fn relative(&self) -> f64 {
        let largest = self.lo.abs().max(self.hi.abs());
        if largest.is_infinite() {
            f64::INFINITY
        } else if largest == 0.0 {
            0.0
        } else {
            self.hi / largest - self.lo / largest
        }
    }
}

impl Reference {
    pub(super) fn new(kernel: String, outputs: Vec<Output>) -> Self {
        Self { kernel, outputs }
    }

    /// The outputs, in the order of their equations.
    pub fn outputs(&self) -> impl Iterator<Item = ReferenceOutput<'_>> {
        self.outputs.iter().map(|Output { name, element, values, estimate }| ReferenceOutput {
            kernel: &self.kernel,
            name,
            element: *element,
            values,
            estimate: *estimate,
        })
    }

    /// The output with this name.
    ///
    /// # Errors
    /// [`Error::Layout`] if the kernel has no such output.
    pub fn output(&self, name: &str) -> Result<ReferenceOutput<'_>> {
        self.outputs().find(|o| o.name == name).ok_or_else(|| {
            let known: Vec<&str> = self.outputs().map(|o| o.name).collect();
            let reason = format!("kernel {} has no output `{name}`; it has {}", self.kernel, known.join(", "));
            Error::Layout { operation: "Reference::output", reason }
        })
    }

    /// Whether every element of a tensor is admissible as the output with this name.
    ///
    /// # Errors
    /// [`Error::Mismatch`] with the first element that is not; [`Error::Layout`] for an unknown output, another element
    /// type or another shape; a failure of the device.
    pub fn check<T: Element, const R: usize>(&self, name: &str, tensor: &dyn Input<T, R>) -> Result<Agreement> {
        let output = self.output(name)?;
        let found = GivenTensor::new(&tensor.parts(), false);
        output.same(T::TYPE, &found.shape)?;
        output.check_bytes(&found.read()?)
    }
}

impl ReferenceOutput<'_> {
    /// Name of the output.
    pub fn name(&self) -> &str {
        self.name
    }

    /// Its element type.
    pub fn element(&self) -> ElementType {
        self.element
    }

    /// Whether the admissible sets are an estimate and no bound: a `fold` whose `merge` rounds may take its terms in
    /// any order, and what all orders have in common is known of real numbers only. An admissible element may then lie
    /// outside its set, which a mismatch does not prove wrong.
    pub fn is_estimate(&self) -> bool {
        self.estimate
    }

    /// Its shape.
    pub fn shape(&self) -> &[i64] {
        &self.values.shape
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.values.data.len()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What is admissible at a position in row-major order; none beyond the last.
    pub fn admissible(&self, position: usize) -> Option<Admissible> {
        if position >= self.len() {
            return None;
        }
        Some(match &self.values.data {
            Column::Float(_) | Column::FloatSets(_) => Admissible::Float(self.values.data.interval(position)),
            Column::Int(_) | Column::IntSets(_) => {
                let range = self.values.data.range(position);
                match range.only {
                    Some(only) => Admissible::OneOf(only.to_vec()),
                    None => Admissible::Integer(range.lo..=range.hi),
                }
            }
        })
    }

    /// The middle of each admissible set, in row-major order; NaN where only NaN is admissible.
    pub fn middles(&self) -> Vec<f64> {
        let middle = |i| match self.values.data.interval(i) {
            x if x.is_empty() => f64::NAN,
            x if x.lo == x.hi => x.lo,
            x => x.lo / 2.0 + x.hi / 2.0,
        };
        (0..self.len()).map(middle).collect()
    }

    /// As [`Reference::check`], of elements in row-major order.
    ///
    /// # Errors
    /// As there; [`Error::Length`] for another number of elements.
    pub fn check_slice<T: Element>(&self, found: &[T]) -> Result<Agreement> {
        self.same(T::TYPE, self.shape())?;
        if found.len() != self.len() {
            let shape = self.shape().iter().map(|&n| n as usize).collect();
            return Err(Error::Length { shape, expected: self.len(), found: found.len() });
        }
        self.check_bytes(&T::encode(found))
    }

    /// As [`Reference::check`], of bytes of this output's elements in row-major order.
    ///
    /// # Errors
    /// As there; [`Error::Length`] for another number of elements.
    #[doc(hidden)]
    pub fn check_raw(&self, bytes: &[u8]) -> Result<Agreement> {
        self.length(bytes)?;
        self.check_bytes(bytes)
    }

    fn length(&self, bytes: &[u8]) -> Result<()> {
        let size = self.element.bytes() as usize;
        if bytes.len() == self.len() * size {
            return Ok(());
        }
        let shape = self.shape().iter().map(|&n| n as usize).collect();
        Err(Error::Length { shape, expected: self.len(), found: bytes.len() / size })
    }

    /// As [`Self::check_raw`]; beside the verdict, what was measured up to the end, whether there was a mismatch or
    /// not.
    ///
    /// # Errors
    /// [`Error::Length`] for another number of elements.
    #[doc(hidden)]
    pub fn measure_raw(&self, bytes: &[u8]) -> Result<(Agreement, Result<()>)> {
        self.length(bytes)?;
        let (agreement, mismatch) = self.measure(bytes);
        Ok((agreement, mismatch.map_or(Ok(()), |m| Err(Error::Mismatch(Box::new(m))))))
    }

    /// Number of elements for which several values are admissible.
    pub fn inexact(&self) -> usize {
        match &self.values.data {
            Column::Float(_) | Column::Int(_) => 0,
            Column::FloatSets(sets) => sets.iter().filter(|set| set.single().is_none()).count(),
            Column::IntSets(sets) => sets.iter().filter(|set| set.single().is_none()).count(),
        }
    }

    /// How many elements may be no finite number.
    pub fn specials(&self) -> Specials {
        let mut specials = Specials::default();
        for i in 0..if self.element.is_float() { self.len() } else { 0 } {
            let set = self.values.data.interval(i);
            specials.nan += usize::from(set.nan);
            specials.infinite += usize::from(set.has_infinity());
        }
        specials
    }

    fn same(&self, element: ElementType, shape: &[i64]) -> Result<()> {
        if element == self.element && shape == self.shape() {
            return Ok(());
        }
        let reason =
            format!("output `{}` is {} {:?}, the tensor is {element} {shape:?}", self.name, self.element, self.shape());
        Err(Error::Layout { operation: "Reference::check", reason })
    }

    fn check_bytes(&self, bytes: &[u8]) -> Result<Agreement> {
        let (agreement, mismatch) = self.measure(bytes);
        mismatch.map_or(Ok(agreement), |m| Err(Error::Mismatch(Box::new(m))))
    }

    fn measure(&self, bytes: &[u8]) -> (Agreement, Option<Mismatch>) {
        let found = decode(self.element, bytes);
        let mut agreement = Agreement::new(self.len(), self.estimate);
        let (mut wrong, mut first) = (0, None);
        for i in 0..self.len().min(found.len()) {
            let fits = match (&self.values.data, &found) {
                (Column::Float(expected), Column::Float(found)) => {
                    agreement.exact += 1;
                    agreement.found.take(found[i]);
                    agreement.admitted.take(expected[i]);
                    expected[i].to_bits() == found[i].to_bits() || expected[i].is_nan() && found[i].is_nan()
                }
                (Column::FloatSets(expected), Column::Float(found)) => agreement.float(i, &expected[i], found[i]),
                (Column::Int(expected), Column::Int(found)) => {
                    agreement.exact += 1;
                    expected[i] == found[i]
                }
                (Column::IntSets(expected), Column::Int(found)) => {
                    let Range { lo, hi, .. } = expected[i];
                    match expected[i].single() {
                        Some(_) => agreement.exact += 1,
                        None => agreement.interval(Width { position: i, lo: lo as f64, hi: hi as f64 }),
                    }
                    expected[i].contains(found[i])
                }
                _ => false,
            };
            if !fits {
                wrong += 1;
                first = first.or(Some(i));
            }
        }
        let mismatch = first.map(|position| Mismatch {
            kernel: self.kernel.to_owned(),
            output: self.name.to_owned(),
            index: self.index(position),
            found: match &found {
                Column::Float(v) => format!("{:?}", v[position]),
                other => other.range(position).lo.to_string(),
            },
            admissible: self.admissible(position).map(|a| a.to_string()).unwrap_or_default(),
            wrong,
            elements: self.len(),
        });
        (agreement, mismatch)
    }

    /// The index at a position in row-major order.
    pub fn index(&self, mut position: usize) -> Vec<usize> {
        let mut index = vec![0; self.shape().len()];
        for (i, &extent) in index.iter_mut().zip(self.shape()).rev() {
            *i = position % extent as usize;
            position /= extent as usize;
        }
        index
    }
}

impl Specials {
    fn take(&mut self, x: f64) {
        self.nan += usize::from(x.is_nan());
        self.infinite += usize::from(x.is_infinite());
    }
}

impl Agreement {
    fn new(elements: usize, estimate: bool) -> Self {
        let (found, admitted) = (Specials::default(), Specials::default());
        let (widest, relative, farthest) = (None, None, None);
        Self { elements, exact: 0, worst: 0.0, estimate, widest, relative, farthest, found, admitted }
    }

    /// Takes an interval that is no single value into account.
    fn interval(&mut self, width: Width) {
        if self.widest.is_none_or(|most| width.width() > most.width()) {
            self.widest = Some(width);
        }
        if self.relative.is_none_or(|most| width.relative() > most.relative()) {
            self.relative = Some(width);
        }
    }

    /// Takes one float into account; whether it is admissible.
    fn float(&mut self, position: usize, expected: &Interval, found: f64) -> bool {
        self.found.take(found);
        self.admitted.nan += usize::from(expected.nan);
        self.admitted.infinite += usize::from(expected.has_infinity());
        if let Some(single) = expected.single() {
            self.exact += 1;
            return single.to_bits() == found.to_bits() || single.is_nan() && found.is_nan();
        }
        if !expected.is_empty() {
            self.interval(Width { position, lo: expected.lo, hi: expected.hi });
        }
        if !expected.contains(found) {
            return false;
        }
        let (middle, half) = (expected.lo / 2.0 + expected.hi / 2.0, expected.hi / 2.0 - expected.lo / 2.0);
        if half > 0.0 && half.is_finite() && found.is_finite() {
            let distance = (found - middle).abs();
            self.worst = self.worst.max(distance / half);
            if self.farthest.is_none_or(|(most, _)| distance > most) {
                self.farthest = Some((distance, position));
            }
        }
        true
    }
}

impl fmt::Display for Admissible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Float(interval) => interval.fmt(f),
            Self::Integer(range) if range.start() == range.end() => write!(f, "exactly {}", range.start()),
            Self::Integer(range) => write!(f, "{} to {}", range.start(), range.end()),
            Self::OneOf(values) => {
                let shown: Vec<String> = values.iter().take(8).map(i128::to_string).collect();
                let more = if values.len() > 8 { format!(" or {} more", values.len() - 8) } else { String::new() };
                write!(f, "one of {}{more}", shown.join(", "))
            }
        }
    }
}

impl fmt::Display for Agreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { elements, exact, worst, estimate, .. } = self;
        let noun = if *elements == 1 { "element" } else { "elements" };
        if exact == elements {
            return write!(f, "{elements} {noun}, all exact");
        }
        let percent = worst * 100.0;
        let bounds = if *estimate { "estimated bounds" } else { "bounds" };
        write!(
            f,
            "{elements} {noun} admissible, {exact} of them exact, the others within {percent:.0} % of their {bounds}"
        )
    }
}
