//! An error in one kernel does not hide one in another.

tilewright::schedule! {
    kernel Scale(x: f32[N]) -> (y: f32[N]) {
        y[i] = 2 * x[i];
    }

    kernel Dot(x: f32[N], z: f32[M]) -> (y: f32[]) {
        y[] = sum(|k| x[k] * z[k]);
    }
}

fn main() {}
