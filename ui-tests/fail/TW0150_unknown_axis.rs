//! An op on an axis that its stage does not have.

tilewright::schedule! {
    kernel Scale(x: f32[N]) -> (y: f32[N]) {
        y[i] = 2.0 * x[i];
        schedule y {
            split i by 256 -> b, t;
            bind i: grid;
            bind t: thread;
        }
    }
}

fn main() {}
