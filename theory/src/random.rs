//! A repeatable stream of choices, for tests of this crate and of those that use it: the same cases on every run.

/// A linear congruential generator (Knuth's MMIX constants), of which the upper bits are used.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// One of `0..bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    /// One of a list.
    pub fn of<T: Clone>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())].clone()
    }
}
