//! Two axes of a stage with one name.

tilewright::schedule! {
    kernel Scale(x: f32[N]) -> (y: f32[N]) {
        y[i] = 2.0 * x[i];
        schedule y {
            split i by 256 -> i, t;
            bind i: grid;
            bind t: thread;
        }
    }
}

fn main() {}
