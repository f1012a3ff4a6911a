//! Each check of a launch, with arguments that only it refuses.

use std::sync::Arc;

use tilewright_kernel::info::{
    Argument, Dim, DimKind, Entry, Launch, Parameter, ParameterKind, Ptx, Role, Solved, TensorParameter,
};
use tilewright_kernel::{
    Algorithm, Constraint, ElementType, KernelInfo, List, Relation, Size, SizeError, SizeOp, Text,
};

use super::Passed;
use super::argument::{Given, GivenTensor};
use super::check::{GRID_LIMIT, Plan, check};
use super::check_target;
use super::workspace::Layout;
use crate::error::Reason;
use crate::memory::Allocation;
use crate::{Device, EmulatorOptions};

/// `kernel K(a: f32, x: f32[N, M + 1], y: f32[N, M; ld, 1]) -> (z: f32[N, M; lz, 1]) where M % 4 == 0`, one block per
/// 128 elements.
fn kernel() -> KernelInfo {
    let names = [("N", DimKind::Size), ("M", DimKind::Size), ("ld", DimKind::Stride), ("lz", DimKind::Stride)];
    let (n, m) = (Size::dim(0), Size::dim(1));
    let one = Size::constant(1);
    let wider = Size::binary(SizeOp::Add, &m, &one);
    let tensor = |name: &'static str, role, shape: [&Size; 2], strides: Option<[&Size; 2]>| Parameter {
        name: name.into(),
        element: ElementType::F32,
        kind: ParameterKind::Tensor(TensorParameter {
            role,
            shape: List::Owned(shape.map(Clone::clone).to_vec()),
            strides: strides.map(|s| List::Owned(s.map(Clone::clone).to_vec())),
            alignment: 4,
        }),
    };
    let elements = Size::binary(SizeOp::Mul, &n, &m);
    KernelInfo {
        name: "K".into(),
        dims: List::Owned(names.map(|(name, kind)| Dim { name: name.into(), kind }).to_vec()),
        parameters: List::Owned(vec![
            Parameter { name: "a".into(), element: ElementType::F32, kind: ParameterKind::Scalar },
            tensor("x", Role::Input, [&n, &wider], None),
            tensor("y", Role::Input, [&n, &m], Some([&Size::dim(2), &one])),
            tensor("z", Role::Output, [&n, &m], Some([&Size::dim(3), &one])),
        ]),
        solved: List::Owned(vec![]),
        facts: List::Owned(vec![Constraint {
            lhs: Size::binary(SizeOp::Mod, &m, &Size::constant(4)),
            relation: Relation::Eq,
            rhs: Size::constant(0),
            text: "M % 4 == 0".into(),
        }]),
        requirements: List::Owned(vec![]),
        entries: List::Owned(vec![
            Entry {
                name: "narrow".into(),
                conditions: List::Owned(vec![Constraint {
                    lhs: elements.clone(),
                    relation: Relation::Lt,
                    rhs: Size::constant(1000),
                    text: "N * M < 1000".into(),
                }]),
                takes_maps: false,
                shared_bytes: 0,
            },
            Entry { name: "wide".into(), conditions: List::Owned(vec![]), takes_maps: false, shared_bytes: 0 },
        ]),
        maps: List::Owned(vec![]),
        workspace: List::Owned(vec![]),
        arguments: List::Owned(vec![Argument::Scalar(0), Argument::Address(3), Argument::Dim(1), Argument::Dim(2)]),
        launch: Launch {
            blocks: Size::binary(SizeOp::CeilDiv, &elements, &Size::constant(128)),
            threads: 128,
            cluster: 1,
            persistent: false,
            dependent: false,
        },
        ptx: Ptx {
            text: "".into(),
            version: (7, 0),
            target: "sm_80".into(),
            capability: (8, 0),
            exact_capability: false,
            driver: (11, 0),
        },
        algorithm: Algorithm {
            indices: List::Owned(vec![]),
            values: List::Owned(vec![]),
            types: List::Owned(vec![]),
            axes: List::Owned(vec![]),
            index_lists: List::Owned(vec![]),
            axis_lists: List::Owned(vec![]),
            folds: List::Owned(vec![]),
            components: List::Owned(vec![]),
            equations: List::Owned(vec![]),
        },
        statements: List::Owned(vec![]),
        additions: List::Borrowed(&[]),
        explanation: "".into(),
    }
}

