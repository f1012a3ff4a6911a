//! Lanes: what a warp's 32 lanes compute together, as operations on rows. A row is an array, the loops are plain, and the compiler turns
//! them into vector code. Each row function equals its scalar meaning (`num`, and `int::scalar` for integers) in every lane; tests
//! compare the two. Nothing here knows about registers, masks or memory.

// Macros and not functions of closures: a closure may end up as a function of its own, compiled without the host's features.

/// A row from an expression of the lane.
macro_rules! row {
    ($lane:ident => $value:expr) => {{
        let mut row = [Default::default(); $crate::lanes::LANES];
        for ($lane, value) in row.iter_mut().enumerate() {
            *value = $value;
        }
        row
    }};
}
/// Sets every lane of a row.
macro_rules! each {
    ($out:ident, $lane:ident => $value:expr) => {{
        for ($lane, value) in $out.iter_mut().enumerate() {
            *value = $value;
        }
        $crate::lanes::apart();
    }};
}
/// A mask from a test of every lane.
macro_rules! mask {
    ($lane:ident => $test:expr) => {{
        let mut mask: $crate::lanes::Mask = 0;
        for $lane in 0..$crate::lanes::LANES {
            mask |= u32::from($test) << $lane;
        }
        mask
    }};
}
pub(crate) use {each, mask, row};

pub mod float;
pub mod int;
pub mod video;

/// Lanes of a warp.
pub const LANES: usize = 32;
/// One value of at most 32 bits per lane; narrower values are zero-extended.
pub type Row = [u32; LANES];
/// One value of 64 bits per lane.
pub type Wide = [u64; LANES];
/// One bit per lane.
pub type Mask = u32;

/// Keeps the compiler from joining the last stores of several arms of a `match` behind it, which would split their vectors. Costs nothing.
#[inline(always)]
pub fn apart() {
    std::hint::black_box(());
}

/// The lanes of a mask, lowest first.
#[inline(always)]
pub fn lanes(mask: Mask) -> impl Iterator<Item = usize> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        let lane = rest.trailing_zeros();
        rest &= rest.wrapping_sub(1);
        (lane < 32).then_some(lane as usize)
    })
}

/// Copies the lanes of `mask`.
#[inline(always)]
pub fn blend<T: Copy>(to: &mut [T; LANES], from: &[T; LANES], mask: Mask) {
    if mask == Mask::MAX {
        *to = *from;
        return apart();
    }
    for lane in 0..LANES {
        to[lane] = if mask >> lane & 1 == 1 { from[lane] } else { to[lane] };
    }
}

#[cfg(test)]
mod tests;
