//! The number of a block as iterations of the grid's axes: row after row, or in the groups of a raster
//! ([`crate::schedule::Raster`]).

use super::{Nest, Point};
use crate::domain::AxisId;
use crate::kernel_ir::{Builder, ValueId};

/// The row, and the number along what is after it, of a number below `rows · behind`, in groups of so many rows.
fn rastered(b: &mut Builder, number: ValueId, [rows, behind]: [ValueId; 2], group: i128) -> [ValueId; 2] {
    let ty = b.ty(number);
    // A group that no axis fills is as good as one that it does.
    let group = i64::try_from(group).unwrap_or(i64::MAX).min(i64::from(i32::MAX));
    let group = b.index_literal(ty, group);
    // No product that could pass the number of blocks.
    let whole = b.index_min(group, rows);
    let numbers = b.index_mul(whole, behind);
    let at = b.index_div(number, numbers);
    let rest = b.index_mod(number, numbers);
    let first = b.index_mul(at, whole);
    let left = b.index_sub(rows, first);
    let height = b.index_min(whole, left);
    let row = b.index_mod(rest, height);
    [b.index_add(first, row), b.index_div(rest, height)]
}

impl Nest<'_, '_> {
    /// Gives the axes of the grid their values for the number of a block.
    pub(super) fn unpack_grid(&mut self, number: ValueId, point: &mut Point) {
        let stage = self.stage;
        let grid: &[AxisId] = &stage.distribution.grid;
        self.unpack_groups(number, grid, point);
        for axis in grid.iter().filter(|axis| stage.raster.is_descending(**axis)) {
            let Some(value) = point.values[*axis] else { continue };
            let (count, one) = (self.along(*axis), self.b.index_literal(self.index, 1));
            let last = self.b.index_sub(count, one);
            point.values[*axis] = Some(self.b.index_sub(last, value));
        }
    }

    /// The same where all axes ascend.
    fn unpack_groups(&mut self, number: ValueId, grid: &[AxisId], point: &mut Point) {
        let groups = self.stage.raster.groups.and_then(|groups| {
            let at = grid.iter().position(|axis| *axis == groups.axis)?;
            Some((at, groups.size))
        });
        let Some((at, size)) = groups else {
            return self.unpack(number, grid, &|this, n| this.along(grid[n]), point);
        };
        let (front, behind) = (&grid[..at], &grid[at + 1..]);
        let rows = self.along(grid[at]);
        let one = self.b.index_literal(self.index, 1);
        let count = behind.iter().fold(one, |product, axis| {
            let extent = self.along(*axis);
            self.b.index_mul(product, extent)
        });
        let mut number = number;
        if !front.is_empty() {
            let all = self.b.index_mul(rows, count);
            let outer = self.b.index_div(number, all);
            self.unpack(outer, front, &|this, n| this.along(front[n]), point);
            number = self.b.index_mod(number, all);
        }
        let [row, rest] = rastered(self.b, number, [rows, count], size);
        point.values[grid[at]] = Some(row);
        self.unpack(rest, behind, &|this, n| this.along(behind[n]), point);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel_ir::{Signature, Type};

    /// Of all small sizes and groups: every pair of a row and a number after comes once, groups follow each other, and
    /// in a group the row is the fastest. The builder computes with numbers that it knows.
    #[test]
    fn every_iteration_comes_once_in_the_order_of_groups() {
        for ty in [Type::I32, Type::I64] {
            for (rows, behind) in (1..=9_i64).flat_map(|rows| (1..=7_i64).map(move |behind| (rows, behind))) {
                for group in (1..=11).chain([i128::from(u32::MAX), i128::MAX]) {
                    let mut b = Builder::new(Signature {
                        name: "k".to_owned(),
                        parameters: Vec::new(),
                        dims: Vec::new(),
                        maps: Vec::new(),
                        arguments: Vec::new(),
                        threads: 32,
                        cluster: 1,
                    });
                    let mut expected = Vec::new();
                    let height = i64::try_from(group).unwrap_or(i64::MAX);
                    let mut first = 0;
                    while first < rows {
                        let end = rows.min(first.saturating_add(height));
                        expected.extend((0..behind).flat_map(|n| (first..end).map(move |row| (row, n))));
                        first = end;
                    }
                    let found: Vec<(i64, i64)> = (0..rows * behind)
                        .map(|number| {
                            let [number, r, c] = [number, rows, behind].map(|n| b.index_literal(ty, n));
                            let of = rastered(&mut b, number, [r, c], group);
                            let [row, n] = of.map(|v| b.kernel().index_literal(v).expect("known numbers"));
                            (row, n)
                        })
                        .collect();
                    assert_eq!(found, expected, "{rows} rows of {behind} in groups of {group}");
                }
            }
        }
    }
}
