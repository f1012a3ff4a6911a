//! A read at an index from memory, without `or`.

tilewright::schedule! {
    kernel Gather(x: f32[N], at: i32[M]) -> (y: f32[M]) {
        y[i] = x[at[i]];
    }
}

fn main() {}
