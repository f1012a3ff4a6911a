//! The expansion of a kernel by hand: the contract between the macro and the runtime.
//!
//! `Saxpy` below is what `schedule!` emits for
//!
//! ```text
//! /// z = a·x + y
//! pub kernel Saxpy(a: f32, x: f32[N], y: f32[N]) -> (z: f32[N])
//! where N % 4 == 0
//! { z[i] = a * x[i] + y[i]; launch threads(128); schedule z { split i by 128 -> b, t; bind b: grid; bind t: thread; } }
//! ```

use tilewright::error::Reason;
use tilewright::kernel::algorithm::{Axis, Binary, Component, Equation, Index, Run, Source, Value};
use tilewright::kernel::info::{
    Argument, Dim, DimKind, Entry, Launch, Parameter, ParameterKind, Ptx, Role, TensorParameter,
};
use tilewright::kernel::{Algorithm, Constraint, ElementType, KernelInfo, List, Relation, Size, SizeOp, Text};
use tilewright::{Device, EmulatorOptions, Error, Tensor};

/// z = a·x + y
pub struct Saxpy<'a, 'm> {
    /// `a: f32`
    pub a: f32,
    /// `x: f32[N]`
    pub x: &'a (dyn tilewright::Input<f32, 1> + 'm),
    /// `y: f32[N]`
    pub y: &'a (dyn tilewright::Input<f32, 1> + 'm),
    /// `z: f32[N]`
    pub z: &'a mut (dyn tilewright::Output<f32, 1> + 'm),
}

impl<'m> Saxpy<'_, 'm> {
    /// The kernel as data.
    pub const KERNEL: &'static KernelInfo = {
        static KERNEL: KernelInfo = saxpy();
        &KERNEL
    };

    /// Checks the arguments and launches.
    pub fn launch(self, on: impl ::core::convert::AsRef<tilewright::Stream>) -> tilewright::Result<()> {
        tilewright::__private::launch(Self::KERNEL, &self.arguments(), on.as_ref())
    }

    /// Checks the arguments and encodes the launch.
    pub fn prepare(
        self,
        on: impl ::core::convert::AsRef<tilewright::Stream>,
    ) -> tilewright::Result<tilewright::Prepared<'m>> {
        tilewright::__private::prepare(Self::KERNEL, &self.arguments(), on.as_ref())
    }

    /// What the algorithm admits.
    pub fn reference(self) -> tilewright::Result<tilewright::Reference> {
        tilewright::__private::reference(Self::KERNEL, &self.arguments())
    }

    fn arguments(self) -> [tilewright::__private::Arg<'m>; 4] {
        [
            tilewright::__private::Arg::scalar(&self.a),
            tilewright::__private::Arg::input(self.x),
            tilewright::__private::Arg::input(self.y),
            tilewright::__private::Arg::output(self.z),
        ]
    }
}

const fn tensor(name: &'static str, role: Role) -> Parameter {
    Parameter {
        name: Text::Borrowed(name),
        element: ElementType::F32,
        kind: ParameterKind::Tensor(TensorParameter {
            role,
            shape: List::Borrowed(const { &[Size::new(&[SizeOp::Dim(0)])] }),
            strides: None,
            alignment: 16,
        }),
    }
}

