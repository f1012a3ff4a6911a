//! A kernel whose blocks share memory, and one with a stage inside.

tilewright::schedule! {
    pub kernel Total(x: f32[N]) -> (y: f32[]) {
        y[] = sum(|k| x[k]);
        schedule y { split k by 128 -> b, t; bind b: grid; bind t: thread; reduce t; reduce b by grid; }
    }

    pub kernel Turned(x: f32[M, 128]) -> (y: f32[M, 128]) {
        h[i, j] = x[i, j] * 2.0;
        y[i, j] = h[i, 127 - j];
        schedule y { bind i: grid; bind j: thread; }
        schedule h in shared at y.i { bind j: thread; }
    }
}
