//! The range of a sum ends anywhere, in the midst of vectors, too.

tilewright::schedule! {
    kernel Prefix(x: f32[N], w: f32[N]) -> (y: f32[N]) where N >= 1, N % 4 == 0 {
        y[i] = sum(|j in 0..=i| x[j] * w[i]);
        launch threads(128);
        schedule y {
            split i by 4 -> b, k; bind b: grid; bind k: warp;
            split j by 128 -> q, t4; split t4 by 4 -> t, v;
            bind t: thread; reduce t; vectorize v;
        }
    }
}

fn main() {}
