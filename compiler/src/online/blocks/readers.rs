//! Who reads the extreme or a sum after the pass: all of them have the elements of the product there.

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::{AxisId, Index, IndexId, Reduction, Source, Value, ValueId};

use super::{Cut, Env, axes_of, reached};
use crate::online::Build;

/// The extreme and the sums, with the equations that are read in their places.
struct Results {
    /// As they were written, the extreme first.
    written: Vec<u16>,
    /// With the elements of the product.
    instead: Vec<u16>,
    /// For each axis of the product that is one of the extreme, the axis of each of them that it is.
    rows: Vec<Option<Vec<AxisId>>>,
}

impl Cut<'_> {
    /// Gives readers what the fold has: of the extreme, and of sums with fewer axes than it, the element at that of the
    /// product which they read beside it, and else at the first.
    pub(super) fn results(&mut self, (folded, product): (u16, u16), of: (Reduction, ElementType)) {
        let written: Vec<u16> = std::iter::once(self.extreme).chain(self.chains.iter().map(|c| c.0)).collect();
        let instead = (0..written.len()).map(|n| self.result((folded, n as u16), product, of)).collect();
        let rows = self.rows(product);
        let results = Results { written, instead, rows };
        for n in 0..results.written.len() {
            self.first_element(&results, n, product);
        }
        let readers = 0..self.program.algorithm.equations.len() as u16;
        for reader in readers.filter(|r| !results.written.contains(r) && !results.instead.contains(r)) {
            self.beside(&results, reader, product);
        }
    }

    /// What is made of a state of the fold.
    fn result(&mut self, (folded, component): (u16, u16), product: u16, (op, ty): (Reduction, ElementType)) -> u16 {
        let (axes, env) = self.like(product, None);
        let at: Vec<IndexId> = env.iter().map(|e| e.1).collect();
        let mut value = self.read((folded, component), &at);
        if component > 0 {
            let of_extreme = self.of_extreme(product, &env);
            let range = (self.start(&of_extreme), self.end(&of_extreme));
            let extreme = self.read((folded, 0), &at);
            let chains = self.chains;
            let rule = &chains[usize::from(component) - 1].1.rule;
            value = Build::new(self.algorithm(), ty, op, None).result(rule, (extreme, value), range);
        }
        let of = component.checked_sub(1).map_or(self.extreme, |n| self.chains[usize::from(n)].0);
        let name = format!("{}$r", crate::online::name(self.program, of));
        self.equation(&axes, vec![(name, value)])
    }

    /// Axes of the extreme at an element of a sum.
    pub(super) fn of_extreme(&self, sum: u16, env: &Env) -> Env {
        let algorithm = &self.program.algorithm;
        let own = axes_of(algorithm, self.extreme).iter().copied();
        let Some((_, chain)) = self.chains.iter().find(|chain| chain.0 == sum) else { return Env::new() };
        let place = |index: &IndexId| match algorithm.indices[*index as usize] {
            Index::Axis(axis) => env.iter().find(|e| e.0 == axis).map_or(*index, |e| e.1),
            _ => *index,
        };
        own.zip(chain.places.iter().map(place)).collect()
    }

    fn rows(&self, product: u16) -> Vec<Option<Vec<AxisId>>> {
        let algorithm = &self.program.algorithm;
        let axis_of = |index: IndexId| match algorithm.indices[index as usize] {
            Index::Axis(axis) => Some(axis),
            _ => None,
        };
        let Some((_, chain)) = self.chains.iter().find(|chain| chain.0 == product) else { return Vec::new() };
        let row = |axis: &AxisId| {
            let row = chain.places.iter().position(|place| axis_of(*place) == Some(*axis))?;
            let of_sums = self.chains.iter().map(|(_, chain)| axis_of(chain.places[row]));
            std::iter::once(axes_of(algorithm, self.extreme).get(row).copied()).chain(of_sums).collect()
        };
        axes_of(algorithm, product).iter().map(row).collect()
    }

    /// In its own axes: beside these, the first element of each axis of the product.
    fn first_element(&mut self, results: &Results, n: usize, product: u16) {
        let mut at = Vec::new();
        for (axis, row) in axes_of(&self.program.algorithm, product).to_vec().into_iter().zip(&results.rows) {
            let own = if results.written[n] == product { Some(axis) } else { row.as_ref().map(|row| row[n]) };
            at.push(match own {
                Some(own) => self.index(Index::Axis(own)),
                None => self.program.algorithm.axes[axis as usize].lower,
            });
        }
        let value = self.read((results.instead[n], 0), &at);
        let component = self.program.algorithm.equations[usize::from(results.written[n])].components.start as usize;
        self.algorithm().components.to_mut()[component].value = value;
    }

    /// In an equation that reads the product: at that element.
    fn beside(&mut self, results: &Results, reader: u16, product: u16) {
        let all = reached(&self.program.algorithm, reader);
        let Some(beside) = all.iter().find_map(|value| self.indices_of(*value, product)) else { return };
        for value in all {
            for (n, of) in results.written.iter().enumerate().filter(|(_, of)| **of != product) {
                let Some(own) = self.indices_of(value, *of) else { continue };
                let axes = axes_of(&self.program.algorithm, *of);
                let index = |(row, beside): (&Option<Vec<AxisId>>, &IndexId)| {
                    let axis = row.as_ref().map(|row| row[n]);
                    let place = axis.and_then(|axis| axes.iter().position(|own| *own == axis));
                    place.map_or(*beside, |place| own[place])
                };
                let at: Vec<IndexId> = results.rows.iter().zip(&beside).map(index).collect();
                let read = self.read((results.instead[n], 0), &at);
                let read = self.program.algorithm.values[read as usize];
                self.algorithm().values.to_mut()[value as usize] = read;
            }
        }
    }

    /// With which indices a value reads an equation, if it does.
    fn indices_of(&self, value: ValueId, wanted: u16) -> Option<Vec<IndexId>> {
        let algorithm = &self.program.algorithm;
        match algorithm.values[value as usize] {
            Value::Read { source: Source::Equation { equation, .. }, indices, or: None } if equation == wanted => {
                Some(algorithm.index_lists[indices.range()].to_vec())
            }
            _ => None,
        }
    }
}
