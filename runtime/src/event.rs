//! Points in the work of a stream, and the time between them.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[cfg(feature = "cuda")]
use crate::cuda;
use crate::device::{DeviceInner, Stream};
use crate::error::{Error, Result};

/// A point in the work of a stream: it happens when all that was enqueued before it is done.
///
/// ```
/// # use tilewright::{Device, EmulatorOptions};
/// # fn main() -> tilewright::Result<()> {
/// let device = Device::emulator(EmulatorOptions::default());
/// let stream = device.new_stream()?;
/// let start = stream.record()?;
/// // … launches on the stream …
/// let end = stream.record()?;
/// println!("{:?}", end.since(&start)?);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Event {
    point: Point,
    device: Arc<DeviceInner>,
}

#[derive(Clone)]
enum Point {
    #[cfg(feature = "cuda")]
    Cuda(Arc<cuda::Event>),
    /// On the emulator a launch is done when it returns.
    Host(Instant),
}

impl Stream {
    /// A point after all work that was enqueued so far.
    ///
    /// # Errors
    /// A failure of the driver.
    pub fn record(&self) -> Result<Event> {
        let device = Arc::clone(&self.inner().device);
        #[cfg(feature = "cuda")]
        if let Some(stream) = self.inner().cuda() {
            return Ok(Event { point: Point::Cuda(stream.record_time()?), device });
        }
        Ok(Event { point: Point::Host(Instant::now()), device })
    }
}

impl Event {
    /// Waits until it has happened.
    ///
    /// # Errors
    /// A failure of the driver, or the error of an earlier launch.
    pub fn synchronize(&self) -> Result<()> {
        match &self.point {
            #[cfg(feature = "cuda")]
            Point::Cuda(event) => event.synchronize(),
            Point::Host(_) => Ok(()),
        }
    }

    /// The time from an earlier event of the same device to this one, by the device's clock; waits for both. Zero if
    /// the other one is later.
    ///
    /// # Errors
    /// [`Error::Layout`] for events of two devices; a failure of the driver.
    pub fn since(&self, earlier: &Self) -> Result<Duration> {
        earlier.synchronize()?;
        self.synchronize()?;
        match (&self.point, &earlier.point) {
            #[cfg(feature = "cuda")]
            (Point::Cuda(end), Point::Cuda(start)) if self.device.is(&earlier.device) => {
                Ok(Duration::from_secs_f64(f64::from(end.milliseconds_since(start)?).max(0.0) / 1e3))
            }
            (Point::Host(end), Point::Host(start)) if self.device.is(&earlier.device) => {
                Ok(end.saturating_duration_since(*start))
            }
            _ => Err(Error::Layout { operation: "since", reason: "the events are of two devices".to_owned() }),
        }
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Event(on {})", self.device.name())
    }
}

#[cfg(test)]
mod tests {
    use crate::{Device, EmulatorOptions, Error};

    #[test]
    fn time_passes_between_events_of_one_device() {
        let device = Device::emulator(EmulatorOptions::default());
        let stream = device.new_stream().unwrap();
        let (first, second) = (stream.record().unwrap(), stream.record().unwrap());
        assert!(second.since(&first).is_ok());
        assert!(first.since(&second).unwrap() <= second.since(&first).unwrap());
        let other = Device::emulator(EmulatorOptions::default()).new_stream().unwrap().record().unwrap();
        assert!(matches!(other.since(&first), Err(Error::Layout { operation: "since", .. })));
    }
}
