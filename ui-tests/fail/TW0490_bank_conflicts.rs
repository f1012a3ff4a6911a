//! Accesses of shared memory that wait for each other. A warning; denied here, so that it is seen.
#![deny(deprecated)]

tilewright::schedule! {
    kernel Sums(x: f32[M, 64]) -> (y: f32[M]) {
        y[i] = sum(|k| x[i, k]);
        schedule y { split i by 32 -> io, t; split k by 4 -> ko, v; bind io: grid; bind t: thread; vectorize v; }
        stage xs[i, k] = x in shared at y.io via tma { box i by 32 -> ic, ib; box k by 32 -> kc, kb; }
    }

    kernel Transpose(x: f32[M, N]) -> (y: f32[N, M])
    where N % 4 == 0, M % 4 == 0
    {
        y[j, i] = x[i, j];
        schedule y { split j by 32 -> jo, w; split i by 32 -> io, t; reorder jo, io, w, t; bind jo, io: grid; bind t: thread; }
        stage xs[i, j] = x in shared at y.io via tma { box i by 32 -> ic, ib; box j by 32 -> jc, jb; layout [ib, jb] swizzle 128; }
    }

    kernel ByThreads(x: f32[M, N]) -> (y: f32[N, M]) {
        y[j, i] = x[i, j];
        launch threads(256);
        schedule y {
            split j by 32 -> jo, ji; split i by 32 -> io, ii; split ji by 8 -> jr, w;
            reorder jo, io, jr, w, ii; bind jo, io: grid; bind w: warp; bind ii: thread;
        }
        stage xs[i, j] = x in shared at y.io { split i by 8 -> ir, w; bind w: warp; bind j: thread; }
    }
}

fn main() {}
