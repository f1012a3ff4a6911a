//! A constant that the schedule does not have.

tilewright::schedule! {
    kernel Scale(x: f32[N]) -> (y: f32[N]) {
        y[i] = 2.0 * x[i];
        tune T in [128, 256], STAGES in [2, 3];
        schedule y { split i by T -> b, t; bind b: grid; bind t: thread; }
    }
}

fn main() {}
