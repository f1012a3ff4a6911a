//! Without a `launch` the block has the threads that are bound, as far as a block can.

tilewright::schedule! {
    kernel Scale(x: f32[N]) -> (y: f32[N]) {
        y[i] = 2.0 * x[i];
        schedule y { split i by 2048 -> b, t; bind b: grid; bind t: thread; }
    }
}

fn main() {}
