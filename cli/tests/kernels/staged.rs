//! Kernels with staged copies for the tests of the command line.

use tilewright::schedule;

schedule! {
    #[allow(TW0490)]
    kernel RowSum(x: f32[M, K]) -> (y: f32[M])
    where K % 4 == 0
    {
        y[i] = sum(|k| x[i, k]);

        launch threads(32);
        schedule y {
            split i by 32 -> io, ii;
            split k by 32 -> ko, ki;
            reorder io, ii, ko, ki;
            bind io: grid;
            bind ii: thread;
        }
        stage xs[i, k] = x in shared at y.ko ring(2) via tma {
            box i by 32 -> ic, ib;
            box k by 32 -> kc, kb;
            layout [ic, kc, ib, kb] swizzle 128;
        }
    }

    kernel Line(x: f32[N]) -> (y: f32[N])
    where N % 1024 == 0
    {
        y[i] = x[i] + 1.0;

        launch threads(128);
        schedule y {
            split i by 1024 -> o, r;
            split r by 128 -> q, t;
            bind o: grid;
            bind t: thread;
        }
        stage ys[i] = y in shared at y.o via tma { }
    }
}
