//! The last block asks for a part of a vector.

tilewright::schedule! {
    kernel Blur(x: f32[N]) -> (y: f32[N - 4]) where N >= 5 {
        h[i] = x[i] * 0.5;
        y[i] = h[i] + h[i + 4];
        launch threads(32);
        schedule y { split i by 124 -> b, p; split p by 32 -> r, t; bind b: grid; bind t: thread; }
        schedule h in shared at y.b { split i by 4 -> t, v; bind t: thread; vectorize v; }
    }
}

fn main() {}
