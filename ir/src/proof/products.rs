//! Products of matrices, by the tensor cores of warpgroups and of warps: what they read, when they are over, what they
//! add. Those of warps are over at once; what follows is about warpgroups.
//!
//! A product reads shared memory from its issue to the wait that covers its group; its warpgroup is then the last that
//! read there. In between nothing may write there, and the threads leave their variables alone: those that it adds to,
//! and those that hold its left matrix. What threads did with
//! these before comes first after a [`WgmmaFence`](crate::kernel_ir::StatementKind::WgmmaFence). A product reads by the
//! rules of copies: threads' writes are seen after a publication and a barrier.

use std::ops::Range;

use tilewright_kernel::ElementType;
use tilewright_kernel::algorithm::Binary;
use tilewright_kernel::descriptor::Descriptor;
use tilewright_kernel::target::{WARP, WARPGROUP};
use tilewright_kernel::tensor_map::GRANULE;

use super::agent::Active;
use super::barriers::Groups;
use super::order::{GROUPS, SEVERAL, Time};
use super::row::{Known, Row};
use super::run::{Outcome, Run};
use super::shared::CopyId;
use super::violation::Kind;
use crate::kernel_ir::{Kernel, Matrix, Memory, MmaSync, Product, StatementKind, Type, VariableId, Wgmma};

/// The products of an agent.
#[derive(Clone, Debug, Default)]
pub(super) struct Products {
    pub groups: Groups,
    /// The last fence.
    pub fenced: Time,
    /// When threads last used each variable; empty in a kernel without products.
    used: Vec<Time>,
    /// The products that may be under way, and the variables that each adds to, and that hold its left matrix.
    busy: Vec<(CopyId, Range<u32>, Vec<VariableId>)>,
}

impl Products {
    /// Those of a kernel that has products, or none ever.
    pub fn of(kernel: &Kernel) -> Self {
        let mut statements = kernel.regions.iter().flat_map(|region| &region.statements);
        let has = statements.any(|s| matches!(s.kind, StatementKind::Wgmma(_)));
        Self { used: if has { vec![0; kernel.variables.len()] } else { Vec::new() }, ..Self::default() }
    }

    /// Threads read a variable, or give it a value.
    pub fn touch(&mut self, variable: VariableId, now: Time) {
        if let Some(used) = self.used.get_mut(variable.index()) {
            *used = now;
        }
    }

    /// Whether a product may add to a variable still, or read it.
    pub fn uses(&self, variable: VariableId) -> bool {
        self.busy.iter().any(|(_, sums, factor)| sums.contains(&variable.0) || factor.contains(&variable))
    }

    /// A variable that threads used after the last fence.
    fn unfenced(&self, product: &Wgmma) -> Option<VariableId> {
        Product::Wgmma(product).uses().find(|v| self.used.get(v.index()).is_some_and(|used| *used > self.fenced))
    }
}

/// What is in a matrix of a product, row after row along k.
struct Values {
    ty: ElementType,
    all: Vec<Known>,
}

/// A matrix of a product: its elements in shared memory, row after row along k.
struct Elements {
    ty: ElementType,
    /// The address of each, without that of the block.
    addresses: Vec<u64>,
}

