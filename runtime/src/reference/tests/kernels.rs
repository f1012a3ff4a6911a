//! Whole kernels, built node by node.

use tilewright_kernel::algorithm::{
    Axis, AxisId, Binary, Compare, Component, Equation, FoldState, Index, IndexId, Order, Reduction, Run, Source,
    Unary, Value, ValueId,
};
use tilewright_kernel::info::{Dim, DimKind, Launch, Parameter, ParameterKind, Ptx, Role, TensorParameter};
use tilewright_kernel::{Algorithm, ElementType, KernelInfo, List, Size, Text};

use super::super::{Admissible, Reference, reference, reference_as_scheduled};
use crate::launch::Arg;
use crate::{Device, Element, EmulatorOptions, Error, Tensor};

/// Builds an algorithm node by node.
struct Builder {
    indices: Vec<Index>,
    values: Vec<Value>,
    types: Vec<ElementType>,
    axes: Vec<Axis>,
    index_lists: Vec<IndexId>,
    axis_lists: Vec<AxisId>,
    folds: Vec<FoldState>,
    components: Vec<Component>,
    equations: Vec<Equation>,
    dims: Vec<Dim>,
    parameters: Vec<Parameter>,
}

impl Builder {
    fn new(dims: &[&'static str]) -> Self {
        let dim = |&name: &&'static str| Dim { name: Text::Borrowed(name), kind: DimKind::Size };
        Self {
            indices: Vec::new(),
            values: Vec::new(),
            types: Vec::new(),
            axes: Vec::new(),
            index_lists: Vec::new(),
            axis_lists: Vec::new(),
            folds: Vec::new(),
            components: Vec::new(),
            equations: Vec::new(),
            dims: dims.iter().map(dim).collect(),
            parameters: Vec::new(),
        }
    }

    fn tensor(&mut self, name: &'static str, element: ElementType, role: Role, shape: Vec<Size>) -> u16 {
        let kind = TensorParameter { role, shape: List::Owned(shape), strides: None, alignment: 1 };
        self.parameters.push(Parameter { name: name.into(), element, kind: ParameterKind::Tensor(kind) });
        self.parameters.len() as u16 - 1
    }

    fn index(&mut self, index: Index) -> IndexId {
        self.indices.push(index);
        self.indices.len() as u32 - 1
    }

    fn axis_to(&mut self, upper: IndexId) -> AxisId {
        let lower = self.index(Index::Literal(0));
        self.axes.push(Axis { name: "i".into(), lower, upper });
        self.axes.len() as u32 - 1
    }

    fn axis(&mut self, dim: u16) -> AxisId {
        let upper = self.index(Index::Dim(dim));
        self.axis_to(upper)
    }

    fn at(&mut self, axis: AxisId) -> IndexId {
        self.index(Index::Axis(axis))
    }

    fn value(&mut self, element: ElementType, value: Value) -> ValueId {
        self.values.push(value);
        self.types.push(element);
        self.values.len() as u32 - 1
    }

    fn float(&mut self, x: f32) -> ValueId {
        self.value(ElementType::F32, Value::Literal(x.to_bits().into()))
    }

    fn read(&mut self, element: ElementType, source: Source, indices: &[IndexId], or: Option<ValueId>) -> ValueId {
        let start = self.index_lists.len() as u32;
        self.index_lists.extend(indices);
        self.value(element, Value::Read { source, indices: Run { start, len: indices.len() as u32 }, or })
    }

    fn axis_run(&mut self, axes: &[AxisId]) -> Run {
        let start = self.axis_lists.len() as u32;
        self.axis_lists.extend(axes);
        Run { start, len: axes.len() as u32 }
    }

    fn reduce(&mut self, element: ElementType, op: Reduction, axes: &[AxisId], body: ValueId) -> ValueId {
        let axes = self.axis_run(axes);
        self.value(element, Value::Reduce { op, order: Order::Free, axes, body })
    }

    fn equation(&mut self, axes: &[AxisId], components: &[(ValueId, Option<u16>)]) -> u16 {
        let axes = self.axis_run(axes);
        let start = self.components.len() as u32;
        for &(value, parameter) in components {
            self.components.push(Component { name: "e".into(), value, parameter });
        }
        self.equations.push(Equation { components: Run { start, len: components.len() as u32 }, axes });
        self.equations.len() as u16 - 1
    }

    fn kernel(self) -> KernelInfo {
        let ptx = Ptx {
            text: "".into(),
            version: (7, 0),
            target: "sm_80".into(),
            capability: (8, 0),
            exact_capability: false,
            driver: (11, 0),
        };
        KernelInfo {
            name: "test".into(),
            dims: List::Owned(self.dims),
            parameters: List::Owned(self.parameters),
            solved: List::Owned(Vec::new()),
            facts: List::Owned(Vec::new()),
            requirements: List::Owned(Vec::new()),
            entries: List::Owned(vec![tilewright_kernel::info::Entry {
                name: "e".into(),
                conditions: List::Owned(vec![]),
                takes_maps: false,
                shared_bytes: 0,
            }]),
            maps: List::Owned(Vec::new()),
            workspace: List::Owned(Vec::new()),
            arguments: List::Owned(Vec::new()),
            launch: Launch { blocks: Size::constant(1), threads: 1, cluster: 1, persistent: false, dependent: false },
            ptx,
            algorithm: Algorithm {
                indices: List::Owned(self.indices),
                values: List::Owned(self.values),
                types: List::Owned(self.types),
                axes: List::Owned(self.axes),
                index_lists: List::Owned(self.index_lists),
                axis_lists: List::Owned(self.axis_lists),
                folds: List::Owned(self.folds),
                components: List::Owned(self.components),
                equations: List::Owned(self.equations),
            },
            statements: List::Owned(Vec::new()),
            additions: List::Borrowed(&[]),
            explanation: "".into(),
        }
    }
}

fn device() -> Device {
    Device::emulator(EmulatorOptions::default())
}

fn evaluate(kernel: &KernelInfo, arguments: &[Arg<'_>]) -> Reference {
    reference(kernel, arguments).unwrap()
}

fn upload<T: Element, const R: usize>(device: &Device, xs: &[T], shape: [usize; R]) -> Tensor<T, R> {
    Tensor::from_slice(device, xs, shape).unwrap()
}

const F32: ElementType = ElementType::F32;

/// m = max, e = exp(x − m), s = sum e, y = e / s.
#[test]
fn softmax_in_f32_is_admissible_and_a_wrong_one_is_not() {
    let mut b = Builder::new(&["M", "N"]);
    let x = b.tensor("x", F32, Role::Input, vec![Size::dim(0), Size::dim(1)]);
    let y = b.tensor("y", F32, Role::Output, vec![Size::dim(0), Size::dim(1)]);
    let (i, j) = (b.axis(0), b.axis(1));
    let (at_i, at_j) = (b.at(i), b.at(j));
    let body = b.read(F32, Source::Parameter(x), &[at_i, at_j], None);
    let max = b.reduce(F32, Reduction::Max, &[j], body);
    let m = b.equation(&[i], &[(max, None)]);
    let (i, j) = (b.axis(0), b.axis(1));
    let (at_i, at_j) = (b.at(i), b.at(j));
    let here = b.read(F32, Source::Parameter(x), &[at_i, at_j], None);
    let most = b.read(F32, Source::Equation { equation: m, component: 0 }, &[at_i], None);
    let difference = b.value(F32, Value::Binary(Binary::Sub, here, most));
    let exp = b.value(F32, Value::Unary(Unary::Exp, difference));
    let e = b.equation(&[i, j], &[(exp, None)]);
    let (i, j) = (b.axis(0), b.axis(1));
    let (at_i, at_j) = (b.at(i), b.at(j));
    let term = b.read(F32, Source::Equation { equation: e, component: 0 }, &[at_i, at_j], None);
    let sum = b.reduce(F32, Reduction::Sum, &[j], term);
    let s = b.equation(&[i], &[(sum, None)]);
    let (i, j) = (b.axis(0), b.axis(1));
    let (at_i, at_j) = (b.at(i), b.at(j));
    let numerator = b.read(F32, Source::Equation { equation: e, component: 0 }, &[at_i, at_j], None);
    let denominator = b.read(F32, Source::Equation { equation: s, component: 0 }, &[at_i], None);
    let quotient = b.value(F32, Value::Binary(Binary::Div, numerator, denominator));
    b.equation(&[i, j], &[(quotient, Some(y))]);
    let kernel = b.kernel();

    let device = device();
    let (m, n) = (5, 700);
    let xs: Vec<f32> = (0..m * n).map(|i| ((i * 37 % 101) as f32 * 0.13).sin() * 6.0).collect();
    let x = upload(&device, &xs, [m, n]);
    let mut y = Tensor::<f32, 2>::zeros(&device, [m, n]).unwrap();
    let reference = evaluate(&kernel, &[Arg::input::<f32, 2>(&x), Arg::output::<f32, 2>(&mut y)]);
    let softmax = |reverse: bool| -> Vec<f32> {
        let mut all = Vec::new();
        for row in xs.chunks(n) {
            let m = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let e: Vec<f32> = row.iter().map(|x| (x - m).exp()).collect();
            let s: f32 = if reverse { e.iter().rev().sum() } else { e.iter().sum() };
            all.extend(e.iter().map(|e| e / s));
        }
        all
    };
    for reverse in [false, true] {
        y.copy_from_slice(&softmax(reverse)).unwrap();
        let agreement = reference.check("y", &y).unwrap();
        assert_eq!(agreement.elements, m * n);
    }
    let mut wrong = softmax(false);
    wrong[123] *= 1.001;
    y.copy_from_slice(&wrong).unwrap();
    let Err(Error::Mismatch(mismatch)) = reference.check("y", &y) else { panic!("admitted") };
    assert_eq!((mismatch.index, mismatch.wrong), (vec![0, 123], 1));
}

/// c[m, n] = Σₖ a[m, k] · b[n, k], against f64, for sizes around a block.
#[test]
fn products_of_matrices() {
    let mut b = Builder::new(&["M", "N", "K"]);
    let pa = b.tensor("a", F32, Role::Input, vec![Size::dim(0), Size::dim(2)]);
    let pb = b.tensor("b", F32, Role::Input, vec![Size::dim(1), Size::dim(2)]);
    let pc = b.tensor("c", F32, Role::Output, vec![Size::dim(0), Size::dim(1)]);
    let (m, n, k) = (b.axis(0), b.axis(1), b.axis(2));
    let (at_m, at_n, at_k) = (b.at(m), b.at(n), b.at(k));
    let left = b.read(F32, Source::Parameter(pa), &[at_m, at_k], None);
    let right = b.read(F32, Source::Parameter(pb), &[at_n, at_k], None);
    let product = b.value(F32, Value::Binary(Binary::Mul, left, right));
    let sum = b.reduce(F32, Reduction::Sum, &[k], product);
    b.equation(&[m, n], &[(sum, Some(pc))]);
    let kernel = b.kernel();
    let device = device();
    for (m, n, k) in [(3, 5, 7), (2, 300, 40), (7, 3, 600), (1, 1, 1), (4, 9, 0)] {
        let xs: Vec<f32> = (0..m * k).map(|i| ((i * 7 % 31) as f32 * 0.37).sin()).collect();
        let ys: Vec<f32> = (0..n * k).map(|i| ((i * 11 % 43) as f32 * 0.91).cos()).collect();
        let (x, y) = (upload(&device, &xs, [m, k]), upload(&device, &ys, [n, k]));
        let mut z = Tensor::<f32, 2>::zeros(&device, [m, n]).unwrap();
        let arguments = [Arg::input::<f32, 2>(&x), Arg::input::<f32, 2>(&y), Arg::output::<f32, 2>(&mut z)];
        let reference = evaluate(&kernel, &arguments);
        let zs: Vec<f32> =
            (0..m * n).map(|i| (0..k).map(|l| xs[i / n * k + l] * ys[i % n * k + l]).sum::<f32>() + 0.0).collect();
        z.copy_from_slice(&zs).unwrap();
        reference.check("c", &z).unwrap();
        let middles = reference.output("c").unwrap().middles();
        for (i, middle) in middles.iter().enumerate() {
            let exact: f64 = (0..k).map(|l| f64::from(xs[i / n * k + l] * ys[i % n * k + l])).sum();
            assert!((middle - exact).abs() < 1e-6, "{middle} {exact}");
        }
    }
}

/// t[i] = Σ over k in 0..=i of x[k]: the range of the inner axis depends on the outer one. And guarded reads.
#[test]
fn ragged_reductions_and_guarded_reads() {
    let mut b = Builder::new(&["N"]);
    let x = b.tensor("x", ElementType::I32, Role::Input, vec![Size::dim(0)]);
    let t = b.tensor("t", ElementType::I32, Role::Output, vec![Size::dim(0)]);
    let d = b.tensor("d", ElementType::I32, Role::Output, vec![Size::dim(0)]);
    let i = b.axis(0);
    let (at_i, one) = (b.at(i), b.index(Index::Literal(1)));
    let upper = b.index(Index::Add(at_i, one));
    let k = b.axis_to(upper);
    let at_k = b.at(k);
    let term = b.read(ElementType::I32, Source::Parameter(x), &[at_k], None);
    let sum = b.reduce(ElementType::I32, Reduction::Sum, &[k], term);
    b.equation(&[i], &[(sum, Some(t))]);
    // d[i] = if i % 3 == 0 { 100 / (i % 3 + 7 · (x[i + 1] or −7)) … } else { x[i − 1] }
    let i = b.axis(0);
    let at_i = b.at(i);
    let (three, zero) = (b.index(Index::Literal(3)), b.index(Index::Literal(0)));
    let rest = b.index(Index::Mod(at_i, three));
    let condition = b.value(ElementType::Bool, Value::CompareIndex(Compare::Eq, rest, zero));
    let next = b.index(Index::Add(at_i, one));
    let minus_seven = b.value(ElementType::I32, Value::Literal(u64::from((-7_i32).cast_unsigned())));
    let guarded = b.read(ElementType::I32, Source::Parameter(x), &[next], Some(minus_seven));
    let hundred = b.value(ElementType::I32, Value::Literal(100));
    let quotient = b.value(ElementType::I32, Value::Binary(Binary::Div, hundred, guarded));
    let before = b.index(Index::Sub(at_i, one));
    let previous = b.read(ElementType::I32, Source::Parameter(x), &[before], None);
    let select = b.value(ElementType::I32, Value::Select(condition, quotient, previous));
    b.equation(&[i], &[(select, Some(d))]);
    let kernel = b.kernel();
    let device = device();
    for n in [1, 2, 10, 300, 601] {
        // Where i % 3 ≠ 1 elements may be zero: nobody divides by them.
        let xs: Vec<i32> = (0..n).map(|i| if i % 3 == 1 { i as i32 + 1 } else { (i * 37 % 11) as i32 - 5 }).collect();
        let x = upload(&device, &xs, [n]);
        let (mut t, mut d) =
            (Tensor::<i32, 1>::zeros(&device, [n]).unwrap(), Tensor::<i32, 1>::zeros(&device, [n]).unwrap());
        let arguments = [Arg::input::<i32, 1>(&x), Arg::output::<i32, 1>(&mut t), Arg::output::<i32, 1>(&mut d)];
        let reference = evaluate(&kernel, &arguments);
        let ts: Vec<i32> = xs
            .iter()
            .scan(0, |s, x| {
                *s += x;
                Some(*s)
            })
            .collect();
        let ds: Vec<i32> =
            (0..n).map(|i| if i % 3 == 0 { 100 / xs.get(i + 1).copied().unwrap_or(-7) } else { xs[i - 1] }).collect();
        reference.output("t").unwrap().check_slice(&ts).unwrap();
        let agreement = reference.output("d").unwrap().check_slice(&ds).unwrap();
        assert_eq!(agreement.exact, n);
    }
}

/// g[i] = table[pos[i]] or −1, and the position of the largest element.
#[test]
fn gathers_and_argmax() {
    let mut b = Builder::new(&["N", "T"]);
    let pos = b.tensor("pos", ElementType::I64, Role::Input, vec![Size::dim(0)]);
    let table = b.tensor("table", F32, Role::Input, vec![Size::dim(1)]);
    let g = b.tensor("g", F32, Role::Output, vec![Size::dim(0)]);
    let best = b.tensor("best", ElementType::U32, Role::Output, vec![]);
    let i = b.axis(0);
    let at_i = b.at(i);
    let position = b.read(ElementType::I64, Source::Parameter(pos), &[at_i], None);
    let gathered = b.index(Index::Value(position));
    let minus_one = b.float(-1.0);
    let read = b.read(F32, Source::Parameter(table), &[gathered], Some(minus_one));
    let e = b.equation(&[i], &[(read, Some(g))]);
    let i = b.axis(0);
    let at_i = b.at(i);
    let term = b.read(F32, Source::Equation { equation: e, component: 0 }, &[at_i], None);
    let argmax = b.reduce(ElementType::U32, Reduction::ArgMax, &[i], term);
    b.equation(&[], &[(argmax, Some(best))]);
    let kernel = b.kernel();
    let device = device();
    let positions = [3_i64, -1, 0, i64::MAX, 2, 1, 2, i64::MIN];
    let table = [0.5_f32, -3.0, 9.0, 2.0];
    let (pos, table) = (upload(&device, &positions, [8]), upload(&device, &table, [4]));
    let (mut g, mut best) =
        (Tensor::<f32, 1>::zeros(&device, [8]).unwrap(), Tensor::<u32, 0>::zeros(&device, []).unwrap());
    let arguments = [
        Arg::input::<i64, 1>(&pos),
        Arg::input::<f32, 1>(&table),
        Arg::output::<f32, 1>(&mut g),
        Arg::output::<u32, 0>(&mut best),
    ];
    let reference = evaluate(&kernel, &arguments);
    reference.output("g").unwrap().check_slice(&[2.0_f32, -1.0, 0.5, -1.0, 9.0, -3.0, 9.0, -1.0]).unwrap();
    reference.output("best").unwrap().check_slice(&[4_u32]).unwrap();
    assert_eq!(reference.output("best").unwrap().admissible(0), Some(Admissible::Integer(4..=4)));
}

/// (mean, m2, count)[i] by Welford's recurrence, with a merge: f32 chains in several orders must be admissible.
#[test]
fn folds_with_a_merge_admit_other_orders() {
    let mut b = Builder::new(&["M", "N"]);
    let x = b.tensor("x", F32, Role::Input, vec![Size::dim(0), Size::dim(1)]);
    let out: Vec<u16> = ["m", "s"].iter().map(|n| b.tensor(n, F32, Role::Output, vec![Size::dim(0)])).collect();
    let (i, j) = (b.axis(0), b.axis(1));
    let (at_i, at_j) = (b.at(i), b.at(j));
    // Online softmax: m' = max(m, x), s' = s · exp(m − m') + exp(x − m').
    let term = b.read(F32, Source::Parameter(x), &[at_i, at_j], None);
    let variable = |b: &mut Builder, n: u32| b.value(F32, Value::Variable(n));
    let (m, s) = (variable(&mut b, 0), variable(&mut b, 1));
    let [ml, sl, mr, sr] = [2, 3, 4, 5].map(|n| variable(&mut b, n));
    let exp_of = |b: &mut Builder, x: ValueId, y: ValueId| {
        let d = b.value(F32, Value::Binary(Binary::Sub, x, y));
        b.value(F32, Value::Unary(Unary::Exp, d))
    };
    let most = b.value(F32, Value::Binary(Binary::Max, m, term));
    let (rescale, weight) = (exp_of(&mut b, m, most), exp_of(&mut b, term, most));
    let rescaled = b.value(F32, Value::Binary(Binary::Mul, s, rescale));
    let next = b.value(F32, Value::Binary(Binary::Add, rescaled, weight));
    let merged_most = b.value(F32, Value::Binary(Binary::Max, ml, mr));
    let (wl, wr) = (exp_of(&mut b, ml, merged_most), exp_of(&mut b, mr, merged_most));
    let (pl, pr) = (b.value(F32, Value::Binary(Binary::Mul, sl, wl)), b.value(F32, Value::Binary(Binary::Mul, sr, wr)));
    let merged = b.value(F32, Value::Binary(Binary::Add, pl, pr));
    let (least, zero) = (b.float(-1e30), b.float(0.0));
    b.folds = vec![
        FoldState { init: least, variable: 0, step: most, left: 2, right: 4, merge: Some(merged_most) },
        FoldState { init: zero, variable: 1, step: next, left: 3, right: 5, merge: Some(merged) },
    ];
    let axes = b.axis_run(&[j]);
    let fold = b.value(F32, Value::Fold { axes, states: Run { start: 0, len: 2 } });
    let parts = [0, 1].map(|component| b.value(F32, Value::Component { fold, component }));
    b.equation(&[i], &[(parts[0], Some(out[0])), (parts[1], Some(out[1]))]);
    let kernel = b.kernel();
    let device = device();
    let (m, n) = (20, 300);
    let xs: Vec<f32> = (0..m * n).map(|i| ((i * 29 % 173) as f32 * 0.71).sin() * 8.0).collect();
    let x = upload(&device, &xs, [m, n]);
    let (mut mo, mut so) =
        (Tensor::<f32, 1>::zeros(&device, [m]).unwrap(), Tensor::<f32, 1>::zeros(&device, [m]).unwrap());
    let arguments = [Arg::input::<f32, 2>(&x), Arg::output::<f32, 1>(&mut mo), Arg::output::<f32, 1>(&mut so)];
    let reference = evaluate(&kernel, &arguments);
    let step = |(m, s): (f32, f32), x: f32| (m.max(x), s * (m - m.max(x)).exp() + (x - m.max(x)).exp());
    let merge =
        |(m, s): (f32, f32), (p, q): (f32, f32)| (m.max(p), s * (m - m.max(p)).exp() + q * (p - m.max(p)).exp());
    for chains in [1, 3, 64] {
        let rows = xs.chunks(n).map(|row| {
            let chain = |c: usize| row.iter().skip(c).step_by(chains).copied().fold((-1e30, 0.0), step);
            (0..chains).map(chain).reduce(merge).unwrap()
        });
        let (ms, ss): (Vec<f32>, Vec<f32>) = rows.unzip();
        let agreement = reference.output("m").unwrap().check_slice(&ms).unwrap();
        assert_eq!(agreement.exact, m, "a maximum rounds nothing");
        reference.output("s").unwrap().check_slice(&ss).unwrap();
        let wrong: Vec<f32> = ss.iter().map(|s| s * 1.01).collect();
        assert!(reference.output("s").unwrap().check_slice(&wrong).is_err());
    }
}

/// Where none of the three orders rounds, another may: the mean of equal terms by thirds. And what cannot round stays
/// exact.
#[test]
fn orders_that_happen_not_to_round_leave_room() {
    let mut b = Builder::new(&["N"]);
    let x = b.tensor("x", F32, Role::Input, vec![Size::dim(0)]);
    let out: Vec<u16> = ["count", "mean"].iter().map(|n| b.tensor(n, F32, Role::Output, vec![])).collect();
    let j = b.axis(0);
    let at_j = b.at(j);
    let term = b.read(F32, Source::Parameter(x), &[at_j], None);
    let [n, mean, nl, ml, nr, mr] = [0, 1, 2, 3, 4, 5].map(|v| b.value(F32, Value::Variable(v)));
    let (zero, one) = (b.float(0.0), b.float(1.0));
    let op = |b: &mut Builder, op, x, y| b.value(F32, Value::Binary(op, x, y));
    let more = op(&mut b, Binary::Add, n, one);
    let both = op(&mut b, Binary::Add, nl, nr);
    // One term: mean + (x − mean) / count. Two parts: (mₗ·nₗ + mᵣ·nᵣ) / (nₗ + nᵣ).
    let away = op(&mut b, Binary::Sub, term, mean);
    let part = op(&mut b, Binary::Div, away, more);
    let step = op(&mut b, Binary::Add, mean, part);
    let (left, right) = (op(&mut b, Binary::Mul, ml, nl), op(&mut b, Binary::Mul, mr, nr));
    let sum = op(&mut b, Binary::Add, left, right);
    let joined = op(&mut b, Binary::Div, sum, both);
    b.folds = vec![
        FoldState { init: zero, variable: 0, step: more, left: 2, right: 4, merge: Some(both) },
        FoldState { init: zero, variable: 1, step, left: 3, right: 5, merge: Some(joined) },
    ];
    let axes = b.axis_run(&[j]);
    let fold = b.value(F32, Value::Fold { axes, states: Run { start: 0, len: 2 } });
    let parts = [0, 1].map(|component| b.value(F32, Value::Component { fold, component }));
    b.equation(&[], &[(parts[0], Some(out[0])), (parts[1], Some(out[1]))]);
    let kernel = b.kernel();
    let device = device();
    let terms = 64;
    // A product with a power of two is exact, with 3 or 21 it is not.
    let term = 1.0 - f32::EPSILON / 2.0;
    let x = upload(&device, &vec![term; terms], [terms]);
    let (mut count, mut mean) =
        (Tensor::<f32, 0>::zeros(&device, []).unwrap(), Tensor::<f32, 0>::zeros(&device, []).unwrap());
    let arguments = [Arg::input::<f32, 1>(&x), Arg::output::<f32, 0>(&mut count), Arg::output::<f32, 0>(&mut mean)];
    let reference = evaluate(&kernel, &arguments);
    assert_eq!(reference.output("count").unwrap().check_slice(&[64.0_f32]).unwrap().exact, 1);
    let found = reference.output("mean").unwrap();
    // Chains of 21, 21 and 22 terms.
    let merge = |(m, n): (f32, f32), (p, q): (f32, f32)| ((m * n + p * q) / (n + q), n + q);
    let thirds = [21.0, 21.0, 22.0].map(|n| (term, n)).into_iter().reduce(merge).unwrap();
    assert_ne!(thirds.0, term, "this order rounds");
    found.check_slice(&[thirds.0]).unwrap();
    assert!(found.check_slice(&[term * 0.999]).is_err());
}

/// One sum of all elements of `x`.
fn sum_of_all() -> KernelInfo {
    let mut b = Builder::new(&["N"]);
    let x = b.tensor("x", F32, Role::Input, vec![Size::dim(0)]);
    let y = b.tensor("y", F32, Role::Output, vec![]);
    let i = b.axis(0);
    let at = b.at(i);
    let term = b.read(F32, Source::Parameter(x), &[at], None);
    let sum = b.reduce(F32, Reduction::Sum, &[i], term);
    b.equation(&[], &[(sum, Some(y))]);
    b.kernel()
}

/// Of integers whose magnitudes add up to at most 2²⁴ every order gives the same bits, so that no term can be missing
/// or be taken twice; of real numbers nobody sees it.
#[test]
fn a_sum_without_one_term_is_wrong_where_nothing_is_rounded() {
    let (kernel, device) = (sum_of_all(), device());
    let mut y = Tensor::<f32, 0>::zeros(&device, []).unwrap();
    // Numbers with a common quantum of any size do, too.
    for (scale, terms) in [(1.0_f32, 9_999_usize), (0.125, 9_999), (3.0, 2_000_000)] {
        let values: Vec<f32> =
            (0..terms).map(|i| ((i * 7 % 8 + 1) as f32) * if i % 3 == 0 { -scale } else { scale }).collect();
        let x = upload(&device, &values, [terms]);
        let reference = evaluate(&kernel, &[Arg::input::<f32, 1>(&x), Arg::output::<f32, 0>(&mut y)]);
        let output = reference.output("y").unwrap();
        let sum: f32 = values.iter().sum();
        if terms == 9_999 {
            assert_eq!(output.inexact(), 0, "{:?}", output.admissible(0));
            let agreement = output.check_slice(&[sum]).unwrap();
            assert_eq!((agreement.exact, agreement.widest, agreement.farthest), (1, None, None));
            for left_out in [0, 1, 5_000, 9_998] {
                assert!(output.check_slice(&[sum - values[left_out]]).is_err(), "without term {left_out}");
                assert!(output.check_slice(&[sum + values[left_out]]).is_err(), "with term {left_out} twice");
            }
        } else {
            // The magnitudes may add up to more than 2^24 quanta: the order decides.
            assert_eq!(output.inexact(), 1);
        }
    }
    let values: Vec<f32> = (0..9_999).map(|i| ((i * 7_919 % 9_973) as f32 / 9_973.0) * 4.0 - 2.0).collect();
    let x = upload(&device, &values, [9_999]);
    let reference = evaluate(&kernel, &[Arg::input::<f32, 1>(&x), Arg::output::<f32, 0>(&mut y)]);
    let output = reference.output("y").unwrap();
    let middle = output.middles()[0] as f32;
    let agreement = output.check_slice(&[middle - values[1]]).unwrap();
    let widest = agreement.widest.unwrap();
    assert!(agreement.exact == 0 && widest.position == 0 && widest.width() > 1.0, "{agreement:?}");
    assert!(agreement.farthest.is_some_and(|(distance, _)| (distance - f64::from(values[1]).abs()).abs() < 0.01));
}

#[test]
fn what_is_no_number_is_counted() {
    let mut b = Builder::new(&["N"]);
    let x = b.tensor("x", F32, Role::Input, vec![Size::dim(0)]);
    let y = b.tensor("y", F32, Role::Output, vec![Size::dim(0)]);
    let i = b.axis(0);
    let at = b.at(i);
    let read = b.read(F32, Source::Parameter(x), &[at], None);
    let log = b.value(F32, Value::Unary(Unary::Log, read));
    b.equation(&[i], &[(log, Some(y))]);
    let (kernel, device) = (b.kernel(), device());
    let x = upload(&device, &[-1.0_f32, 0.0, 2.0, f32::INFINITY, f32::NAN], [5]);
    let mut y = Tensor::<f32, 1>::zeros(&device, [5]).unwrap();
    let reference = evaluate(&kernel, &[Arg::input::<f32, 1>(&x), Arg::output::<f32, 1>(&mut y)]);
    let output = reference.output("y").unwrap();
    let right = [f32::NAN, f32::NEG_INFINITY, 2.0_f32.ln(), f32::INFINITY, f32::NAN];
    let agreement = output.check_slice(&right).unwrap();
    assert_eq!((agreement.found.nan, agreement.found.infinite), (2, 2));
    assert_eq!((agreement.admitted.nan, agreement.admitted.infinite), (2, 2));
    // Counted in what is wrong, too.
    let bytes: Vec<u8> = [f32::NAN; 5].iter().flat_map(|x| x.to_le_bytes()).collect();
    let (measured, verdict) = output.measure_raw(&bytes).unwrap();
    assert!(verdict.is_err() && (measured.found.nan, measured.admitted.nan) == (5, 2), "{measured:?}");
}

#[test]
fn more_work_than_allowed_is_an_error_before_it_is_done() {
    let (kernel, device) = (sum_of_all(), device());
    let x = upload(&device, &[1.0_f32; 1000], [1000]);
    let mut y = Tensor::<f32, 0>::zeros(&device, []).unwrap();
    let arguments = [Arg::input::<f32, 1>(&x), Arg::output::<f32, 0>(&mut y)];
    // One element of a thousand terms.
    assert!(reference_as_scheduled(&kernel, &arguments, 1001).is_ok());
    let error = reference_as_scheduled(&kernel, &arguments, 1000).unwrap_err();
    assert!(matches!(&error, Error::Reference(error) if error.limited), "{error:?}");
    assert_eq!(
        error.to_string(),
        "reference of kernel test: e: with N = 1000 the reduction along `i` in 0..1000 has 1000 terms more; \
         at most 1000 elements and terms are evaluated"
    );
}

#[test]
fn what_cannot_be_evaluated_is_an_error() {
    // argmax of nothing.
    let mut b = Builder::new(&["N"]);
    let x = b.tensor("x", F32, Role::Input, vec![Size::dim(0)]);
    let y = b.tensor("y", ElementType::U32, Role::Output, vec![]);
    let i = b.axis(0);
    let at = b.at(i);
    let term = b.read(F32, Source::Parameter(x), &[at], None);
    let argmax = b.reduce(ElementType::U32, Reduction::ArgMax, &[i], term);
    b.equation(&[], &[(argmax, Some(y))]);
    let kernel = b.kernel();
    let device = device();
    let x = upload::<f32, 1>(&device, &[], [0]);
    let mut y = Tensor::<u32, 0>::zeros(&device, []).unwrap();
    let error = reference(&kernel, &[Arg::input::<f32, 1>(&x), Arg::output::<u32, 0>(&mut y)]).unwrap_err();
    assert_eq!(error.to_string(), "reference of kernel test: e: argmax or argmin of no elements");
    // A read outside without an alternative.
    let mut b = Builder::new(&["N"]);
    let x = b.tensor("x", F32, Role::Input, vec![Size::dim(0)]);
    let y = b.tensor("y", F32, Role::Output, vec![Size::dim(0)]);
    let i = b.axis(0);
    let (at, one) = (b.at(i), b.index(Index::Literal(1)));
    let next = b.index(Index::Add(at, one));
    let read = b.read(F32, Source::Parameter(x), &[next], None);
    b.equation(&[i], &[(read, Some(y))]);
    let kernel = b.kernel();
    let x = upload::<f32, 1>(&device, &[1.0, 2.0], [2]);
    let mut y = Tensor::<f32, 1>::zeros(&device, [2]).unwrap();
    let error = reference(&kernel, &[Arg::input::<f32, 1>(&x), Arg::output::<f32, 1>(&mut y)]).unwrap_err();
    assert_eq!(error.to_string(), "reference of kernel test: e: x[2] is outside the tensor of shape [2] (from [0])");
}

#[test]
fn deep_expressions_are_evaluated_or_refused() {
    for (terms, fits) in [(2000, true), (4000, true), (5000, false)] {
        let mut b = Builder::new(&["N"]);
        let x = b.tensor("x", ElementType::I32, Role::Input, vec![Size::dim(0)]);
        let y = b.tensor("y", ElementType::I32, Role::Output, vec![Size::dim(0)]);
        let i = b.axis(0);
        let at = b.at(i);
        let term = b.read(ElementType::I32, Source::Parameter(x), &[at], None);
        let mut sum = term;
        for _ in 1..terms {
            sum = b.value(ElementType::I32, Value::Binary(Binary::Add, sum, term));
        }
        b.equation(&[i], &[(sum, Some(y))]);
        let kernel = b.kernel();
        let device = device();
        let x = upload::<i32, 1>(&device, &[1, -2, 3], [3]);
        let mut y = Tensor::<i32, 1>::zeros(&device, [3]).unwrap();
        let result = reference(&kernel, &[Arg::input::<i32, 1>(&x), Arg::output::<i32, 1>(&mut y)]);
        match result {
            Ok(reference) if fits => {
                reference.output("y").unwrap().check_slice(&[terms, -2 * terms, 3 * terms]).unwrap();
            }
            Err(Error::Reference(error)) if !fits => assert!(error.message.contains("nested"), "{error}"),
            other => panic!("{terms}: {other:?}"),
        }
    }
}
