//! A fact that every combination wants: edits keep the names.

tilewright::schedule! {
    kernel Scale(x: f32[N]) -> (y: f32[N]) {
        y[i] = 2.0 * x[i];
        tune T in [128, 256], V in [4];
        schedule y {
            split i by V -> io, v; split io by T -> b, t; bind b: grid; bind t: thread; vectorize v;
        }
    }
}

fn main() {}
