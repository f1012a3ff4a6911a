//! Tensor-core instructions.

use tilewright_ptx::isa::Matrix;
use tilewright_ptx::{Flag, Inst as Source, MatrixCount, MatrixOrder, Modifier, Operand, ScalarType};

use super::{Lowered, Lowering, refuse};
use crate::decode::op::{FragmentAccess, MatrixAccess, Mma, Op, Slot, Space};
use crate::matrix::{Element, Product, Sum};

pub(super) fn element(ty: ScalarType) -> Lowered<Element> {
    use ScalarType::*;
    Ok(match ty {
        F16 => Element::F16,
        Bf16 => Element::Bf16,
        Tf32 => Element::Tf32,
        E4m3 => Element::E4m3,
        E5m2 => Element::E5m2,
        F64 => Element::F64,
        U8 | S8 | U4 | S4 => Element::Int { bits: ty.bits(), signed: ty.is_signed() },
        B1 => Element::Bits,
        _ => return refuse(format!("factors of type {ty} are not supported")),
    })
}

pub(super) fn sum(ty: ScalarType) -> Lowered<Sum> {
    Ok(match ty {
        ScalarType::F16 => Sum::F16,
        ScalarType::F32 => Sum::F32,
        ScalarType::F64 => Sum::F64,
        ScalarType::S32 => Sum::S32,
        _ => return refuse(format!("accumulators of type {ty} are not supported")),
    })
}

/// Whether the layouts of an instruction are `.col`, in their order.
fn columns(inst: &Source) -> Vec<bool> {
    let orders = inst.modifiers.iter().filter_map(|modifier| match modifier {
        Modifier::Flag(flag) => <MatrixOrder as tilewright_ptx::FlagView>::from_flag(*flag),
        _ => None,
    });
    orders.map(|order| order == MatrixOrder::Col).collect()
}

impl Lowering<'_> {
    pub(super) fn matrix(&mut self, matrix: Matrix, inst: &Source) -> Lowered<()> {
        match matrix {
            Matrix::Ldmatrix => self.matrix_access(inst, false),
            Matrix::Stmatrix => self.matrix_access(inst, true),
            Matrix::Movmatrix => {
                let d = self.narrow(self.operand(inst, 0)?, ScalarType::B32)?;
                let a = self.narrow(self.operand(inst, 1)?, ScalarType::B32)?;
                self.emit(Op::MatrixTranspose { d, a });
                Ok(())
            }
            Matrix::Mma => self.mma(inst, false),
            Matrix::WmmaMma => self.mma(inst, true),
            Matrix::WmmaLoad => self.fragment_access(inst, false),
            Matrix::WmmaStore => self.fragment_access(inst, true),
            Matrix::WgmmaFence | Matrix::WgmmaCommitGroup | Matrix::WgmmaWaitGroup | Matrix::WgmmaMmaAsync => {
                self.wgmma(matrix, inst)
            }
        }
    }

    fn mma(&mut self, inst: &Source, wmma: bool) -> Lowered<()> {
        let Some(shape) = inst.shape() else { return refuse("the shape is missing") };
        let types: Vec<ScalarType> = inst.types().collect();
        // `wmma.mma` of f16 names only the types of D and C.
        let [d, a, b, c] = match types[..] {
            [d, a, b, c] => [d, a, b, c],
            [d, c] => [d, ScalarType::F16, ScalarType::F16, c],
            _ => return refuse("the types are missing"),
        };
        let (ea, eb) = (element(a)?, element(b)?);
        let groups = if ea == Element::Bits { 32 } else { 1 };
        let product = Product {
            m: usize::from(shape.m),
            n: usize::from(shape.n),
            k: usize::from(shape.k) / groups,
            a: ea,
            b: eb,
            c: sum(c)?,
            d: sum(d)?,
            saturate: inst.has(Flag::Satfinite),
            and: inst.has(Flag::And),
            round: self.rounding(inst),
        };
        let (mut counts, mut slots) = ([0; 4], Vec::new());
        for (index, count) in counts.iter_mut().enumerate() {
            let operand = self.operand(inst, index)?;
            let elements = match operand {
                Operand::Vector(elements) => elements.as_slice(),
                single => std::slice::from_ref(single),
            };
            *count = elements.len() as u8;
            let ty = match [d, a, b, c][index] {
                wide @ (ScalarType::F64 | ScalarType::F32) => wide,
                _ => ScalarType::B32,
            };
            for element in elements {
                slots.push(Some(self.value(element, ty)?));
            }
        }
        let data = self.push(slots);
        let columns = columns(inst);
        let wmma = wmma.then(|| [columns.first() == Some(&true), columns.get(1) == Some(&true)]);
        let places = self.places_of(&product, wmma, counts);
        self.emit(Op::Mma(Mma { product, wmma, data, counts, places }));
        Ok(())
    }

    fn matrix_access(&mut self, inst: &Source, store: bool) -> Lowered<()> {
        let (at, with) = if store { (0, 1) } else { (1, 0) };
        let count = inst.find::<MatrixCount>().map_or(1, MatrixCount::matrices);
        let generic = self.space(inst, self.operand(inst, at)?)? == Space::Generic;
        let address = self.address(self.operand(inst, at)?)?;
        let slots = self.data(self.operand(inst, with)?, ScalarType::B32, count)?;
        let data = self.push(slots);
        self.emit(Op::MatrixAccess(MatrixAccess {
            address,
            generic,
            count: count as u8,
            trans: inst.has(Flag::Trans),
            store,
            data,
        }));
        Ok(())
    }

    fn fragment_access(&mut self, inst: &Source, store: bool) -> Lowered<()> {
        let Some(shape) = inst.shape() else { return refuse("the shape is missing") };
        let (m, n, k) = (shape.m, shape.n, shape.k);
        let ty = self.ty(inst, 0)?;
        let col = columns(inst).first() == Some(&true);
        // Rows and columns of the matrix.
        let (rows, cols, factor) = if inst.has(Flag::MatrixA) {
            (m, k, true)
        } else if inst.has(Flag::MatrixB) {
            (k, n, true)
        } else {
            (m, n, false)
        };
        let extents = if col { [rows, cols] } else { [cols, rows] };
        let (at, with) = if store { (0, 1) } else { (1, 0) };
        let space = self.space(inst, self.operand(inst, at)?)?;
        if !matches!(space, Space::Global | Space::Shared | Space::Generic) {
            return refuse("the matrix must be in global or shared memory");
        }
        let address = self.address(self.operand(inst, at)?)?;
        let operand = self.operand(inst, with)?;
        let count = match operand {
            Operand::Vector(elements) => elements.len(),
            _ => 1,
        };
        let as_register =
            if matches!(ty, ScalarType::F32 | ScalarType::F64 | ScalarType::S32) { ty } else { ScalarType::B32 };
        let mut slots = self.data(operand, as_register, count)?;
        let Some(Slot::Narrow(scratch)) = self.slots.temporary(32) else { return refuse("no room for a register") };
        slots.push(Some(Slot::Narrow(scratch)));
        let data = self.push(slots);
        let stride = match inst.operands.get(2) {
            Some(stride) => Some(self.narrow(stride, ScalarType::U32)?),
            None => None,
        };
        self.emit(Op::FragmentAccess(FragmentAccess {
            space,
            address,
            stride,
            extents,
            bits: ty.bits() as u8,
            across: !factor && col,
            store,
            data,
            count: count as u8,
            scratch,
        }));
        Ok(())
    }
}
