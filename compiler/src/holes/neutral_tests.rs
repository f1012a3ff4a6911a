//! Terms with holes: which are neutral, and which only look so.

use super::*;
use crate::diag::Diagnostics;
use crate::program;
use crate::source::TokenBuffer;
use crate::syntax;

/// Every read of `x` and `u` at `k` is a hole that holds zero; of `w` it is anything. The axis is past 9.
struct Holes<'a>(&'a Program);

impl Known for Holes<'_> {
    fn is_zero(&self, _: ValueId, source: Source, _: &[Expr]) -> bool {
        let Source::Parameter(parameter) = source else { return false };
        ["x", "u", "n", "b"].contains(&&*self.0.parameters[usize::from(parameter)].name)
    }

    fn is_outside(&self, parameter: u16, _: &[Expr]) -> bool {
        &*self.0.parameters[usize::from(parameter)].name == "x"
    }
    fn compares(&self, op: Compare, a: &Expr, b: &Expr) -> Option<bool> {
        let k = a.as_var().is_some() && b.as_constant() == Some(9);
        k.then_some(matches!(op, Compare::Gt | Compare::Ge | Compare::Ne))
    }
}

/// Whether the reduction `text` is neutral in holes; `ty` is its type.
fn neutral(ty: &str, text: &str) -> bool {
    let named = if text.contains("e[i") { "e[i in 0..1, k in 0..20] = x[k] * 2.0;" } else { "" };
    let source = format!(
        "kernel K(a: f32, x: f32[20], u: f32[20], w: f32[20], h: f16[20], n: i32[20], m: i32[20], b: u8[20], z: f64[20])
         -> (y: {ty}[1]) {{ {named} y[i] = {text}; schedule y {{}} }}"
    );
    let (tokens, _) = TokenBuffer::new(source.parse().unwrap());
    let (parsed, found) = syntax::parse(&tokens);
    assert!(!found.has_errors(), "{text}");
    let mut diags = Diagnostics::new();
    let program = program::build(&parsed.kernels[0], &mut diags);
    let program = program.unwrap_or_else(|| panic!("{text}: {:?}", diags.found()));
    let algorithm = &program.algorithm;
    let is_outermost = |v: &ValueId| {
        matches!(algorithm.values[*v as usize], Value::Reduce { .. } | Value::Fold { .. })
            && !(0..algorithm.values.len() as u32)
                .any(|o| matches!(algorithm.values[o as usize], Value::Reduce { body, .. } if body == *v))
    };
    let reduction = (0..algorithm.values.len() as u32).find(is_outermost).unwrap();
    let scope: Scope = (0..algorithm.axes.len() as u32).map(|axis| (axis, Expr::var(100 + axis))).collect();
    is_neutral(&program, reduction, &scope, &Holes(&program))
}

