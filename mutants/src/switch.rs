//! Which mutant is on. This file becomes one of the changed `kernel`, on which all crates of the compiler depend;
//! every site asks it.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::{LazyLock, Mutex, PoisonError};

/// Number of the mutant that is on: none without the variable.
static ON: LazyLock<u32> = LazyLock::new(|| {
    let number = std::env::var("TILEWRIGHT_MUTANT").ok();
    number.and_then(|number| number.parse().ok()).unwrap_or(u32::MAX)
});

/// The mutants that were reached: their numbers, and the file where each goes once.
struct Reached {
    numbers: BTreeSet<u32>,
    file: std::fs::File,
}

/// None without the variable.
static REACHED: LazyLock<Option<Mutex<Reached>>> = LazyLock::new(|| {
    let path = std::env::var_os("TILEWRIGHT_REACHED")?;
    let file = std::fs::File::create(path).ok()?;
    Some(Mutex::new(Reached { numbers: BTreeSet::new(), file }))
});

/// Whether this mutant is on.
pub fn on(number: u32) -> bool {
    if let Some(reached) = &*REACHED {
        let mut reached = reached.lock().unwrap_or_else(PoisonError::into_inner);
        if reached.numbers.insert(number) {
            // What is not written counts as not reached; the baseline checks that something was.
            let _ = writeln!(reached.file, "{number}");
        }
    }
    *ON == number
}
