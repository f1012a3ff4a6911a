//! One launch of a kernel that is data, with random inputs, compared with the reference.

use std::fmt;

use tilewright::__private::{self, Arg, DynamicTensor};
use tilewright::kernel::ElementType;
use tilewright::kernel::KernelInfo;
use tilewright::kernel::format::Format;
use tilewright::kernel::info::{Parameter, ParameterKind, Role};
use tilewright::{Agreement, Device, EmulatorReport, Error, Prepared, Reference, Stream};

use crate::data::{self, Data};
use crate::inputs::{Floats, Random, elements_with};
use crate::sizes::{self, SizesError};

/// Most bytes that the tensors of a trial take.
pub const MOST_BYTES: u64 = 4 << 30;
/// What outputs hold before the launch: an element that is never written is seen.
const FILLER: u8 = 0xa5;

/// Why a trial could not be made.
#[derive(Debug)]
pub enum TrialError {
    /// A tensor has no layout.
    Sizes(SizesError),
    /// The tensors are too large.
    TooLarge {
        /// Bytes needed.
        bytes: u128,
    },
    /// A scalar that there is not, or a text that is no number of its type.
    Scalar(String),
    /// The runtime's refusal or failure.
    Runtime(Error),
}

impl fmt::Display for TrialError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sizes(error) => error.fmt(f),
            Self::TooLarge { bytes } => write!(f, "the tensors take {bytes} bytes; at most {MOST_BYTES} are tried"),
            Self::Scalar(what) => f.write_str(what),
            Self::Runtime(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for TrialError {}

impl From<Error> for TrialError {
    fn from(error: Error) -> Self {
        Self::Runtime(error)
    }
}

/// A kernel with its arguments on one device.
#[derive(Debug)]
pub struct Trial<'k> {
    kernel: &'k KernelInfo,
    /// In the order of the parameters.
    values: Vec<Value>,
    /// Bytes of all elements: see [`least`].
    pub traffic: u64,
    /// Elements and terms that the reference may evaluate.
    work: u64,
}

#[derive(Debug)]
enum Value {
    Scalar(u64),
    Tensor(DynamicTensor),
}

/// An output, compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Its name.
    pub output: String,
    /// How it agrees, or the first element that does not.
    pub result: Result<Agreement, Error>,
    /// What was measured whether it agrees or not; none if it could not be read.
    pub measured: Option<Agreement>,
    /// The indices of the elements that `measured` speaks of.
    pub places: Places,
}

/// The indices of elements that are told of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// Of the widest interval.
    pub widest: Vec<usize>,
    /// Of the one that is widest as a part of its value.
    pub relative: Vec<usize>,
    /// Of the element that is farthest from the middle.
    pub farthest: Vec<usize>,
}

/// What a launch gave.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The refusal of the launch or the finding that stopped it.
    pub failure: Option<Error>,
    /// Each output; empty after a failure.
    pub verdicts: Vec<Verdict>,
    /// What the emulator found and counted, if it ran.
    pub report: Option<EmulatorReport>,
}

impl Outcome {
    /// Whether everything is as it should be.
    pub fn is_good(&self) -> bool {
        self.failure.is_none()
            && self.verdicts.iter().all(|v| v.result.is_ok())
            && self.report.as_ref().is_none_or(|r| r.faults.is_empty() && r.warnings.is_empty())
    }
}

/// Names and values of scalars that are given as `eps=1e-5`.
///
/// # Errors
/// What to tell the user of a text that is not.
pub fn scalars(given: &[String]) -> Result<Vec<(&str, &str)>, String> {
    let mut all = Vec::new();
    for text in given {
        match text.split_once('=') {
            Some((name, value)) => all.push((name.trim(), value.trim())),
            None => return Err(format!("`--arg {text}`: a scalar is given as NAME=VALUE, such as eps=1e-5")),
        }
    }
    Ok(all)
}

