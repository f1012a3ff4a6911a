//! Facts that no size satisfies together.

tilewright::schedule! {
    kernel Copy(x: f32[N]) -> (y: f32[N])
    where N % 8 == 0, N % 8 == 4
    {
        y[i] = x[i];
    }
}

fn main() {}
