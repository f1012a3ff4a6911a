//! Each combination is refused, for reasons that differ.

tilewright::schedule! {
    kernel Scale(x: f32[N]) -> (y: f32[N])
    where N % 8 == 0
    {
        y[i] = 2.0 * x[i];
        tune T in [0, 2048], V in [8, 16];
        schedule y {
            split i by V -> io, v; split io by T -> b, t; bind b: grid; bind t: thread; vectorize v;
        }
    }
}

fn main() {}
