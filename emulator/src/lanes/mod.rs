//! Lanes: what a warp's 32 lanes compute together, as operations on rows. A row is an array, the loops are plain, and
//! the compiler turns them into vector code. A function whose operands and result are rows of one kind takes a register
//! file and three numbers: the result may be one of the operands, and is stored when it is complete. Each row function
//! equals its scalar meaning (`num`, and `int::scalar` for integers) in every lane; tests compare the two. Nothing here
//! knows about registers, masks or memory.

use std::ops::{Index, IndexMut};

// Macros and not functions of closures: a closure may end up as a function of its own, compiled without the host's
// features.

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
/// Sets every lane of a row, which the expression may read.
macro_rules! each {
    ($out:expr, $lane:ident => $value:expr) => {{
        let row = $crate::lanes::row!($lane => $value);
        $out = row;
        $crate::lanes::apart();
    }};
}
/// A mask from a test of every lane: first a row of all ones or zeros, in memory, and then its bits. In one step the
/// compiler might make it a chain of 32 dependent instructions, or test lane after lane.
macro_rules! mask {
    ($lane:ident => $test:expr) => {{
        let mut row: $crate::lanes::Row = $crate::lanes::row!($lane => if $test { u32::MAX } else { 0 });
        std::hint::black_box(&mut row);
        let mut mask: $crate::lanes::Mask = 0;
        for lane in 0..$crate::lanes::LANES {
            mask |= row[lane] & $crate::lanes::BITS[lane];
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

/// Rows one after the other, each at the start of a cache line, so that no vector of a row lies in two lines.
#[derive(Debug, Default)]
pub struct Rows<T>(Vec<Aligned<T>>);

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Aligned<T>([T; LANES]);

impl<T: Copy + Default> Rows<T> {
    /// This many rows of zeros.
    pub fn new(count: usize) -> Self {
        Rows(vec![Aligned([T::default(); LANES]); count])
    }
}

impl<T> Index<u32> for Rows<T> {
    type Output = [T; LANES];
    #[inline(always)]
    fn index(&self, row: u32) -> &[T; LANES] {
        &self.0[row as usize].0
    }
}

impl<T> IndexMut<u32> for Rows<T> {
    #[inline(always)]
    fn index_mut(&mut self, row: u32) -> &mut [T; LANES] {
        &mut self.0[row as usize].0
    }
}

/// The bit of each lane in a mask.
pub const BITS: Row = {
    let mut bits = [1; LANES];
    let mut lane = 0;
    while lane < LANES {
        bits[lane] <<= lane;
        lane += 1;
    }
    bits
};

/// Keeps the compiler from joining the last stores of several arms of a `match` after it, which would split their
/// vectors. Costs nothing.
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

/// The number of lanes of a mask: mostly all or none, and where it is not, not every host counts bits in one step.
#[inline(always)]
pub fn count(mask: Mask) -> u32 {
    match mask {
        0 => 0,
        Mask::MAX => LANES as u32,
        _ => count_some(mask),
    }
}

/// Not inlined, so that it is not computed ahead of the test whether it is needed.
#[inline(never)]
fn count_some(mask: Mask) -> u32 {
    mask.count_ones()
}

/// Whether lanes hold one value.
#[inline]
pub fn agree<T>(row: &[T; LANES], mask: Mask) -> bool
where
    T: Copy + Default + PartialEq + std::ops::BitXor<Output = T> + std::ops::BitOr<Output = T>,
{
    let value = row[mask.trailing_zeros() as usize & 31];
    if mask == Mask::MAX {
        row.iter().fold(T::default(), |off, other| off | (*other ^ value)) == T::default()
    } else {
        lanes(mask).all(|lane| row[lane] == value)
    }
}

/// One of two values that are both there. (With an `if`, the compiler might choose one of two places in memory to read,
/// which has no vector code.)
#[inline(always)]
pub fn choose<T: Copy>(first: bool, a: T, b: T) -> T {
    std::hint::select_unpredictable(first, a, b)
}

/// Copies the lanes of `mask`.
#[inline(always)]
pub fn blend<T: Copy>(to: &mut [T; LANES], from: &[T; LANES], mask: Mask) {
    if mask == Mask::MAX {
        *to = *from;
        return apart();
    }
    for lane in 0..LANES {
        to[lane] = choose(mask & BITS[lane] != 0, from[lane], to[lane]);
    }
}

#[cfg(test)]
mod tests;
