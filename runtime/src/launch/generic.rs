//! What all kernels have in common, for code that is not written for one of them.

use tilewright_kernel::KernelInfo;

use super::{Arg, Prepared, launch, prepare};
use crate::device::Stream;
use crate::error::Result;
use crate::reference::{Reference, reference, reference_as_scheduled};

/// A kernel of [`schedule!`](crate::schedule) with its arguments.
///
/// ```
/// use tilewright::{Device, EmulatorOptions, Kernel, Tensor, schedule};
///
/// schedule! {
///     pub kernel Twice(x: f32[N]) -> (y: f32[N]) {
///         y[i] = 2.0 * x[i];
///         schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; }
///     }
/// }
///
/// fn seconds<'m, K: Kernel<'m>>(kernel: K, device: &Device) -> tilewright::Result<f64> {
///     let prepared = kernel.prepare_on(device.as_ref())?;
///     let start = std::time::Instant::now();
///     prepared.run()?;
///     device.synchronize()?;
///     println!("{}: {} threads a block", K::INFO.name, K::INFO.launch.threads);
///     Ok(start.elapsed().as_secs_f64())
/// }
///
/// # fn main() -> tilewright::Result<()> {
/// let device = Device::emulator(EmulatorOptions::default());
/// let x = Tensor::full(&device, 1.5_f32, [1000])?;
/// let mut y = Tensor::zeros(&device, [1000])?;
/// assert!(seconds(Twice { x: &x, y: &mut y }, &device)? > 0.0);
/// assert_eq!(y.to_vec()?, [3.0; 1000]);
/// # Ok(()) }
/// ```
///
/// The macro implements it; other types cannot. The methods have names of their own, so that those of the struct, which
/// need no trait, are never hidden.
pub trait Kernel<'m>: Sized {
    /// The compiled kernel.
    const INFO: &'static KernelInfo;

    /// The arguments, in the order of the parameters.
    #[doc(hidden)]
    fn into_arguments(self) -> Vec<Arg<'m>>;

    /// Checks the arguments and launches; nothing is launched if a check fails.
    ///
    /// # Errors
    /// The first check that fails, with the values.
    fn launch_on(self, stream: &Stream) -> Result<()> {
        launch(Self::INFO, &self.into_arguments(), stream)
    }

    /// Checks the arguments once, for many launches.
    ///
    /// # Errors
    /// The first check that fails, with the values.
    fn prepare_on(self, stream: &Stream) -> Result<Prepared<'m>> {
        prepare(Self::INFO, &self.into_arguments(), stream)
    }

    /// Evaluates the algorithm on the host: the values that any admissible output takes.
    ///
    /// # Errors
    /// As [`Self::launch_on`].
    fn evaluate(self) -> Result<Reference> {
        reference(Self::INFO, &self.into_arguments())
    }

    /// The same with narrower float sums: a row of 4096 terms that 256 threads add up goes through 270 additions at
    /// most, not through 4095. For what else the schedule decides, and for sums of tensor cores, it admits the same.
    ///
    /// # Errors
    /// As [`Self::launch_on`].
    fn evaluate_as_scheduled(self) -> Result<Reference> {
        reference_as_scheduled(Self::INFO, &self.into_arguments(), u64::MAX)
    }
}
