//! Lanes: what a warp's 32 lanes compute together, as operations on rows. A row is an array, the loops are plain, and the compiler turns
//! them into vector code. Each row function equals its scalar meaning (`num`, and `int::scalar` for integers) in every lane; tests
//! compare the two. Nothing here knows about registers, masks or memory, so that a faster body can be chosen at run time.

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

/// The lanes of a mask, lowest first.
pub fn lanes(mask: Mask) -> impl Iterator<Item = usize> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        let lane = rest.trailing_zeros();
        rest &= rest.wrapping_sub(1);
        (lane < 32).then_some(lane as usize)
    })
}

/// A mask from a test of every lane.
#[inline(always)]
pub fn mask_of(test: impl Fn(usize) -> bool) -> Mask {
    let mut mask = 0;
    for lane in 0..LANES {
        mask |= u32::from(test(lane)) << lane;
    }
    mask
}

/// Copies the lanes of `mask`.
#[inline(always)]
pub fn blend<T: Copy>(to: &mut [T; LANES], from: &[T; LANES], mask: Mask) {
    if mask == Mask::MAX {
        *to = *from;
        return;
    }
    for lane in 0..LANES {
        to[lane] = if mask >> lane & 1 == 1 { from[lane] } else { to[lane] };
    }
}

#[cfg(test)]
mod tests;
