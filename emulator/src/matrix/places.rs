//! Where the registers of a warp have the elements of the matrices of one instruction, as tables: an instruction is
//! decoded once and executed many times.

use super::{Product, fragment};
use crate::lanes::LANES;

/// For each element of a register, registers one after the other, its number in the row-major matrix, lane by lane.
pub type Table = Box<[[u16; LANES]]>;

/// The tables of one instruction.
#[derive(Clone, Debug)]
pub struct Places {
    /// What they were made for.
    of: (Product, Option<[bool; 2]>, [u8; 4]),
    pub a: Table,
    pub b: Table,
    pub c: Table,
    pub d: Table,
}

impl Places {
    /// The tables of a product of which `counts` are the registers of D, A, B, C; for `wmma` see
    /// [`crate::decode::op::Mma`].
    pub fn new(product: &Product, wmma: Option<[bool; 2]>, counts: [u8; 4]) -> Self {
        let Product { m, n, k, .. } = *product;
        let [count_d, count_a, count_b, count_c] = counts.map(usize::from);
        let per_word = |bits: u32| if bits > 32 { 1 } else { (32 / bits) as usize };
        // A column-major fragment of `wmma` has its elements in the order of memory.
        let turned = |at: usize, rows: usize, columns: usize| at % rows * columns + at / rows;
        let each_a = per_word(product.a.bits());
        let a = table(count_a, each_a, |lane, r, i| match wmma {
            None => {
                let (row, column) = fragment::mma_a(m, each_a, lane, r, i);
                row * k + column
            }
            Some([across, _]) => {
                let at = fragment::wmma(m * k, count_a * each_a, lane, r * each_a + i);
                if across { turned(at, m, k) } else { at }
            }
        });
        let each_b = per_word(product.b.bits());
        let b = table(count_b, each_b, |lane, r, i| match wmma {
            None => {
                let (row, column) = fragment::mma_b(each_b, lane, r, i);
                row * n + column
            }
            Some([_, across]) => {
                let at = fragment::wmma(k * n, count_b * each_b, lane, r * each_b + i);
                if across { turned(at, k, n) } else { at }
            }
        });
        let of_sum = |count: usize, each: usize| {
            table(count, each, |lane, r, i| match wmma {
                None => {
                    let (row, column) = fragment::mma_c(lane, r * each + i);
                    row * n + column
                }
                Some(_) => fragment::wmma(m * n, count * each, lane, r * each + i),
            })
        };
        let c = of_sum(count_c, per_word(product.c.bits()));
        let d = of_sum(count_d, per_word(product.d.bits()));
        // What is left in the matrices from another product must not be taken for this one. A matrix without registers
        // is in shared memory, or C is D.
        let all = [(&a, m * k), (&b, k * n), (&c, m * n), (&d, m * n)];
        let whole = |(table, elements): (&Table, usize)| table.is_empty() || is_whole(table, elements);
        debug_assert!(all.into_iter().all(whole), "{product:?}");
        Self { of: (*product, wmma, counts), a, b, c, d }
    }

    /// Whether they are those of a product.
    pub fn is_of(&self, product: &Product, wmma: Option<[bool; 2]>, counts: [u8; 4]) -> bool {
        self.of == (*product, wmma, counts)
    }
}

/// Whether a table has every element of a matrix, and no others.
fn is_whole(table: &Table, elements: usize) -> bool {
    let mut seen = vec![false; elements];
    let all = table.iter().flatten().all(|at| {
        seen.get_mut(usize::from(*at)).is_some_and(|seen| {
            *seen = true;
            true
        })
    });
    all && !seen.contains(&false)
}

/// The table of a matrix in `count` registers of `each` elements, from the place of element `i` of register `r` of a
/// lane.
fn table(count: usize, each: usize, place: impl Fn(usize, usize, usize) -> usize) -> Table {
    let elements = (0..count).flat_map(|r| (0..each).map(move |i| (r, i)));
    elements.map(|(r, i)| std::array::from_fn(|lane| place(lane, r, i) as u16)).collect()
}