const fn saxpy() -> KernelInfo {
    KernelInfo {
        name: Text::Borrowed("Saxpy"),
        dims: List::Borrowed(const { &[Dim { name: Text::Borrowed("N"), kind: DimKind::Size }] }),
        parameters: List::Borrowed(
            const {
                &[
                    Parameter { name: Text::Borrowed("a"), element: ElementType::F32, kind: ParameterKind::Scalar },
                    tensor("x", Role::Input),
                    tensor("y", Role::Input),
                    tensor("z", Role::Output),
                ]
            },
        ),
        solved: List::Borrowed(&[]),
        facts: List::Borrowed(
            const {
                &[Constraint {
                    lhs: Size::new(&[SizeOp::Dim(0), SizeOp::Const(4), SizeOp::Mod]),
                    relation: Relation::Eq,
                    rhs: Size::new(&[SizeOp::Const(0)]),
                    text: Text::Borrowed("N % 4 == 0"),
                }]
            },
        ),
        requirements: List::Borrowed(const { &[] }),
        entries: List::Borrowed(
            const {
                &[Entry {
                    name: Text::Borrowed("saxpy"),
                    conditions: List::Borrowed(const { &[] }),
                    takes_maps: false,
                    shared_bytes: 0,
                }]
            },
        ),
        maps: List::Borrowed(const { &[] }),
        workspace: List::Borrowed(const { &[] }),
        arguments: List::Borrowed(
            const {
                &[
                    Argument::Scalar(0),
                    Argument::Address(1),
                    Argument::Address(2),
                    Argument::Address(3),
                    Argument::Dim(0),
                ]
            },
        ),
        launch: Launch {
            blocks: Size::new(&[SizeOp::Dim(0), SizeOp::Const(128), SizeOp::CeilDiv]),
            threads: 128,
            cluster: 1,
            persistent: false,
            dependent: false,
        },
        ptx: Ptx {
            text: Text::Borrowed(PTX),
            version: (7, 0),
            target: Text::Borrowed("sm_80"),
            capability: (8, 0),
            exact_capability: false,
            driver: (11, 0),
        },
        algorithm: Algorithm {
            indices: List::Borrowed(const { &[Index::Literal(0), Index::Dim(0), Index::Axis(0)] }),
            values: List::Borrowed(
                const {
                    &[
                        Value::Scalar(0),
                        Value::Read { source: Source::Parameter(1), indices: Run { start: 0, len: 1 }, or: None },
                        Value::Binary(Binary::Mul, 0, 1),
                        Value::Read { source: Source::Parameter(2), indices: Run { start: 0, len: 1 }, or: None },
                        Value::Binary(Binary::Add, 2, 3),
                    ]
                },
            ),
            types: List::Borrowed(const { &[ElementType::F32; 5] }),
            axes: List::Borrowed(const { &[Axis { name: Text::Borrowed("i"), lower: 0, upper: 1 }] }),
            index_lists: List::Borrowed(const { &[2] }),
            axis_lists: List::Borrowed(const { &[0] }),
            folds: List::Borrowed(const { &[] }),
            components: List::Borrowed(
                const { &[Component { name: Text::Borrowed("z"), value: 4, parameter: Some(3) }] },
            ),
            equations: List::Borrowed(
                const { &[Equation { components: Run { start: 0, len: 1 }, axes: Run { start: 0, len: 1 } }] },
            ),
        },
        statements: List::Borrowed(const { &[Text::Borrowed("schedule z"), Text::Borrowed("z[i] = a * x[i] + y[i]")] }),
        additions: List::Borrowed(const { &[] }),
        explanation: Text::Borrowed(""),
    }
}

const PTX: &str = r#".version 7.0
.target sm_80
.address_size 64
.file 1 "schedule"

.visible .entry saxpy(
    .param .f32 a,
    .param .u64 x,
    .param .u64 y,
    .param .u64 z,
    .param .s64 n
)
.maxntid 128, 1, 1
{
    .reg .pred %p<1>;
    .reg .b32 %r<3>;
    .reg .f32 %f<5>;
    .reg .b64 %d<10>;

    .loc 1 1 0
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %tid.x;
    mad.lo.s32 %r2, %r0, 128, %r1;
    cvt.s64.s32 %d0, %r2;
    ld.param.s64 %d1, [n];
    setp.ge.s64 %p0, %d0, %d1;
    @%p0 bra END;
    ld.param.f32 %f0, [a];
    ld.param.u64 %d2, [x];
    ld.param.u64 %d3, [y];
    ld.param.u64 %d4, [z];
    cvta.to.global.u64 %d2, %d2;
    cvta.to.global.u64 %d3, %d3;
    cvta.to.global.u64 %d4, %d4;
    shl.b64 %d5, %d0, 2;
    add.s64 %d6, %d2, %d5;
    add.s64 %d7, %d3, %d5;
    add.s64 %d8, %d4, %d5;
    .loc 1 2 0
    ld.global.f32 %f1, [%d6];
    ld.global.f32 %f2, [%d7];
    mul.rn.f32 %f3, %f0, %f1;
    add.rn.f32 %f4, %f3, %f2;
    st.global.f32 [%d8], %f4;
END:
    ret;
}
"#;

fn emulator() -> Device {
    Device::emulator(EmulatorOptions::default())
}

/// Two inputs with no pattern that a wrong index would preserve.
fn inputs(n: usize) -> (Vec<f32>, Vec<f32>) {
    let xs = (0..n).map(|i| (i as f32 * 0.37).sin()).collect();
    let ys = (0..n).map(|i| 1.0 / (i as f32 + 1.5)).collect();
    (xs, ys)
}

