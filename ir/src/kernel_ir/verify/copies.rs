//! Copies by `cp.async` and by the accelerator.

use tilewright_kernel::info::Argument;
use tilewright_kernel::target::FETCHED_BYTES;

use super::{Checker, Problem, Threads};
use crate::kernel_ir::{BulkCopy, CpAsync, Memory, ParameterKind, TensorPart, Type};

impl Checker<'_> {
    pub(super) fn fetch(&mut self, fetch: &CpAsync) {
        let CpAsync { parameter, from, buffer, to, lanes, predicate } = fetch;
        self.expect(self.threads != Threads::Elected, Problem::NotCollective);
        let read = self.access(Memory::Parameter(*parameter), *from, *lanes, false);
        let written = self.access(Memory::Buffer(*buffer), *to, *lanes, true);
        let bytes = read.and_then(Type::element).map_or(0, |e| e.bytes().saturating_mul(*lanes));
        self.expect(read == written && FETCHED_BYTES.contains(&bytes), Problem::BadFetch(*lanes));
        let kind = self.kernel.signature.parameters.get(usize::from(*parameter)).map(|p| p.kind);
        let constant = matches!(kind, Some(ParameterKind::Tensor { written: false }));
        self.expect(constant, Problem::NotConstant(*parameter));
        if let Some(predicate) = predicate {
            self.operand(*predicate, |ty| ty == Type::PRED);
        }
    }

    pub(super) fn transfer(&mut self, transfer: &BulkCopy) {
        let BulkCopy { part, buffer, slot, offset, barrier, evict: _, multicast } = transfer;
        if let Some(mask) = multicast {
            self.operand(*mask, |ty| ty == Type::I32);
            self.clusters();
            self.expect(barrier.is_some(), Problem::BadOperand(*mask));
        }
        let signature = &self.kernel.signature;
        let buffer_of = self.kernel.buffers.get(buffer.index());
        self.expect(buffer_of.is_some(), Problem::NotABuffer(buffer.0));
        // Of a tile, whose size is the map's, at least one element is there.
        let mut copied = 1;
        match part {
            TensorPart::Tile { map, start } => {
                let rank = signature.maps.get(usize::from(*map)).map(|m| m.rank as usize);
                let passed = signature.arguments.contains(&Argument::Map(*map));
                let fits = rank == Some(start.len()) && (1..=5).contains(&start.len());
                self.expect(passed && fits, Problem::NotAMap(*map));
                for value in start {
                    self.operand(*value, |ty| ty == Type::I32);
                }
            }
            TensorPart::Run { parameter, offset, bytes } => {
                self.access(Memory::Parameter(*parameter), *offset, 1, barrier.is_none());
                self.expect(*bytes > 0 && bytes.is_multiple_of(16), Problem::BadRun(*bytes));
                copied = i64::from(bytes / buffer_of.map_or(1, |b| b.element.bytes()));
            }
        }
        self.operand(*offset, |ty| ty == Type::I32);
        let place = self.kernel.values.get(offset.index()).map(|v| v.facts.range);
        let elements = buffer_of.map_or(0, |b| i64::from(b.elements));
        let inside = place.is_some_and(|r| r.low >= 0 && r.high.saturating_add(copied) <= elements);
        self.expect(inside, Problem::OutsideBuffer(*offset));
        self.slot(*slot, buffer_of.map_or(0, |b| b.slots));
        if let Some(barrier) = barrier {
            self.barrier(*barrier, *slot);
        }
    }
}
