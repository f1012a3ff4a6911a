//! Eight findings are shown, the others counted.

tilewright::schedule! {
    kernel Many(x: f32[N]) -> (y: f32[N]) {
        y[i] = a0[i] + a1[i] + a2[i] + a3[i] + a4[i] + a5[i] + a6[i] + a7[i] + a8[i] + a9[i];
    }
}

fn main() {}
