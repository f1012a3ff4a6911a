//! A stage that needs what blocks share, and that they share, too.

tilewright::schedule! {
    kernel Softmax(x: f32[M, N]) -> (y: f32[M, N]) {
        m[i] = max(|k| x[i, k]);
        s[i] = sum(|k| exp(x[i, k] - m[i]));
        y[i, j] = exp(x[i, j] - m[i]) / s[i];
        schedule y { bind i: grid; split j by 128 -> r, t; bind t: thread; }
        schedule m in registers at y.i { split k by 128 -> b, t; bind b: grid; bind t: thread; reduce t; reduce b by grid; }
        schedule s in registers at y.i { split k by 128 -> b, t; bind b: grid; bind t: thread; reduce t; reduce b by grid; }
    }
}

fn main() {}