fn tensor(address: u64, shape: [i64; 2], strides: [i64; 2], writable: bool) -> Given {
    let device = Device::emulator(EmulatorOptions::default());
    let allocation = Arc::new(Allocation::new(device.inner(), 4).unwrap());
    let (shape, strides) = (shape.to_vec(), strides.to_vec());
    Given::Tensor(GivenTensor { allocation, address, offset: 0, element: ElementType::F32, shape, strides, writable })
}

/// Arguments that pass, for these sizes.
fn good(n: i64, m: i64) -> Vec<Given> {
    vec![
        Given::Scalar { element: ElementType::F32, bits: 7 },
        tensor(0x1_0000_0000, [n, m + 1], [m + 1, 1], false),
        tensor(0x2_0000_0000, [n, m], [m + 3, 1], false),
        tensor(0x3_0000_0000, [n, m], [m + 5, 1], true),
    ]
}

/// Why the arguments are refused after a change to them or to the kernel.
fn refused(change: impl FnOnce(&mut KernelInfo, &mut Vec<Given>)) -> Reason {
    let (mut kernel, mut given) = (kernel(), good(5, 8));
    change(&mut kernel, &mut given);
    check(&kernel, &given).unwrap_err()
}

fn view(given: &mut Given) -> &mut GivenTensor {
    match given {
        Given::Tensor(tensor) => tensor,
        Given::Scalar { .. } => panic!("a scalar"),
    }
}

#[test]
fn good_arguments_pass_and_are_encoded() {
    let plan = check(&kernel(), &good(5, 8)).unwrap();
    let parameters = [(7, 4), (0x3_0000_0000, 8), (8, 8), (11, 8)].map(|(v, w)| Passed::Word(v, w)).to_vec();
    assert_eq!(
        plan,
        Plan { dims: vec![5, 8, 11, 13], empty: false, entry: 0, blocks: 1, parameters, workspace: Layout::default() }
    );
    let plan = check(&kernel(), &good(500, 8)).unwrap();
    assert_eq!((plan.entry, plan.blocks), (1, 32), "4000 elements need the wide entry");
}

#[test]
fn kinds_types_and_ranks() {
    assert_eq!(refused(|_, g| drop(g.pop())), Reason::ArgumentCount { expected: 4, found: 3 });
    let kind = refused(|_, g| g[1] = g[0].clone());
    assert_eq!(kind.to_string(), "`x` is a tensor, a scalar was given");
    let kind = refused(|_, g| view(&mut g[3]).writable = false);
    assert_eq!(kind.to_string(), "`z` is an output, a tensor that may only be read was given");
    let (expected, found) = (ElementType::F32, ElementType::F64);
    let reason = refused(|_, g| view(&mut g[2]).element = found);
    assert_eq!(reason, Reason::ArgumentType { parameter: "y".into(), expected, found });
    let reason = refused(|_, g| view(&mut g[2]).shape = vec![40]);
    assert_eq!(reason, Reason::Rank { parameter: "y".into(), expected: 2, found: 1 });
}

#[test]
fn dimensions() {
    let reason = refused(|_, g| view(&mut g[3]).shape[0] = 6);
    assert_eq!(reason.to_string(), "N would be 5 (x.shape[0]) and 6 (z.shape[0])");
    let reason = refused(|_, g| view(&mut g[1]).shape[1] = 10);
    assert_eq!(reason.to_string(), "x.shape[1] is 10, but is declared M + 1 = 9 with M = 8");
    // P == 2 * N + 1, which only the fact tells.
    let solve = |value: Size| {
        let mut kernel = kernel();
        kernel.dims.to_mut().push(Dim { name: "P".into(), kind: DimKind::Size });
        kernel.solved.to_mut().push(Solved { dim: 4, value });
        check(&kernel, &good(5, 8))
    };
    let twice = Size::binary(SizeOp::Mul, &Size::dim(0), &Size::constant(2));
    let plan = solve(Size::binary(SizeOp::Add, &twice, &Size::constant(1))).unwrap();
    assert_eq!(plan.dims, [5, 8, 11, 13, 11]);
    let reason = solve(Size::binary(SizeOp::Div, &twice, &Size::constant(0))).unwrap_err();
    assert!(matches!(reason, Reason::Size { error: SizeError::DivisionByZero, .. }), "{reason}");
    assert!(
        matches!(solve(Size::dim(4)), Err(Reason::DimensionUnknown { .. })),
        "not in an order that can be computed"
    );
    let unknown = refused(|k, _| {
        k.dims.to_mut().push(Dim { name: "P".into(), kind: DimKind::Size });
    });
    assert_eq!(unknown, Reason::DimensionUnknown { dimension: "P".into() });
    let reason = refused(|_, g| view(&mut g[2]).strides[1] = 2);
    assert_eq!(reason.to_string(), "y.strides[1] is 2, but is declared 1 = 1");
    // A stride along an extent of 1 is never used.
    let mut given = good(1, 8);
    view(&mut given[1]).strides[0] = 77;
    view(&mut given[2]).strides[0] = 0;
    assert!(check(&kernel(), &given).is_ok());
}