#[test]
fn the_reference_admits_exactly_the_rounded_result() {
    let device = emulator();
    let n = 1000;
    let (xs, ys) = inputs(n);
    let x = Tensor::from_slice(&device, &xs, [n]).unwrap();
    let y = Tensor::from_slice(&device, &ys, [n]).unwrap();
    let mut z = Tensor::zeros(&device, [n]).unwrap();
    let reference = Saxpy { a: 2.5, x: &x, y: &y, z: &mut z }.reference().unwrap();
    assert!(z.to_vec().unwrap().iter().all(|&z| z == 0.0), "the reference writes nothing");
    let mut zs: Vec<f32> = xs.iter().zip(&ys).map(|(x, y)| 2.5 * x + y).collect();
    z.copy_from_slice(&zs).unwrap();
    let agreement = reference.check("z", &z).unwrap();
    assert_eq!((agreement.elements, agreement.exact), (n, n));
    // One unit in the last place is one too many.
    zs[700] = f32::from_bits(zs[700].to_bits() + 1);
    z.copy_from_slice(&zs).unwrap();
    let Err(Error::Mismatch(mismatch)) = reference.check("z", &z) else { panic!("a wrong value was admitted") };
    assert_eq!((mismatch.index, mismatch.wrong), (vec![700], 1));
    assert!(matches!(reference.check("w", &z), Err(Error::Layout { .. })));
}

#[test]
fn what_the_facts_exclude_is_not_launched() {
    let device = emulator();
    let x = Tensor::<f32, 1>::zeros(&device, [10]).unwrap();
    let y = Tensor::<f32, 1>::zeros(&device, [10]).unwrap();
    let mut z = Tensor::<f32, 1>::zeros(&device, [10]).unwrap();
    let error = Saxpy { a: 1.0, x: &x, y: &y, z: &mut z }.launch(&device).unwrap_err();
    assert_eq!(
        error.to_string(),
        "kernel Saxpy was not launched: the fact `N % 4 == 0` does not hold with N = 10, where N % 4 = 2"
    );
    let short = Tensor::<f32, 1>::zeros(&device, [8]).unwrap();
    let error = Saxpy { a: 1.0, x: &short, y: &y, z: &mut z }.launch(&device).unwrap_err();
    assert_eq!(error.to_string(), "kernel Saxpy was not launched: N would be 8 (x.shape[0]) and 10 (y.shape[0])");
}

#[test]
fn a_misaligned_view_is_refused() {
    let device = emulator();
    let x = Tensor::<f32, 1>::zeros(&device, [9]).unwrap();
    let y = Tensor::<f32, 1>::zeros(&device, [8]).unwrap();
    let mut z = Tensor::<f32, 1>::zeros(&device, [8]).unwrap();
    let shifted = x.slice(0, 1..9).unwrap();
    let Err(Error::Refused(refusal)) = (Saxpy { a: 1.0, x: &shifted, y: &y, z: &mut z }).launch(&device) else {
        panic!("a misaligned view was accepted")
    };
    assert!(matches!(refusal.reason, Reason::Alignment { alignment: 16, .. }), "{refusal}");
}

#[test]
fn tensors_of_another_device_are_refused() {
    let (device, other) = (emulator(), emulator());
    let x = Tensor::<f32, 1>::zeros(&device, [8]).unwrap();
    let y = Tensor::<f32, 1>::zeros(&other, [8]).unwrap();
    let mut z = Tensor::<f32, 1>::zeros(&device, [8]).unwrap();
    let Err(Error::Refused(refusal)) = (Saxpy { a: 1.0, x: &x, y: &y, z: &mut z }).launch(&device) else {
        panic!("a tensor of another device was accepted")
    };
    assert!(matches!(&refusal.reason, Reason::OtherDevice { parameter, .. } if parameter == "y"), "{refusal}");
}

#[test]
fn nothing_is_launched_for_an_empty_output() {
    let device = emulator();
    let x = Tensor::<f32, 1>::zeros(&device, [0]).unwrap();
    let mut z = Tensor::<f32, 1>::zeros(&device, [0]).unwrap();
    Saxpy { a: 1.0, x: &x, y: &x, z: &mut z }.launch(&device).unwrap();
    let prepared = Saxpy { a: 1.0, x: &x, y: &x, z: &mut z }.prepare(&device).unwrap();
    prepared.run().unwrap();
    assert_eq!(Saxpy { a: 1.0, x: &x, y: &x, z: &mut z }.reference().unwrap().check("z", &z).unwrap().elements, 0);
}

