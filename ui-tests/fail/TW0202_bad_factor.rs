//! A factor or count that is not a literal in range.

tilewright::schedule! {
    kernel Scale(x: f32[N]) -> (y: f32[N]) {
        y[i] = 2.0 * x[i];
        schedule y { split i by 0 -> b, t; bind b: grid; bind t: thread; }
    }
}

fn main() {}
