//! Axes merged in a view that are not contiguous to each other.

tilewright::schedule! {
    kernel Flat(x: f32[M, 32; ld, 1]) -> (y: f32[M, 32]) where ld % 4 == 0 {
        y[i, j] = 2.0 * x[i, j];
        schedule y {
            split i by 8 -> io, ii;
            bind io: grid;
            bind ii: thread;
            bind j: thread;
        }
        stage xs[i, j] = x in shared at y.io via tma {
            merge i, j -> m;
            box m by 256 -> mc, mb;
        }
    }
}

fn main() {}
