//! A word that the grammar does not know here.

tilewright::schedule! {
    kernel Scale(x: f32[N]) -> (y: f32[N])
    where N % 4 == 0
    {
        y[i] = 2.0 * x[i];
        schedule y {
            split i by 1024 -> b, r;
            split r by 4 -> t, v;
            bind b: grid;
            bind t: thread;
            vectorise v;
        }
    }
}

fn main() {}
