//! A vector that runs from one row into the next.

tilewright::schedule! {
    kernel Copy(x: f32[M, 6; s, 1]) -> (y: f32[M, 6])
    where s % 4 == 0, M % 2 == 0
    {
        y[i, j] = x[i, j];
        schedule y {
            merge i, j -> ij;
            split ij by 4 -> q, v;
            split q by 128 -> b, t;
            bind b: grid;
            bind t: thread;
            vectorize v;
        }
    }
}

fn main() {}
