//! Tensors in the emulator's memory: nothing but their elements may change, and of these only what is written.

use half::{bf16, f16};
use tilewright_emulator::{Error, Memory};

use super::ast::{Dims, Kernel, Number, PITCHES, Stride, Type};
use super::evaluate::Tensor;

/// What surrounds tensors, and fills the gaps between their elements.
const PATTERN: u8 = 0xa5;
/// Bytes after a tensor.
const TAIL: u64 = 48;

/// A tensor in memory, or a scalar.
pub(super) struct Placed {
    pub name: String,
    pub ty: Type,
    /// First byte of the allocation, and how far after it the tensor begins.
    allocation: u64,
    lead: u64,
    /// Bytes from the first element to the end of the last one.
    pub span: u64,
    /// Byte offsets of the elements in row-major order.
    offsets: Vec<u64>,
    shape: Vec<i64>,
    pub output: bool,
    pub by_value: bool,
    /// Elements before the launch; none of an output that is only written.
    before: Vec<Number>,
    /// Elements after it.
    after: Vec<Number>,
}

fn encode(value: Number, ty: Type) -> Vec<u8> {
    let float = value.float();
    // A float of 8 bits by its parts: integers up to 16, or 8, are powers of two times 1 + m / 2^mantissa.
    let small = |mantissa: i32, bias: i32| -> Vec<u8> {
        if float == 0.0 {
            return vec![0];
        }
        let exponent = float.abs().log2().floor() as i32;
        let fraction = (float.abs() / 2f64.powi(exponent) - 1.0) * 2f64.powi(mantissa);
        vec![u8::from(float < 0.0) << 7 | ((exponent + bias) as u8) << mantissa | fraction as u8]
    };
    match ty {
        Type::E4m3 => small(3, 7),
        Type::E5m2 => small(2, 15),
        Type::F16 => f16::from_f64(float).to_le_bytes().to_vec(),
        Type::Bf16 => bf16::from_f64(float).to_le_bytes().to_vec(),
        Type::F32 | Type::Tf32 => (float as f32).to_le_bytes().to_vec(),
        Type::F64 => float.to_le_bytes().to_vec(),
        _ => value.int().to_le_bytes()[..ty.bytes() as usize].to_vec(),
    }
}

fn decode(bytes: &[u8], ty: Type) -> Number {
    match (ty, bytes) {
        (Type::F16, [a, b]) => Number::Float(f16::from_le_bytes([*a, *b]).to_f64()),
        (Type::Bf16, [a, b]) => Number::Float(bf16::from_le_bytes([*a, *b]).to_f64()),
        (Type::F32, [a, b, c, d]) => Number::Float(f32::from_le_bytes([*a, *b, *c, *d]).into()),
        (Type::F64, [a, b, c, d, e, f, g, h]) => Number::Float(f64::from_le_bytes([*a, *b, *c, *d, *e, *f, *g, *h])),
        _ if ty.ends().is_some() => {
            let word = bytes.iter().rev().fold(0_i128, |word, byte| word << 8 | i128::from(*byte));
            // Another byte than 0 and 1 is no `bool`.
            Number::Int(if ty == Type::Bool { word } else { ty.wrapped(word) })
        }
        _ => Number::Float(f64::NAN),
    }
}

impl Placed {
    /// A tensor or scalar of a kernel, with what it holds before and after.
    pub fn new(kernel: &Kernel, name: &str, (before, after): (Option<&Tensor>, &Tensor), dims: &Dims) -> Option<Self> {
        let ty = kernel.type_of(name);
        let by_value = kernel.inputs.iter().any(|i| i.name == name && i.by_value);
        let output = kernel.outputs().iter().any(|o| o.0 == name);
        let (shape, strides) = match kernel.declared().into_iter().find(|d| d.0 == name) {
            Some((_, _, shape, strides, _)) => (shape, strides),
            None if by_value => (Vec::new(), Vec::new()),
            None => return None,
        };
        let shape: Vec<i64> = shape.iter().map(|e| e.at(dims)).collect();
        let mut dense = 1;
        let mut own: Vec<i64> = shape.iter().rev().map(|n| (dense, dense *= n).0).collect();
        own.reverse();
        if !strides.is_empty() {
            let value = |s: &Stride| match s {
                Stride::Extent(extent) => extent.at(dims),
                Stride::Pitch(n) => dims.get(PITCHES[*n]).copied().unwrap_or(0),
            };
            own = strides.iter().map(value).collect();
        }
        let offset = |point: Vec<i64>| {
            let elements: i64 = point.iter().zip(&own).map(|(i, stride)| i * stride).sum();
            elements as u64 * ty.bytes()
        };
        let offsets: Vec<u64> = super::evaluate::points(&shape).map(offset).collect();
        let span = offsets.iter().max().map_or(0, |last| last + ty.bytes());
        let before = before.map(|t| t.data.clone()).unwrap_or_default();
        let after = after.data.clone();
        let (name, (allocation, lead)) = (name.to_owned(), (0, 0));
        Some(Self { name, ty, allocation, lead, span, offsets, shape, output, by_value, before, after })
    }

