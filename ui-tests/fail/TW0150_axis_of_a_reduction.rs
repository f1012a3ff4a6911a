//! Axes of reductions that are none of their stages, for each of the reasons.

tilewright::schedule! {
    kernel Several(x: f32[N, K]) -> (y: f32[N]) {
        y[i] = sum(|k| x[i, k]) + max(|j| x[i, j]);
        schedule y { split i by 4 -> b, w; bind b: grid; bind w: warp; split k by 32 -> q, t; }
    }
    kernel Conditional(x: f32[N, K]) -> (y: f32[N]) {
        y[i] = if i > 0 { sum(|k| x[i, k]) } else { 0.0 };
        schedule y { split i by 4 -> b, w; bind b: grid; bind w: warp; split k by 32 -> q, t; }
    }
    kernel Range(x: f32[N, N]) -> (y: f32[N]) {
        y[i] = sum(|k in i % 7..N| x[i, k]);
        schedule y { split i by 4 -> b, w; bind b: grid; bind w: warp; split k by 32 -> q, t; }
    }
}

fn main() {}