#[test]
fn facts_requirements_and_sizes() {
    let (kernel, mut given) = (kernel(), good(5, 6));
    let reason = check(&kernel, &given).unwrap_err();
    assert_eq!(reason.to_string(), "the fact `M % 4 == 0` does not hold with M = 6, where M % 4 = 2");
    given = good(5, 8);
    let requirement = Constraint {
        lhs: Size::dim(2),
        relation: Relation::Ge,
        rhs: Size::binary(SizeOp::Mul, &Size::dim(1), &Size::constant(2)),
        text: "ld >= 2 * M".into(),
    };
    let reason = refused(|k, _| k.requirements.to_mut().push(requirement));
    assert_eq!(
        reason.to_string(),
        "the kernel requires `ld >= 2 * M`, which does not hold with M = 8, ld = 11, where M * 2 = 16"
    );
    let reason = refused(|k, _| k.launch.blocks = Size::binary(SizeOp::Div, &Size::dim(0), &Size::constant(0)));
    assert!(matches!(reason, Reason::Size { error: SizeError::DivisionByZero, .. }), "{reason}");
    assert!(check(&kernel, &given).is_ok());
}

#[test]
fn layouts_and_addresses() {
    let reason = refused(|_, g| view(&mut g[1]).strides = vec![12, 1]);
    assert_eq!(reason, Reason::NotContiguous { parameter: "x".into(), shape: vec![5, 9], strides: vec![12, 1] });
    let reason = refused(|_, g| view(&mut g[3]).strides = vec![7, 1]);
    assert!(matches!(&reason, Reason::SelfOverlap { parameter, .. } if parameter == "z"), "{reason}");
    // An input may overlap itself.
    let mut given = good(5, 8);
    view(&mut given[2]).strides = vec![0, 1];
    assert!(check(&kernel(), &given).is_ok());
    let reason = refused(|_, g| view(&mut g[2]).address += 2);
    assert_eq!(reason, Reason::Alignment { parameter: "y".into(), address: 0x2_0000_0002, alignment: 4 });
    let reason = refused(|_, g| view(&mut g[2]).strides[0] = (1 << 40) + 1);
    assert_eq!(reason.to_string(), "ld = 1099511627777; a size or a stride is at most 1099511627776");
    let reason = refused(|_, g| view(&mut g[2]).address = i64::MAX as u64 & !3);
    assert_eq!(reason, Reason::AddressOverflow { parameter: "y".into() });
}

#[test]
fn outputs_share_no_memory() {
    // z over the middle of x, then over the last element of y, then interleaved with y.
    let reason = refused(|_, g| view(&mut g[3]).address = 0x1_0000_0010);
    assert!(matches!(&reason, Reason::Aliasing { output, other, .. } if output == "z" && other == "x"), "{reason}");
    let last = 4 * (4 * 11 + 7);
    let reason = refused(|_, g| view(&mut g[3]).address = 0x2_0000_0000 + last);
    assert!(matches!(&reason, Reason::Aliasing { other, .. } if other == "y"), "{reason}");
    let mut given = good(5, 8);
    view(&mut given[3]).address = 0x2_0000_0004 + last;
    assert!(check(&kernel(), &given).is_ok(), "right after y");
    let mut given = good(5, 8);
    view(&mut given[2]).strides = vec![16, 1];
    view(&mut given[3]).strides = vec![16, 1];
    view(&mut given[3]).address = 0x2_0000_0020;
    assert!(check(&kernel(), &given).is_ok(), "the other half of the same rows");
    view(&mut given[3]).address = 0x2_0000_001c;
    assert!(matches!(check(&kernel(), &given), Err(Reason::Aliasing { .. })), "one column in common");
}

