//! Rasters of axes whose blocks have no other order.

tilewright::schedule! {
    kernel Last(x: f32[M, N]) -> (z: f32[M, N]) {
        z[i, j] = x[i, j] * 2.0;
        schedule z { split j by 64 -> b, t; bind i, b: grid raster(b: 8); bind t: thread; }
    }
}

tilewright::schedule! {
    kernel Only(x: f32[N]) -> (z: f32[N]) {
        z[i] = x[i] * 2.0;
        schedule z { split i by 64 -> b, t; bind b: grid raster(b: 8); bind t: thread; }
    }
}

tilewright::schedule! {
    kernel OfThreads(x: f32[M, N]) -> (z: f32[M, N]) {
        z[i, j] = x[i, j] * 2.0;
        schedule z { split j by 64 -> b, t; bind i, b: grid; bind t: thread raster(t: 8); }
    }
}

tilewright::schedule! {
    kernel Elsewhere(x: f32[M, N]) -> (z: f32[M, N]) {
        z[i, j] = x[i, j] * 2.0;
        schedule z { split j by 64 -> b, t; bind i: grid; bind b: grid raster(i: 8); bind t: thread; }
    }
}

tilewright::schedule! {
    kernel Twice(x: f32[L, M, N]) -> (z: f32[L, M, N]) {
        z[h, i, j] = x[h, i, j] * 2.0;
        schedule z { split j by 64 -> b, t; bind h, i, b: grid raster(h: 2, i: 8); bind t: thread; }
    }
}

tilewright::schedule! {
    kernel Falls(x: f32[M, N]) -> (z: f32[M, N]) {
        z[i, j] = x[i, j] * 2.0;
        schedule z { split j by 64 -> b, t; bind i, b: grid raster(i: descending, i: descending); bind t: thread; }
    }
}

tilewright::schedule! {
    kernel FallingThreads(x: f32[M, N]) -> (z: f32[M, N]) {
        z[i, j] = x[i, j] * 2.0;
        schedule z { split j by 64 -> b, t; bind i, b: grid; bind t: thread raster(t: descending); }
    }
}

tilewright::schedule! {
    kernel Beside(x: f32[M, N]) -> (z: f32[M, N], y: f32[M, N]) {
        z[i, j] = x[i, j] * 2.0;
        y[i, j] = x[i, j] * 3.0;
        schedule z { split j by 64 -> b, t; bind i, b: grid; bind t: thread; }
        schedule y at z.b { split j by 64 -> b, t; bind i, b: grid raster(i: 2, b: descending); bind t: thread; }
    }
}

fn main() {}