#[test]
fn terms_are_judged_whole() {
    let cases = [
        // The fill alone says nothing: the summand does.
        ("f32", "sum(|k| x[k])", true),
        ("f32", "sum(|k| exp(x[k]))", false),
        ("f32", "sum(|k| exp(x[k]) - 1.0)", true),
        ("f32", "sum(|k| approx::exp(x[k]) - 1.0)", false),
        ("f32", "sum(|k| log(x[k] + 1.0))", true),
        ("f32", "sum(|k| cos(x[k]) * 0.0)", true),
        ("f32", "sum(|k| sin(x[k]) + tanh(x[k]) + erf(x[k]) + sqrt(x[k]))", true),
        ("f32", "sum(|k| -x[k])", true),
        ("f32", "sum(|k| abs(x[k] * -3.0))", true),
        ("f32", "ordered sum(|k| x[k])", true),
        ("f32", "sum(|k| x[k] + 0.1 - 0.1)", true),
        ("f32", "sum(|k| (x[k] + 0.1) * (x[k] + 0.3) - 0.03)", false),
        // Zero times anything may be NaN.
        ("f32", "sum(|k| x[k] * u[k])", true),
        ("f32", "sum(|k| x[k] * w[k])", false),
        ("f32", "sum(|k| x[k] * a)", false),
        ("f32", "sum(|k| fma(x[k], u[k], u[k]))", true),
        ("f32", "sum(|k| fma(x[k], w[k], u[k]))", false),
        ("f32", "sum(|k| w[k])", false),
        ("f32", "sum(|k| x[k] / u[k])", false),
        ("i32", "sum(|k| n[k] * m[k])", true),
        ("i32", "sum(|k| n[k] + m[k])", false),
        ("i32", "sum(|k| (n[k] - 1) * (n[k] + 1) + 1)", true),
        ("i32", "sum(|k| x[k] as i32)", true),
        ("f64", "sum(|k| x[k] as f64 * z[k])", false),
        ("f64", "sum(|k| (x[k] as f64) * (n[k] as f64))", true),
        // Other monoids, other identities.
        ("f32", "max(|k| x[k])", false),
        ("f32", "min(|k| x[k])", false),
        ("f32", "prod(|k| x[k])", false),
        ("f32", "prod(|k| x[k] + 1.0)", true),
        ("f32", "prod(|k| exp(x[k]))", true),
        ("u8", "max(|k| b[k])", true),
        ("u8", "min(|k| b[k])", false),
        ("u32", "argmax(|k| b[k])", false),
        ("bool", "any(|k| x[k] > 0.0)", true),
        ("bool", "any(|k| x[k] >= 0.0)", false),
        ("bool", "all(|k| x[k] > 0.0)", false),
        ("bool", "all(|k| x[k] == 0.0 || w[k] > 1.0)", true),
        ("bool", "any(|k| w[k] > 1.0 && u[k] != 0.0)", true),
        // Choices.
        ("f32", "sum(|k| if x[k] > 0.0 { w[k] } else { 0.0 })", true),
        ("f32", "sum(|k| if w[k] > 0.0 { x[k] } else { 0.0 })", true),
        ("f32", "sum(|k| if w[k] > 0.0 { x[k] } else { 1.0 })", false),
        ("f32", "sum(|k| if k < 9 { w[k] } else { 0.0 })", true),
        ("f32", "sum(|k| if k >= 9 { w[k] } else { 0.0 })", false),
        // Outside, `or` stands for the element, whatever the buffer holds.
        ("f32", "sum(|k| x[k] or 0.0)", true),
        ("f32", "sum(|k| x[k] or 1.0)", false),
        ("f32", "prod(|k| x[k] or 1.0)", true),
        ("f32", "sum(|k| u[k] or 0.0)", false),
        // Through an intermediate.
        ("f32", "sum(|k| e[i, k])", true),
        ("f32", "sum(|k| e[i, k] + 1.0)", false),
        // Folds: every state variable stays as it is.
        ("f32", "fold(|k| init (0.0), step (s) => (s + x[k]))", true),
        ("f32", "fold(|k| init (-0.0), step (s) => (s + x[k]))", false),
        ("f32", "fold(|k| init (-0.0), step (s) => (s - x[k]))", true),
        ("f32", "fold(|k| init (0.0), step (s) => (s * 2.0 + x[k]))", false),
        ("f32", "fold(|k| init (1.0), step (s) => (s * (x[k] + 1.0)))", true),
        ("f32", "fold(|k| init (0.0), step (s) => (if x[k] > 0.0 { x[k] } else { s }))", true),
        ("f32", "fold(|k| init (0.0), step (s) => (max(s, x[k])))", false),
    ];
    for (ty, text, expected) in cases {
        assert_eq!(neutral(ty, text), expected, "{text}");
    }
}

#[test]
fn arithmetic_is_exact_or_unknown() {
    let cases = [
        (Binary::Add, 0.1, -0.1, Some(0.0)),
        (Binary::Add, 0.1, 0.2, None),
        (Binary::Add, -0.0, -0.0, Some(-0.0)),
        (Binary::Add, 1e16, 1.0, None),
        (Binary::Sub, 1.5, 0.25, Some(1.25)),
        (Binary::Mul, 3.0, -0.0, Some(-0.0)),
        (Binary::Mul, 0.1, 0.1, None),
        (Binary::Mul, 1e-300, 1e-300, None),
        (Binary::Div, 1.0, 3.0, None),
        (Binary::Div, 1.0, 4.0, Some(0.25)),
        (Binary::Div, 0.0, 0.0, None),
        (Binary::Max, 0.0, -0.0, Some(0.0)),
        (Binary::Min, 0.0, -0.0, Some(-0.0)),
    ];
    for (op, a, b, expected) in cases {
        assert_eq!(floats(op, a, b).map(f64::to_bits), expected.map(f64::to_bits), "{op:?} {a} {b}");
    }
    assert_eq!(exactly(ElementType::F16, Number::Float(0.1)), Fact::Anything);
    assert_eq!(exactly(ElementType::U8, Number::Int(256)), Fact::Anything);
    assert_eq!(exactly(ElementType::I8, Number::Int(-128)), Fact::Is(Number::Int(-128)));
}