/// Bytes that a launch loads and stores at least: every element of an input and of an output once, and of a tensor that
/// is updated in place both ways. Of a tensor that terms are scattered into no element need have any.
pub fn least(kernel: &KernelInfo, layouts: &[Option<sizes::Layout>]) -> [u64; 2] {
    let mut all = [0; 2];
    for (number, (parameter, layout)) in (0..).zip(kernel.parameters.iter().zip(layouts)) {
        let (ParameterKind::Tensor(tensor), Some(layout)) = (&parameter.kind, layout) else { continue };
        if kernel.algorithm.is_scattered(number) {
            continue;
        }
        let bytes = layout.elements.saturating_mul(parameter.element.bytes().into());
        for (sum, moves) in all.iter_mut().zip([tensor.role != Role::Output, tensor.role.is_written()]) {
            *sum += if moves { bytes } else { 0 };
        }
    }
    all
}

impl<'k> Trial<'k> {
    /// Random arguments on a device. The same kernel, sizes and seed give the same values on every device.
    ///
    /// # Errors
    /// As [`TrialError`] says.
    pub fn new(kernel: &'k KernelInfo, dims: &[i64], seed: u64, device: &Device) -> Result<Self, TrialError> {
        Self::with(kernel, dims, (seed, Floats::Real), device)
    }

    /// The same with such floats.
    ///
    /// # Errors
    /// As [`TrialError`] says.
    pub fn with(
        kernel: &'k KernelInfo,
        dims: &[i64],
        drawn: (u64, Floats),
        device: &Device,
    ) -> Result<Self, TrialError> {
        Self::with_data(kernel, dims, drawn, &[], device)
    }

    /// The same with such numbers in some tensors.
    ///
    /// # Errors
    /// As [`TrialError`] says.
    pub fn with_data(
        kernel: &'k KernelInfo,
        dims: &[i64],
        (seed, floats): (u64, Floats),
        data: &[Data],
        device: &Device,
    ) -> Result<Self, TrialError> {
        let layouts = sizes::layouts(kernel, dims).map_err(TrialError::Sizes)?;
        // What is promised of the data is so.
        let promised = data::promised(kernel, data);
        let reach = |l: &sizes::Layout| {
            // The elements in a row, and the tensor from its first element to its last.
            let each = l.shape.iter().zip(&l.strides);
            let each = each.map(|(&e, &s)| (e as u128).saturating_sub(1).saturating_mul(s as u128));
            let span = if l.elements == 0 { 0 } else { each.fold(1, u128::saturating_add) };
            span.saturating_add(l.elements.into())
        };
        let sizes_of = kernel.parameters.iter().zip(&layouts);
        let bytes = sizes_of.clone().filter_map(|(p, l)| Some(reach(l.as_ref()?) * u128::from(p.element.bytes())));
        let bytes = bytes.fold(0, u128::saturating_add);
        if bytes > u128::from(MOST_BYTES) {
            return Err(TrialError::TooLarge { bytes });
        }
        let mut values = Vec::new();
        let traffic = least(kernel, &layouts).iter().sum();
        let mut random = Random::new(seed);
        for (parameter, layout) in sizes_of {
            match (&parameter.kind, layout) {
                (ParameterKind::Tensor(tensor), Some(layout)) => {
                    let count = layout.elements as usize;
                    let size = parameter.element.bytes() as usize;
                    let contents = match tensor.role {
                        Role::Output => vec![FILLER; count * size],
                        Role::Input | Role::InOut => {
                            match data.iter().chain(&promised).find(|data| data.name == *parameter.name) {
                                Some(data) => data.elements(parameter.element, count, &mut random),
                                None => elements_with(floats, parameter.element, count, &mut random),
                            }
                        }
                    };
                    let place = (&*layout.shape, &*layout.strides);
                    let element = parameter.element;
                    values.push(Value::Tensor(DynamicTensor::new(device, element, place, &contents, FILLER)?));
                }
                _ => {
                    let bytes = elements_with(floats, parameter.element, 1, &mut random);
                    let mut bits = [0; 8];
                    bits[..bytes.len()].copy_from_slice(&bytes);
                    values.push(Value::Scalar(u64::from_le_bytes(bits)));
                }
            }
        }
        Ok(Self { kernel, values, traffic, work: u64::MAX })
    }

