//! Index arithmetic as instructions: index maps and layouts, emitted.

use super::value::size;
use crate::domain::Arithmetic;
use crate::extent::Expr;
use crate::kernel_ir::{Builder, Type, ValueId};

/// Emits arithmetic on index integers of one type.
pub(super) struct Emit<'a> {
    pub b: &'a mut Builder,
    pub index: Type,
}

impl Arithmetic for Emit<'_> {
    type Value = ValueId;
    fn size(&mut self, e: &Expr) -> ValueId {
        size(self.b, e, self.index)
    }
    fn add(&mut self, a: &ValueId, b: &ValueId) -> ValueId {
        self.b.index_add(*a, *b)
    }
    fn mul(&mut self, a: &ValueId, b: &ValueId) -> ValueId {
        self.b.index_mul(*a, *b)
    }
    fn div(&mut self, a: &ValueId, b: &ValueId) -> ValueId {
        self.b.index_div(*a, *b)
    }
    fn modulo(&mut self, a: &ValueId, b: &ValueId) -> ValueId {
        self.b.index_mod(*a, *b)
    }
    fn xor(&mut self, a: &ValueId, b: &ValueId, _bound: &Expr) -> ValueId {
        self.b.index_xor(*a, *b)
    }
}
