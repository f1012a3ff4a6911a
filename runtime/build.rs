//! Tells the crate how it is optimised, so that a slow emulator in a dev build can say what to do about it.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let level = std::env::var("OPT_LEVEL").unwrap_or_default();
    println!("cargo::rustc-env=TILEWRIGHT_OPT_LEVEL={level}");
}
