//! Tells the crate how it is optimised, so that a slow emulator in a dev build can say what to do about it.

fn main() {
    // No file: `unit-tests` has this program as well, and no such file beside its manifest.
    println!("cargo::rerun-if-env-changed=OPT_LEVEL");
    let level = std::env::var("OPT_LEVEL").unwrap_or_default();
    println!("cargo::rustc-env=TILEWRIGHT_OPT_LEVEL={level}");
}
