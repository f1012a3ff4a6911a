//! An invocation without a kernel.

tilewright::schedule! {
    // nothing but a comment
}

fn main() {}
