//! A ring where no loop follows, one in a loop that is unrolled, and results copied before they are known.

tilewright::schedule! {
    kernel Block(x: f32[N]) -> (y: f32[N]) where N % 4 == 0 {
        y[i] = x[i];
        schedule y { split i by 128 -> b, t; bind b: grid; bind t: thread; }
        stage xs[i] = x in shared at y.b ring(2) via tma { box i by 128 -> c, e; }
    }

    kernel Unrolled(x: f32[N]) -> (y: f32[N]) where N % 4 == 0 {
        y[i] = x[i];
        schedule y {
            split i by 512 -> b, r;
            split r by 128 -> q, t;
            bind b: grid;
            bind t: thread;
            unroll q;
        }
        stage xs[i] = x in shared at y.q ring(2) via tma { box i by 128 -> c, e; }
    }

    kernel Sums(x: f32[K, M]) -> (y: f32[M]) where M % 4 == 0 {
        y[m] = sum(|k| x[k, m]);
        schedule y {
            split m by 32 -> mo, mi;
            split k by 8 -> ko, ki;
            reorder mo, ko, mi, ki;
            bind mo: grid;
            bind mi: thread;
        }
        stage ys[m] = y in shared at y.ko via tma { box m by 32 -> mc, mb; }
    }
}

fn main() {}
