//! A user's first hour with Tilewright, kept: kernels that were written from the pages and the messages alone, each
//! with a test beside plain Rust that says the same.
//!
//! A crate outside of the workspace, as that of a user is: it depends on the runtime by its path, and on nothing else.
//! `docs/first-hour.md` tells what was tried and what stood in the way. Each module has the kernels of one try.

pub mod first;
pub mod more;
pub mod second;

/// Numbers from −4 to 4, in eighths, the same each time.
#[cfg(test)]
fn data(count: usize, seed: usize) -> Vec<f32> {
    (0..count).map(|k| ((k * 37 + seed * 101 + k / 7 * 13) % 65) as f32 / 8.0 - 4.0).collect()
}

/// Numbers are those wanted, to within a part of their size and of 1.
#[cfg(test)]
fn assert_close(what: &str, found: &[f32], wanted: impl IntoIterator<Item = f64>, within: f64) {
    let wanted: Vec<f64> = wanted.into_iter().collect();
    assert_eq!(found.len(), wanted.len(), "{what}: the number of elements");
    for (place, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
        let apart = (f64::from(*found) - wanted).abs();
        assert!(apart <= within * (1.0 + wanted.abs()), "{what}: element {place} is {found}, and not {wanted}");
    }
}
