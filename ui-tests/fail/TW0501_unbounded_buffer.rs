//! A buffer whose size is not known at compile time.

tilewright::schedule! {
    kernel Column(x: f32[K, M]) -> (y: f32[M]) where M % 4 == 0 {
        y[m] = sum(|k| x[k, m]);
        schedule y {
            split m by 32 -> mo, mi;
            reorder mo, mi, k;
            bind mo: grid;
            bind mi: thread;
        }
        stage xs[k, m] = x in shared at y.mo via tma { box k by 16 -> kc, kb; box m by 32 -> mc, mb; }
    }
}

fn main() {}
