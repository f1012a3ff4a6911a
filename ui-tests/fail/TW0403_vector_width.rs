//! An extent that no vector has.

tilewright::schedule! {
    kernel Scale(x: f32[N]) -> (y: f32[N])
    where N % 3 == 0
    {
        y[i] = 2.0 * x[i];
        schedule y { split i by 3 -> b, v; bind b: grid; vectorize v; }
    }
}

fn main() {}