impl Run<'_> {
    /// A product is started by each warpgroup of the agent.
    pub(super) fn multiply(&mut self, product: &Wgmma, active: &Active) -> Outcome {
        if let Some(variable) = self.me.products.unfenced(product) {
            let what = format!("a product uses v{}, which threads used before, without a fence", variable.0);
            return self.violation(Kind::NotPublished, what);
        }
        let adds = match product.adds {
            Some(adds) => self.agreed(adds, active)? != 0,
            None => true,
        };
        let copy = self.shared.issue();
        let mut cells = Vec::new();
        let groups: Vec<usize> = active.threads().step_by(WARPGROUP as usize).collect();
        for first in groups.iter().copied() {
            let mut known = [None, None];
            for (known, (matrix, rows)) in
                known.iter_mut().zip([(product.a.matrix(), Wgmma::ROWS), (Some(&product.b), product.columns)])
            {
                *known = match matrix {
                    Some(matrix) => {
                        let elements = self.elements_of(matrix, rows, first)?;
                        self.is_read(matrix, &elements, &mut cells)?;
                        self.in_memory(matrix, &elements)
                    }
                    None => {
                        let shape = [Wgmma::ROWS, WARPGROUP];
                        self.in_registers(product.a.variables(), shape, first, Wgmma::factor_element)
                    }
                };
            }
            let [a, b] = known;
            self.add(product.all(), (adds, [Wgmma::ROWS, product.columns, WARPGROUP]), first, a.zip(b))?;
        }
        let reader = match groups[..] {
            [one] => GROUPS + one as u32 / WARPGROUP,
            _ => SEVERAL,
        };
        self.shared.begin_product(copy, reader, cells);
        self.me.products.groups.issue(copy);
        let last = product.sums.0 + product.variables();
        self.me.products.busy.push((copy, product.sums.0..last, product.a.variables().to_vec()));
        Ok(())
    }

    /// All committed products but those of the last `pending` commits are over.
    pub(super) fn products_are_over(&mut self, pending: u32) {
        let over = self.me.products.groups.wait(pending);
        self.me.products.busy.retain(|(product, ..)| !over.contains(product));
        for product in over {
            self.shared.end_product(product, self.me.id, self.me.order.now);
        }
    }

    /// The elements of a matrix that the warpgroup from a thread on reads.
    fn elements_of(&mut self, matrix: &Matrix, rows: u32, first: usize) -> Outcome<Elements> {
        let [within, slot] = [matrix.offset, matrix.slot].map(|value| {
            let row = &self.me.values[value.index()];
            let mut all = (first..first + WARPGROUP as usize).map(|thread| row.of(thread));
            let one = all.next().flatten();
            all.all(|other| other == one).then_some(one)
        });
        let (Some(within), Some(slot)) = (within, slot) else {
            return self.violation(Kind::Disagree, "threads disagree on where a matrix of a product is".to_owned());
        };
        let ty = self.kernel.element(Memory::Buffer(matrix.buffer)).unwrap_or(ElementType::F32);
        let pitch = i64::from(self.kernel.buffers[matrix.buffer.index()].elements);
        let Some(offset) = within.zip(slot).map(|(within, slot)| slot * pitch + within) else {
            self.depends("where a matrix of a product is depends on data".to_owned());
            return Ok(Elements { ty, addresses: Vec::new() });
        };
        let bytes = ty.bytes();
        let depth = Wgmma::depth(bytes);
        self.spend(u64::from(rows * depth))?;
        // Patterns are those of a block's own addresses.
        let base = self.shared.place(0, matrix.buffer);
        let size = self.shared.elements(matrix.buffer).unsigned_abs() * u64::from(bytes);
        let start = base.saturating_add_signed(offset * i64::from(bytes));
        let name = || self.kernel.buffers[matrix.buffer.index()].name.clone();
        if !start.is_multiple_of(GRANULE) {
            let what = format!("a matrix of `{}` starts at element {offset}: no multiple of {GRANULE} bytes", name());
            return self.violation(Kind::Misaligned, what);
        }
        let Matrix { across, leading, stride, swizzle, .. } = *matrix;
        let descriptor = Descriptor { start: start as u32, leading, stride, base: 0, swizzle };
        let mut addresses = Vec::with_capacity((rows * depth) as usize);
        for (x, k) in (0..rows).flat_map(|x| (0..depth).map(move |k| (x, k))) {
            let (chunk, within) = Descriptor::chunk_of(across, bytes, (x, k));
            let address = u64::from(descriptor.chunk(across, bytes, chunk) + within);
            if address < base || address + u64::from(bytes) > base + size {
                let what = format!("element ({x}, {k}) of a matrix of a product lies outside `{}`", name());
                return self.violation(Kind::Outside, what);
            }
            addresses.push(address);
        }
        Ok(Elements { ty, addresses })
    }

    /// A product reads a matrix.
    fn is_read(&mut self, matrix: &Matrix, elements: &Elements, cells: &mut Vec<usize>) -> Outcome {
        let (bytes, own) = (u64::from(elements.ty.bytes()), self.shared.place(self.me.id.rank, matrix.buffer));
        let first = self.shared.place(0, matrix.buffer);
        for address in &elements.addresses {
            let read = self.shared.multiply(matrix.buffer, own + address - first, bytes, cells, self.me.view());
            if let Err((kind, what)) = read {
                let name = &self.kernel.buffers[matrix.buffer.index()].name;
                let at = (address - first) / bytes;
                return self.violation(kind, format!("a product reads `{name}[{at}]`: {what}"));
            }
        }
        Ok(())
    }

    /// What is in a matrix in shared memory, if that is computed: its elements, row after row along k.
    fn in_memory(&self, matrix: &Matrix, elements: &Elements) -> Option<Values> {
        let data = self.data.as_ref()?;
        let place = |rank: u8| self.shared.place(rank, matrix.buffer);
        let moved = place(self.me.id.rank) - place(0);
        let value = |address: &u64| data.shared(address + moved);
        Some(Values { ty: elements.ty, all: elements.addresses.iter().map(value).collect() })
    }

    /// The same of a matrix with so many rows that so many threads from one on hold in variables: `element` says which
    /// row, and which place along k, each has.
    fn in_registers(
        &self,
        variables: &[VariableId],
        [rows, threads]: [u32; 2],
        first: usize,
        element: impl Fn(u32, u32, u32) -> (u32, u32),
    ) -> Option<Values> {
        self.data.as_ref()?;
        let Type::Element(ty) = self.kernel.variables[variables.first()?.index()] else { return None };
        let depth = Wgmma::depth(ty.bytes());
        let mut all = vec![None; (rows * depth) as usize];
        for (n, variable) in (0..).zip(variables) {
            let row = &self.me.variables[variable.index()];
            for thread in 0..threads {
                let (x, k) = element(ty.bytes(), thread, n);
                all[(x * depth + k) as usize] = row.of(first + thread as usize);
            }
        }
        Some(Values { ty, all })
    }

    /// A product of each warp of the agent.
    pub(super) fn multiply_in_registers(&mut self, product: &MmaSync, active: &Active) -> Outcome {
        for variable in Product::MmaSync(product).uses() {
            self.is_at_rest(variable)?;
            self.me.products.touch(variable, self.me.order.now);
        }
        let right = |bytes: u32, lane: u32, n: u32| {
            let (k, column) = MmaSync::right_element(bytes, lane, n);
            (column, k)
        };
        let warps: Vec<usize> = active.threads().step_by(WARP as usize).collect();
        for first in warps {
            let a = self.in_registers(&product.a, [MmaSync::ROWS, WARP], first, Wgmma::factor_element);
            let b = self.in_registers(&product.b, [MmaSync::COLUMNS, WARP], first, right);
            let shape = [MmaSync::ROWS, MmaSync::COLUMNS, WARP];
            self.add(product.all(), (true, shape), first, a.zip(b))?;
        }
        Ok(())
    }

    /// What so many threads from one on have in these variables after a product of so many rows and columns; what was
    /// in them before counts only if it `adds`.
    fn add(
        &mut self,
        sums: impl Iterator<Item = VariableId>,
        (adds, [rows, columns, threads]): (bool, [u32; 3]),
        first: usize,
        factors: Option<(Values, Values)>,
    ) -> Outcome {
        let mut sums = sums.enumerate().peekable();
        let ty = sums.peek().and_then(|(_, v)| self.kernel.variables.get(v.index()).copied());
        let Some(Type::Element(sum)) = ty else { return Ok(()) };
        let depth = factors.as_ref().map_or(0, |(a, _)| Wgmma::depth(a.ty.bytes())) as usize;
        let as_sums = |this: &Self, values: Values| -> Option<Vec<Known>> {
            let data = this.data.as_ref()?;
            let one = |value: Known| data.algebra.cast(values.ty, sum, value?);
            Some(values.all.into_iter().map(one).collect())
        };
        let values = factors.and_then(|(a, b)| as_sums(self, a).zip(as_sums(self, b)));
        if values.is_some() {
            self.spend(u64::from(rows * columns) * depth as u64)?;
        }
        for (n, variable) in sums {
            let mut row = match &self.me.variables[variable.index()] {
                Row::Each(all) => all.clone(),
                row => (0..self.threads).map(|thread| row.of(thread)).collect(),
            };
            for thread in 0..threads {
                let known = &mut row[first + thread as usize];
                let (Some((a, b)), Some(data)) = (&values, &self.data) else {
                    *known = None;
                    continue;
                };
                let (x, y) = Wgmma::element(thread, n as u32);
                let (x, y) = (x as usize * depth, y as usize * depth);
                if !adds {
                    *known = Some(0);
                }
                for k in 0..depth {
                    let term = a[x + k].zip(b[y + k]).and_then(|(a, b)| data.algebra.binary(Binary::Mul, sum, a, b));
                    *known =
                        known.zip(term).and_then(|(known, term)| data.algebra.binary(Binary::Add, sum, known, term));
                }
            }
            self.me.variables[variable.index()] = Row::Each(row);
        }
        Ok(())
    }
}
