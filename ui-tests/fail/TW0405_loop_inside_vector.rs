//! A loop inside a vectorised axis.

tilewright::schedule! {
    kernel Copy(x: f32[M, N]) -> (y: f32[M, N])
    where N % 4 == 0
    {
        y[i, j] = x[i, j];
        schedule y { split j by 4 -> jo, v; reorder v, i, jo; bind jo: grid; vectorize v; }
    }
}

fn main() {}
