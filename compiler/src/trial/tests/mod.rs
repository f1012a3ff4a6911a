//! What trials look at, and what they find in finished kernels in which mistakes were planted.

mod paths;
mod values;

use tilewright_kernel::ElementType;

use super::*;
use crate::kernel_ir::{Op, Type};
use crate::source::TokenBuffer;
use crate::{Compiled, compile};

/// A kernel from its text.
fn compiled(source: &str) -> Compiled {
    let (tokens, _) = TokenBuffer::new(source.parse().expect("tokens"));
    let mut outcome = compile(&tokens);
    let kernel = outcome.kernels.swap_remove(0);
    assert!(kernel.info.is_some(), "{:?}", outcome.diagnostics.found());
    kernel
}

#[test]
fn sizes_of_a_kernel_differ() {
    let source = "kernel K(x: f32[M, N], z: f32[K, L]) -> (y: f32[M, N]) where L % 4 == 0 {
        y[i, j] = x[i, j] + (z[j, i] or 0.0);
        schedule y { bind i: grid; }
    }";
    let kernel = compiled(source);
    let info = kernel.info.as_ref().expect("compiled");
    let facts = Facts::new(&info.dims, &info.facts).expect("facts");
    let expected = [[1, 1, 1, 4], [3, 5, 4, 4], [35, 37, 36, 36]];
    assert_eq!(sizes(info, &facts, &kernel.stages, Depth::Full).plain, expected.map(Vec::from));
}

/// A bounded trial looks at the same sizes with a 0 as a full one, since they decide what is planned, and at no further
/// ones.
#[test]
fn sizes_with_a_zero_do_not_depend_on_the_depth() {
    let kernel = compiled("kernel K(x: f32[M, K]) -> (y: f32[M]) { y[i] = sum(|k| x[i, k]); }");
    let info = kernel.info.as_ref().expect("compiled");
    let facts = Facts::with_zeros(&info.dims, &info.facts, &[1]).expect("facts");
    let of = |depth| sizes(info, &facts, &kernel.stages, depth);
    let (full, bounded) = (of(Depth::Full), of(Depth::Bounded));
    assert_eq!((&full.plain, &full.zeros), (&bounded.plain, &bounded.zeros));
    assert_eq!(full.plain, [[1, 0], [3, 5], [35, 37]]);
    assert_eq!(full.zeros, [[3, 0]]);
    assert_eq!(full.further, [[1, 1], [35, 0]]);
    assert_eq!(bounded.further, Vec::<Vec<i64>>::new());
}

/// What is wrong at any size is found in a macro, too; what is wrong at larger ones alone, elsewhere.
#[test]
fn a_bounded_trial_looks_at_the_smallest_sizes() {
    let source = "kernel K(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] + 1.0;
        schedule y { split i by 32 -> b, t; bind b: grid; bind t: thread; } }";
    let kernel = compiled(source);
    let info = kernel.info.as_ref().expect("compiled");
    let facts = Facts::new(&info.dims, &info.facts).expect("facts");
    let wrong = |of: Type, from: u64, to: u64| {
        let (mut entries, mut changed) = (kernel.entries.clone(), 0);
        for entry in &mut entries {
            let values = entry.kernel.values.iter_mut().filter(|v| v.ty == of && v.op == Op::Literal(from));
            values.for_each(|value| (value.op, changed) = (Op::Literal(to), changed + 1));
        }
        assert!(changed > 0, "{}", kernel.entries[0].kernel);
        [Depth::Bounded, Depth::Full]
            .map(|depth| Trial::new(info, &facts, &kernel.stages, depth).run(info, &entries).is_err())
    };
    let f32 = Type::Element(ElementType::F32);
    assert_eq!(wrong(f32, 1.0f32.to_bits().into(), 1.0f32.to_bits().into()), [false, false]);
    assert_eq!(wrong(f32, 1.0f32.to_bits().into(), 2.0f32.to_bits().into()), [true, true]);
    // The first element of each block but the first.
    assert_eq!(wrong(Type::I32, 32, 31), [false, true]);
}

/// What is planned for sizes of at least 1 alone is wrong at these sizes, and what is planned for all of them is
/// right.
#[test]
fn sizes_of_zero_are_planned_for() {
    let all: [(&str, &[(&str, i64)]); 4] = [
        ("size_of_zero_frees_another", &[("N", 0), ("M", 12)]),
        ("sizes_of_zero_together", &[("M", 0), ("N", 0), ("K", 3)]),
        ("size_of_zero_by_a_fact", &[("N", 0), ("P", 0), ("K", 3)]),
        ("size_of_zero_and_a_large_one", &[("N", 0), ("K", 64)]),
    ];
    for (name, sizes) in all {
        let path = format!("{}/../campaign/found/{name}.txt", env!("CARGO_MANIFEST_DIR"));
        let source = std::fs::read_to_string(path).expect("a kernel that was found");
        let (tokens, _) = TokenBuffer::new(source.parse().expect("tokens"));
        let kernel = compile(&tokens).kernels.remove(0);
        let at = |name: &str| sizes.iter().find(|size| size.0 == name).expect("a size").1;
        let effort = Effort { nets: &[Net::Values], seed: 1, work: 1_000_000 };
        let proved = |info: &KernelInfo, entries: &[Entry]| {
            let dims: Vec<i64> = info.dims.iter().map(|dim| at(&dim.name)).collect();
            prove(info, entries, &dims, effort).is_ok_and(|tally| tally.held > 0 && tally.undecided == 0)
        };
        let info = kernel.info.as_ref().expect("compiled");
        assert!(info.requirements.is_empty() && proved(info, &kernel.entries), "{name}");
        let (info, _, entries) = crate::never_empty(&kernel.ast, &tokens).expect("compiled");
        assert!(!proved(&info, &entries), "{name}");
    }
}
