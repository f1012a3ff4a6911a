//! Kernels for the tests of the command line: between them they use everything that its output can show.

use tilewright::schedule;

schedule! {
    /// z = a·x + y
    pub kernel Saxpy(a: f32, x: f32[N], y: f32[N]) -> (z: f32[N])
    where N % 4 == 0
    {
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

mod inner {
    tilewright::schedule! {
        #[allow(TW0491)] kernel RowSum(x: f32[M, N; ld, 1]) -> (y: f32[M]) {
            y[i] = sum(|j| x[i, j]);
            schedule y {
                split i by 32 -> b, t;
                bind b: grid;
                bind t: thread;
                split j by 4 -> jo, ji;
                unroll ji;
            }
        }

        kernel Half(x: i32[P]) -> (y: i32[Q + 1], z: i32[Q + 1])
        where P == 2 * Q
        {
            y[i] = (x[2 * i - 1] or 0) + (x[2 * i] or 0);
            z[i] = 2 * y[i];
            schedule y { split i by 32 -> b, t; bind b: grid; bind t: thread; }
            schedule z { split i by 32 -> b, t; bind b: grid; bind t: thread; }
        }
    }
}
