//! A size that is not known to be a multiple of what an op needs.

tilewright::schedule! {
    kernel Scale(x: f32[N]) -> (y: f32[N]) {
        y[i] = 2.0 * x[i];
        schedule y {
            split i by 4 -> q, v;
            split q by 256 -> b, t;
            bind b: grid;
            bind t: thread;
            vectorize v;
        }
    }
}

fn main() {}
