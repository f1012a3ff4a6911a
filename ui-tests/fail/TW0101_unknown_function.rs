//! A function that does not exist: the message has all that do.

tilewright::schedule! {
    kernel Root(x: f32[N]) -> (y: f32[N]) {
        y[i] = sqroot(x[i]);
    }
}

fn main() {}
