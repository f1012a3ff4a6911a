//! An integer is rounded, and has a negative power.

tilewright::schedule! {
    kernel Round(n: i32[N]) -> (y: i32[N], z: i32[N]) {
        y[i] = round(n[i]);
        z[i] = pow(n[i], -1);
    }
}

fn main() {}
