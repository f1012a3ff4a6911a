//! A record with the digest of another kernel.

tilewright::schedule! {
    kernel Scale(x: f32[N]) -> (y: f32[N]) {
        y[i] = 2.0 * x[i];
        tune T in [128, 256] = (256) by "NVIDIA H200, measured at N=1048576: 0123456789abcdef";
        schedule y { split i by T -> b, t; bind b: grid; bind t: thread; }
    }
}

fn main() {}
