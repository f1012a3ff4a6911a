//! A token that the grammar does not allow here.

tilewright::schedule! {
    kernel Scale(x: f32[N]) -> (y: f32[N]) {
        y[i] = 2.0 * x[i]
        launch threads(1);
    }
}

fn main() {}
