//! One launch of a kernel that is data, with random inputs, compared with the reference.

use std::fmt;

use tilewright::__private::{self, Arg, DynamicTensor};
use tilewright::kernel::KernelInfo;
use tilewright::kernel::info::{ParameterKind, Role};
use tilewright::{Agreement, Device, EmulatorReport, Error, Prepared, Reference, Stream};

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
    /// The runtime's refusal or failure.
    Runtime(Error),
}

impl fmt::Display for TrialError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sizes(error) => error.fmt(f),
            Self::TooLarge { bytes } => write!(f, "the tensors take {bytes} bytes; at most {MOST_BYTES} are tried"),
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
    /// Bytes of all elements: those that are only read or written once, those updated in place twice.
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
        (seed, floats): (u64, Floats),
        device: &Device,
    ) -> Result<Self, TrialError> {
        let layouts = sizes::layouts(kernel, dims).map_err(TrialError::Sizes)?;
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
        let (mut values, mut traffic) = (Vec::new(), 0);
        let mut random = Random::new(seed);
        for (parameter, layout) in sizes_of {
            match (&parameter.kind, layout) {
                (ParameterKind::Tensor(tensor), Some(layout)) => {
                    let count = layout.elements as usize;
                    let size = parameter.element.bytes() as usize;
                    let contents = match tensor.role {
                        Role::Output => vec![FILLER; count * size],
                        Role::Input | Role::InOut => elements_with(floats, parameter.element, count, &mut random),
                    };
                    let times = if tensor.role == Role::InOut { 2 } else { 1 };
                    traffic += layout.elements * size as u64 * times;
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

    /// With so many elements and terms at most that the reference evaluates: an error says so where there are more.
    pub fn within(self, work: u64) -> Self {
        Self { work, ..self }
    }

    fn arguments(&self) -> Vec<Arg<'static>> {
        let argument = |(parameter, value): (&tilewright::kernel::info::Parameter, &Value)| match value {
            Value::Scalar(bits) => Arg::bits(parameter.element, *bits),
            Value::Tensor(tensor) => {
                let written = matches!(&parameter.kind, ParameterKind::Tensor(t) if t.role.is_written());
                Arg::dynamic(tensor, written)
            }
        };
        self.kernel.parameters.iter().zip(&self.values).map(argument).collect()
    }

    /// What the algorithm admits for the arguments as they are now.
    ///
    /// # Errors
    /// The refusal of the arguments, or what cannot be evaluated.
    pub fn reference(&self) -> Result<Reference, Error> {
        __private::reference_within(self.kernel, &self.arguments(), self.work)
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
        self.against(self.reference(), device)
    }

    /// Launches, and compares with the reference for the same arguments.
    pub fn against(&self, reference: Result<Reference, Error>, device: &Device) -> Outcome {
        let result = reference.and_then(|reference| self.launch(device).map(|()| reference));
        let report = device.emulator_report();
        match result {
            Ok(reference) => Outcome { failure: None, verdicts: self.compare(&reference), report },
            Err(error) => Outcome { failure: Some(error), verdicts: Vec::new(), report },
        }
    }
}
