//! Numbers: what one lane computes. `format` packs and rounds, `exact` is arithmetic in every rounding, `float` is the
//! meaning of the floating-point instructions, `approx` that of the approximate ones with `elementary` functions, `cvt`
//! of conversions. Rows of lanes are in `lanes`.

#[cfg(test)]
mod accuracy;
pub mod approx;
pub mod cvt;
pub mod elementary;
pub mod exact;
pub mod float;
pub mod format;

#[cfg(test)]
pub(crate) mod tests;
