//! An output further out, which all blocks would write.

tilewright::schedule! {
    kernel Centre(x: f32[M, N], w: f32[M]) -> (y: f32[M, N], z: f32[M]) {
        m[i] = max(|k| x[i, k]);
        y[i, j] = x[i, j] - m[i];
        z[i] = w[i] * 2.0;
        schedule y { split i by 8 -> b, r; split j by 128 -> q, t; bind b: grid; bind t: thread; }
        schedule z at y.b { split i by 8 -> b, t; bind b: grid; bind t: thread; }
        schedule m in registers at y.r { split k by 128 -> kb, t; bind kb: grid; bind t: thread; reduce t; reduce kb by grid; }
    }
}

fn main() {}
