//! A kernel that is refused, between one that is not and a warning.

tilewright::schedule! {
    kernel Fine(x: f32[N]) -> (y: f32[N]) {
        y[i] = x[i];
        schedule y { split i by 32 -> b, t; bind b: grid; bind t: thread; }
    }
}

tilewright::schedule! {
    kernel Saxpy(a: f32, x: f32[N], y: f32[N]) -> (z: f32[N]) {
        z[i] = a * x[i] + y[i];

        launch threads(64);
        schedule z {
            split i by 4 -> io, v;
            split io by 64 -> b, t;
            bind b: grid;
            bind t: thread;
            vectorize v;
        }
    }
}
