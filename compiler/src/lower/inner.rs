//! Stages inside the loops of others: where a nest computes an instance, and how what it holds is read.
//!
//! An instance stands in front of what the loops around it do, as a copy does, with a nest of its own. In shared memory it is written
//! by all threads of the block for all of them:
//!
//! ```text
//! sync        the readers of the last instance are done
//! …           each thread writes its elements
//! sync        what was written is seen
//! ```
//!
//! In registers each thread keeps its elements in variables, one for each iteration of the stage's loops, which are written out. Barriers
//! that others make needless are taken out afterwards (`syncs`).

use tilewright_kernel::algorithm::{Source, ValueId as AlgorithmValue};

use super::Analysed;
use super::stage::{Frame, Nest, Point};
use super::value::Values;
use crate::extent::{Expr, Var};
use crate::kernel_ir::{Buffer, BufferId, Builder, Type, ValueId, VariableId};
use crate::schedule::{Owner, Place, Stage, registers};

/// An instance of a stage that can be read at this point.
#[derive(Clone, Debug)]
pub struct Instance<'a> {
    /// The stage.
    pub stage: &'a Stage,
    /// What holds each of its components.
    pub memory: Vec<Held>,
    /// The loops around it, by the numbers behind those of the dimensions.
    pub around: Vec<Option<ValueId>>,
}

/// What holds a component of an instance.
#[derive(Clone, Debug)]
pub enum Held {
    /// A buffer, in row-major order of the coordinates.
    Buffer(BufferId),
    /// Registers of each thread: see [`register`](crate::schedule::register).
    Registers(Vec<VariableId>),
}

impl Instance<'_> {
    /// The value of a dimension, or of a loop around the instance.
    pub fn dim(&self, b: &mut Builder, v: Var, ty: Type) -> ValueId {
        let around = (v as usize).checked_sub(b.kernel().signature.dims.len());
        match around.map(|n| self.around.get(n).copied().flatten()) {
            None => b.dim(v as u16, ty),
            Some(Some(value)) => b.index_convert(value, ty),
            Some(None) => b.index_literal(ty, 0),
        }
    }

    /// What holds what a read takes from it; none if it is not for the read.
    pub fn holds(&self, source: Source, read: AlgorithmValue) -> Option<&Held> {
        self.stage.is_for(source, read).then_some(())?;
        let at = self.stage.serves.iter().position(|s| *s == source)?;
        self.memory.get(at)
    }
}

/// The buffers of every stage in shared memory, by stage and component.
pub(super) fn buffers(b: &mut Builder, stages: &[Analysed]) -> Vec<Vec<BufferId>> {
    let of = |analysed: &Analysed, b: &mut Builder| {
        let stage = &analysed.stage;
        if stage.place != Place::Shared {
            return Vec::new();
        }
        let equation = &stage.program.algorithm.equations[stage.equation];
        let components = &stage.program.algorithm.components[equation.components.range()];
        let buffer = |c: &tilewright_kernel::algorithm::Component, b: &mut Builder| {
            let element = stage.program.algorithm.types[c.value as usize];
            // Whole vectors of 16 bytes.
            let round = i128::from(16 / element.bytes().min(16));
            let elements = (stage.elements() + round - 1).div_euclid(round) * round;
            b.buffer(Buffer {
                name: c.name.to_string(),
                element,
                elements: u32::try_from(elements).unwrap_or(u32::MAX),
                alignment: 16,
                slots: 1,
            })
        };
        components.iter().map(|c| buffer(c, b)).collect()
    };
    stages.iter().map(|s| of(s, b)).collect()
}

impl<'a> Nest<'a, '_> {
    /// Computes the instances that stand inside `k` loops, in an order in which each comes after what it reads.
    pub(super) fn begin_stages(&mut self, point: &Point, k: usize) {
        for (at, boundary) in self.children.clone() {
            if boundary == k {
                self.instance(point, at);
            }
        }
    }

    fn instance(&mut self, point: &Point, at: usize) {
        let analysed: &'a Analysed = &self.stages[at];
        let stage = &analysed.stage;
        let equation = &stage.program.algorithm.equations[stage.equation];
        let components = &stage.program.algorithm.components[equation.components.range()];
        let memory: Vec<Held> = match stage.place {
            Place::Registers => {
                let count = registers(stage);
                let mut variables = |ty| {
                    let zero = self.b.literal(ty, 0);
                    (0..count).map(|_| self.b.variable(zero)).collect()
                };
                let ty = |c: &tilewright_kernel::algorithm::Component| stage.program.algorithm.types[c.value as usize];
                components.iter().map(|c| Held::Registers(variables(ty(c)))).collect()
            }
            _ => self.buffers[at].iter().map(|buffer| Held::Buffer(*buffer)).collect(),
        };
        let shared = stage.place == Place::Shared;
        if shared {
            self.b.sync();
            for held in &memory {
                if let Held::Buffer(buffer) = held {
                    self.b.renew(*buffer);
                }
            }
        }
        // To the stage the loops around are dimensions.
        let around = self.around(point);
        let outer = self.b.loops_around(around.clone());
        let instance = Instance { stage, memory, around };
        // A thread computes its own only where it comes at all.
        let alone = stage.owner == Owner::Thread;
        let opened = alone && self.open_if(point.pending.clone());
        let frame = Frame {
            threads: self.threads,
            more_blocks: false,
            workspace: 0,
            index: self.index,
            copies: &[],
            first_map: 0,
            stages: self.stages,
            buffers: self.buffers,
            instances: &self.values.instances,
            target: Some(&instance),
        };
        let found = super::stage::lower(self.b, at, &frame);
        if let Err(missing) = found {
            self.values.defect.get_or_insert(missing);
        }
        self.close(opened);
        self.b.loops_around(outer);
        self.b.line(self.stage.statement as u32 + 1);
        if shared {
            self.b.sync();
        }
        self.values.instances.push(instance);
    }

    /// What the numbers behind those of the dimensions stand for, inside the loops at `point`.
    fn around(&mut self, point: &Point) -> Vec<Option<ValueId>> {
        let known = self.b.kernel().signature.dims.len();
        let mut values = self.b.loops_around(Vec::new());
        self.b.loops_around(values.clone());
        values.resize(self.facts.dims() - known, None);
        let leaves = self.stage.domain.leaves.iter().map(|leaf| point.values[*leaf]);
        values.extend(leaves);
        values.resize(self.facts.dims() - known + self.values.symbolic.variables.len(), None);
        values
    }
}

impl Values<'_> {
    /// The least and the largest value of a variable at this point.
    pub(super) fn range(&self, v: Var) -> Option<(i128, i128)> {
        let own = self.symbolic.variables.iter().find(|leaf| leaf.var == v);
        match own {
            Some(leaf) => Some((0, self.facts.upper_bound(&leaf.extent)? - 1)),
            None => {
                let e = Expr::var(v);
                Some((self.facts.lower_bound(&e)?, self.facts.upper_bound(&e)?))
            }
        }
    }

    /// An expression with the loops that are written out at their present iteration.
    pub(super) fn at_present(&self, e: &Expr) -> Expr {
        e.substitute(&|v| self.literals.iter().rfind(|(w, _)| *w == v).map(|(_, n)| Expr::constant(*n)))
    }
}
