//! More combinations than are tried.

tilewright::schedule! {
    kernel Add(x: f32[M, N], y: f32[M, N]) -> (z: f32[M, N]) {
        z[i, j] = x[i, j] + y[i, j];
        tune R in [1, 2, 3, 4, 5, 6, 7, 8, 9], T in [32, 64, 96, 128, 160, 192, 224, 256];
        schedule z {
            split i by R -> ib, r; split j by T -> jb, t; reorder ib, jb, t, r; bind ib, jb: grid; bind t: thread;
        }
    }
}

fn main() {}
