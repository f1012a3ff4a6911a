//! Indices that come from memory: what counterexamples say memory holds, and that it can hold it.

use super::{accepted, refused};

/// The counterexamples of a kernel, one a refusal; `?` for one that is undecided.
fn counterexamples(head: &str, body: &str) -> Vec<String> {
    let text = refused(head, body);
    let findings = text.split("error[").skip(1);
    let said = findings.map(|f| match f.split("= counterexample: ").nth(1) {
        Some(rest) => rest.lines().next().unwrap_or("").to_owned(),
        None => "?".to_owned(),
    });
    said.collect()
}

#[test]
fn a_counterexample_says_what_memory_holds() {
    let t = "t[i in 0..300] = y[i];";
    let head = "(x: i32[N], y: f32[100]) -> (z: f32[N])";
    let cases = [
        (head, "z[i] = t[x[i]] or 0.0;", "N = 1: z[0] with x[0] = 100 reads t[100], which reads y[100]"),
        (head, "z[i] = t[x[i] + 3 - i] or 0.0;", "N = 1: z[0] with x[0] = 97 reads t[100], which reads y[100]"),
        (head, "z[i] = t[7 - x[i]] or 0.0;", "N = 1: z[0] with x[0] = -93 reads t[100], which reads y[100]"),
        (head, "z[i] = t[2 * x[i] + 1] or 0.0;", "N = 1: z[0] with x[0] = 50 reads t[101], which reads y[101]"),
        (head, "z[i] = t[x[i] / 2] or 0.0;", "N = 1: z[0] with x[0] = 200 reads t[100], which reads y[100]"),
        (head, "z[i] = t[x[i] % 101] or 0.0;", "N = 1: z[0] with x[0] = 100 reads t[100], which reads y[100]"),
        (
            head,
            "z[i] = t[max(min(x[i], 120), 3)] or 0.0;",
            "N = 1: z[0] with x[0] = 100 reads t[100], which reads y[100]",
        ),
        (head, "z[i] = t[-x[i]] or 0.0;", "N = 1: z[0] with x[0] = -100 reads t[100], which reads y[100]"),
        // Memory decides the condition, too: that it holds is then no data of its own.
        (
            head,
            "z[i] = if x[i] > 200 { t[x[i]] or 0.0 } else { 0.0 };",
            "N = 1: z[0] with x[0] = 201 reads t[201], which reads y[201]",
        ),
        (head, "z[i] = if x[i] < 100 { t[x[i]] or 0.0 } else { 0.0 };", "?"),
        // What an inlined equation makes of memory is not followed.
        (head, "u[i] = x[i] + 1; z[i] = t[u[i]] or 0.0;", "?"),
        (
            "(x: f32[N], y: f32[100]) -> (z: f32[N])",
            "z[i] = t[x[i] as i32] or 0.0;",
            "N = 1: z[0] with x[0] = 100 reads t[100], which reads y[100]",
        ),
        (
            "(s: i32, y: f32[100]) -> (z: f32[N])",
            "z[i] = t[s] or 0.0;",
            "N = 1: z[0] with s = 100 reads t[100], which reads y[100]",
        ),
    ];
    for (head, body, said) in cases {
        assert_eq!(counterexamples(head, &format!("{t} {body}")), [said], "{body}");
    }
}

#[test]
fn one_element_of_memory_has_one_value() {
    let head = "(x: i32[N], y: f32[10]) -> (z: f32[N])";
    let t = "t[i in 0..30, j in 0..30] = if i < j { y[i] } else { 0.0 };";
    // Both indices are one element: `i < j` never is.
    assert_eq!(counterexamples(head, &format!("{t} z[i] = t[x[i], x[i]] or 0.0;")), ["?"]);
    let said = counterexamples(head, &format!("{t} z[i] = sum(|k| t[x[i], x[k]] or 0.0);"));
    assert_eq!(said, ["N = 2: z[0] with k = 1, x[0] = 10, x[1] = 11 reads t[10, 11], which reads y[10]"]);
}

#[test]
fn what_a_type_cannot_hold_is_not_read() {
    for (ty, holds) in [("u8", 256), ("bool", 2), ("u16", 65_536)] {
        let index = if ty == "bool" { "x[i] as u8" } else { "x[i]" };
        for (size, fits) in [(holds, true), (holds - 1, false)] {
            let head = format!("(x: {ty}[N], y: f32[{size}]) -> (z: f32[N])");
            let body = format!("t[i in 0..70000] = y[i]; z[i] = t[{index}] or 0.0;");
            if fits {
                accepted(&head, &body);
            } else {
                let said = counterexamples(&head, &body);
                let told = format!("with x[0] = {size} reads t[{size}], which reads y[{size}]");
                assert!(said.len() == 1 && said[0].ends_with(&told), "{ty} {size}: {said:?}");
            }
        }
    }
}