#[test]
fn a_launch_computes_what_the_reference_admits() {
    let device = emulator();
    for n in [4, 128, 1000, 4096] {
        let (xs, ys) = inputs(n);
        let x = Tensor::from_slice(&device, &xs, [n]).unwrap();
        let y = Tensor::from_slice(&device, &ys, [n]).unwrap();
        let mut z = Tensor::uninit(&device, [n]).unwrap();
        let reference = Saxpy { a: -0.75, x: &x, y: &y, z: &mut z }.reference().unwrap();
        Saxpy { a: -0.75, x: &x, y: &y, z: &mut z }.launch(&device).unwrap();
        let agreement = reference.check("z", &z).unwrap();
        assert_eq!(agreement.exact, n, "nothing is free in this kernel");
        let report = device.emulator_report().unwrap();
        assert_eq!(report.kernel, "Saxpy");
        assert_eq!(report.counters.global.bytes_stored, 4 * n as u64);
        assert!(report.faults.is_empty() && report.warnings.is_empty(), "{report}");
    }
}

#[test]
fn prepared_launches_and_graphs_run_in_order_and_keep_memory_alive() {
    let device = emulator();
    let n = 256;
    let (xs, ys) = inputs(n);
    let x = Tensor::from_slice(&device, &xs, [n]).unwrap();
    let mut y = Tensor::from_slice(&device, &ys, [n]).unwrap();
    let mut z = Tensor::zeros(&device, [n]).unwrap();
    // z = 2x + y, then y = 3z + x: each uses what the other writes.
    let stream = device.new_stream().unwrap();
    let first = Saxpy { a: 2.0, x: &x, y: &y, z: &mut z }.prepare(&stream).unwrap();
    let second = Saxpy { a: 3.0, x: &z, y: &x, z: &mut y }.prepare(&device).unwrap();
    let (mut y_expected, mut z_expected) = (ys, vec![0.0_f32; n]);
    let mut step = || {
        for i in 0..n {
            z_expected[i] = 2.0 * xs[i] + y_expected[i];
            y_expected[i] = 3.0 * z_expected[i] + xs[i];
        }
        (y_expected.clone(), z_expected.clone())
    };
    first.run().unwrap();
    second.run().unwrap();
    assert_eq!((y.to_vec().unwrap(), z.to_vec().unwrap()), step());
    // The tensor may be changed between runs, and dropped before the last.
    let mut graph = tilewright::Graph::new(&device, [first, second]).unwrap();
    graph.run(&stream).unwrap();
    assert_eq!((y.to_vec().unwrap(), z.to_vec().unwrap()), step());
    drop(x);
    graph.run(&device).unwrap();
    assert_eq!((y.to_vec().unwrap(), z.to_vec().unwrap()), step());
    let other = emulator();
    assert!(matches!(graph.run(&other), Err(Error::Layout { .. })));
}

#[test]
fn views_are_arguments_like_tensors() {
    let device = emulator();
    let (xs, ys) = inputs(64);
    let x = Tensor::from_slice(&device, &xs, [64]).unwrap();
    let mut y = Tensor::from_slice(&device, &ys, [64]).unwrap();
    // Output and input are two halves of one tensor.
    let (old, mut new) = y.split_at_mut(0, 32).unwrap();
    Saxpy { a: 1.5, x: &x.slice(0, 16..48).unwrap(), y: &old, z: &mut new }.launch(&device).unwrap();
    let found = y.to_vec().unwrap();
    for i in 0..32 {
        assert_eq!(found[i], ys[i]);
        assert_eq!(found[32 + i], 1.5 * xs[16 + i] + ys[i]);
    }
}

/// Saxpy with a change to its PTX, launched as data.
fn changed(from: &str, to: &str, n: usize, initialised: bool, options: EmulatorOptions) -> tilewright::Result<()> {
    use tilewright::__private::{Arg, launch};
    let mut kernel = Saxpy::KERNEL.clone();
    assert!(PTX.contains(from));
    kernel.ptx.text = PTX.replace(from, to).into();
    let device = Device::emulator(options);
    let x = Tensor::<f32, 1>::zeros(&device, [n])?;
    let y = if initialised { Tensor::<f32, 1>::zeros(&device, [n])? } else { Tensor::<f32, 1>::uninit(&device, [n])? };
    let mut z = Tensor::<f32, 1>::zeros(&device, [n])?;
    let arguments =
        [Arg::scalar(&1.0_f32), Arg::input::<f32, 1>(&x), Arg::input::<f32, 1>(&y), Arg::output::<f32, 1>(&mut z)];
    launch(&kernel, &arguments, device.as_ref())
}

fn fault(result: tilewright::Result<()>) -> tilewright::error::Fault {
    match result {
        Err(Error::Emulation(fault)) => *fault,
        other => panic!("no fault: {other:?}"),
    }
}

