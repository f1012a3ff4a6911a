//! What rustc shows for every diagnostic code, and for mistakes in calls of kernels, through the real macro.
//! `TRYBUILD=overwrite cargo test -p tilewright-ui-tests` writes the expected messages anew; read them before you
//! commit them.

#[test]
fn ui() {
    // One list, so that rustc runs once over many; a case that compiles would need a build of its own.
    let cases = trybuild::TestCases::new();
    cases.compile_fail("fail/*.rs");
    cases.compile_fail("cases/*.rs");
}
