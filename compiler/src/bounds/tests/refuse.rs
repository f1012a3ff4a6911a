//! Kernels that are wrong or undecided, and the words for it.

use expect_test::expect;

use super::refused;

#[test]
#[expect(clippy::too_many_lines, reason = "the messages of all kernels, as one text")]
fn messages() {
    let kernels = [
        ("(x: f32[H, W]) -> (y: f32[H, W])", "y[i, j] = x[i, j + 3];"),
        ("(x: f32[H, W]) -> (y: f32[H, W])", "y[i, j] = x[i - 1, j];"),
        ("(x: f32[H, W]) -> (y: f32[H - 2, W])", "y[i, j] = sum(|r in 0..4| x[i + r, j]);"),
        ("(x: f32[N], z: f32[M]) -> (y: f32[M])", "y[i] = x[i] + z[i];"),
        ("(x: f32[N]) -> (y: f32[8])", "y[i] = x[i];"),
        ("(x: f32[8]) -> (y: f32[2])", "y[i] = x[i * 8];"),
        ("(x: f32[N / 4, 4]) -> (y: f32[N])", "y[k] = x[k / 4, k % 4];"),
        ("(x: f32[N]) -> (y: f32[N])", "t[i] = x[i + 1]; y[i] = t[i];"),
        ("(x: f32[N]) -> (y: f32[N])", "t[i in 0..N - 1] = x[i]; y[i] = t[i];"),
        ("(x: f32[N], c: f32[N]) -> (y: f32[N])", "y[i] = if c[i] > 0.0 { x[i + 1] } else { x[i] };"),
        ("(x: f32[N]) -> (y: f32[N])", "y[i] = if i % 7 == 6 { x[i + 1] } else { x[i] };"),
        ("(x: f32[N], z: f32[M]) -> (y: f32[N]) where N * N <= M * M", "y[i] = x[i] + z[i];"),
    ];
    let text: Vec<String> = kernels.iter().map(|(head, body)| refused(head, body)).collect();
    expect![[r#"
        error[TW0901]: `x[i, j + 3]` reads outside `x`: dimension 1 is [0, W), `j + 3` goes up to W + 2
         --> <parsed string 1>:1:54
          |
        1 | kernel K(x: f32[H, W]) -> (y: f32[H, W]) { y[i, j] = x[i, j + 3]; }
          |          - its shape
          |                                                      ^^^^^^^^^^^
          = counterexample: H = 1, W = 1: y[0, 0] reads x[0, 3]
          = help: say what is read outside: `x[i, j + 3] or 0.0`
          = explain: TW0901


        error[TW0901]: `x[i - 1, j]` reads outside `x`: dimension 0 is [0, H), `i - 1` goes down to -1
         --> <parsed string 5>:1:54
          |
        1 | kernel K(x: f32[H, W]) -> (y: f32[H, W]) { y[i, j] = x[i - 1, j]; }
          |          - its shape
          |                                                      ^^^^^^^^^^^
          = counterexample: H = 1, W = 1: y[0, 0] reads x[-1, 0]
          = help: say what is read outside: `x[i - 1, j] or 0.0`
          = explain: TW0901


        error[TW0901]: `x[i + r, j]` reads outside `x`: dimension 0 is [0, H), `i + r` goes up to H
         --> <parsed string 9>:1:74
          |
        1 | kernel K(x: f32[H, W]) -> (y: f32[H - 2, W]) { y[i, j] = sum(|r in 0..4| x[i + r, j]); }
          |          - its shape
          |                                                                          ^^^^^^^^^^^
          = counterexample: H = 3, W = 1: y[0, 0] with r = 3 reads x[3, 0]
          = help: say what is read outside: `x[i + r, j] or 0.0`
          = explain: TW0901


        error[TW0901]: `x[i]` reads outside `x`: dimension 0 is [0, N), `i` goes up to M - 1
         --> <parsed string 13>:1:56
          |
        1 | kernel K(x: f32[N], z: f32[M]) -> (y: f32[M]) { y[i] = x[i] + z[i]; }
          |          - its shape
          |                                                        ^^^^
          = counterexample: N = 1, M = 2: y[1] reads x[1]
          = help: state it, and launches will check it: `where M <= N`
          = help: say what is read outside: `x[i] or 0.0`
          = explain: TW0901


        error[TW0901]: `x[i]` reads outside `x`: dimension 0 is [0, N), `i` goes up to 7
         --> <parsed string 18>:1:45
          |
        1 | kernel K(x: f32[N]) -> (y: f32[8]) { y[i] = x[i]; }
          |          - its shape
          |                                             ^^^^
          = counterexample: N = 1: y[1] reads x[1]
          = help: state it, and launches will check it: `where N >= 8`
          = help: say what is read outside: `x[i] or 0.0`
          = explain: TW0901


        error[TW0901]: `x[i * 8]` reads outside `x`: dimension 0 is [0, 8), `i * 8` goes up to 8
         --> <parsed string 22>:1:45
          |
        1 | kernel K(x: f32[8]) -> (y: f32[2]) { y[i] = x[i * 8]; }
          |          - its shape
          |                                             ^^^^^^^^
          = counterexample: y[1] reads x[8]
          = help: say what is read outside: `x[i * 8] or 0.0`
          = explain: TW0901


        error[TW0901]: `x[k / 4, k % 4]` reads outside `x`: dimension 0 is [0, N / 4), `k / 4` is not always in it
         --> <parsed string 26>:1:52
          |
        1 | kernel K(x: f32[N / 4, 4]) -> (y: f32[N]) { y[k] = x[k / 4, k % 4]; }
          |          - its shape
          |                                                    ^^^^^^^^^^^^^^^
          = counterexample: N = 1: y[0] reads x[0, 0]
          = help: state it, and launches will check it: `where N % 4 == 0`
          = help: say what is read outside: `x[k / 4, k % 4] or 0.0`
          = explain: TW0901


        error[TW0901]: `x[i + 1]` reads outside `x`: dimension 0 is [0, N), `i + 1` goes up to N
         --> <parsed string 30>:1:45
          |
        1 | kernel K(x: f32[N]) -> (y: f32[N]) { t[i] = x[i + 1]; y[i] = t[i]; }
          |          - its shape
          |                                             ^^^^^^^^
          = counterexample: N = 1: y[0] reads t[0], which reads x[1]
          = help: say what is read outside: `x[i + 1] or 0.0`
          = explain: TW0901


        error[TW0901]: `t[i]` reads outside `t`: dimension 0 is [0, N - 1), `i` goes up to N - 1
         --> <parsed string 34>:1:70
          |
        1 | kernel K(x: f32[N]) -> (y: f32[N]) { t[i in 0..N - 1] = x[i]; y[i] = t[i]; }
          |                                        - it ends with this domain
          |                                                                      ^^^^
          = counterexample: N = 1: y[0] reads t[0]
          = help: say what is read outside: `t[i] or 0.0`
          = explain: TW0901


        error[TW0901]: `x[i + 1]` reads outside `x`: dimension 0 is [0, N), `i + 1` is not always in it
         --> <parsed string 38>:1:72
          |
        1 | kernel K(x: f32[N], c: f32[N]) -> (y: f32[N]) { y[i] = if c[i] > 0.0 { x[i + 1] } else { x[i] }; }
          |          - its shape
          |                                                                        ^^^^^^^^
          = counterexample: N = 1: y[0] reads x[1], if `c[i] > 0.0f32`
          = help: say what is read outside: `x[i + 1] or 0.0`
          = help: or narrow the condition, so that `i + 1 < N` holds where it reads
          = explain: TW0901


        error[TW0901]: `x[i + 1]` reads outside `x`: dimension 0 is [0, N), `i + 1` is not always in it
         --> <parsed string 43>:1:61
          |
        1 | kernel K(x: f32[N]) -> (y: f32[N]) { y[i] = if i % 7 == 6 { x[i + 1] } else { x[i] }; }
          |          - its shape
          |                                                             ^^^^^^^^
          = counterexample: N = 7: y[6] reads x[7]
          = help: say what is read outside: `x[i + 1] or 0.0`
          = help: or narrow the condition, so that `i + 1 < N` holds where it reads
          = explain: TW0901


        error[TW0902]: `z[i]` cannot be shown to stay inside `z`: `i` in [0, M)
         --> <parsed string 47>:1:84
          |
        1 | kernel K(x: f32[N], z: f32[M]) -> (y: f32[N]) where N * N <= M * M { y[i] = x[i] + z[i]; }
          |                     - its shape
          |                                                                                    ^^^^
          = note: neither a proof nor a failing size was found
          = help: state it, and launches will check it: `where N <= M`
          = help: say what is read outside: `z[i] or 0.0`
          = explain: TW0902

    "#]]
    .assert_eq(&text.join("\n"));
}

#[test]
fn other_obligations() {
    let kernels = [
        ("(x: f32[M, N]) -> (y: u32[M])", "y[i] = argmax(|j| x[i, j]);"),
        ("(x: f32[N]) -> (y: u32[N])", "y[i] = argmin(|j in 0..i| x[j]);"),
        ("(x: f32[N]) -> (y: u32[N])", "y[i] = argmin(|j in i - 1..i + 1| x[j] or 0.0);"),
        ("(x: f32[N]) -> (y: u32[N])", "y[i] = argmax(|j in N - 2..N| x[j]);"),
        ("(x: f32[N]) -> (y: u32[N])", "y[i] = argmax(|j in 0..4294967297| x[j % N]);"),
        ("(a: i32[N], b: i32[N]) -> (y: i32[N])", "y[i] = a[i] / b[i];"),
        ("(a: i32[N]) -> (y: i32[N])", "y[i] = a[i] / (i as i32);"),
        ("(a: i32[N]) -> (y: i32[N])", "y[i] = a[i] % (N as i32);"),
        ("(x: f32[N]) -> (y: f32[N])", "y[i] = x[i / (N - 3)];"),
    ];
    let text: Vec<String> = kernels.iter().map(|(head, body)| refused(head, body)).collect();
    expect![[r#"
        error[TW1001]: `argmax` over 0..N may have nothing to choose from
         --> <parsed string 1>:1:48
          |
        1 | kernel K(x: f32[M, N]) -> (y: u32[M]) { y[i] = argmax(|j| x[i, j]); }
          |                                                ^^^^^^^^^^^^^^^^^^^
          = counterexample: M = 1, N = 0: y[0] takes the `argmax` of nothing
          = help: state it, and launches will check it: `where N >= 1`
          = explain: TW1001


        error[TW1001]: `argmin` over 0..i may have nothing to choose from
         --> <parsed string 5>:1:45
          |
        1 | kernel K(x: f32[N]) -> (y: u32[N]) { y[i] = argmin(|j in 0..i| x[j]); }
          |                                             ^^^^^^^^^^^^^^^^^^^^^^^^
          = counterexample: N = 1: y[0] takes the `argmin` of nothing
          = explain: TW1001


        error[TW1010]: `argmin` over i - 1..i + 1 may find an index below 0
         --> <parsed string 9>:1:45
          |
        1 | kernel K(x: f32[N]) -> (y: u32[N]) { y[i] = argmin(|j in i - 1..i + 1| x[j] or 0.0); }
          |                                             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
          = note: the index that it gives is a `u32`
          = counterexample: N = 1: y[0] takes the `argmin` of terms that begin below 0
          = help: search an axis that begins at 0, and read what lies before: `x[k - 1]`
          = explain: TW1010


        error[TW1010]: `argmax` over N - 2..N may find an index below 0
         --> <parsed string 13>:1:45
          |
        1 | kernel K(x: f32[N]) -> (y: u32[N]) { y[i] = argmax(|j in N - 2..N| x[j]); }
          |                                             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
          = note: the index that it gives is a `u32`
          = counterexample: N = 1: y[0] takes the `argmax` of terms that begin below 0
          = help: state it, and launches will check it: `where N >= 2`
          = explain: TW1010

        error[TW0901]: `x[j]` reads outside `x`: dimension 0 is [0, N), `j` goes down to N - 2
         --> <parsed string 13>:1:68
          |
        1 | kernel K(x: f32[N]) -> (y: u32[N]) { y[i] = argmax(|j in N - 2..N| x[j]); }
          |          - its shape
          |                                                                    ^^^^
          = counterexample: N = 1: y[0] with j = -1 reads x[-1]
          = help: state it, and launches will check it: `where N >= 2`
          = help: say what is read outside: `x[j] or 0.0`
          = explain: TW0901


        error[TW1010]: `argmax` over 0..4294967297 cannot be shown to find no index beyond 4294967295
         --> <parsed string 17>:1:45
          |
        1 | kernel K(x: f32[N]) -> (y: u32[N]) { y[i] = argmax(|j in 0..4294967297| x[j % N]); }
          |                                             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
          = note: the index that it gives is a `u32`
          = help: end the range at a sum of sizes and axes, which launches will check
          = explain: TW1010


        error[TW0903]: the divisor `b[i]` may be 0
         --> <parsed string 21>:1:56
          |
        1 | kernel K(a: i32[N], b: i32[N]) -> (y: i32[N]) { y[i] = a[i] / b[i]; }
          |                                                        ^^^^^^^^^^^
          = note: it depends on data, and no condition around it excludes 0
          = help: say what the result is then: `if b[i] != 0 { a[i] / b[i] } else { 0 }`
          = explain: TW0903


        error[TW0903]: the divisor `i as i32` may be 0
         --> <parsed string 26>:1:45
          |
        1 | kernel K(a: i32[N]) -> (y: i32[N]) { y[i] = a[i] / (i as i32); }
          |                                             ^^^^^^^^^^^^^^^^^
          = counterexample: N = 1: y[0] divides by 0
          = help: say what the result is then: `if i as i32 != 0 { a[i] / i as i32 } else { 0 }`
          = explain: TW0903


        error[TW0903]: the divisor `N as i32` may be 0
         --> <parsed string 30>:1:45
          |
        1 | kernel K(a: i32[N]) -> (y: i32[N]) { y[i] = a[i] % (N as i32); }
          |                                             ^^^^^^^^^^^^^^^^^
          = counterexample: N = 4294967296: y[0] divides by 0
          = help: state it, and launches will check it: `where N <= 4294967295`
          = help: say what the result is then: `if N as i32 != 0 { a[i] % N as i32 } else { 0 }`
          = explain: TW0903


        error[TW0904]: an index is divided by `N - 3`, which is not always positive
         --> <parsed string 34>:1:47
          |
        1 | kernel K(x: f32[N]) -> (y: f32[N]) { y[i] = x[i / (N - 3)]; }
          |                                               ^^^^^^^^^^^
          = counterexample: N = 1: `N - 3` is -2
          = help: state it, and launches will check it: `where N >= 4`
          = explain: TW0904

    "#]]
    .assert_eq(&text.join("\n"));
}

/// Paths that cannot be shared end in a finding, not in a wait.
#[test]
fn too_many_paths_are_refused() {
    let mut body = "t0[i in 0..N + 900] = x[i - 1];".to_owned();
    for level in 1..20 {
        body += &format!("t{level}[i] = sum(|k in 1..3| t{0}[i + k]) + sum(|k in 1..4| t{0}[i + k]);", level - 1);
    }
    body += "y[i] = if i >= 1 { t19[i] } else { 0.0 };";
    let text = refused("(x: f32[N + 1000]) -> (y: f32[N])", &body);
    assert!(text.contains("TW0209"), "{text}");
}

/// Many wrong reads: every one is found, few are shown, and it takes no time.
#[test]
fn many_wrong_reads() {
    let terms: Vec<String> = (0..150).map(|n| format!("x[i + {n}]")).collect();
    let text = refused("(x: f32[N]) -> (y: f32[N])", &format!("y[i] = {};", terms.join(" + ")));
    assert!(text.contains("N = 1: y[0] reads x[1]"), "{text}");
}

/// Inside a range that ends with a maximum a size is what keeps it from being empty, and no smaller: 8 is read here.
#[test]
fn a_maximum_of_sizes_with_residues() {
    for (fact, witness) in [("N % 2 == 0", "N = 6: "), ("N % 3 == 1", "N = 7: ")] {
        let head = format!("(x: f32[4]) -> (y: f32[N]) where {fact}");
        let text = refused(&head, "y[i] = sum(|k in 0..max(10 - N, 0)| x[N - 1]);");
        assert!(text.contains(witness), "{text}");
    }
}

/// A condition on floats that no data decides: the kernel may be right, so no counterexample is claimed.
#[test]
fn conditions_that_are_not_understood_leave_it_open() {
    let text = refused("(x: f32[N]) -> (y: f32[N])", "y[i] = if (i as f32) < 0.0 { x[i + 1] } else { x[i] };");
    assert!(text.contains("TW0902") && !text.contains("counterexample"), "{text}");
    // Integers are: this one is right, by counting.
    let text = refused("(x: f32[N]) -> (y: f32[N])", "y[i] = if (i as i32) > 3 { x[i + 1] } else { x[i] };");
    assert!(text.contains("N = 5: y[4] reads x[5]"), "{text}");
}

/// Conditions in a row, each with a read: the work stays small.
#[test]
fn many_conditions() {
    let mut body = "0.0".to_owned();
    for n in 1..28 {
        body = format!("if {} * i < {} * N + {n} {{ x[i + {n}] + {body} }} else {{ 0.0 }}", n % 7 + 1, n % 5 + 1);
    }
    let said = super::run(&super::kernel("(x: f32[N]) -> (y: f32[N])", &format!("y[i] = {body};")));
    assert!(said.codes.contains(&"TW0901"));
    println!("{:?}", said.time);
    assert!(said.time.as_secs() < 20, "{:?}", said.time);
}
