//! An order for a reduction that has none.

tilewright::schedule! {
    kernel Largest(x: f32[N]) -> (y: f32[]) {
        y[] = ordered max(|k| x[k]);
    }
}

fn main() {}