    /// The scalars, each with its number.
    pub fn scalars(&self) -> Vec<(&'k str, f64)> {
        let of = |(parameter, value): (&'k Parameter, &Value)| match value {
            Value::Scalar(bits) => Some((&*parameter.name, number_of(parameter.element, *bits))),
            Value::Tensor(_) => None,
        };
        self.kernel.parameters.iter().zip(&self.values).filter_map(of).collect()
    }

    /// Gives a scalar the number that a text is.
    ///
    /// # Errors
    /// There is no such scalar, or the text is no number of its type.
    pub fn set_scalar(&mut self, name: &str, text: &str) -> Result<(), TrialError> {
        let mut found = self.kernel.parameters.iter().zip(&mut self.values).filter(|(p, _)| p.name == name);
        let Some((parameter, Value::Scalar(bits))) = found.next() else {
            let scalars: Vec<&str> = self.scalars().into_iter().map(|(name, _)| name).collect();
            let known = if scalars.is_empty() { "it has none".to_owned() } else { scalars.join(", ") };
            let what = format!("kernel {} has no scalar `{name}`: {known}", self.kernel.name);
            return Err(TrialError::Scalar(what));
        };
        let element = parameter.element;
        let parsed = bits_of(element, text);
        *bits = parsed
            .ok_or_else(|| TrialError::Scalar(format!("`{text}` is no number of `{name}`, which is {element}")))?;
        Ok(())
    }

    /// The bits of all scalars, to take them back.
    pub fn clone_scalars(&self) -> Vec<Option<u64>> {
        self.values.iter().map(|value| if let Value::Scalar(bits) = value { Some(*bits) } else { None }).collect()
    }

    /// Takes scalars back to what they were.
    pub fn restore_scalars(&mut self, before: &[Option<u64>]) {
        for (value, before) in self.values.iter_mut().zip(before) {
            if let (Value::Scalar(bits), Some(before)) = (value, before) {
                *bits = *before;
            }
        }
    }

    /// Takes the sign from the scalars that are floats, but these. Whether one had a sign.
    pub fn make_positive(&mut self, but: &dyn Fn(&str) -> bool) -> bool {
        let mut changed = false;
        for (parameter, value) in self.kernel.parameters.iter().zip(&mut self.values) {
            let (Value::Scalar(bits), Some(format)) = (value, Format::of(parameter.element)) else { continue };
            let number = format.value(*bits);
            if number < 0.0 && !but(&parameter.name) {
                *bits = format.from_f64(-number);
                changed = true;
            }
        }
        changed
    }

    /// With so many elements and terms at most that the reference evaluates: an error says so where there are more.
    pub fn within(self, work: u64) -> Self {
        Self { work, ..self }
    }

