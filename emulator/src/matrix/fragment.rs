//! Where elements are: the layouts of `mma` (PTX manual 9.7.14.5), of `ldmatrix` (9.7.14.5.15), and one of our own for
//! `wmma`, whose layout the manual leaves to the implementation (9.7.14.4.1).
//!
//! All layouts of `mma` with n = 8 are one formula in the number e of elements of a 32-bit register (1 for f64): with
//! g = lane / 4 and q = lane mod 4, element i of register r is
//!
//! | matrix | row | column |
//! | --- | --- | --- |
//! | A, m = 16 | g + 8 (r mod 2) | q·e + i + 4e·⌊r/2⌋ |
//! | A, m = 8 | g | q·e + i + 4e·r |
//! | B | q·e + i + 4e·r | g |
//! | C, D | g + 8 (⌊j/2⌋ mod 2) | 2q + j mod 2 + 8 ⌊j/4⌋, for element j of the lane |
//!
//! A warp's share of a product by a warpgroup, 16 rows of the 64, is laid out by the same formulas (9.7.15.5.1); there
//! C and D have n up to 256.

/// Elements of A: row and column of element `i` (of `e`) in register `r`.
#[inline(always)]
pub fn mma_a(m: usize, e: usize, lane: usize, r: usize, i: usize) -> (usize, usize) {
    let (g, q) = (lane / 4, lane % 4);
    if m == 16 { (g + 8 * (r % 2), q * e + i + 4 * e * (r / 2)) } else { (g, q * e + i + 4 * e * r) }
}

/// Elements of B: row (k) and column (n).
#[inline(always)]
pub fn mma_b(e: usize, lane: usize, r: usize, i: usize) -> (usize, usize) {
    (lane % 4 * e + i + 4 * e * r, lane / 4)
}

/// Element `j` of a lane's part of C or D.
#[inline(always)]
pub fn mma_c(lane: usize, j: usize) -> (usize, usize) {
    (lane / 4 + 8 * (j / 2 % 2), lane % 4 * 2 + j % 2 + 8 * (j / 4))
}

/// Element `j` of a lane's `count` elements of a `wmma` fragment, as its number in the matrix: in the order of memory
/// for A and B (the layout is part of the fragment's type), by rows for C and D. Fragments with more room than elements
/// hold them several times.
#[inline(always)]
pub fn wmma(elements: usize, count: usize, lane: usize, j: usize) -> usize {
    (lane * count + j) % elements
}