    /// Gives it memory, with so many bytes before it.
    pub fn allocate(&mut self, memory: &Memory, lead: u64) -> Result<(), Error> {
        if !self.by_value {
            self.lead = lead;
            self.allocation = memory.alloc(lead + self.span + TAIL, &self.name)?;
        }
        Ok(())
    }

    /// Where it begins.
    pub fn base(&self) -> u64 {
        self.allocation + self.lead
    }

    /// The bytes of a scalar.
    pub fn bytes(&self) -> Vec<u8> {
        self.before.iter().flat_map(|v| encode(*v, self.ty)).collect()
    }

    /// Which bytes of the allocation belong to elements.
    fn elements(&self) -> Vec<bool> {
        let mut is_element = vec![false; (self.lead + self.span + TAIL) as usize];
        for at in &self.offsets {
            is_element[(self.lead + at) as usize..][..self.ty.bytes() as usize].fill(true);
        }
        is_element
    }
}

/// Inputs as they are, outputs unwritten or of another pattern, and marks around and between elements.
pub(super) fn prepare(memory: &Memory, placed: &[Placed]) -> Result<(), Error> {
    for t in placed.iter().filter(|t| !t.by_value) {
        if t.before.is_empty() && t.output {
            // The first launch finds elements unwritten; later ones must write again what earlier ones wrote.
            let is_element = t.elements();
            let mut from = 0;
            while from < is_element.len() {
                let run = is_element[from..].iter().take_while(|is| **is == is_element[from]).count();
                let (address, bytes) = (t.allocation + from as u64, run as u64);
                if !is_element[from] {
                    memory.fill(address, bytes, PATTERN)?;
                } else if memory.is_initialised(address, bytes)? {
                    memory.fill(address, bytes, 0x7f)?;
                }
                from += run;
            }
            continue;
        }
        memory.fill(t.allocation, t.lead + t.span + TAIL, PATTERN)?;
        for (at, value) in t.offsets.iter().zip(&t.before) {
            memory.write(t.base() + at, &encode(*value, t.ty))?;
        }
    }
    Ok(())
}

/// Whether outputs are what they must be, and everything else is as it was.
pub(super) fn compare(memory: &Memory, placed: &[Placed]) -> Result<(), (&'static str, String)> {
    let bad = |e: Error| ("emulator", e.to_string());
    for t in placed.iter().filter(|t| t.output) {
        let (name, shape, width) = (&t.name, &t.shape, t.ty.bytes());
        let is_element = t.elements();
        let mut after = vec![0; is_element.len()];
        memory.read(t.allocation, &mut after).map_err(bad)?;
        if let Some(at) = (0..after.len()).find(|at| !is_element[*at] && after[*at] != PATTERN) {
            return Err(("stray-write", format!("byte {} of `{name}` changed", at as i64 - t.lead as i64)));
        }
        for (n, (at, value)) in t.offsets.iter().zip(&t.after).enumerate() {
            if !memory.is_initialised(t.base() + at, width).map_err(bad)? {
                return Err(("unwritten", format!("element {n} of `{name}` (shape {shape:?})")));
            }
            let got = decode(&after[(t.lead + at) as usize..][..width as usize], t.ty);
            if !got.same(*value) {
                return Err(("mismatch", format!("element {n} of `{name}` (shape {shape:?}) is {got}, not {value}")));
            }
        }
    }
    Ok(())
}
