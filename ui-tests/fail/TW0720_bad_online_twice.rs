//! A stage in a loop that runs for the extreme, and again for the sum.

tilewright::schedule! {
    kernel LogSumExp(x: f32[M, N]) -> (y: f32[M]) {
        m[i] = max(|j| x[i, j]);
        l[i] = online sum(|j| exp(x[i, j] - m[i]));
        y[i] = m[i] + log(l[i]);
        launch threads(128);
        schedule y { split i by 4 -> b, t; bind b: grid; bind t: thread; }
        schedule m in shared at y.b { split j by 512 -> jo, j1; split j1 by 128 -> v, t; bind t: thread; reduce t; online m -> l over jo; }
        stage xs[i, j] = x in registers at m.v { bind j: thread; }
    }
}

fn main() {}
