//! Programs that do not parse: what is said, where, and that one mistake does not hide the next.

use expect_test::{Expect, expect};

use super::{parse_text, render};

/// Everything the command line would print for this source.
fn check(source: &str, expected: Expect) {
    expected.assert_eq(&render(source));
}

/// The body of a kernel, with nothing wrong around it.
fn check_body(body: &str, expected: Expect) {
    check(&format!("kernel K(x: f32[N]) -> (y: f32[N]) {{\n{body}\n}}"), expected);
}

#[test]
fn several_mistakes_are_reported_at_once() {
    check(
        r#"
pub kernel Saxpy(a: f32, x: f32[N], y: f32[N]) -> (z: f32[N])
where N % 4 == 0
{
    z[i] = a * x[i] + ;
    w[i] = x.exp();

    launch thread(256);
    schedule z {
        spilt i by 4 -> io, v;
        split io by 256 -> b t;
        bind b: grid
        bind t: thread;
        vectorize v;
    }
}

kernel Second(x: f33[N]) -> (y: f32[N]) { y[i] = x[i] +; }
"#,
        expect![[r#"
            error[TW0001]: expected an expression, found `;`
             --> k.rs:5:23
              |
            5 |     z[i] = a * x[i] + ;
              |                       ^
              = explain: TW0001

            error[TW0009]: expressions have no methods and no fields
             --> k.rs:6:13
              |
            6 |     w[i] = x.exp();
              |             ^
              = help: functions are called by name, `exp(x[i])`; `fold` names the parts of a state:
                `merge ((m1, s1), (m2, s2)) => …`
              = explain: TW0009

            error[TW0002]: `thread` is not an item of `launch`
             --> k.rs:8:12
              |
            8 |     launch thread(256);
              |            ^^^^^^
              = note: known here: `cluster`, `threads`, `persistent`, `dependent`, `roles`
              = help: did you mean `threads`?
              = explain: TW0002

            error[TW0002]: `spilt` is not a schedule op
              --> k.rs:10:9
               |
            10 |         spilt i by 4 -> io, v;
               |         ^^^^^
               = note: known here: `split`, `merge`, `reorder`, `resize`, `swizzle`, `bind`, `vectorize`, `unroll`, `reduce`,
                 `like`, `box`, `tile`, `layout`, `multicast`, `mma`, `fragment`, `region`, `fill`, `l2`, `online`
               = help: did you mean `split`?
               = explain: TW0002

            error[TW0001]: expected a second axis, as in `-> outer, inner`, found `t`
              --> k.rs:11:30
               |
            11 |         split io by 256 -> b t;
               |                              ^
               = explain: TW0001

            error[TW0001]: expected `;` before `bind`
              --> k.rs:12:17
               |
            12 |         bind b: grid
               |                 ^^^^
               = help: write `;` after `grid`
               = explain: TW0001

            error[TW0002]: `f33` is not an element type
              --> k.rs:18:18
               |
            18 | kernel Second(x: f33[N]) -> (y: f32[N]) { y[i] = x[i] +; }
               |                  ^^^
               = note: known here: `f64`, `f32`, `tf32`, `f16`, `bf16`, `e4m3`, `e5m2`, `i64`, `i32`, `i16`, `i8`, `u64`, `u32`,
                 `u16`, `u8`, `bool`
               = help: did you mean `f32`?
               = explain: TW0002

            error[TW0001]: expected an expression, found `;`
              --> k.rs:18:56
               |
            18 | kernel Second(x: f33[N]) -> (y: f32[N]) { y[i] = x[i] +; }
               |                                                        ^
               = explain: TW0001

        "#]],
    );
}

#[test]
fn missing_separators() {
    check_body(
        "y[i] = x[i]\nlaunch threads(256);",
        expect![[r#"
            error[TW0001]: expected `;` before `launch`
             --> k.rs:2:11
              |
            2 | y[i] = x[i]
              |           ^
              = help: write `;` after `]`
              = explain: TW0001

        "#]],
    );
    check_body(
        "y[i] = max(x[i] 2.0);",
        expect![[r#"
            error[TW0001]: expected `,` before `2.0`
             --> k.rs:2:15
              |
            2 | y[i] = max(x[i] 2.0);
              |               ^
              = help: write `,` after `]`
              = explain: TW0001

        "#]],
    );
    check_body(
        "y[i] = x[i];\nschedule y { bind i: thread }",
        expect![[r#"
            error[TW0001]: expected `;` before the closing `}`
             --> k.rs:3:22
              |
            3 | schedule y { bind i: thread }
              |                      ^^^^^^
              = help: write `;` after `thread`
              = explain: TW0001

        "#]],
    );
    check_body(
        "y[i] = x[i]",
        expect![[r#"
            error[TW0001]: expected `;` before the closing `}`
             --> k.rs:2:11
              |
            2 | y[i] = x[i]
              |           ^
              = help: write `;` after `]`
              = explain: TW0001

        "#]],
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "texts with their messages")]
fn habits_from_rust() {
    check_body(
        "let t = x[0];\nfor i in 0..4 { y[i] = x[i]; }\ny[i] += x[i];\ny = x[i];\ny[i] = &x[i];\ny[i] = ~x[i];\ny[i] = if x[i] < 0.0 { 1.0 };",
        expect![[r#"
            error[TW0009]: there is no statement `let`
             --> k.rs:2:1
              |
            2 | let t = x[0];
              | ^^^
              = note: a kernel is a list of equations, `z[i] = …`, followed by its schedule
              = help: give the value an equation of its own, `t[i] = …;`, and read `t[i]`
              = explain: TW0009

            error[TW0009]: there is no statement `for`
             --> k.rs:3:1
              |
            3 | for i in 0..4 { y[i] = x[i]; }
              | ^^^
              = note: a kernel is a list of equations, `z[i] = …`, followed by its schedule
              = help: an equation holds for every value of its axes, and a sum over an axis is `sum(|k| …)`
              = explain: TW0009

            error[TW0009]: an equation is not an assignment: there is no `+=`
             --> k.rs:4:6
              |
            4 | y[i] += x[i];
              |      ^^
              = help: a sum over an axis is written as one: `y[i] = sum(|k| a[i, k])`
              = help: to update a tensor in place, take it as `inout y: …` and write `y[i] = y[i] + …`
              = explain: TW0009

            error[TW0009]: the equation of `y` does not name its axes
             --> k.rs:5:1
              |
            5 | y = x[i];
              | ^
              = help: write `y[i] = …`, or `y[] = …` for a single value
              = explain: TW0009

            error[TW0009]: there are no references: a value is written as it is
             --> k.rs:6:8
              |
            6 | y[i] = &x[i];
              |        ^
              = explain: TW0009

            error[TW0009]: the complement is `!`, as in Rust
             --> k.rs:7:8
              |
            7 | y[i] = ~x[i];
              |        ^
              = help: write `!`
              = explain: TW0009

            error[TW0009]: an `if` is a value and needs its `else`
             --> k.rs:8:8
              |
            8 | y[i] = if x[i] < 0.0 { 1.0 };
              |        ^^
              = help: write `if c { a } else { b }`
              = explain: TW0009

        "#]],
    );
    check_body(
        "y[i] = 0 < i < 4;\ny[i] = (x[i] + 1.0)[0];\ny[i] = 2.0 or 1.0;\ny[i] = |k| x[k];\ny[i] = exp(0..4);\ny[i] = a::b;\ny[i] = max!(1);\ny[i + 1] = x[i];",
        expect![[r#"
            error[TW0009]: comparisons do not chain
             --> k.rs:2:14
              |
            2 | y[i] = 0 < i < 4;
              |              ^
              = help: write `a < b && b < c`
              = explain: TW0009

            error[TW0009]: only a tensor can be indexed
             --> k.rs:3:8
              |
            3 | y[i] = (x[i] + 1.0)[0];
              |        ^^^^^^^^^^^^
              = help: give the expression an equation of its own and index that
              = explain: TW0009

            error[TW0009]: `or` follows a read of a tensor, as in `x[i - 1] or 0.0`
             --> k.rs:4:12
              |
            4 | y[i] = 2.0 or 1.0;
              |            ^^
              = help: the logical operator is `||`
              = explain: TW0009

            error[TW0009]: `|…|` starts the axes of a reduction, as in `sum(|k| x[k])`
             --> k.rs:5:8
              |
            5 | y[i] = |k| x[k];
              |        ^
              = explain: TW0009

            error[TW0009]: a range is not a value
             --> k.rs:6:13
              |
            6 | y[i] = exp(0..4);
              |             ^^
              = help: write it where an axis is named: `sum(|k in 0..=i| x[k])`
              = explain: TW0009

            error[TW0009]: a path names a function and is called, as in `approx::exp(x[i])`
             --> k.rs:7:8
              |
            7 | y[i] = a::b;
              |        ^^^^
              = explain: TW0009

            error[TW0009]: macros are not expanded inside `schedule!`
             --> k.rs:8:11
              |
            8 | y[i] = max!(1);
              |           ^
              = explain: TW0009

        "#]],
    );
    check(
        "fn K<T>(x: f32) {}",
        expect![[r#"
            error[TW0002]: `fn` is not an item of `schedule!`
             --> k.rs:1:1
              |
            1 | fn K<T>(x: f32) {}
              | ^^
              = note: known here: `kernel`
              = explain: TW0002

        "#]],
    );
    check(
        "kernel K<T>(x: f32) {}",
        expect![[r#"
        error[TW0009]: a kernel has no type parameters
         --> k.rs:1:9
          |
        1 | kernel K<T>(x: f32) {}
          |         ^
          = explain: TW0009

    "#]],
    );
}

/// Parameters and facts after a wrong one are still read.
#[test]
fn signatures() {
    check(
        "kernel K(x: [f32; N], y: &f32, z f32, w: f32[M] u, v: f32[N]) -> (o: Tensor<f32>) where N, M % 2 == 0 {}",
        expect![[r#"
            error[TW0001]: expected an element type, found `[`
             --> k.rs:1:13
              |
            1 | kernel K(x: [f32; N], y: &f32, z f32, w: f32[M] u, v: f32[N]) -> (o: Tensor<f32>) where N, M % 2 == 0 {}
              |             ^
              = help: a tensor is written `f32[M, N]`, a scalar `f32`
              = explain: TW0001

            error[TW0001]: expected an element type, found `&`
             --> k.rs:1:26
              |
            1 | kernel K(x: [f32; N], y: &f32, z f32, w: f32[M] u, v: f32[N]) -> (o: Tensor<f32>) where N, M % 2 == 0 {}
              |                          ^
              = help: a tensor is written `f32[M, N]`, a scalar `f32`
              = explain: TW0001

            error[TW0001]: expected `:`, found `f32`
             --> k.rs:1:34
              |
            1 | kernel K(x: [f32; N], y: &f32, z f32, w: f32[M] u, v: f32[N]) -> (o: Tensor<f32>) where N, M % 2 == 0 {}
              |                                  ^^^
              = explain: TW0001

            error[TW0001]: expected `,` before `u`
             --> k.rs:1:47
              |
            1 | kernel K(x: [f32; N], y: &f32, z f32, w: f32[M] u, v: f32[N]) -> (o: Tensor<f32>) where N, M % 2 == 0 {}
              |                                               ^
              = help: write `,` after `]`
              = explain: TW0001

            error[TW0002]: `Tensor` is not an element type
             --> k.rs:1:70
              |
            1 | kernel K(x: [f32; N], y: &f32, z f32, w: f32[M] u, v: f32[N]) -> (o: Tensor<f32>) where N, M % 2 == 0 {}
              |                                                                      ^^^^^^
              = note: known here: `f64`, `f32`, `tf32`, `f16`, `bf16`, `e4m3`, `e5m2`, `i64`, `i32`, `i16`, `i8`, `u64`, `u32`,
                `u16`, `u8`, `bool`
              = help: a tensor is written `f32[M, N]`, a scalar `f32`
              = explain: TW0002

            error[TW0008]: the fact `N` is not one comparison
             --> k.rs:1:89
              |
            1 | kernel K(x: [f32; N], y: &f32, z f32, w: f32[M] u, v: f32[N]) -> (o: Tensor<f32>) where N, M % 2 == 0 {}
              |                                                                                         ^
              = note: a fact compares two expressions over sizes: `N % 8 == 0`, `K <= 4096`
              = help: separate several facts by commas
              = explain: TW0008

        "#]],
    );
    check(
        "kernel K(x: f32[N]) -> z: f32[N] { z[i] = ; }",
        expect![[r#"
            error[TW0001]: expected `(`, found `z`
             --> k.rs:1:24
              |
            1 | kernel K(x: f32[N]) -> z: f32[N] { z[i] = ; }
              |                        ^
              = help: parameters stand in parentheses: `kernel NAME(x: f32[N]) -> (y: f32[N])`
              = explain: TW0001

            error[TW0001]: expected an expression, found `;`
             --> k.rs:1:43
              |
            1 | kernel K(x: f32[N]) -> z: f32[N] { z[i] = ; }
              |                                           ^
              = explain: TW0001

        "#]],
    );
    let (program, _) = parse_text(
        "kernel K(x: [f32; N], z f32, w: f32[M] u, v: f32) -> (o: f32[N]) where N, M % 2 == 0 { o[i] = 1; }",
    );
    let kernel = &program.kernels[0];
    let names: Vec<&str> = kernel.inputs.iter().map(|param| param.name.text.as_str()).collect();
    assert_eq!(names, ["w", "v"]);
    assert_eq!((kernel.outputs.len(), kernel.facts.len(), kernel.items.len()), (1, 1, 1));
}

#[test]
fn ops() {
    check_body(
        "launch threads(32), cluster(2), threads(64);\nschedule y { split i by 4 -> io; bind i: grid, t: thread; mma (m, n) by wgmma; l2 keep; }\nstage xs[i] = x in shared via tna { reduce i by wrap; box (a, b); layout i; }\nstage xs = x;",
        expect![[r#"
            error[TW0007]: `threads` is given twice
             --> k.rs:2:33
              |
            2 | launch threads(32), cluster(2), threads(64);
              |        ----------- first given here
              |                                 ^^^^^^^^^^^
              = help: keep one of them
              = explain: TW0007

            error[TW0001]: expected a second axis, as in `-> outer, inner`, found `;`
             --> k.rs:3:32
              |
            3 | schedule y { split i by 4 -> io; bind i: grid, t: thread; mma (m, n) by wgmma; l2 keep; }
              |                                ^
              = explain: TW0001

            error[TW0001]: expected `;` before `,`
             --> k.rs:3:42
              |
            3 | schedule y { split i by 4 -> io; bind i: grid, t: thread; mma (m, n) by wgmma; l2 keep; }
              |                                          ^^^^
              = help: write `;` after `grid`
              = explain: TW0001

            error[TW0001]: expected `,` before the closing `)`
             --> k.rs:3:67
              |
            3 | schedule y { split i by 4 -> io; bind i: grid, t: thread; mma (m, n) by wgmma; l2 keep; }
              |                                                                   ^
              = help: write `,` after `n`
              = explain: TW0001

            error[TW0002]: `keep` is not a cache hint
             --> k.rs:3:83
              |
            3 | schedule y { split i by 4 -> io; bind i: grid, t: thread; mma (m, n) by wgmma; l2 keep; }
              |                                                                                   ^^^^
              = note: known here: `promote`, `evict_first`, `evict_last`
              = explain: TW0002

            error[TW0002]: `tna` is not a copy engine
             --> k.rs:4:31
              |
            4 | stage xs[i] = x in shared via tna { reduce i by wrap; box (a, b); layout i; }
              |                               ^^^
              = note: known here: `tma`, `cp_async`
              = help: did you mean `tma`?
              = explain: TW0002

            error[TW0002]: `wrap` is not a level of `reduce`
             --> k.rs:4:49
              |
            4 | stage xs[i] = x in shared via tna { reduce i by wrap; box (a, b); layout i; }
              |                                                 ^^^^
              = note: known here: `warp`, `cta`, `cluster`, `grid`, `atomic`
              = help: did you mean `warp`?
              = explain: TW0002

            error[TW0001]: expected `;` before the closing `)`
             --> k.rs:4:63
              |
            4 | stage xs[i] = x in shared via tna { reduce i by wrap; box (a, b); layout i; }
              |                                                               ^
              = help: write `;` after `b`
              = explain: TW0001

            and 2 more errors

        "#]],
    );
}

/// What is said of roles is said in `launch`.
#[test]
fn units_in_turn() {
    check_body(
        "schedule y { bind i: warpgroup alternate; }",
        expect![[r#"
        error[TW0002]: `alternate` is not an option of `bind`
         --> k.rs:2:32
          |
        2 | schedule y { bind i: warpgroup alternate; }
          |                                ^^^^^^^^^
          = note: known here: `raster`
          = help: units of a role take tiles in turn: `launch persistent, roles { …, math: 2 warpgroup alternate }`
          = explain: TW0002

    "#]],
    );
}

#[test]
fn left_hand_sides() {
    check_body(
        "y[0] = 1; y[p[i]] = 2; y[i * 2] = 3; y[] = ; y[i,,] = 1; (y, z) = 4;",
        expect![[r#"
            error[TW0001]: expected an expression, found `;`
             --> k.rs:2:44
              |
            2 | y[0] = 1; y[p[i]] = 2; y[i * 2] = 3; y[] = ; y[i,,] = 1; (y, z) = 4;
              |                                            ^
              = explain: TW0001

            error[TW0001]: expected the name of an axis, found `,`
             --> k.rs:2:50
              |
            2 | y[0] = 1; y[p[i]] = 2; y[i * 2] = 3; y[] = ; y[i,,] = 1; (y, z) = 4;
              |                                                  ^
              = explain: TW0001

            error[TW0001]: expected a statement, found `(`
             --> k.rs:2:58
              |
            2 | y[0] = 1; y[p[i]] = 2; y[i * 2] = 3; y[] = ; y[i,,] = 1; (y, z) = 4;
              |                                                          ^
              = explain: TW0001

        "#]],
    );
}

#[test]
fn literals() {
    check_body(
        "y[i] = 1usize + \"a\" + 99999999999999999999 + 1.5u8;",
        expect![[r#"
        error[TW0004]: `usize` is not an element type
         --> k.rs:2:8
          |
        2 | y[i] = 1usize + "a" + 99999999999999999999 + 1.5u8;
          |        ^^^^^^
          = help: leave the suffix out: a literal takes its type from context
          = explain: TW0004

        error[TW0004]: "a" is not a number
         --> k.rs:2:17
          |
        2 | y[i] = 1usize + "a" + 99999999999999999999 + 1.5u8;
          |                 ^^^
          = explain: TW0004

        error[TW0004]: `99999999999999999999` does not fit into 64 bits
         --> k.rs:2:23
          |
        2 | y[i] = 1usize + "a" + 99999999999999999999 + 1.5u8;
          |                       ^^^^^^^^^^^^^^^^^^^^
          = note: the largest integer is 18446744073709551615
          = explain: TW0004

        error[TW0004]: `1.5u8` has a fraction, but u8 is an integer type
         --> k.rs:2:46
          |
        2 | y[i] = 1usize + "a" + 99999999999999999999 + 1.5u8;
          |                                              ^^^^^
          = explain: TW0004

    "#]],
    );
}

#[test]
fn names() {
    check(
        "kernel K(type: f32[N], in: f32) -> (y: f32) { y[nan] = inf; }",
        expect![[r#"
        error[TW0006]: `type` cannot be a name
         --> k.rs:1:10
          |
        1 | kernel K(type: f32[N], in: f32) -> (y: f32) { y[nan] = inf; }
          |          ^^^^
          = note: kernels and parameters become a Rust struct and its fields, and Rust reserves this word
          = help: call it `type_`, everywhere in the kernel
          = explain: TW0006

        error[TW0006]: `in` cannot be a name
         --> k.rs:1:24
          |
        1 | kernel K(type: f32[N], in: f32) -> (y: f32) { y[nan] = inf; }
          |                        ^^
          = note: `in` has a meaning of its own in expressions
          = explain: TW0006

        error[TW0006]: `nan` cannot be a name
         --> k.rs:1:49
          |
        1 | kernel K(type: f32[N], in: f32) -> (y: f32) { y[nan] = inf; }
          |                                                 ^^^
          = note: `nan` has a meaning of its own in expressions
          = explain: TW0006

    "#]],
    );
}

#[test]
fn clauses() {
    check_body(
        "schedule y in shared at y.i in registers { bind i: grid; }\nschedule y in sharde { spilt i; }\nunit u { box: [1] }\ny[i] = fold(|j| init 0);",
        expect![[r#"
            error[TW0007]: `in` is given twice
             --> k.rs:2:29
              |
            2 | schedule y in shared at y.i in registers { bind i: grid; }
              |            -- first given here
              |                             ^^
              = help: keep one of them
              = explain: TW0007

            error[TW0002]: `sharde` is not a place
             --> k.rs:3:15
              |
            3 | schedule y in sharde { spilt i; }
              |               ^^^^^^
              = note: known here: `global`, `shared`, `registers`
              = help: did you mean `shared`?
              = explain: TW0002

            error[TW0002]: `spilt` is not a schedule op
             --> k.rs:3:24
              |
            3 | schedule y in sharde { spilt i; }
              |                        ^^^^^
              = note: known here: `split`, `merge`, `reorder`, `resize`, `swizzle`, `bind`, `vectorize`, `unroll`, `reduce`, `like`,
                `box`, `tile`, `layout`, `multicast`, `mma`, `fragment`, `region`, `fill`, `l2`, `online`
              = help: did you mean `split`?
              = explain: TW0002

            error[TW0007]: `domain` is missing
             --> k.rs:4:6
              |
            4 | unit u { box: [1] }
              |      ^
              = explain: TW0007

            error[TW0007]: `step` is missing
             --> k.rs:5:8
              |
            5 | y[i] = fold(|j| init 0);
              |        ^^^^
              = explain: TW0007

        "#]],
    );
}

#[test]
fn headers() {
    check(
        "kernel K(x: f32[N], N) -> (inout y: f32[N]) where N { y[i] = ; }",
        expect![[r#"
            error[TW0001]: expected `:`, found the closing `)`
             --> k.rs:1:22
              |
            1 | kernel K(x: f32[N], N) -> (inout y: f32[N]) where N { y[i] = ; }
              |                      ^
              = explain: TW0001

            error[TW0009]: `inout y` belongs before the arrow
             --> k.rs:1:28
              |
            1 | kernel K(x: f32[N], N) -> (inout y: f32[N]) where N { y[i] = ; }
              |                            ^^^^^^^^^^^^^^^
              = note: an `inout` parameter is read as well as written
              = explain: TW0009

            error[TW0008]: the fact `N` is not one comparison
             --> k.rs:1:51
              |
            1 | kernel K(x: f32[N], N) -> (inout y: f32[N]) where N { y[i] = ; }
              |                                                   ^
              = note: a fact compares two expressions over sizes: `N % 8 == 0`, `K <= 4096`
              = help: separate several facts by commas
              = explain: TW0008

            error[TW0001]: expected an expression, found `;`
             --> k.rs:1:62
              |
            1 | kernel K(x: f32[N], N) -> (inout y: f32[N]) where N { y[i] = ; }
              |                                                              ^
              = explain: TW0001

        "#]],
    );
    check(
        "kernel K(x: f32[N]) where N + 1, N == 4 {}",
        expect![[r#"
        error[TW0008]: the fact `N + 1` is not one comparison
         --> k.rs:1:27
          |
        1 | kernel K(x: f32[N]) where N + 1, N == 4 {}
          |                           ^^^^^
          = note: a fact compares two expressions over sizes: `N % 8 == 0`, `K <= 4096`
          = help: separate several facts by commas
          = explain: TW0008

    "#]],
    );
    check(
        "",
        expect![[r#"
        error[TW0010]: `schedule!` needs at least one kernel
          = help: start with `pub kernel Scale(x: f32[N]) -> (y: f32[N]) { y[i] = 2.0 * x[i]; … }`
          = explain: TW0010

    "#]],
    );
    check(
        "kernel",
        expect![[r#"
        error[TW0001]: expected the name of the kernel, found the end of `schedule!`
         --> k.rs:1:1
          |
        1 | kernel
          | ^^^^^^
          = explain: TW0001

    "#]],
    );
    check(
        "kernel K() -> (inout x: f32[N]) where N == 4 { y[i] = x[i] if; }",
        expect![[r#"
        error[TW0009]: `inout x` belongs before the arrow
         --> k.rs:1:16
          |
        1 | kernel K() -> (inout x: f32[N]) where N == 4 { y[i] = x[i] if; }
          |                ^^^^^^^^^^^^^^^
          = note: an `inout` parameter is read as well as written
          = explain: TW0009

        error[TW0001]: expected `;` before `if`
         --> k.rs:1:58
          |
        1 | kernel K() -> (inout x: f32[N]) where N == 4 { y[i] = x[i] if; }
          |                                                          ^
          = help: write `;` after `]`
          = explain: TW0001

    "#]],
    );
    check(
        "; foo bar kernel K() {}",
        expect![[r#"
        error[TW0001]: expected a kernel, found `;`
         --> k.rs:1:1
          |
        1 | ; foo bar kernel K() {}
          | ^
          = explain: TW0001

    "#]],
    );
}

#[test]
fn a_kernel_with_errors_keeps_its_signature() {
    let (program, diagnostics) = parse_text("pub kernel K(a: f32, x: f32[N]) -> (y: f32[N], z: f99) { y[i] = ; }");
    assert!(diagnostics.has_errors());
    let [kernel] = &program.kernels[..] else { panic!("one kernel") };
    assert_eq!(kernel.name.text, "K");
    assert_eq!(kernel.inputs.len(), 2);
    assert_eq!(kernel.outputs.len(), 1);
}
