//! A vectorised axis along which the output is not contiguous.

tilewright::schedule! {
    kernel Copy(x: f32[M, N]) -> (y: f32[M, N])
    where M % 4 == 0
    {
        y[i, j] = x[i, j];
        schedule y { split i by 4 -> io, v; reorder io, j, v; bind io, j: grid; vectorize v; }
    }
}

fn main() {}
