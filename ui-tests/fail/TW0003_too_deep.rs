//! An expression or block nested too deeply.

tilewright::schedule! {
    kernel Zero() -> (y: f32[N]) {
        y[i] = (((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((0.0)))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))));
    }
}

fn main() {}
