//! A shift by an amount of another type.

tilewright::schedule! {
    kernel Shift(x: u64[N], by: u32[N]) -> (y: u64[N]) {
        y[i] = x[i] << by[i];
    }
}

fn main() {}
