//! A constant with the name of a parameter, and of another constant.

tilewright::schedule! {
    kernel Scale(x: f32[N]) -> (y: f32[N]) {
        y[i] = 2.0 * x[i];
        tune T in [128, 256], x in [1, 2], T in [64];
        schedule y { split i by T -> b, t; bind b: grid; bind t: thread; }
    }
}

fn main() {}
