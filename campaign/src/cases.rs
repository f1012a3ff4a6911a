//! Cases one after the other in several threads, with a watch that ends the process where one does not end.
//!
//! What a case may take is time of the processor, of all threads of the process: a case may wait for threads that
//! evaluate for it, and a busy machine is no hang. All cases that run at one time share it.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Bytes that the process may hold: with more, some case takes memory without bound.
const MEMORY: u64 = 6 << 30;
/// Ticks of the processor's time in a second, as Linux tells it.
const TICKS: u64 = 100;
/// A case that uses no time of the processor at all waits for something that does not come: then it has so many times
/// its time by the clock on the wall.
const BY_THE_CLOCK: u32 = 20;

/// When something began.
#[derive(Clone, Copy, Debug)]
struct Start {
    wall: Instant,
    used: Option<Duration>,
}

/// Whose time is meant.
#[derive(Clone, Copy, Debug)]
enum Of {
    /// All threads of the process.
    Process,
    /// The one that asks.
    Thread,
}

impl Start {
    /// Now.
    fn now(of: Of) -> Self {
        Self { wall: Instant::now(), used: used(of) }
    }

    /// The processor's time since then, of the same threads; by the clock on the wall where the system does not tell.
    fn used(&self, of: Of) -> Duration {
        match (self.used, used(of)) {
            (Some(before), Some(now)) => now.saturating_sub(before),
            _ => self.wall.elapsed(),
        }
    }

    /// Whether one of so many cases, which share the process's time, has had more than it may take.
    fn is_over(&self, limit: Duration, cases: u32) -> bool {
        self.used(Of::Process) > limit * cases || self.wall.elapsed() > limit * BY_THE_CLOCK
    }
}

/// What comes of it, and the processor's time that the thread took for it.
pub fn timed<T>(what: impl FnOnce() -> T) -> (T, Duration) {
    let start = Start::now(Of::Thread);
    let found = what();
    (found, start.used(Of::Thread))
}

/// The processor's time so far, where the system tells (Linux): ticks in user and in kernel mode, the 14th and the 15th
/// field of `stat`.
fn used(of: Of) -> Option<Duration> {
    let path = match of {
        Of::Process => "/proc/self/stat",
        Of::Thread => "/proc/thread-self/stat",
    };
    ticks(&std::fs::read_to_string(path).ok()?).map(|ticks| Duration::from_millis(ticks * (1000 / TICKS)))
}

fn ticks(stat: &str) -> Option<u64> {
    // The second field is a name in parentheses, which may hold anything.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some(next()? + next()?)
}

/// Bytes of memory that the process holds, where the system tells (Linux): pages of 4 KiB, the second number of
/// `/proc/self/statm`.
fn resident() -> u64 {
    let told = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = told.split_whitespace().nth(1).and_then(|n| n.parse().ok()).unwrap_or(0_u64);
    pages * 4096
}

/// The value in a mutex, whoever panicked with it.
pub fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Does something with each of the cases `first..first + count`, in parallel; ends the process where one takes more
/// than `limit` of the processor's time, or too much memory.
pub fn each(
    seed: u64,
    (first, count): (u64, u64),
    limit: Duration,
    shown: &(dyn Fn(u64) -> String + Sync),
    one: &(dyn Fn(u64) + Sync),
) {
    let running: Mutex<BTreeMap<u64, Start>> = Mutex::new(BTreeMap::new());
    let done = AtomicBool::new(false);
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let cases = u32::try_from(workers).unwrap_or(u32::MAX);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(100));
                let hung =
                    lock(&running).iter().find(|(_, start)| start.is_over(limit, cases)).map(|(index, _)| *index);
                if let Some(index) = hung {
                    eprintln!("seed {seed} case {index} does not end:\n{}", shown(index));
                    std::process::exit(3);
                }
                if resident() > MEMORY {
                    for index in lock(&running).keys() {
                        eprintln!("seed {seed} case {index} may hold it:\n{}", shown(*index));
                    }
                    eprintln!("more than {} GiB of memory", MEMORY >> 30);
                    std::process::exit(3);
                }
            }
        });
        // Threads of our own: a case that waits inside the reference must not start another one on its stack.
        let next = AtomicU64::new(first);
        let work = || {
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= first + count {
                    return;
                }
                lock(&running).insert(index, Start::now(Of::Process));
                one(index);
                lock(&running).remove(&index);
            }
        };
        // Where a case panics, the watch ends as well.
        let _ended = Ended(&done);
        std::thread::scope(|inner| (0..workers).for_each(|_| drop(inner.spawn(work))));
    });
}

/// Tells that nothing is to be watched any more, when it goes.
struct Ended<'a>(&'a AtomicBool);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_the_processor_are_read() {
        let stat = "1 (a) b) S 1 2 3 4 5 6 7 8 9 10 120 34 0 0 20 0 1 0 5";
        assert_eq!(ticks(stat), Some(154));
        assert_eq!(ticks("nothing"), None);
    }

    /// Who sleeps uses nothing of its time; who computes does.
    #[test]
    #[cfg(target_os = "linux")]
    fn who_waits_is_not_over() {
        let start = Start::now(Of::Thread);
        std::thread::sleep(Duration::from_millis(120));
        assert!(start.used(Of::Thread) < Duration::from_millis(100), "{start:?}");
        let mut n = 0_u64;
        while start.used(Of::Thread) < Duration::from_millis(100) {
            n = std::hint::black_box(n.wrapping_mul(3) + 1);
            assert!(start.wall.elapsed() < Duration::from_secs(60), "{n}");
        }
        let late = Start { wall: start.wall, used: Some(Duration::ZERO) };
        assert!(late.is_over(Duration::from_millis(50), 1) && !late.is_over(Duration::from_secs(3600), 1));
        // Without any of it, the clock decides.
        let asleep = Start { wall: start.wall, used: used(Of::Process).map(|now| now + Duration::from_secs(3600)) };
        assert!(asleep.is_over(Duration::from_millis(5), 1) && !asleep.is_over(Duration::from_secs(60), 1));
    }
}