#[test]
fn the_emulator_tells_what_went_wrong_in_the_users_terms() {
    let options = EmulatorOptions::default();
    // No guard: the last threads read past x.
    let found = fault(changed("@%p0 bra END;", "", 100, true, options.clone()));
    assert_eq!((&*found.kind, found.thread), ("OutOfBounds", Some((0, 100))), "{found}");
    assert_eq!(found.statement.as_deref(), Some("z[i] = a * x[i] + y[i]"));
    assert_eq!(found.element.as_deref(), Some("4 bytes past the end of x, which has shape [100]"));
    // The result is stored into an input.
    let found = fault(changed("st.global.f32 [%d8]", "st.global.f32 [%d6]", 8, true, options.clone()));
    assert_eq!((&*found.kind, found.element.as_deref()), ("ReadOnlyWrite", Some("x[0]")), "{found}");
    // An input that nobody wrote.
    let found = fault(changed("ret;", "ret;", 8, false, options.clone()));
    assert_eq!((&*found.kind, found.element.as_deref()), ("UninitialisedRead", Some("y[0]")), "{found}");
    assert!(changed("ret;", "ret;", 8, false, options.clone().sanitize(false)).is_ok());
    // All threads store their number to one element.
    let race = "cvt.rn.f32.u32 %f4, %r1; st.global.f32 [%d4], %f4;";
    let found = fault(changed("st.global.f32 [%d8], %f4;", race, 8, true, options.clone()));
    assert_eq!((&*found.kind, found.element.as_deref()), ("Race", Some("z[0]")), "{found}");
    // All threads store the same value: wrong, but harmless.
    assert!(changed("st.global.f32 [%d8], %f4;", "st.global.f32 [%d4], %f4;", 8, true, options).is_ok());
}

#[test]
fn what_the_emulator_cannot_run_is_refused() {
    let found = fault(changed("mul.rn.f32 %f3, %f0, %f1;", "frobnicate.f32 %f3;", 8, true, EmulatorOptions::default()));
    assert_eq!(found.kind, "Refused");
    let found = fault(changed(".visible .entry saxpy", ".visible .entry other", 8, true, EmulatorOptions::default()));
    assert!(found.message.contains("saxpy") && found.message.contains("other"), "{found}");
    let found = fault(changed("ret;", "bra END;", 8, true, EmulatorOptions::default().budget(10_000)));
    assert_eq!(found.kind, "Livelock", "{found}");
}

#[test]
fn threads_that_share_tensors_neither_block_nor_mix() {
    let device = emulator();
    let n = 512;
    let x = Tensor::from_slice(&device, &vec![1.0_f32; n], [n]).unwrap();
    let y = Tensor::zeros(&device, [n]).unwrap();
    let tensors: Vec<_> = (0..2).map(|_| Tensor::<f32, 1>::zeros(&device, [n]).unwrap()).collect();
    let [mut a, mut b] = <[_; 2]>::try_from(tensors).unwrap();
    // Four threads add into a and b from each other, in opposite orders of the addresses.
    let forth = Saxpy { a: 1.0, x: &x, y: &a, z: &mut b }.prepare(&device).unwrap();
    let back = Saxpy { a: 1.0, x: &y, y: &b, z: &mut a }.prepare(&device).unwrap();
    std::thread::scope(|scope| {
        for launch in [&forth, &back, &forth, &back] {
            scope.spawn(move || (0..50).for_each(|_| launch.run().unwrap()));
        }
    });
    // Every launch saw whole tensors: all elements are equal.
    for found in [a.to_vec().unwrap(), b.to_vec().unwrap()] {
        assert!(found.iter().all(|&v| v == found[0] && v <= 101.0), "{:?}", &found[..4]);
    }
}

#[test]
#[allow(unsafe_code, reason = "foreign memory is unsafe to name")]
fn foreign_memory_is_refused_on_the_emulator() {
    let device = emulator();
    let owner = [0.0_f32; 8];
    // SAFETY: nothing reads it: the emulator refuses foreign memory.
    let foreign = unsafe {
        tilewright::TensorRef::<f32, 1>::from_raw_parts(device.as_ref(), owner.as_ptr().addr() as u64, [8], [1], &owner)
    };
    let y = Tensor::<f32, 1>::zeros(&device, [8]).unwrap();
    let mut z = Tensor::<f32, 1>::zeros(&device, [8]).unwrap();
    let Err(Error::Refused(refusal)) = (Saxpy { a: 1.0, x: &foreign, y: &y, z: &mut z }).launch(&device) else {
        panic!("foreign memory was accepted")
    };
    assert_eq!(refusal.reason, Reason::ForeignMemory { parameter: "x".into() });
    assert!(foreign.to_vec().is_err());
}
