//! Kernels that cover every operation on every type: generated, so that none is forgotten.
//!
//! Each operation is compiled alone first. What a type does not have is refused with one of the codes of `ABSENT` and
//! left out; any other refusal is a failure. What is left is packed, several outputs a kernel.

use std::fmt::Write as _;

use tilewright::kernel::ElementType;
use tilewright_cli::source::SourceFile;

use crate::Failure;
use crate::kernels::{Kernel, finished};

/// Refusals that say "this type does not have that operation", not yet (`TW0005`), or not without a test of the divisor
/// (`TW0903`).
const ABSENT: [&str; 7] = ["TW0005", "TW0119", "TW0121", "TW0122", "TW0903", "TW1003", "TW1004"];
/// Outputs of a kernel: few, so that the assembler keeps those of `f64` functions in registers.
const PACK: usize = 4;

/// Operations on elements `a[i]`, `b[i]`, `c[i]` of one type; the result has that type.
const SAME: [&str; 45] = [
    "a[i] + b[i]",
    "a[i] - b[i]",
    "a[i] * b[i]",
    "a[i] / b[i]",
    "if b[i] != 0 { a[i] / b[i] } else { a[i] }",
    "if b[i] != 0 { a[i] % b[i] } else { a[i] }",
    "a[i] / 3",
    "a[i] % 3",
    "-a[i]",
    "!a[i]",
    "a[i] && b[i]",
    "a[i] || b[i]",
    "min(a[i], b[i])",
    "max(a[i], b[i])",
    "min_num(a[i], b[i])",
    "max_num(a[i], b[i])",
    "fma(a[i], b[i], c[i])",
    "abs(a[i])",
    "floor(a[i])",
    "ceil(a[i])",
    "trunc(a[i])",
    "round(a[i])",
    "clamp(a[i], b[i], c[i])",
    "pow(a[i], 13)",
    "a[i] & b[i]",
    "a[i] | b[i]",
    "a[i] ^ b[i]",
    "a[i] << b[i]",
    "a[i] >> b[i]",
    "a[i] << 5",
    "exp(a[i])",
    "log(a[i])",
    "sqrt(a[i])",
    "rsqrt(a[i])",
    "tanh(a[i])",
    "erf(a[i])",
    "sin(a[i])",
    "cos(a[i])",
    "approx::exp(a[i])",
    "approx::log(a[i])",
    "approx::sqrt(a[i])",
    "approx::rsqrt(a[i])",
    "approx::tanh(a[i])",
    "approx::sin(a[i])",
    "if a[i] < b[i] { a[i] } else { c[i] }",
];

/// Comparisons; the result is a `bool`.
const COMPARISONS: [&str; 6] =
    ["a[i] < b[i]", "a[i] <= b[i]", "a[i] > b[i]", "a[i] >= b[i]", "a[i] == b[i]", "a[i] != b[i]"];

/// Reductions of the rows `x[i, j]`, with the type of the result where it is not that of the terms.
const REDUCTIONS: [(&str, Option<&str>); 8] = [
    ("sum(|j| x[i, j])", None),
    ("prod(|j| x[i, j])", None),
    ("max(|j| x[i, j])", None),
    ("min(|j| x[i, j])", None),
    ("all(|j| x[i, j])", None),
    ("any(|j| x[i, j])", None),
    ("argmax(|j| x[i, j])", Some("u32")),
    ("argmin(|j| x[i, j])", Some("u32")),
];

/// An equation of a generated kernel.
#[derive(Clone, Debug)]
struct Equation {
    value: String,
    result: String,
}

/// The generated kernels.
///
/// # Errors
/// An operation is refused for another reason than that its type does not have it.
pub fn kernels() -> Result<Vec<Kernel>, Failure> {
    let mut all = Vec::new();
    for text in texts()? {
        all.extend(compile(&text)?.ok_or_else(|| format!("equations compile alone and not together:\n{text}"))?);
    }
    Ok(all)
}

/// Their texts.
///
/// # Errors
/// As [`kernels`].
pub fn texts() -> Result<Vec<String>, Failure> {
    let mut all = Vec::new();
    let names: Vec<&str> = ElementType::ALL.iter().map(|t| t.name()).collect();
    for &name in &names {
        let mut equations: Vec<Equation> = Vec::new();
        let mut add = |value: String, result: &str| equations.push(Equation { value, result: result.to_owned() });
        for value in SAME {
            add(value.to_owned(), name);
        }
        for value in COMPARISONS {
            add(value.to_owned(), "bool");
        }
        for to in &names {
            add(format!("a[i] as {to}"), to);
        }
        let inputs = format!("a: {name}[N], b: {name}[N], c: {name}[N]");
        all.extend(packed(&format!("Pointwise_{name}"), &inputs, "N", "", equations)?);
        let reductions = REDUCTIONS
            .map(|(value, result)| Equation { value: value.to_owned(), result: result.unwrap_or(name).to_owned() });
        let inputs = format!("x: {name}[M, N]");
        all.extend(packed(&format!("Reduce_{name}"), &inputs, "M", "where N >= 1", reductions.to_vec())?);
        all.push(copy(name));
        all.push(widened(name));
    }
    Ok(all)
}

