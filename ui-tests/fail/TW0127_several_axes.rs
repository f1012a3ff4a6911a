//! An argmax or argmin over several axes.

tilewright::schedule! {
    kernel Best(x: f32[M, N]) -> (y: u32[])
    where N >= 1
    {
        y[] = argmax(|i, j| x[i, j]);
    }
}

fn main() {}