    fn arguments(&self) -> Vec<Arg<'static>> {
        let argument = |(parameter, value): (&Parameter, &Value)| match value {
            Value::Scalar(bits) => Arg::bits(parameter.element, *bits),
            Value::Tensor(tensor) => {
                let written = matches!(&parameter.kind, ParameterKind::Tensor(t) if t.role.is_written());
                Arg::dynamic(tensor, written)
            }
        };
        self.kernel.parameters.iter().zip(&self.values).map(argument).collect()
    }

    /// What the algorithm admits for the arguments as they are now; of float sums, what the additions of the schedule
    /// may lose.
    ///
    /// # Errors
    /// The refusal of the arguments, or what cannot be evaluated.
    pub fn reference(&self) -> Result<Reference, Error> {
        __private::reference_as_scheduled(self.kernel, &self.arguments(), self.work)
    }

    /// Launches and waits.
    ///
    /// # Errors
    /// The refusal of the launch, or the failure of the device.
    pub fn launch(&self, device: &Device) -> Result<(), Error> {
        __private::launch(self.kernel, &self.arguments(), device.as_ref())?;
        device.synchronize()
    }

    /// A launch to be repeated.
    ///
    /// # Errors
    /// The refusal of the launch.
    pub fn prepare(&self, on: &Stream) -> Result<Prepared<'static>, Error> {
        __private::prepare(self.kernel, &self.arguments(), on)
    }

    /// Compares every output with what is admissible.
    pub fn compare(&self, reference: &Reference) -> Vec<Verdict> {
        let verdict = |output: tilewright::ReferenceOutput<'_>| {
            let name = output.name().to_owned();
            match self.read(output.name()).and_then(|bytes| output.measure_raw(&bytes)) {
                Ok((measured, matches)) => {
                    let at = |position: Option<usize>| position.map(|p| output.index(p)).unwrap_or_default();
                    let places = Places {
                        widest: at(measured.widest.map(|w| w.position)),
                        relative: at(measured.relative.map(|w| w.position)),
                        farthest: at(measured.farthest.map(|(_, position)| position)),
                    };
                    Verdict { output: name, result: matches.map(|()| measured), measured: Some(measured), places }
                }
                Err(error) => Verdict { output: name, result: Err(error), measured: None, places: Places::default() },
            }
        };
        reference.outputs().map(verdict).collect()
    }

    /// The bytes of a tensor in row-major order.
    ///
    /// # Errors
    /// There is no such tensor; a failure of the device.
    pub fn read(&self, name: &str) -> Result<Vec<u8>, Error> {
        let found = self.kernel.parameters.iter().zip(&self.values).find(|(p, _)| p.name == name);
        match found {
            Some((_, Value::Tensor(tensor))) => tensor.read(),
            _ => {
                let reason = format!("kernel {} has no tensor `{name}`", self.kernel.name);
                Err(Error::Layout { operation: "Trial::read", reason })
            }
        }
    }

    /// Evaluates the reference, launches, and compares.
    pub fn run(&self, device: &Device) -> Outcome {
        // In this order: the reference reads the old values of what is updated in place.
        self.against(self.reference().as_ref(), device)
    }

    /// Launches, and compares with the reference for the same arguments.
    pub fn against(&self, reference: Result<&Reference, &Error>, device: &Device) -> Outcome {
        let result = reference.map_err(Error::clone).and_then(|reference| self.launch(device).map(|()| reference));
        let report = device.emulator_report();
        match result {
            Ok(reference) => Outcome { failure: None, verdicts: self.compare(reference), report },
            Err(error) => Outcome { failure: Some(error), verdicts: Vec::new(), report },
        }
    }
}

/// A number of a type, given its bits.
fn number_of(element: ElementType, bits: u64) -> f64 {
    let unused = 64 - 8 * element.bytes();
    match Format::of(element) {
        Some(format) => format.value(bits),
        None if element.is_signed_integer() => ((bits << unused) as i64 >> unused) as f64,
        None => bits as f64,
    }
}

/// The bits of the number that a text is.
fn bits_of(element: ElementType, text: &str) -> Option<u64> {
    let bits = 8 * element.bytes();
    if let Some(format) = Format::of(element) {
        return text.parse().ok().map(|number: f64| format.from_f64(number));
    }
    if element == ElementType::Bool {
        return text.parse().ok().map(|number: bool| number.into());
    }
    let number: i128 = text.parse().ok()?;
    let (least, most) = match element.is_signed_integer() {
        true => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
        false => (0, (1 << bits) - 1),
    };
    // In two's complement.
    ((least..=most).contains(&number)).then_some((number & ((1 << bits) - 1)) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_are_read_as_they_are_written() {
        use ElementType as E;
        let read = |element: E, text: &str| bits_of(element, text).map(|bits| number_of(element, bits));
        let rows = [
            (E::F32, "1e-5", Some(f64::from(1e-5_f32))),
            (E::F16, "0.5", Some(0.5)),
            (E::F64, "-2", Some(-2.0)),
            (E::I8, "-128", Some(-128.0)),
            (E::I8, "128", None),
            (E::U16, "65535", Some(65535.0)),
            (E::U16, "-1", None),
            (E::I64, "-9", Some(-9.0)),
            (E::U64, "18446744073709551615", Some(u64::MAX as f64)),
            (E::Bool, "true", Some(1.0)),
            (E::Bool, "1", None),
            (E::F32, "x", None),
            (E::I32, "1.5", None),
        ];
        for (element, text, expected) in rows {
            assert_eq!(read(element, text), expected, "{element} {text}");
        }
    }
}
