//! A name that nothing defines.

tilewright::schedule! {
    kernel Scale(xs: f32[N]) -> (y: f32[N]) {
        y[i] = 2.0 * x[i];
    }
}

fn main() {}
