//! Each equation after those that it reads.

use tilewright_kernel::algorithm::{Source, Value};

use super::{Cut, Found, reached};
use crate::program::Online;

impl Cut<'_> {
    /// Puts the equations into an order in which each comes after those that it reads: what was added after the last
    /// of the sums, and what reads the extreme after that.
    pub(super) fn in_order(&mut self, written: u16, mut online: Online) -> Found<Online> {
        let algorithm = &self.program.algorithm;
        let count = algorithm.equations.len() as u16;
        let last = self.chains.iter().map(|c| c.0).max().unwrap_or(self.extreme);
        let (late, early): (Vec<u16>, Vec<u16>) =
            (0..=last).partition(|equation| *equation == self.extreme || self.is_late(*equation));
        let order: Vec<u16> = early.into_iter().chain(written..count).chain(late).chain(last + 1..written).collect();
        let mut number = vec![0; order.len()];
        for (now, before) in order.iter().enumerate() {
            number[usize::from(*before)] = now as u16;
        }
        let of = |equation: u16| number[usize::from(equation)];
        let program = &mut *self.program;
        let algorithm = &mut program.algorithm;
        let equations =
            order.iter().map(|before| algorithm.equations[usize::from(*before)].clone()).collect::<Vec<_>>();
        *algorithm.equations.to_mut() = equations;
        for value in algorithm.values.to_mut() {
            if let Value::Read { source: Source::Equation { equation, .. }, .. } = value {
                *equation = of(*equation);
            }
        }
        program.schedules.iter_mut().for_each(|schedule| schedule.equation = of(schedule.equation));
        program.copies.iter_mut().for_each(|copy| copy.equation = of(copy.equation));
        program.inlined.iter_mut().for_each(|inlined| inlined.equation = of(inlined.equation));
        for other in &mut program.online {
            other.renumber(&of);
        }
        online.renumber(&of);
        let mut spans = program.equation_spans.clone();
        spans.resize(order.len(), self.span);
        program.equation_spans = order.iter().map(|before| spans[usize::from(*before)]).collect();
        let axes = program.algorithm.axes.len();
        program.axis_spans.resize(axes, self.span);
        Ok(online)
    }

    /// Whether an equation reads the extreme, itself or through others.
    fn is_late(&self, equation: u16) -> bool {
        self.chains.iter().any(|chain| chain.0 == equation) || {
            let algorithm = &self.program.algorithm;
            reached(algorithm, equation).into_iter().any(|value| match algorithm.values[value as usize] {
                Value::Read { source: Source::Equation { equation: read, .. }, .. } => {
                    read == self.extreme || self.is_late(read)
                }
                _ => false,
            })
        }
    }
}

impl Online {
    /// The same after equations have other numbers.
    fn renumber(&mut self, of: &dyn Fn(u16) -> u16) {
        self.equation = of(self.equation);
        if let Some(blocks) = &mut self.blocks {
            (blocks.extreme, blocks.product) = (of(blocks.extreme), of(blocks.product));
            if let Some(masked) = &mut blocks.masked {
                masked.scores = of(masked.scores);
            }
        }
    }
}
