//! An extent beyond exact arithmetic.

tilewright::schedule! {
    kernel Scale(x: f32[1000000000000000000, 1000000000000000000, 1000]) -> (y: f32[1000000000000000000, 1000000000000000000, 1000]) {
        y[i, j, k] = 2.0 * x[i, j, k];
        schedule y { merge i, j, k -> all; split all by 256 -> b, t; bind b: grid; bind t: thread; }
    }
}

fn main() {}
