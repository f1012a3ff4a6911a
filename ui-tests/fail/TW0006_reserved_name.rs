//! A word of the language or of Rust used as a name.

tilewright::schedule! {
    kernel Filter(x: f32[N]) -> (match: bool[N]) {
        match[i] = x[i] > 0.0;
    }
}

fn main() {}
