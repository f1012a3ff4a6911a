//! Independent pieces of work on the host's threads: what the emulator does with clusters, and the reference with rows.
//!
//! This is all that both need of a thread pool, and spares users the six packages of one.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Builder, Scope, ScopedJoinHandle, available_parallelism};

/// The numbers of the pieces that nobody has taken yet: each is given out once, in ascending order.
#[derive(Debug)]
pub struct Queue {
    next: AtomicUsize,
    count: usize,
}

impl Queue {
    /// The next piece; none when all are taken.
    pub fn take(&self) -> Option<usize> {
        // Only the number is shared, so no order of other memory follows from it.
        Some(self.next.fetch_add(1, Ordering::Relaxed)).filter(|next| *next < self.count)
    }

    /// Nobody takes another one.
    pub fn stop(&self) {
        self.next.fetch_max(self.count, Ordering::Relaxed);
    }
}

/// The host's threads, as many as the process may use; 1 if that is unknown.
pub fn host_threads() -> usize {
    available_parallelism().map_or(1, usize::from)
}

/// Calls `worker` on the calling thread and on others, up to `threads` in all and no more than there are pieces. Each
/// takes pieces until there are none; the results come in the order in which the threads began.
///
/// The others have stacks of `stack` bytes. A thread that the system refuses is done without: its pieces are taken by
/// the rest. A panic of a worker goes on in the caller.
pub fn run<T: Send>(threads: usize, stack: usize, count: usize, worker: impl Fn(&Queue) -> T + Sync) -> Vec<T> {
    let queue = Queue { next: AtomicUsize::new(0), count };
    std::thread::scope(|scope| {
        let spawn = |_| spawned(scope, stack, || worker(&queue)).ok();
        let others: Vec<_> = (1..threads.min(count)).map_while(spawn).collect();
        let first = worker(&queue);
        std::iter::once(first).chain(others.into_iter().map(joined)).collect()
    })
}

/// What `part` makes of each piece, in order, on threads as of [`run`].
///
/// # Errors
/// That of the first piece that has one, whichever thread met it; pieces after it may be left out.
pub fn collected<T: Send, E: Send>(
    threads: usize,
    stack: usize,
    count: usize,
    part: impl Fn(usize) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let parts = run(threads, stack, count, |queue| {
        let mut own = Vec::new();
        while let Some(piece) = queue.take() {
            let made = part(piece);
            if made.is_err() {
                queue.stop();
            }
            own.push((piece, made));
        }
        own
    });
    let mut all: Vec<_> = parts.into_iter().flatten().collect();
    // Pieces are taken in ascending order, so that all before an error were made.
    all.sort_by_key(|(piece, _)| *piece);
    all.into_iter().map(|(_, made)| made).collect()
}

/// Calls `work` on a thread with a stack of `stack` bytes.
///
/// # Errors
/// The system gives no such thread.
pub fn with_stack<T: Send>(stack: usize, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| spawned(scope, stack, work).map(joined))
}

fn spawned<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    stack: usize,
    work: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    Builder::new().stack_size(stack).spawn_scoped(scope, work)
}

fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STACK: usize = 1 << 20;

    /// By as many threads as there may be, each of which is another one.
    #[test]
    fn every_piece_is_taken_once() {
        for (threads, count) in [(1, 0), (1, 5), (4, 0), (4, 1), (4, 3), (4, 1000), (64, 7)] {
            let parts = run(threads, STACK, count, |queue| {
                let taken: Vec<usize> = std::iter::from_fn(|| queue.take()).collect();
                (std::thread::current().id(), taken)
            });
            let (ids, taken): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
            assert!(taken.iter().all(|part| part.is_sorted()));
            let mut all = taken.concat();
            all.sort_unstable();
            assert_eq!(all, (0..count).collect::<Vec<_>>());
            assert_eq!(ids[0], std::thread::current().id());
            (1..ids.len()).for_each(|n| assert!(!ids[..n].contains(&ids[n])));
            assert_eq!(ids.len(), threads.min(count).max(1), "{threads} threads for {count} pieces");
        }
    }

    #[test]
    fn the_first_error_is_told() {
        for threads in [1, 2, 8] {
            let made = AtomicUsize::new(0);
            let part = |piece: usize| {
                made.fetch_add(1, Ordering::Relaxed);
                if piece % 100 == 41 { Err(piece) } else { Ok(2 * piece) }
            };
            assert_eq!(collected(threads, STACK, 41, part), Ok((0..41).map(|n| 2 * n).collect()));
            made.store(0, Ordering::Relaxed);
            assert_eq!(collected(threads, STACK, 1_000_000, part), Err(41));
            let made = made.into_inner();
            assert!((42..1_000_000).contains(&made) && (threads > 1 || made == 42), "{made} pieces after an error");
        }
    }

    #[test]
    fn a_deep_stack_is_deep() {
        fn depth(left: u32) -> u32 {
            let frame = std::hint::black_box([left; 256]);
            if left == 0 { 0 } else { depth(left - 1) + 1 + (frame[0] - left) }
        }
        assert_eq!(with_stack(64 << 20, || depth(30_000)).expect("a thread"), 30_000);
    }

    #[test]
    #[should_panic(expected = "piece 7")]
    fn a_panic_goes_on() {
        run(4, STACK, 20, |queue| {
            while let Some(piece) = queue.take() {
                assert_ne!(piece, 7, "piece 7");
            }
        });
    }
}
