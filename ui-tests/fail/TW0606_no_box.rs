//! Threads around a unit of the kernel's own that are no box of it.

tilewright::schedule! {
    kernel Rows(x: f32[M, 4, 3]) -> (y: f32[M, 4, 3]) {
        y[i, j, k] = x[i, j, k] * 2.0;
        launch threads(256);
        unit every { domain: [8], box: [1] }
        schedule y {
            bind i: grid;
            bind j: 3 thread;
            bind k: every;
        }
    }
}

fn main() {}
