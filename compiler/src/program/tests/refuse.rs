//! Kernels that are refused, and the words.

use expect_test::{Expect, expect};

use super::{accepted, kernel, refused, run};

fn check(signature: &str, body: &str, expected: Expect) {
    expected.assert_eq(&refused(&kernel(signature, body)));
}

#[test]
fn unknown_names_are_suggested() {
    check(
        "(weight: f32[N]) -> (y: f32[N])",
        "y[i] = weigth[i];",
        expect![[r#"
            error[TW0101]: there is no tensor `weigth`
             --> kernel.rs:1:50
              |
            1 | kernel K(weight: f32[N]) -> (y: f32[N]) { y[i] = weigth[i]; }
              |                                                  ^^^^^^
              = note: known here: `weight`, `y`
              = help: did you mean `weight`?
              = explain: TW0101

        "#]],
    );
    check(
        "(x: f32[N]) -> (y: f32[N])",
        "y[i] = x[j];",
        expect![[r#"
            error[TW0101]: there is no size, axis or scalar `j`
             --> kernel.rs:1:47
              |
            1 | kernel K(x: f32[N]) -> (y: f32[N]) { y[i] = x[j]; }
              |                                               ^
              = note: known here: `i`, `N`
              = explain: TW0101

        "#]],
    );
    check(
        "(x: f32[N]) -> (y: f32[N])",
        "y[i] = x[i] * n as f32;",
        expect![[r#"
            error[TW0101]: there is no size, axis or scalar `n`
             --> kernel.rs:1:52
              |
            1 | kernel K(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] * n as f32; }
              |                                                    ^
              = note: known here: `i`, `N`
              = help: did you mean `N`?
              = explain: TW0101

        "#]],
    );
    check(
        "(x: f32[N]) -> (y: f32[N])",
        "y[i] = exb(x[i]);",
        expect![[r#"
            error[TW0101]: there is no function `exb`
             --> kernel.rs:1:45
              |
            1 | kernel K(x: f32[N]) -> (y: f32[N]) { y[i] = exb(x[i]); }
              |                                             ^^^
              = note: functions: exp, log, sqrt, rsqrt, tanh, erf, sin, cos, abs, floor, ceil, trunc, round, min, max, min_num,
                max_num, fma, clamp, pow, approx::exp, approx::exp2, approx::log, approx::sqrt, approx::rsqrt, approx::tanh,
                approx::sin, approx::cos
              = help: did you mean `exp`?
              = explain: TW0101

        "#]],
    );
    check(
        "(x: f32[N]) -> (y: f32[N]) where ld % 4 == 0",
        "y[i] = x[i];",
        expect![[r#"
            error[TW0101]: there is no size or stride `ld`
             --> kernel.rs:1:42
              |
            1 | kernel K(x: f32[N]) -> (y: f32[N]) where ld % 4 == 0 { y[i] = x[i]; }
              |                                          ^^
              = note: known here: `N`
              = explain: TW0101

        "#]],
    );
    check(
        "(x: f32[N]) -> (y: f32[N])",
        "y[i] = x[i]; schedule z {}",
        expect![[r#"
            error[TW0101]: there is no equation `z`
             --> kernel.rs:1:60
              |
            1 | kernel K(x: f32[N]) -> (y: f32[N]) { y[i] = x[i]; schedule z {} }
              |                                                            ^
              = note: known here: `y`
              = explain: TW0101

        "#]],
    );
    check(
        "(x: f32[N]) -> (y: f32[N])",
        "y[i] = x[i]; stage xs[i] = w in shared at y.i;",
        expect![[r#"
            error[TW0101]: there is no tensor `w`
             --> kernel.rs:1:65
              |
            1 | kernel K(x: f32[N]) -> (y: f32[N]) { y[i] = x[i]; stage xs[i] = w in shared at y.i; }
              |                                                                 ^
              = note: known here: `x`, `y`
              = explain: TW0101

        "#]],
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "kernels with their messages")]
fn names_mean_one_thing() {
    check(
        "(x: f32[N], x: f32[N]) -> (y: f32[N])",
        "y[i] = x[i];",
        expect![[r#"
            error[TW0102]: the name `x` is taken
             --> kernel.rs:1:21
              |
            1 | kernel K(x: f32[N], x: f32[N]) -> (y: f32[N]) { y[i] = x[i]; }
              |          - `x` is defined here
              |                     ^
              = note: no name hides another one: what a name means never depends on the line it is read on
              = help: choose another name
              = explain: TW0102

        "#]],
    );
    check(
        "(x: f32[N], N: f32) -> (y: f32[N])",
        "y[i] = x[i] * N;",
        expect![[r#"
            error[TW0102]: the name `N` is taken
             --> kernel.rs:1:21
              |
            1 | kernel K(x: f32[N], N: f32) -> (y: f32[N]) { y[i] = x[i] * N; }
              |                 - `N` is defined here
              |                     ^
              = note: no name hides another one: what a name means never depends on the line it is read on
              = help: choose another name
              = explain: TW0102

        "#]],
    );
    check(
        "(x: f32[N, N]) -> (y: f32[N])",
        "y[i] = sum(|i| x[i, i]);",
        expect![[r#"
            error[TW0102]: the name `i` is taken
             --> kernel.rs:1:53
              |
            1 | kernel K(x: f32[N, N]) -> (y: f32[N]) { y[i] = sum(|i| x[i, i]); }
              |                                           - `i` is defined here
              |                                                     ^
              = note: no name hides another one: what a name means never depends on the line it is read on
              = help: choose another name
              = explain: TW0102

        "#]],
    );
    check(
        "(x: f32[N, N]) -> (y: f32[N, N])",
        "y[i, i] = x[i, i];",
        expect![[r#"
            error[TW0102]: the name `i` is taken
             --> kernel.rs:1:49
              |
            1 | kernel K(x: f32[N, N]) -> (y: f32[N, N]) { y[i, i] = x[i, i]; }
              |                                              - `i` is defined here
              |                                                 ^
              = note: no name hides another one: what a name means never depends on the line it is read on
              = help: choose another name
              = explain: TW0102

        "#]],
    );
    check(
        "(a: f32, x: f32[N]) -> (y: f32[N])",
        "y[a] = x[a];",
        expect![[r#"
            error[TW0102]: the name `a` is taken
             --> kernel.rs:1:48
              |
            1 | kernel K(a: f32, x: f32[N]) -> (y: f32[N]) { y[a] = x[a]; }
              |          - `a` is defined here
              |                                                ^
              = note: no name hides another one: what a name means never depends on the line it is read on
              = help: choose another name
              = explain: TW0102

        "#]],
    );
    check(
        "(x: f32[N]) -> (y: f32[N])",
        "y[i] = x[i]; stage x[i] = x in shared at y.i;",
        expect![[r#"
            error[TW0102]: the name `x` is taken
             --> kernel.rs:1:57
              |
            1 | kernel K(x: f32[N]) -> (y: f32[N]) { y[i] = x[i]; stage x[i] = x in shared at y.i; }
              |          - `x` is defined here
              |                                                         ^
              = note: no name hides another one: what a name means never depends on the line it is read on
              = help: choose another name
              = explain: TW0102

        "#]],
    );
    check(
        "(x: f32[N]) -> (y: f32[N])",
        "y[i] = x;",
        expect![[r#"
            error[TW0103]: `x` is a tensor and is read with brackets
             --> kernel.rs:1:45
              |
            1 | kernel K(x: f32[N]) -> (y: f32[N]) { y[i] = x; }
              |                                             ^
              = help: give 1 index: `x[…]`
              = explain: TW0103

        "#]],
    );
    check(
        "(s: f32[]) -> (y: f32[N])",
        "y[i] = s;",
        expect![[r#"
            error[TW0103]: `s` is a tensor and is read with brackets
             --> kernel.rs:1:44
              |
            1 | kernel K(s: f32[]) -> (y: f32[N]) { y[i] = s; }
              |                                            ^
              = help: write `s[]`
              = explain: TW0103

        "#]],
    );
    check(
        "(a: f32) -> (y: f32[N])",
        "y[i] = a[i];",
        expect![[r#"
            error[TW0103]: `a` is not a tensor and takes no indices
             --> kernel.rs:1:42
              |
            1 | kernel K(a: f32) -> (y: f32[N]) { y[i] = a[i]; }
              |                                          ^
              = explain: TW0103

        "#]],
    );
    check(
        "(x: f32[N]) -> (y: f32[N])",
        "y[i] = x[i] * i;",
        expect![[r#"
            error[TW0103]: the axis `i` is an index, not a value with a type
             --> kernel.rs:1:52
              |
            1 | kernel K(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] * i; }
              |                                                    ^
              = help: convert it: `i as f32`
              = explain: TW0103

        "#]],
    );
    check(
        "(x: f32[N]) -> (y: f32[N])",
        "y[i] = x[i] / N;",
        expect![[r#"
            error[TW0103]: the size `N` is not a value with a type
             --> kernel.rs:1:52
              |
            1 | kernel K(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] / N; }
              |                                                    ^
              = help: convert it: `N as f32`
              = explain: TW0103

        "#]],
    );
    check(
        "(x: f32[N]) -> (y: bool[N])",
        "y[i] = i as bool; ",
        expect![[r#"
            error[TW0103]: an index cannot be converted to `bool`
             --> kernel.rs:1:46
              |
            1 | kernel K(x: f32[N]) -> (y: bool[N]) { y[i] = i as bool;  }
              |                                              ^^^^^^^^^
              = help: compare it: `i != 0`
              = explain: TW0103

        "#]],
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "kernels with their messages")]
fn sizes_are_told_at_launch() {
    check(
        "(x: f32[2 * N]) -> (y: f32[2 * N])",
        "y[i] = x[i];",
        expect![[r#"
            error[TW0104]: no argument tells the size `N`
             --> kernel.rs:1:21
              |
            1 | kernel K(x: f32[2 * N]) -> (y: f32[2 * N]) { y[i] = x[i]; }
              |                     ^
              = note: it occurs in `2 * N` only, and a launch does not solve equations
              = help: give a tensor a dimension of size `N`, or fix it by a fact: `where N == 128`
              = explain: TW0104

        "#]],
    );
    check(
        "(x: f32[N]) -> (y: f32[N]) where Q >= 1",
        "y[i] = x[i];",
        expect![[r#"
            error[TW0104]: no argument tells the size `Q`
             --> kernel.rs:1:42
              |
            1 | kernel K(x: f32[N]) -> (y: f32[N]) where Q >= 1 { y[i] = x[i]; }
              |                                          ^
              = note: it occurs in no shape
              = help: give a tensor a dimension of size `Q`, or fix it by a fact: `where Q == 128`
              = explain: TW0104

        "#]],
    );
    check(
        "(x: f32[n]) -> (y: f32[4])",
        "y[i] = x[i];",
        expect![[r#"
            error[TW0105]: `n` is not a size
             --> kernel.rs:1:17
              |
            1 | kernel K(x: f32[n]) -> (y: f32[4]) { y[i] = x[i]; }
              |                 ^
              = note: sizes are UPPERCASE; a lower-case name is a stride, after `;`
              = help: write `N`
              = explain: TW0105

        "#]],
    );
    check(
        "(x: f32[4u32]) -> (y: f32[4])",
        "y[i] = x[i];",
        expect![[r#"
            error[TW0105]: a size has no element type
             --> kernel.rs:1:17
              |
            1 | kernel K(x: f32[4u32]) -> (y: f32[4]) { y[i] = x[i]; }
              |                 ^^^^
              = help: write `4`
              = explain: TW0105

        "#]],
    );
    check(
        "(x: f32[N / 0]) -> (y: f32[N])",
        "y[i] = x[i];",
        expect![[r#"
            error[TW0105]: a size is divided by 0
             --> kernel.rs:1:21
              |
            1 | kernel K(x: f32[N / 0]) -> (y: f32[N]) { y[i] = x[i]; }
              |                     ^
              = note: `/` and `%` of sizes round down and need a positive divisor
              = explain: TW0105

        "#]],
    );
    check(
        "(a: f32, x: f32[N * a]) -> (y: f32[N])",
        "y[i] = x[i];",
        expect![[r#"
            error[TW0105]: `a` is not a size
             --> kernel.rs:1:29
              |
            1 | kernel K(a: f32, x: f32[N * a]) -> (y: f32[N]) { y[i] = x[i]; }
              |                             ^
              = note: sizes are UPPERCASE; a lower-case name is a stride, after `;`
              = help: write `A`
              = explain: TW0105

        "#]],
    );
    check(
        "(x: f32[max(N, 4)]) -> (y: f32[N])",
        "y[i] = x[i];",
        expect![[r#"
            error[TW0105]: this is not a size
             --> kernel.rs:1:17
              |
            1 | kernel K(x: f32[max(N, 4)]) -> (y: f32[N]) { y[i] = x[i]; }
              |                 ^^^^^^^^^
              = note: sizes are made of literals, UPPERCASE names and `+ - * / %`
              = explain: TW0105

        "#]],
    );
    check(
        "(x: f32[M, N; ld]) -> (y: f32[M, N])",
        "y[i, j] = x[i, j];",
        expect![[r#"
            error[TW0105]: 1 stride for 2 sizes
             --> kernel.rs:1:23
              |
            1 | kernel K(x: f32[M, N; ld]) -> (y: f32[M, N]) { y[i, j] = x[i, j]; }
              |                       ^^
              = note: a tensor has one stride for each size, outermost first, in elements
              = explain: TW0105

        "#]],
    );
    check(
        "(x: f32[N?]) -> (y: f32[N])",
        "y[i] = x[i];",
        expect![[r#"
            error[TW0005]: `?` is not supported yet
             --> kernel.rs:1:18
              |
            1 | kernel K(x: f32[N?]) -> (y: f32[N]) { y[i] = x[i]; }
              |                  ^
              = note: it is part of the language, and this version of the compiler cannot build it
              = explain: TW0005

        "#]],
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "kernels with their messages")]
fn every_tensor_is_defined_once_and_used() {
    check(
        "(x: f32[M, N]) -> (y: f32[M, N])",
        "",
        expect![[r#"
            error[TW0107]: no equation defines the output `y`
             --> kernel.rs:1:28
              |
            1 | kernel K(x: f32[M, N]) -> (y: f32[M, N]) {  }
              |                            ^
              = help: add `y[i, j] = …;`
              = explain: TW0107

        "#]],
    );
    check(
        "(x: f32[N]) -> (y: f32[N])",
        "y[i] = x[i]; y[i] = 2.0 * x[i];",
        expect![[r#"
            error[TW0108]: `y` is defined twice
             --> kernel.rs:1:51
              |
            1 | kernel K(x: f32[N]) -> (y: f32[N]) { y[i] = x[i]; y[i] = 2.0 * x[i]; }
              |                                      - `y` is defined here
              |                                                   ^
              = note: an equation is a definition, not an assignment: it says what every element is, once
              = help: give the second one another name, or join both with `if … { … } else { … }`
              = explain: TW0108

        "#]],
    );
    check(
        "(x: f32[N]) -> (y: f32[N])",
        "y[i] = x[i]; x[i] = 0.0;",
        expect![[r#"
            error[TW0109]: `x` is an input and cannot be defined
             --> kernel.rs:1:51
              |
            1 | kernel K(x: f32[N]) -> (y: f32[N]) { y[i] = x[i]; x[i] = 0.0; }
              |          - `x` is declared as an input
              |                                                   ^
              = help: to update it in place, declare it `inout x: …`
              = explain: TW0109

        "#]],
    );
    check(
        "(x: f32[N]) -> (y: f32[N])",
        "y[i] = x[i]; b[i] = x[i];",
        expect![[r#"
            error[TW0111]: `b` is no output and nothing reads it
             --> kernel.rs:1:51
              |
            1 | kernel K(x: f32[N]) -> (y: f32[N]) { y[i] = x[i]; b[i] = x[i]; }
              |                                                   ^
              = help: remove the equation, or declare `b` as an output
              = explain: TW0111

        "#]],
    );
    check(
        "(x: f32[N]) -> (y: f32[N])",
        "a[i] = b[i]; b[i] = a[i]; y[i] = a[i] + x[i];",
        expect![[r#"
            error[TW0110]: equations need each other: `a` reads `b` reads `a`
             --> kernel.rs:1:38
              |
            1 | kernel K(x: f32[N]) -> (y: f32[N]) { a[i] = b[i]; b[i] = a[i]; y[i] = a[i] + x[i]; }
              |                                      ^^^^
              |                                                   ---- reads `a`
              = explain: TW0110

        "#]],
    );
    check(
        "(x: f32[N]) -> (y: f32[N])",
        "y[i] = y[i] + x[i];",
        expect![[r#"
            error[TW0110]: `y` is defined by itself
             --> kernel.rs:1:38
              |
            1 | kernel K(x: f32[N]) -> (y: f32[N]) { y[i] = y[i] + x[i]; }
              |                                      ^^^^
              = note: equations have no order and no loop, and there is no scan yet
              = help: a recurrence is a `fold`; over `|j in 0..=i|` it begins anew for each element
              = explain: TW0110

        "#]],
    );
    check(
        "(x: f32[N]) -> (y: f32)",
        "y[] = sum(|i| x[i]);",
        expect![[r#"
            error[TW0130]: `y` is written and is passed by value
             --> kernel.rs:1:28
              |
            1 | kernel K(x: f32[N]) -> (y: f32) { y[] = sum(|i| x[i]); }
              |                            ^^^
              = help: a single element in memory is `f32[]`
              = explain: TW0130

        "#]],
    );
    let (_, warnings) = run(&kernel("(a: f32, x: f32[N], w: f32[N]) -> (y: f32[N])", "y[i] = x[i];"));
    expect![[r#"
        warning[TW0112]: nothing reads the input `a`
         --> kernel.rs:1:10
          |
        1 | kernel K(a: f32, x: f32[N], w: f32[N]) -> (y: f32[N]) { y[i] = x[i]; }
          |          ^
          = help: remove the parameter: every caller has to give it a value
          = explain: TW0112

        warning[TW0112]: nothing reads the input `w`
         --> kernel.rs:1:29
          |
        1 | kernel K(a: f32, x: f32[N], w: f32[N]) -> (y: f32[N]) { y[i] = x[i]; }
          |                             ^
          = help: remove the parameter: every caller has to give it a value
          = explain: TW0112

    "#]]
    .assert_eq(&warnings);
}

#[test]
fn ranks_match() {
    check(
        "(x: f32[M, N]) -> (y: f32[M])",
        "y[i] = x[i];",
        expect![[r#"
            error[TW0106]: `x` has 2 dimensions and is given 1 index
             --> kernel.rs:1:48
              |
            1 | kernel K(x: f32[M, N]) -> (y: f32[M]) { y[i] = x[i]; }
              |          - declared here
              |                                                ^^^^
              = explain: TW0106

        "#]],
    );
    check(
        "(x: f32[M, N]) -> (y: f32[M, N])",
        "y[i] = x[i, 0];",
        expect![[r#"
            error[TW0106]: `y` has 2 dimensions and is given 1 index
             --> kernel.rs:1:44
              |
            1 | kernel K(x: f32[M, N]) -> (y: f32[M, N]) { y[i] = x[i, 0]; }
              |                            - declared here
              |                                            ^^^^
              = explain: TW0106

        "#]],
    );
    check(
        "(x: f32[M, N]) -> (y: f32[M])",
        "b[i, j] = x[i, j]; y[i] = b[i];",
        expect![[r#"
            error[TW0106]: `b` has 2 dimensions and is given 1 index
             --> kernel.rs:1:67
              |
            1 | kernel K(x: f32[M, N]) -> (y: f32[M]) { b[i, j] = x[i, j]; y[i] = b[i]; }
              |                                         ------- declared here
              |                                                                   ^^^^
              = explain: TW0106

        "#]],
    );
}

#[test]
fn ranges_are_inferred_or_asked_for() {
    check(
        "(x: f32[N]) -> (y: f32[N])",
        "y[i] = sum(|r| x[i + r]);",
        expect![[r#"
            error[TW0113]: the range of `r` cannot be inferred
             --> kernel.rs:1:50
              |
            1 | kernel K(x: f32[N]) -> (y: f32[N]) { y[i] = sum(|r| x[i + r]); }
              |                                                  ^
              = note: no tensor is indexed by `r` alone, so no shape tells its range
              = help: write it: `r in 0..N`
              = explain: TW0113

        "#]],
    );
    check(
        "(a: f32[M, K], b: f32[L, N]) -> (c: f32[M, N])",
        "c[m, n] = sum(|k| a[m, k] * b[k, n]);",
        expect![[r#"
            error[TW0114]: `k` would range over 0..K and over 0..L
             --> kernel.rs:1:73
              |
            1 | kernel K(a: f32[M, K], b: f32[L, N]) -> (c: f32[M, N]) { c[m, n] = sum(|k| a[m, k] * b[k, n]); }
              |                                                                         ^
              |                                                                            ------- `k` indexes a dimension of 0..K
              |                                                                                      ------- `k` indexes a dimension of 0..L
              = help: if they are the same size, say so: `where K == L`; else write the range: `k in 0..K`
              = explain: TW0114

        "#]],
    );
    check(
        "(x: f32[N]) -> (y: f32[N])",
        "y[i in 0..N - 1] = x[i];",
        expect![[r#"
            error[TW0115]: `i` ranges over 0..N - 1, but `y` has 0..N there
             --> kernel.rs:1:40
              |
            1 | kernel K(x: f32[N]) -> (y: f32[N]) { y[i in 0..N - 1] = x[i]; }
              |                         - the shape of `y`
              |                                        ^
              = note: an output is defined at every element of its shape, and nowhere else
              = help: leave the range out, or write `i in 0..N`
              = explain: TW0115

        "#]],
    );
    check(
        "(x: f32[N]) -> (y: f32[N], z: f32[M])",
        "b[k] = x[k]; y[i] = b[i]; z[i] = b[i];",
        expect![[r#"
            error[TW0113]: the range of `k` cannot be inferred
             --> kernel.rs:1:51
              |
            1 | kernel K(x: f32[N]) -> (y: f32[N], z: f32[M]) { b[k] = x[k]; y[i] = b[i]; z[i] = b[i]; }
              |                                                   ^
              |                                                                     ---- demands 0..N
              |                                                                                  ---- demands 0..M
              = note: which bound is larger depends on sizes that no fact compares
              = help: write it: `k in 0..N`
              = explain: TW0113

        "#]],
    );
    check(
        "(x: f32[N], p: i32[N]) -> (y: f32[N])",
        "b[k] = 1.0f32; y[i] = b[p[i]] or x[i];",
        expect![[r#"
            error[TW0113]: the range of `k` cannot be inferred
             --> kernel.rs:1:51
              |
            1 | kernel K(x: f32[N], p: i32[N]) -> (y: f32[N]) { b[k] = 1.0f32; y[i] = b[p[i]] or x[i]; }
              |                                                   ^
              = note: no read of the tensor, and no bare index on the right, fixes it
              = help: write it: `k in 0..N`
              = explain: TW0113

        "#]],
    );
}

#[test]
fn ends_that_memory_decides_have_limits() {
    check(
        "(x: f32[N], p: i32[N]) -> (y: f32[N])",
        "y[i] = sum(|k in 0..p[i]| x[k]);",
        expect![[r#"
            error[TW0118]: a bound of `k` is read from memory, and may be anything
             --> kernel.rs:1:69
              |
            1 | kernel K(x: f32[N], p: i32[N]) -> (y: f32[N]) { y[i] = sum(|k in 0..p[i]| x[k]); }
              |                                                                     ^^^^
              = help: say where `k` may end: `min(…, N)`, with the size of what it indexes
              = explain: TW0118

        "#]],
    );
    check(
        "(x: f32[N], p: i32[N]) -> (y: f32[N])",
        "y[i] = sum(|k in p[i]..N| x[k]);",
        expect![[r#"
            error[TW0118]: a bound of `k` is read from memory, and may be anything
             --> kernel.rs:1:66
              |
            1 | kernel K(x: f32[N], p: i32[N]) -> (y: f32[N]) { y[i] = sum(|k in p[i]..N| x[k]); }
              |                                                                  ^^^^
              = help: say where `k` may begin: `max(0, …)`, with the size of what it indexes
              = explain: TW0118

        "#]],
    );
    check(
        "(x: f32[N], p: i32[N]) -> (y: u32[N])",
        "y[i] = argmax(|k in 0..min(p[i], N)| x[k]);",
        expect![[r#"
            error[TW0118]: a bound of `k` is read from memory
             --> kernel.rs:1:72
              |
            1 | kernel K(x: f32[N], p: i32[N]) -> (y: u32[N]) { y[i] = argmax(|k in 0..min(p[i], N)| x[k]); }
              |                                                                        ^^^^^^^^^^^^
              = note: `argmax` and `argmin` find something: their range is known at the launch
              = help: let `k` range over the whole dimension, and compare it with the bound: `if k < … { … } else { … }`
              = explain: TW0118

        "#]],
    );
    check(
        "(x: f32[N], p: i32[N]) -> (y: f32[N])",
        "t[k in 0..min(p[0], N)] = x[k]; y[i] = sum(|k| t[k]);",
        expect![[r#"
            error[TW0118]: a bound of `k` is read from memory
             --> kernel.rs:1:59
              |
            1 | kernel K(x: f32[N], p: i32[N]) -> (y: f32[N]) { t[k in 0..min(p[0], N)] = x[k]; y[i] = sum(|k| t[k]); }
              |                                                           ^^^^^^^^^^^^
              = note: which elements a tensor has is known at the launch
              = help: let `k` range over the whole dimension, and compare it with the bound: `if k < … { … } else { … }`
              = explain: TW0118

        "#]],
    );
}

#[test]
fn indices_are_quasi_affine() {
    check(
        "(x: f32[N]) -> (y: f32[M, M])",
        "y[i, j] = x[i * j];",
        expect![[r#"
            error[TW0116]: an index multiplies two things that vary
             --> kernel.rs:1:53
              |
            1 | kernel K(x: f32[N]) -> (y: f32[M, M]) { y[i, j] = x[i * j]; }
              |                                                     ^^^^^
              |                                                     - this varies
              |                                                         - this varies
              = note: indices are quasi-affine: one factor of a product, and every divisor, is made of literals and sizes
              = explain: TW0116

        "#]],
    );
    check(
        "(x: f32[N]) -> (y: f32[M, M])",
        "y[i, j] = x[i / j];",
        expect![[r#"
            error[TW0116]: an index is divided by something that varies
             --> kernel.rs:1:53
              |
            1 | kernel K(x: f32[N]) -> (y: f32[M, M]) { y[i, j] = x[i / j]; }
              |                                                     ^^^^^
              |                                                         - this varies
              = note: indices are quasi-affine: one factor of a product, and every divisor, is made of literals and sizes
              = explain: TW0116

        "#]],
    );
    check(
        "(x: f32[N]) -> (y: f32[N])",
        "y[i] = x[i / 0];",
        expect![[r#"
            error[TW0118]: an index is divided by 0
             --> kernel.rs:1:51
              |
            1 | kernel K(x: f32[N]) -> (y: f32[N]) { y[i] = x[i / 0]; }
              |                                                   ^
              = note: `/` and `%` of indices round down and need a positive divisor
              = explain: TW0118

        "#]],
    );
    check(
        "(x: f32[N]) -> (y: f32[N])",
        "y[i] = x[1.0];",
        expect![[r#"
            error[TW0118]: an index is an integer
             --> kernel.rs:1:47
              |
            1 | kernel K(x: f32[N]) -> (y: f32[N]) { y[i] = x[1.0]; }
              |                                               ^^^
              = note: indices are made of axes, sizes, literals, `+ - * / %`, and integer values
              = explain: TW0118

        "#]],
    );
    check(
        "(x: f32[N]) -> (y: f32[N])",
        "y[i] = x[i + 1u32];",
        expect![[r#"
            error[TW0118]: an index has no element type
             --> kernel.rs:1:51
              |
            1 | kernel K(x: f32[N]) -> (y: f32[N]) { y[i] = x[i + 1u32]; }
              |                                                   ^^^^
              = help: write `1`
              = explain: TW0118

        "#]],
    );
    check(
        "(x: f32[N], t: f32[N]) -> (y: f32[N])",
        "y[i] = x[t[i]] or 0.0;",
        expect![[r#"
            error[TW0118]: an index is an integer, and this is `f32`
             --> kernel.rs:1:58
              |
            1 | kernel K(x: f32[N], t: f32[N]) -> (y: f32[N]) { y[i] = x[t[i]] or 0.0; }
              |                                                          ^^^^
              = help: convert it: `(…) as i32`
              = explain: TW0118

        "#]],
    );
    check(
        "(x: f32[N], p: i32[N]) -> (y: f32[N])",
        "y[i] = x[p[i]];",
        expect![[r#"
            error[TW0117]: `x` is read at an index that only the data knows
             --> kernel.rs:1:56
              |
            1 | kernel K(x: f32[N], p: i32[N]) -> (y: f32[N]) { y[i] = x[p[i]]; }
              |                                                        ^^^^^^^
              |                                                          ---- this value may lie outside the tensor
              = help: say what it is outside: `x[…] or 0.0`
              = explain: TW0117

        "#]],
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "kernels with their messages")]
fn types_agree() {
    check(
        "(x: f32[N], w: f16[N]) -> (y: f32[N])",
        "y[i] = x[i] * w[i];",
        expect![[r#"
            error[TW0119]: the operands of `*` are `f32` and `f16`
             --> kernel.rs:1:56
              |
            1 | kernel K(x: f32[N], w: f16[N]) -> (y: f32[N]) { y[i] = x[i] * w[i]; }
              |                                                        ^^^^^^^^^^^
              |                                                        ---- this is `f32`
              |                                                               ---- this is `f16`
              = note: nothing is converted without `as`
              = help: convert the right one: `… as f32`
              = explain: TW0119

        "#]],
    );
    check(
        "(x: f32[N]) -> (y: f16[N])",
        "y[i] = x[i];",
        expect![[r#"
            error[TW0119]: `y` is `f16` and its definition is `f32`
             --> kernel.rs:1:45
              |
            1 | kernel K(x: f32[N]) -> (y: f16[N]) { y[i] = x[i]; }
              |                                             ^^^^
              = note: nothing is converted without `as`
              = help: convert it: `… as f16`
              = explain: TW0119

        "#]],
    );
    check(
        "(x: f32[N], w: f16[N]) -> (y: f32[N])",
        "y[i] = if x[i] > 0.0 { x[i] } else { w[i] };",
        expect![[r#"
            error[TW0119]: the branches of `if` are `f32` and `f16`
             --> kernel.rs:1:86
              |
            1 | kernel K(x: f32[N], w: f16[N]) -> (y: f32[N]) { y[i] = if x[i] > 0.0 { x[i] } else { w[i] }; }
              |                                                                        ---- this is `f32`
              |                                                                                      ^^^^
              = note: nothing is converted without `as`
              = help: convert it: `… as f32`
              = explain: TW0119

        "#]],
    );
    check(
        "(x: f32[N], w: f16[N]) -> (y: f32[N])",
        "y[i] = max(x[i], w[i]);",
        expect![[r#"
            error[TW0119]: the arguments of `max` are `f32` and `f16`
             --> kernel.rs:1:66
              |
            1 | kernel K(x: f32[N], w: f16[N]) -> (y: f32[N]) { y[i] = max(x[i], w[i]); }
              |                                                            ---- this is `f32`
              |                                                                  ^^^^
              = note: nothing is converted without `as`
              = help: convert it: `… as f32`
              = explain: TW0119

        "#]],
    );
    check(
        "(x: f32[N], w: f16[N]) -> (y: f32[N])",
        "y[i] = x[i] or w[i];",
        expect![[r#"
            error[TW0119]: `x` is `f32` and its value outside is `f16`
             --> kernel.rs:1:64
              |
            1 | kernel K(x: f32[N], w: f16[N]) -> (y: f32[N]) { y[i] = x[i] or w[i]; }
              |                                                                ^^^^
              = note: nothing is converted without `as`
              = help: convert it: `… as f32`
              = explain: TW0119

        "#]],
    );
    check(
        "(x: f32[N]) -> (y: f32[])",
        "y[] = fold(|j| init 0.0f64, step s => x[j]) as f32;",
        expect![[r#"
            error[TW0119]: a state that starts as `f64` becomes `f32`
             --> kernel.rs:1:75
              |
            1 | kernel K(x: f32[N]) -> (y: f32[]) { y[] = fold(|j| init 0.0f64, step s => x[j]) as f32; }
              |                                                                           ^^^^
              = note: nothing is converted without `as`
              = help: convert it: `… as f64`
              = explain: TW0119

        "#]],
    );
    check(
        "(x: f32[N]) -> (y: f32[N])",
        "y[i] = if x[i] { 1.0 } else { 0.0 };",
        expect![[r#"
            error[TW0121]: `if` needs `bool`, and this is `f32`
             --> kernel.rs:1:48
              |
            1 | kernel K(x: f32[N]) -> (y: f32[N]) { y[i] = if x[i] { 1.0 } else { 0.0 }; }
              |                                                ^^^^
              = explain: TW0121

        "#]],
    );
    check(
        "(x: bool[N]) -> (y: bool[N])",
        "y[i] = x[i] + x[i];",
        expect![[r#"
            error[TW0121]: `+` needs numbers, and this is `bool`
             --> kernel.rs:1:47
              |
            1 | kernel K(x: bool[N]) -> (y: bool[N]) { y[i] = x[i] + x[i]; }
              |                                               ^^^^^^^^^^^
              = explain: TW0121

        "#]],
    );
    check(
        "(x: f32[N]) -> (y: f32[N])",
        "y[i] = x[i] % 2.0;",
        expect![[r#"
            error[TW0121]: `%` needs integers, and this is `f32`
             --> kernel.rs:1:45
              |
            1 | kernel K(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] % 2.0; }
              |                                             ^^^^^^^^^^
              = explain: TW0121

        "#]],
    );
    check(
        "(x: u32[N]) -> (y: u32[N])",
        "y[i] = -x[i];",
        expect![[r#"
            error[TW0121]: `-` needs a float or a signed integer, and this is `u32`
             --> kernel.rs:1:46
              |
            1 | kernel K(x: u32[N]) -> (y: u32[N]) { y[i] = -x[i]; }
              |                                              ^^^^
              = explain: TW0121

        "#]],
    );
    check(
        "(x: u32[N]) -> (y: u32[N])",
        "y[i] = exp(x[i]);",
        expect![[r#"
            error[TW0121]: `exp` needs a float, and this is `u32`
             --> kernel.rs:1:45
              |
            1 | kernel K(x: u32[N]) -> (y: u32[N]) { y[i] = exp(x[i]); }
              |                                             ^^^^^^^^^
              = help: convert the operand: `… as f32`
              = explain: TW0121

        "#]],
    );
    check(
        "(x: f32[N]) -> (y: f32[N])",
        "y[i] = !x[i];",
        expect![[r#"
            error[TW0121]: `!` needs `bool` or an integer, and this is `f32`
             --> kernel.rs:1:46
              |
            1 | kernel K(x: f32[N]) -> (y: f32[N]) { y[i] = !x[i]; }
              |                                              ^^^^
              = explain: TW0121

        "#]],
    );
    check(
        "(x: f32[N]) -> (y: bool[])",
        "y[] = all(|i| x[i]);",
        expect![[r#"
            error[TW0121]: `all` needs `bool`, and this is `f32`
             --> kernel.rs:1:52
              |
            1 | kernel K(x: f32[N]) -> (y: bool[]) { y[] = all(|i| x[i]); }
              |                                                    ^^^^
              = explain: TW0121

        "#]],
    );
    check(
        "(x: bool[N]) -> (y: f32[N])",
        "y[i] = x[i] as f32;",
        expect![[r#"
            error[TW0121]: `bool` is not converted to `f32`
             --> kernel.rs:1:46
              |
            1 | kernel K(x: bool[N]) -> (y: f32[N]) { y[i] = x[i] as f32; }
              |                                              ^^^^^^^^^^^
              = help: choose a number for each: `if … { 1.0 } else { 0.0 }`
              = explain: TW0121

        "#]],
    );
    check(
        "(x: i32[N]) -> (y: bool[N])",
        "y[i] = x[i] as bool;",
        expect![[r#"
            error[TW0121]: `i32` is not converted to `bool`
             --> kernel.rs:1:46
              |
            1 | kernel K(x: i32[N]) -> (y: bool[N]) { y[i] = x[i] as bool; }
              |                                              ^^^^^^^^^^^^
              = help: compare it: `… != 0`
              = explain: TW0121

        "#]],
    );
    check(
        "(x: f32[N]) -> (y: f32[N])",
        "y[i] = fma(x[i], 2.0);",
        expect![[r#"
            error[TW0123]: `fma` takes 3 arguments and is given 2
             --> kernel.rs:1:45
              |
            1 | kernel K(x: f32[N]) -> (y: f32[N]) { y[i] = fma(x[i], 2.0); }
              |                                             ^^^^^^^^^^^^^^
              = explain: TW0123

        "#]],
    );
}

#[test]
fn literals_fit_their_place() {
    check(
        "(x: f32[N]) -> (y: f32[N])",
        "b[i] = 1.0; y[i] = x[i] + b[i];",
        expect![[r#"
            error[TW0120]: nothing here says which type this literal has
             --> kernel.rs:1:45
              |
            1 | kernel K(x: f32[N]) -> (y: f32[N]) { b[i] = 1.0; y[i] = x[i] + b[i]; }
              |                                             ^^^
              = help: give it one: `1.0f32` or `1.0 as f32`
              = explain: TW0120

        "#]],
    );
    check(
        "(x: f32[N]) -> (y: f32[N])",
        "y[i] = 2 * x[i];",
        expect![[r#"
            error[TW0122]: 2 is an integer, and its place needs `f32`
             --> kernel.rs:1:45
              |
            1 | kernel K(x: f32[N]) -> (y: f32[N]) { y[i] = 2 * x[i]; }
              |                                             ^
              = help: write `2.0`
              = explain: TW0122

        "#]],
    );
    check(
        "(x: u8[N]) -> (y: u8[N])",
        "y[i] = x[i] + 256;",
        expect![[r#"
            error[TW0122]: 256 is no `u8`
             --> kernel.rs:1:50
              |
            1 | kernel K(x: u8[N]) -> (y: u8[N]) { y[i] = x[i] + 256; }
              |                                                  ^^^
              = note: `u8` holds 0 to 255
              = help: `i32` has it: compute with `… as i32`, and convert the result
              = explain: TW0122

        "#]],
    );
    check(
        "(x: i32[N]) -> (y: i32[N])",
        "y[i] = x[i] + 0.5;",
        expect![[r#"
            error[TW0122]: 0.5 is no `i32`, which its place needs
             --> kernel.rs:1:52
              |
            1 | kernel K(x: i32[N]) -> (y: i32[N]) { y[i] = x[i] + 0.5; }
              |                                                    ^^^
              = explain: TW0122

        "#]],
    );
    check(
        "(x: f16[N]) -> (y: f16[N])",
        "y[i] = x[i] + 1e6;",
        expect![[r#"
            error[TW0122]: 1e6 is larger than every finite `f16`
             --> kernel.rs:1:52
              |
            1 | kernel K(x: f16[N]) -> (y: f16[N]) { y[i] = x[i] + 1e6; }
              |                                                    ^^^
              = explain: TW0122

        "#]],
    );
    check(
        "(x: e4m3[N]) -> (y: e4m3[N])",
        "y[i] = x[i - 1] or 1.1;",
        expect![[r#"
            error[TW0122]: `e4m3` does not have the value 1.1
             --> kernel.rs:1:59
              |
            1 | kernel K(x: e4m3[N]) -> (y: e4m3[N]) { y[i] = x[i - 1] or 1.1; }
              |                                                           ^^^
              = note: `e4m3` is a type for storage: its literals must be exact
              = help: convert it, which rounds: `1.1f32 as e4m3`
              = explain: TW0122

        "#]],
    );
    check(
        "(x: e4m3[N]) -> (y: e4m3[N])",
        "y[i] = x[i - 1] or inf;",
        expect![[r#"
            error[TW0122]: `e4m3` has no infinity
             --> kernel.rs:1:59
              |
            1 | kernel K(x: e4m3[N]) -> (y: e4m3[N]) { y[i] = x[i - 1] or inf; }
              |                                                           ^^^
              = explain: TW0122

        "#]],
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "kernels with their messages")]
fn reductions_are_what_they_say() {
    check(
        "(x: f32[M, N]) -> (y: u32[])",
        "y[] = argmax(|i, j| x[i, j]);",
        expect![[r#"
            error[TW0127]: `argmax` searches one axis, and this has 2
             --> kernel.rs:1:57
              |
            1 | kernel K(x: f32[M, N]) -> (y: u32[]) { y[] = argmax(|i, j| x[i, j]); }
              |                                                         ^
              = note: its result is one index, a `u32`
              = explain: TW0127

        "#]],
    );
    check(
        "(x: f32[N]) -> (y: f32[])",
        "y[] = dot(|i| x[i]);",
        expect![[r#"
            error[TW0126]: the body of `dot` is a product of two factors
             --> kernel.rs:1:51
              |
            1 | kernel K(x: f32[N]) -> (y: f32[]) { y[] = dot(|i| x[i]); }
              |                                                   ^^^^
              = note: tensor cores compute `dot(|k| a[m, k] * b[n, k])`
              = help: move everything else out of the `dot`, or use `sum`
              = explain: TW0126

        "#]],
    );
    check(
        "(x: i64[N]) -> (y: i64[])",
        "y[] = dot(|i| x[i] * x[i]);",
        expect![[r#"
            error[TW1005]: there is no `dot` of `i64`
             --> kernel.rs:1:51
              |
            1 | kernel K(x: i64[N]) -> (y: i64[]) { y[] = dot(|i| x[i] * x[i]); }
              |                                                   ^^^^^^^^^^^
              = note: `dot` accumulates floats in `f32`, `f64` in `f64`, and integers of at most 32 bits in `i32`
              = help: use `sum`, which accumulates in the type of its terms
              = explain: TW1005

        "#]],
    );
    check(
        "(x: f32[N]) -> (y: f32[])",
        "y[] = ordered max(|i| x[i]);",
        expect![[r#"
            error[TW1006]: `max` cannot be `ordered`
             --> kernel.rs:1:43
              |
            1 | kernel K(x: f32[N]) -> (y: f32[]) { y[] = ordered max(|i| x[i]); }
              |                                           ^^^^^^^
              = note: the result of `max` does not depend on the order of its terms
              = explain: TW1006

        "#]],
    );
    check(
        "(x: f32[N]) -> (y: f32[])",
        "y[] = ordered dot(|i| x[i] * x[i]);",
        expect![[r#"
            error[TW1006]: `dot` cannot be `ordered`
             --> kernel.rs:1:43
              |
            1 | kernel K(x: f32[N]) -> (y: f32[]) { y[] = ordered dot(|i| x[i] * x[i]); }
              |                                           ^^^^^^^
              = note: tensor cores choose the order of a `dot`
              = help: use `ordered sum`
              = explain: TW1006

        "#]],
    );
    check(
        "(x: f32[N]) -> (y: f32[])",
        "y[] = dot(|i| x[i] * x[i], promote 128);",
        expect![[r#"
            error[TW1007]: a `dot` of `f32` has no promotion interval
             --> kernel.rs:1:72
              |
            1 | kernel K(x: f32[N]) -> (y: f32[]) { y[] = dot(|i| x[i] * x[i], promote 128); }
              |                                                                        ^^^
              = note: tensor cores keep short sums only for `e4m3` and `e5m2`
              = explain: TW1007

        "#]],
    );
    check(
        "(x: e4m3[N]) -> (y: f32[])",
        "y[] = dot(|i| x[i] * x[i], promote 0);",
        expect![[r#"
            error[TW1007]: the promotion interval is a positive literal
             --> kernel.rs:1:73
              |
            1 | kernel K(x: e4m3[N]) -> (y: f32[]) { y[] = dot(|i| x[i] * x[i], promote 0); }
              |                                                                         ^
              = explain: TW1007

        "#]],
    );
    check(
        "(x: f32[N]) -> (y: f32[])",
        "y[] = scan(|i| x[i]);",
        expect![[r#"
            error[TW0005]: `scan` is not supported yet
             --> kernel.rs:1:43
              |
            1 | kernel K(x: f32[N]) -> (y: f32[]) { y[] = scan(|i| x[i]); }
              |                                           ^^^^^^^^^^^^^^
              = note: it is part of the language, and this version of the compiler cannot build it
              = help: a `sum` over `|j in 0..=i|` is right, and adds up the terms of each element anew
              = explain: TW0005

        "#]],
    );
    check(
        "(x: f32[N]) -> (y: f32[])",
        "(a, b)[] = sum(|i| x[i]); y[] = a[] + b[];",
        expect![[r#"
            error[TW0125]: the left-hand side names 2 tensors, and the right-hand side has 1
             --> kernel.rs:1:48
              |
            1 | kernel K(x: f32[N]) -> (y: f32[]) { (a, b)[] = sum(|i| x[i]); y[] = a[] + b[]; }
              |                                                ^^^^^^^^^^^^^
              = help: write a value for each, `(a, b)[i] = (…, …)`, or a `fold` with as many states
              = explain: TW0125

        "#]],
    );
    check(
        "(x: f32[N]) -> (a: f32[N], b: f32[N])",
        "(a, b)[i] = (x[i], (x[i], 1.0));",
        expect![[r#"
        error[TW0125]: 2 values where one is needed
         --> kernel.rs:1:68
          |
        1 | kernel K(x: f32[N]) -> (a: f32[N], b: f32[N]) { (a, b)[i] = (x[i], (x[i], 1.0)); }
          |                                                                    ^^^^^^^^^^^
          = help: an equation of its own has several values: `(a, b)[i] = (…, …);`, or `(a, b)[i] = fold(…);`
          = explain: TW0125

    "#]],
    );
    check(
        "(inout a: f32[N], inout b: f32[N], x: f32[K], p: i32[K])",
        "(a, b)[p[i]] += (sum(|i| x[i]), sum(|i| x[i]));",
        expect![[r#"
            error[TW0125]: a scatter takes terms into one tensor, and here are 2
             --> kernel.rs:1:68
              |
            1 | kernel K(inout a: f32[N], inout b: f32[N], x: f32[K], p: i32[K]) { (a, b)[p[i]] += (sum(|i| x[i]), sum(|i| x[i])); }
              |                                                                    ^^^^^^^^^^^^
              = help: write an equation for each
              = explain: TW0125

        "#]],
    );
    check(
        "(x: f32[N]) -> (a: f32[N], b: i32[N])",
        "(a, b)[i] = (x[i], x[i]);",
        expect![[r#"
        error[TW0119]: `b` is `i32` and its definition is `f32`
         --> kernel.rs:1:68
          |
        1 | kernel K(x: f32[N]) -> (a: f32[N], b: i32[N]) { (a, b)[i] = (x[i], x[i]); }
          |                                                                    ^^^^
          = note: nothing is converted without `as`
          = help: convert it: `… as i32`
          = explain: TW0119

    "#]],
    );
    check(
        "(x: f32[N]) -> (a: f32[N], b: f32[N])",
        "(a, b)[i] = (b[i], x[i]);",
        expect![[r#"
        error[TW0110]: `a` reads `b` of its own equation
         --> kernel.rs:1:62
          |
        1 | kernel K(x: f32[N]) -> (a: f32[N], b: f32[N]) { (a, b)[i] = (b[i], x[i]); }
          |                                                 --------- defines both
          |                                                              ^^^^
          = note: the values of a tuple are found at one time, and none reads another one
          = help: give `b` an equation of its own, or write its value in the place of the read
          = explain: TW0110

    "#]],
    );
    check(
        "(x: f32[N]) -> (y: f32[])",
        "y[] = 1.0 + fold(|i| init (0.0f32, 0.0f32), step (a, b) => (a, x[i]));",
        expect![[r#"
            error[TW0125]: 2 values where one is needed
             --> kernel.rs:1:49
              |
            1 | kernel K(x: f32[N]) -> (y: f32[]) { y[] = 1.0 + fold(|i| init (0.0f32, 0.0f32), step (a, b) => (a, x[i])); }
              |                                                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
              = help: an equation of its own has several values: `(a, b)[i] = (…, …);`, or `(a, b)[i] = fold(…);`
              = explain: TW0125

        "#]],
    );
    check(
        "(x: f32[N]) -> (y: f32[])",
        "y[] = fold(|i| init 0.0, step (a, b) => a);",
        expect![[r#"
            error[TW0125]: the state has 1 value, and 2 are named
             --> kernel.rs:1:67
              |
            1 | kernel K(x: f32[N]) -> (y: f32[]) { y[] = fold(|i| init 0.0, step (a, b) => a); }
              |                                                                   ^^^^^^
              = explain: TW0125

        "#]],
    );
    check(
        "(x: f32[N]) -> (y: f32[])",
        "y[] = fold(|i| init 0.0, step a => (a, x[i]));",
        expect![[r#"
            error[TW0125]: the state has 1 value, and the next one has 2
             --> kernel.rs:1:72
              |
            1 | kernel K(x: f32[N]) -> (y: f32[]) { y[] = fold(|i| init 0.0, step a => (a, x[i])); }
              |                                                                        ^^^^^^^^^
              = explain: TW0125

        "#]],
    );
}

#[test]
fn numerics_are_static() {
    check(
        "(x: e4m3[N]) -> (y: e4m3[N])",
        "y[i] = x[i] * x[i];",
        expect![[r#"
            error[TW1003]: `e4m3` has no arithmetic, and this is `*`
             --> kernel.rs:1:47
              |
            1 | kernel K(x: e4m3[N]) -> (y: e4m3[N]) { y[i] = x[i] * x[i]; }
              |                                               ^^^^^^^^^^^
              = note: `e4m3` is a type for storage and for the operands of `dot`
              = help: convert to `f32` first: `x[i] as f32`
              = explain: TW1003

        "#]],
    );
    check(
        "(x: tf32[N]) -> (y: tf32[])",
        "y[] = sum(|i| x[i]);",
        expect![[r#"
            error[TW1003]: `tf32` has no arithmetic, and this is `sum`
             --> kernel.rs:1:53
              |
            1 | kernel K(x: tf32[N]) -> (y: tf32[]) { y[] = sum(|i| x[i]); }
              |                                                     ^^^^
              = note: `tf32` is a type for storage and for the operands of `dot`
              = help: convert to `f32` first: `x[i] as f32`
              = explain: TW1003

        "#]],
    );
    check(
        "(x: f64[N]) -> (y: f64[N])",
        "y[i] = approx::exp(x[i]);",
        expect![[r#"
            error[TW1004]: there is no `approx::exp` of `f64`
             --> kernel.rs:1:45
              |
            1 | kernel K(x: f64[N]) -> (y: f64[N]) { y[i] = approx::exp(x[i]); }
              |                                             ^^^^^^^^^^^^^^^^^
              = note: the approximate instructions compute at most 24 bits
              = help: where they are enough: `approx::exp(… as f32) as f64`
              = help: or the accurate function: `exp`
              = explain: TW1004

        "#]],
    );
    check(
        "(x: i32[N]) -> (y: i32[N])",
        "y[i] = x[i] / 0;",
        expect![[r#"
            error[TW1002]: an integer is divided by zero
             --> kernel.rs:1:52
              |
            1 | kernel K(x: i32[N]) -> (y: i32[N]) { y[i] = x[i] / 0; }
              |                                             -------- the division
              |                                                    ^
              = explain: TW1002

        "#]],
    );
}

#[test]
fn in_place_updates_read_nothing_else() {
    check(
        "(inout x: f32[N])",
        "x[i] = 2.0 * x[i + 1] or 0.0;",
        expect![[r#"
            error[TW0124]: `x` is updated in place, and this read may see the new value
             --> kernel.rs:1:42
              |
            1 | kernel K(inout x: f32[N]) { x[i] = 2.0 * x[i + 1] or 0.0; }
              |                             ---- `x` is written here
              |                                          ^^^^^^^^^^^^^^^
              = note: an element that is updated in place is read by its own definition only, before it is written; or by an
                intermediate without a schedule that only this definition reads, at that element
              = counterexample: i = 0 reads x[1], which i = 1 writes
              = help: read `x[i]` only, or write to another tensor: `-> (out: …)` instead of `inout x`
              = explain: TW0124

        "#]],
    );
    check(
        "(inout x: f32[M, N])",
        "x[i, j] = x[j, i];",
        expect![[r#"
            error[TW0124]: `x` is updated in place, and this read may see the new value
             --> kernel.rs:1:42
              |
            1 | kernel K(inout x: f32[M, N]) { x[i, j] = x[j, i]; }
              |                                ------- `x` is written here
              |                                          ^^^^^^^
              = note: an element that is updated in place is read by its own definition only, before it is written; or by an
                intermediate without a schedule that only this definition reads, at that element
              = counterexample: i = 1, j = 0 reads x[0, 1], which i = 0, j = 1 writes
              = help: read `x[i, j]` only, or write to another tensor: `-> (out: …)` instead of `inout x`
              = explain: TW0124

        "#]],
    );
    check(
        "(inout x: f32[M, N])",
        "s[i] = sum(|j| x[i, j]); x[i, j] = x[i, j] / s[i];",
        expect![[r#"
            error[TW0124]: `x` is updated in place, and this read may see the new value
             --> kernel.rs:1:47
              |
            1 | kernel K(inout x: f32[M, N]) { s[i] = sum(|j| x[i, j]); x[i, j] = x[i, j] / s[i]; }
              |                                               ^^^^^^^
              |                                                         ------- `x` is written here
              = note: an element that is updated in place is read by its own definition only, before it is written; or by an
                intermediate without a schedule that only this definition reads, at that element
              = help: write to another tensor: `-> (out: …)` instead of `inout x`
              = explain: TW0124

        "#]],
    );
    check(
        "(inout x: f32[M, N])",
        "x[i, j] = x[i, j] / sum(|k| x[i, k]);",
        expect![[r#"
            error[TW0124]: `x` is updated in place, and this read may see the new value
             --> kernel.rs:1:60
              |
            1 | kernel K(inout x: f32[M, N]) { x[i, j] = x[i, j] / sum(|k| x[i, k]); }
              |                                ------- `x` is written here
              |                                                            ^^^^^^^
              = note: an element that is updated in place is read by its own definition only, before it is written; or by an
                intermediate without a schedule that only this definition reads, at that element
              = help: read `x[i, j]` only, or write to another tensor: `-> (out: …)` instead of `inout x`
              = explain: TW0124

        "#]],
    );
}

#[test]
fn tensors_that_need_each_others_elements_are_of_one_equation() {
    check(
        "(inout a: f32[N], inout b: f32[N])",
        "a[i] = a[i] + b[i]; b[i] = 2.0 * b[i];",
        expect![[r#"
        error[TW0124]: `b` is updated in place, and this read may see the new value
         --> kernel.rs:1:60
          |
        1 | kernel K(inout a: f32[N], inout b: f32[N]) { a[i] = a[i] + b[i]; b[i] = 2.0 * b[i]; }
          |                                                            ^^^^
          |                                                                  ---- `b` is written here
          = note: an element that is updated in place is read by its own definition only, before it is written; or by an
            intermediate without a schedule that only this definition reads, at that element
          = help: define them by one equation, whose values are found before any is written: `(b, a)[i] = (…, …);`; or write to
            another tensor: `-> (out: …)` instead of `inout b`
          = explain: TW0124

    "#]],
    );
    // Not of another shape, and not where the read is elsewhere.
    check(
        "(inout a: f32[N], inout b: f32[N])",
        "a[i] = a[i] + (b[i + 1] or 0.0); b[i] = 2.0 * b[i];",
        expect![[r#"
        error[TW0124]: `b` is updated in place, and this read may see the new value
         --> kernel.rs:1:60
          |
        1 | kernel K(inout a: f32[N], inout b: f32[N]) { a[i] = a[i] + (b[i + 1] or 0.0); b[i] = 2.0 * b[i]; }
          |                                                            ^^^^^^^^^^^^^^^^^
          |                                                                               ---- `b` is written here
          = note: an element that is updated in place is read by its own definition only, before it is written; or by an
            intermediate without a schedule that only this definition reads, at that element
          = help: write to another tensor: `-> (out: …)` instead of `inout b`
          = explain: TW0124

    "#]],
    );
    check(
        "(inout a: f32[N], inout b: f32[N])",
        "(a, b)[i] = (b[N - 1 - i], a[i]);",
        expect![[r#"
        error[TW0124]: `b` is updated in place, and this read may see the new value
         --> kernel.rs:1:59
          |
        1 | kernel K(inout a: f32[N], inout b: f32[N]) { (a, b)[i] = (b[N - 1 - i], a[i]); }
          |                                              --------- `b` is written here
          |                                                           ^^^^^^^^^^^^
          = note: an element that is updated in place is read by its own definition only, before it is written; or by an
            intermediate without a schedule that only this definition reads, at that element
          = help: read `b[i]` only, or write to another tensor: `-> (out: …)` instead of `inout b`
          = explain: TW0124

    "#]],
    );
}

#[test]
fn schedules_name_equations_once() {
    check(
        "(x: f32[N]) -> (y: f32[N])",
        "y[i] = x[i]; schedule x {}",
        expect![[r#"
            error[TW0128]: `x` is an input: nothing computes it
             --> kernel.rs:1:60
              |
            1 | kernel K(x: f32[N]) -> (y: f32[N]) { y[i] = x[i]; schedule x {} }
              |                                                            ^
              = help: schedule the equation that reads it
              = explain: TW0128

        "#]],
    );
    check(
        "(x: f32[N]) -> (y: f32[N])",
        "y[i] = x[i]; inline y;",
        expect![[r#"
            error[TW0128]: `y` is an output and must be written
             --> kernel.rs:1:51
              |
            1 | kernel K(x: f32[N]) -> (y: f32[N]) { y[i] = x[i]; inline y; }
              |                                                   ^^^^^^^^^
              = note: only an intermediate can be computed where it is read
              = explain: TW0128

        "#]],
    );
    check(
        "(x: f32[N]) -> (y: f32[N])",
        "y[i] = x[i]; schedule y {} schedule y {}",
        expect![[r#"
            error[TW0129]: there is a second statement on how `y` is computed
             --> kernel.rs:1:65
              |
            1 | kernel K(x: f32[N]) -> (y: f32[N]) { y[i] = x[i]; schedule y {} schedule y {} }
              |                                                   ---------- the first one is here
              |                                                                 ^^^^^^^^^^
              = help: join them into one
              = explain: TW0129

        "#]],
    );
    check(
        "(x: f32[N]) -> (y: f32[N])",
        "y[i] = x[i]; launch threads(32); launch threads(64);",
        expect![[r#"
            error[TW0129]: a second `launch`
             --> kernel.rs:1:71
              |
            1 | kernel K(x: f32[N]) -> (y: f32[N]) { y[i] = x[i]; launch threads(32); launch threads(64); }
              |                                                   ------------------- the first one is here
              |                                                                       ^^^^^^^^^^^^^^^^^^^
              = help: join them into one
              = explain: TW0129

        "#]],
    );
    check(
        "(x: f32[N]) -> (y: f32[N])",
        "y[i] = x[i]; pass first { y[i] = x[i]; }",
        expect![[r#"
            error[TW0005]: `pass` is not supported yet
             --> kernel.rs:1:51
              |
            1 | kernel K(x: f32[N]) -> (y: f32[N]) { y[i] = x[i]; pass first { y[i] = x[i]; } }
              |                                                   ^^^^^^^^^^^^^^^^^^^^^^^^^^^
              = note: it is part of the language, and this version of the compiler cannot build it
              = explain: TW0005

        "#]],
    );
}

#[test]
fn one_mistake_gives_one_message() {
    let text = refused(&kernel(
        "(x: f32[N]) -> (y: f32[N])",
        "a[i] = 2.0 * missing[i] + 1.0; b[i] = a[i] * a[i] + 3.0; y[i] = max(b[i], 0.5) + x[i];",
    ));
    assert_eq!(text.matches("error[").count(), 1, "{text}");
    let program = accepted(&kernel("(x: f32[N]) -> (y: f32[N])", "y[i] = x[i];"));
    assert_eq!(program.statements.len(), 1);
}

/// What is said of computed indices on the left, against the iterations of a cube: those that are named mean the same
/// element, and where an equation by elements is proposed no two do.
#[test]
fn computed_indices_are_judged_as_counting_does() {
    let mut said = [0; 3];
    for number in 0..2401_i64 {
        let [a, b, c, d] = [1, 7, 49, 343].map(|unit| number / unit % 7 - 3);
        let index = |i: i64, k: i64| [a * i + b * k + 1, c * i + d * k];
        let text = refused(&kernel(
            "(inout y: f32[M, N], x: f32[N, N])",
            &format!("y[{a} * i + {b} * k + N + 1, {c} * i + {d} * k] = x[i, k];"),
        ));
        assert!(text.contains("error[TW0009]: the indices on the left of an equation are distinct axes"), "{text}");
        let points = || (0..4).flat_map(|i| (0..4).map(move |k| (i, k)));
        let meet = points().any(|p| points().any(|q| p < q && index(p.0, p.1) == index(q.0, q.1)));
        if let Some((_, rest)) = text.split_once("counterexample = ").or_else(|| text.split_once("counterexample: ")) {
            let values: Vec<i64> = rest.split(['=', ' ', ',']).filter_map(|word| word.parse().ok()).take(4).collect();
            let [i, k, j, l] = values[..] else { panic!("{text}") };
            assert!((i, k) != (j, l) && index(i, k) == index(j, l), "{text}");
            said[0] += 1;
        } else {
            said[if text.contains("in the place of") { 1 } else { 2 }] += 1;
            assert!(!meet, "{text}");
        }
    }
    assert!(said.iter().all(|count| *count > 50), "{said:?}");
}
