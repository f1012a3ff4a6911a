//! Tokens of a macro of the user keep their places.

macro_rules! scale {
    ($name:ident, $factor:literal) => {
        tilewright::schedule! {
            kernel $name(x: f32[N]) -> (y: f32[N]) {
                y[i] = 2.0 * x[i];
                schedule y { split i by $factor -> b, t; bind b: grid; bind t: thread; }
            }
        }
    };
}

scale!(Right, 256);
scale!(Wrong, 4096);

fn main() {}
