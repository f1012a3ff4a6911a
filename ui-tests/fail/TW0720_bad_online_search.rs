//! The place of the smallest element, in the pass for the largest one.

tilewright::schedule! {
    kernel Place(x: f32[M, N]) -> (y: f32[M], at: u32[M]) where N >= 1 {
        m[i] = max(|j| x[i, j]);
        p[i] = argmin(|j| x[i, j]);
        y[i] = m[i];
        at[i] = p[i];
        schedule y { split i by 128 -> b, t; bind b: grid; bind t: thread; }
        schedule at at y.b { like y; }
        schedule m in registers per thread at y.t {
            split j by 4 -> jo, ji;
            unroll ji;
            online m -> p over jo;
        }
    }
}

fn main() {}
