//! A staged output that is written in a way not confirmed on hardware.

tilewright::schedule! {
    kernel Copy(x: f32[M, N]) -> (y: f32[M, N]) where N % 4 == 0 {
        y[i, j] = x[i, j];
        schedule y { split i by 8 -> io, ii; split j by 32 -> jo, t; reorder io, jo, ii, t; bind io, jo: grid; bind t: thread; }
        stage ys[i, j] = y in shared at y.jo via tma {
            box i by 8 -> ic, ib;
            tile ib by 2 -> it, is;
            box j by 32 -> jc, jb;
        }
    }
}

fn main() {}
