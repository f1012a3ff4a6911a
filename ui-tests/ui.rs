//! What rustc shows for every diagnostic code, through the real macro. `TRYBUILD=overwrite cargo test -p tilewright-ui-tests`
//! writes the expected messages anew; read them before you commit them.

#[test]
fn ui() {
    // One list, so that rustc runs side by side; a case that compiles would need a whole build of its own.
    trybuild::TestCases::new().compile_fail("fail/*.rs");
}
