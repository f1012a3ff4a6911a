//! A float sum in the order in which blocks come. A warning; denied here, so that it is seen.
#![deny(deprecated)]

tilewright::schedule! {
    kernel Total(x: f32[N]) -> (y: f32[]) {
        y[] = unordered sum(|k| x[k]);
        schedule y { split k by 256 -> b, t; bind b: grid; bind t: thread; reduce t; reduce b by atomic; }
    }
}

fn main() {}
