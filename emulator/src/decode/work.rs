//! What an instruction has of the units of arithmetic, as hardware counters have it: a sum, a difference or a product
//! is one operation, a fused multiply-add two (Nsight Compute, `smsp__sass_thread_inst_executed_op_fadd_pred_on` and
//! its neighbours, of which roofline charts are made).

use tilewright_ptx::isa::{Arith, Op as Family};
use tilewright_ptx::{Inst as Source, ScalarType};

use crate::counters::{Arithmetic, Factor, Work};
use crate::matrix::{Element, Product};

/// The work of a lane; of a warp, if it is a product of matrices. None if it has none.
pub(super) fn of(inst: &Source, product: Option<&Product>) -> Option<Work> {
    let mut work = Work::default();
    if let Some(product) = product {
        let Product { m, n, k, a, .. } = *product;
        // An element of single bits is 32 of them.
        let k = if a == Element::Bits { 32 * k } else { k };
        work.tensor[factor(a) as usize] = 2 * (m * n * k) as u64;
        return Some(work);
    }
    let ty = inst.types().find(|ty| ty.is_float())?;
    let parts = if matches!(ty, ScalarType::F16x2 | ScalarType::Bf16x2) { 2 } else { 1 };
    let each = match inst.op {
        Family::Arith(Arith::Add | Arith::Sub | Arith::Mul) => 1,
        Family::Arith(Arith::Mad | Arith::Fma) => 2,
        Family::Arith(Arith::Div) | Family::Math(_) => {
            work.special = parts;
            return Some(work);
        }
        _ => return None,
    };
    let unit = match ty {
        ScalarType::F64 => &mut work.f64,
        ScalarType::F32 => &mut work.f32,
        _ => &mut work.half,
    };
    *unit = Arithmetic { instructions: 1, operations: each * parts };
    Some(work)
}

fn factor(element: Element) -> Factor {
    match element {
        Element::F16 | Element::Bf16 => Factor::Half,
        Element::Tf32 => Factor::Tf32,
        Element::E4m3 | Element::E5m2 => Factor::Float8,
        Element::F64 => Factor::F64,
        Element::Int { bits: 8, .. } => Factor::Int8,
        Element::Int { .. } | Element::Bits => Factor::Narrow,
    }
}