/// Packs the equations that the type has.
fn packed(
    name: &str,
    inputs: &str,
    extent: &str,
    facts: &str,
    equations: Vec<Equation>,
) -> Result<Vec<String>, Failure> {
    let mut present = Vec::new();
    for equation in equations {
        if compile(&text(name, inputs, extent, facts, std::slice::from_ref(&equation)))?.is_some() {
            present.push(equation);
        }
    }
    let text = |(number, pack)| text(&format!("{name}_{number}"), inputs, extent, facts, pack);
    Ok(present.chunks(PACK).enumerate().map(text).collect())
}

/// The text of a kernel with one output an equation.
fn text(name: &str, inputs: &str, extent: &str, facts: &str, equations: &[Equation]) -> String {
    let outputs: Vec<String> =
        equations.iter().enumerate().map(|(n, e)| format!("o{n}: {}[{extent}]", e.result)).collect();
    let mut text = format!("kernel {name}({inputs}) -> ({})\n{facts}\n{{\n", outputs.join(", "));
    for (n, Equation { value, .. }) in equations.iter().enumerate() {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "    o{n}[i] = {value};");
    }
    text.push_str("    launch threads(64);\n");
    for n in 0..equations.len() {
        let _ = writeln!(text, "    schedule o{n} {{ split i by 64 -> g, t; bind g: grid; bind t: thread; }}");
    }
    text.push_str("}\n");
    text
}

/// A copy of 16-byte vectors, the yardstick of every bandwidth.
fn copy(name: &str) -> String {
    let bytes = ElementType::from_name(name).map_or(1, ElementType::bytes);
    // Types of one byte have no vector of 16 lanes.
    let lanes = (16 / bytes).min(8);
    format!(
        "kernel Copy_{name}(x: {name}[N]) -> (y: {name}[N])\nwhere N % {lanes} == 0\n{{\n    y[i] = x[i];\n    \
         launch threads(256);\n    schedule y {{ split i by {lanes} -> q, v; split q by 256 -> g, t; bind g: grid; \
         bind t: thread; vectorize v; }}\n}}\n"
    )
}

/// Every lane of a vector as a number of its own: lanes are taken out of registers with their signs.
fn widened(name: &str) -> String {
    let lanes = 16 / ElementType::from_name(name).map_or(4, ElementType::bytes).max(4);
    let value = if name == "bool" { "if x[i] { 1.0 } else { 0.0 }" } else { "x[i] as f32" };
    format!(
        "kernel Widen_{name}(x: {name}[N]) -> (y: f32[N])\nwhere N % {lanes} == 0\n{{\n    y[i] = {value};\n    \
         launch threads(64);\n    schedule y {{ split i by {lanes} -> q, v; split q by 64 -> g, t; bind g: grid; \
         bind t: thread; vectorize v; }}\n}}\n"
    )
}

/// The kernels of a text; none if it needs an operation that its type does not have.
fn compile(text: &str) -> Result<Option<Vec<Kernel>>, Failure> {
    let file = SourceFile::parse("generated", &format!("schedule! {{\n{text}}}\n")).map_err(|e| e.to_string())?;
    let findings = file.findings();
    if findings.errors > 0 {
        let of_absent = |line: &str| ABSENT.iter().any(|code| line.starts_with(&format!("error[{code}]")));
        let mut errors = findings.text.lines().filter(|l| l.starts_with("error"));
        if errors.all(of_absent) {
            return Ok(None);
        }
        return Err(format!("a generated kernel is refused:\n{}\n{text}", findings.text));
    }
    Ok(Some(finished(&file, "ops")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_covered() {
        let all = kernels().unwrap_or_else(|e| panic!("{e}"));
        let outputs = |name: &str| -> usize {
            let of = all.iter().filter(|k| k.info.name.starts_with(name) && k.info.name[name.len()..].starts_with('_'));
            of.map(|k| k.info.parameters.iter().filter(|p| p.name.starts_with('o')).count()).sum()
        };
        // Numbers that only grow when the language does.
        assert!(outputs("Pointwise_f32") >= 45, "{}", outputs("Pointwise_f32"));
        assert!(outputs("Pointwise_bf16") >= 30, "{}", outputs("Pointwise_bf16"));
        assert!(outputs("Pointwise_i32") >= 25, "{}", outputs("Pointwise_i32"));
        assert!(outputs("Pointwise_bool") >= 5, "{}", outputs("Pointwise_bool"));
        assert!(outputs("Reduce_f32") >= 6 && outputs("Reduce_bool") >= 2);
        for of_all in ["Copy_", "Widen_"] {
            let count = all.iter().filter(|k| k.info.name.starts_with(of_all)).count();
            assert_eq!(count, ElementType::ALL.len(), "{of_all}");
        }
    }
}
