//! An axis given to two parts of the machine.

tilewright::schedule! {
    kernel Scale(x: f32[N]) -> (y: f32[N]) {
        y[i] = 2.0 * x[i];
        schedule y {
            split i by 256 -> b, t;
            bind b: grid;
            bind t: thread;
            vectorize t;
        }
    }
}

fn main() {}
