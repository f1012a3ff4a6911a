//! Layouts of stages that leave elements in one place, or that have no buffer.

tilewright::schedule! {
    kernel Transpose(x: f32[M, N]) -> (y: f32[N, M]) {
        y[j, i] = x[i, j];
        launch threads(256);
        schedule y {
            split j by 32 -> jo, ji; split i by 32 -> io, ii; split ji by 8 -> jr, w;
            reorder jo, io, jr, w, ii; bind jo, io: grid; bind w: warp; bind ii: thread;
        }
        stage xs[i, j] = x in shared at y.io {
            split i by 8 -> ir, w; bind w: warp; bind j: thread;
            layout [ir, j pad 1];
        }
    }

    kernel Names(x: f32[M, N]) -> (y: f32[N, M]) {
        y[j, i] = x[i, j];
        launch threads(256);
        schedule y {
            split j by 32 -> jo, ji; split i by 32 -> io, ii; split ji by 8 -> jr, w;
            reorder jo, io, jr, w, ii; bind jo, io: grid; bind w: warp; bind ii: thread;
        }
        stage xs[i, j] = x in shared at y.io {
            split i by 8 -> ir, w; bind w: warp; bind j: thread;
            layout [i, w, j];
        }
    }

    kernel Unknown(x: f32[M, N]) -> (y: f32[N, M]) {
        y[j, i] = x[i, j];
        launch threads(256);
        schedule y {
            split j by 32 -> jo, ji; split i by 32 -> io, ii; split ji by 8 -> jr, w;
            reorder jo, io, jr, w, ii; bind jo, io: grid; bind w: warp; bind ii: thread;
        }
        stage xs[i, j] = x in shared at y.io {
            split i by 8 -> ir, w; bind w: warp; bind j: thread;
            layout [i, k];
        }
    }

    kernel Registers(x: f32[M, N]) -> (y: f32[M, N]) where N <= 1024 {
        m[i] = max(|j| x[i, j]);
        y[i, j] = x[i, j] - m[i];
        launch threads(128);
        schedule y { bind i: grid; split j by 128 -> r, t; bind t: thread; unroll r; }
        stage xr[i, j] = x in registers at y.i { like y; layout [i, j pad 1]; }
        schedule m in registers at y.i { like y; reduce t; }
    }
}

fn main() {}
