//! Pieces of work at the same time. A macro is expanded while rustc does nothing else, so that a second core is idle.
//!
//! What comes out does not depend on whether there is one: no piece sees what another does.

use std::cell::Cell;
use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, scope};

use crate::work;

thread_local! {
    static ALONE: Cell<bool> = const { Cell::new(false) };
}

/// Stack of the other thread, in bytes: as much as a main thread usually has.
const STACK: usize = 8 << 20;

/// A piece of work.
pub type Piece<'a> = Box<dyn FnOnce() + Send + 'a>;

/// A piece that leaves its result at a place.
pub fn piece<'a, R: Send>(place: &'a mut Option<R>, task: impl FnOnce() -> R + Send + 'a) -> Piece<'a> {
    Box::new(move || *place = Some(task()))
}

/// Does everything that `task` asks for on the thread that asks, so that what is measured there is all of it.
pub fn alone<R>(task: impl FnOnce() -> R) -> R {
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            ALONE.set(self.0);
        }
    }
    let _before = Before(ALONE.replace(true)); // also after a panic
    task()
}

/// Does the pieces, in this order: on this thread and on another one, whichever is free, if they are worth a thread,
/// which takes about 0.1 ms, and there can be one. Long ones should come first. The steps that all of them take are
/// counted here ([`work`]); a panic of one is one here.
pub fn all(are_worth: bool, pieces: Vec<Piece<'_>>) {
    let is_alone = !are_worth || pieces.len() < 2 || ALONE.get();
    let left = Mutex::new(pieces.into_iter());
    // No piece is done while the lock is held, so that nothing poisons it.
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        while let Some(piece) = next() {
            piece();
        }
    };
    if is_alone {
        return work();
    }
    scope(|threads| {
        let counted = || {
            work();
            work::counts()
        };
        // Without a thread everything is done here.
        let thread = Builder::new().stack_size(STACK).spawn_scoped(threads, counted);
        work();
        match thread.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(counts)) => work::add(counts),
            Ok(Err(panic)) => resume_unwind(panic),
            Err(_) => {}
        }
    });
}

/// Both results.
///
/// # Panics
/// If one of the pieces does.
pub fn both<A: Send, B: Send>(
    are_worth: bool,
    first: impl FnOnce() -> A + Send,
    second: impl FnOnce() -> B + Send,
) -> (A, B) {
    let (mut a, mut b) = (None, None);
    all(are_worth, vec![piece(&mut a, first), piece(&mut b, second)]);
    a.zip(b).expect("both pieces are done")
}

#[cfg(test)]
mod tests {
    use std::thread::{ThreadId, current};

    use super::*;
    use crate::work::{Step, count, counts};

    #[test]
    fn all_results_and_all_steps_arrive() {
        let before = counts()[Step::Search as usize];
        let work = |n: u64| {
            count(Step::Search, n);
            n
        };
        for are_worth in [true, false] {
            assert_eq!(both(are_worth, || work(2), || work(3)), (2, 3));
        }
        assert_eq!(alone(|| both(true, || work(4), || work(5))), (4, 5));
        for n in 0..6 {
            let mut places = vec![None; n];
            all(true, (0..).zip(&mut places).map(|(n, place)| piece(place, move || work(n))).collect());
            assert_eq!(places, (0..n as u64).map(Some).collect::<Vec<_>>());
        }
        assert_eq!(counts()[Step::Search as usize] - before, 19 + (1 + 3 + 6 + 10));
    }

    /// The threads of two pieces, each of which waits for the other if it `waits`.
    fn threads_of(are_worth: bool, waits: bool) -> (ThreadId, ThreadId) {
        let met = std::sync::Barrier::new(2);
        let own = || {
            if waits {
                met.wait();
            }
            current().id()
        };
        both(are_worth, own, own)
    }

    #[test]
    fn pieces_that_are_worth_it_meet() {
        let here = current().id();
        let (a, b) = threads_of(true, true);
        assert!(a != b && [a, b].contains(&here));
        assert_eq!(threads_of(false, false), (here, here));
        assert_eq!(alone(|| threads_of(true, false)), (here, here));
        let within = alone(|| {
            alone(|| ());
            threads_of(true, false)
        });
        assert_eq!(within, (here, here), "still alone");
        std::panic::catch_unwind(|| alone(|| panic!("as asked"))).expect_err("a panic");
        let (a, b) = threads_of(true, true);
        assert!(a != b, "no longer alone");
    }

    #[test]
    fn a_panic_of_either_is_one() {
        for first in [true, false] {
            let caught = std::panic::catch_unwind(|| {
                let piece = |fails: bool| move || assert!(!fails, "as asked");
                both(true, piece(first), piece(!first))
            });
            let text =
                caught.expect_err("a panic").downcast::<&str>().map_or_else(|_| String::new(), |s| s.to_string());
            assert_eq!(text, "as asked");
        }
    }
}
