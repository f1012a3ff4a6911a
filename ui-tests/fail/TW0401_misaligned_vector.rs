//! A vector access that is not known to be aligned.

tilewright::schedule! {
    kernel Copy(x: f32[M, N; s, 1]) -> (y: f32[M, N])
    where N % 4 == 0
    {
        y[i, j] = x[i, j];
        launch threads(32);
        schedule y {
            split j by 128 -> jo, r;
            split r by 4 -> t, v;
            bind i, jo: grid;
            bind t: thread;
            vectorize v;
        }
    }
}

fn main() {}
