//! A ring of a stage where its instances do not follow each other in a loop.

tilewright::schedule! {
    kernel Blur(x: f32[N]) -> (y: f32[N - 2]) where N >= 3 {
        b[i] = x[i] + x[i + 1];
        y[i] = b[i] * b[i + 1];
        launch threads(64);
        schedule y { split i by 256 -> io, ii; split ii by 64 -> is, t; bind io: grid; bind t: thread; }
        schedule b in shared at y.io ring(2) { split i by 64 -> r, t; bind t: thread; }
    }
}

fn main() {}