#[test]
fn zero_extents() {
    // Nothing to write: nothing is launched, and what is not used is not checked.
    let mut given = good(0, 8);
    view(&mut given[2]).address = 1;
    let plan = check(&kernel(), &given).unwrap();
    assert!(plan.empty && plan.blocks == 0);
    // The facts are.
    assert!(matches!(check(&kernel(), &good(0, 6)), Err(Reason::Fact { .. })));
    // An empty input of an output that is not empty is an ordinary launch.
    let mut kernel = kernel();
    if let ParameterKind::Tensor(x) = &mut kernel.parameters.to_mut()[1].kind {
        x.shape = List::Owned(vec![Size::constant(0), Size::constant(9)]);
    }
    let mut given = good(5, 8);
    view(&mut given[1]).shape = vec![0, 9];
    assert!(!check(&kernel, &given).unwrap().empty);
}

#[test]
fn grids_and_entries() {
    let reason = refused(|k, _| k.launch.blocks = Size::constant(1 << 31));
    assert_eq!(reason, Reason::Grid { blocks: 1 << 31, limit: GRID_LIMIT, dims: String::new() });
    let reason = refused(|k, _| k.launch.blocks = Size::binary(SizeOp::Sub, &Size::dim(0), &Size::dim(1)));
    assert_eq!(reason.to_string(), "-3 blocks; a launch has 1 to 2147483647 with N = 5, M = 8");
    assert!(matches!(refused(|k, _| k.launch.blocks = Size::constant(0)), Reason::Grid { .. }));
    let reason = refused(|k, _| {
        k.launch.blocks = Size::constant(7);
        k.launch.cluster = 2;
    });
    assert_eq!(reason, Reason::Cluster { blocks: 7, cluster: 2 });
    let reason = refused(|k, _| k.launch.cluster = 17);
    assert_eq!(reason.to_string(), "a cluster of 17 blocks; the limit is 16, and 8 on every device");
    let reason = refused(|k, g| {
        k.entries.to_mut().pop();
        *g = good(500, 8);
    });
    assert_eq!(reason, Reason::NoEntry { dims: "N = 500, M = 8, ld = 11, lz = 13".into() });
}

#[test]
fn workspaces_have_sizes() {
    let workspace = |name: &'static str, elements, zeroed| {
        let (name, element) = (name.into(), ElementType::F32);
        tilewright_kernel::info::Workspace { name, element, elements, zeroed }
    };
    let several = Size::binary(SizeOp::Mul, &Size::dim(0), &Size::constant(100));
    let huge = Size::binary(SizeOp::Mul, &Size::dim(0), &Size::constant(1 << 46));
    let with = |all: Vec<_>| {
        let mut kernel = kernel();
        kernel.workspace = List::Owned(all);
        check(&kernel, &good(5, 8)).map(|plan| plan.workspace)
    };
    let all = vec![
        workspace("a", several.clone(), false),
        workspace("b", Size::dim(1), true),
        workspace("c", several, false),
    ];
    assert_eq!(
        format!("{:?}", with(all).unwrap()),
        "Layout { bytes: [4096, 256], parts: [(false, 0, 2000), (true, 0, 32), (false, 2048, 2000)] }"
    );
    let reason = with(vec![workspace("parts", huge.clone(), false)]).unwrap_err();
    let told = "the blocks would share 351843720888320 elements of `parts`; the limit is 140737488355328 bytes";
    assert!(reason.to_string().starts_with(told), "{reason}");
    assert!(reason.to_string().contains("N = 5"), "{reason}");
    let negative = Size::binary(SizeOp::Sub, &Size::dim(0), &Size::dim(1));
    assert!(matches!(with(vec![workspace("parts", negative, false)]), Err(Reason::Workspace { .. })));
}

#[test]
fn device_and_driver_must_be_new_enough() {
    let ptx = |capability, exact_capability| Ptx {
        text: Text::Borrowed(""),
        version: (8, 0),
        target: Text::Borrowed("sm_90a"),
        capability,
        exact_capability,
        driver: (12, 0),
    };
    assert_eq!(check_target(&ptx((8, 0), false), (9, 0), (12, 4)), Ok(()));
    assert_eq!(check_target(&ptx((9, 0), true), (9, 0), (12, 0)), Ok(()));
    let exact = check_target(&ptx((9, 0), true), (10, 0), (12, 4)).unwrap_err();
    assert_eq!(
        exact.to_string(),
        "it is compiled for sm_90a, which runs on compute capability 9.0 only; the device has 10.0"
    );
    assert!(matches!(check_target(&ptx((9, 0), false), (8, 9), (12, 4)), Err(Reason::Capability { exact: false, .. })));
    let old = check_target(&ptx((8, 0), false), (9, 0), (11, 8)).unwrap_err();
    assert_eq!(old, Reason::Driver { ptx: (8, 0), needed: (12, 0), found: (11, 8) });
}
