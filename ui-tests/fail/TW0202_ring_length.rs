//! A ring without buffers.

tilewright::schedule! {
    kernel Endless(x: f32[K, M]) -> (y: f32[M]) where M % 4 == 0 {
        y[m] = sum(|k| x[k, m]);
        schedule y {
            split m by 32 -> mo, mi;
            split k by 8 -> ko, ki;
            reorder mo, ko, mi, ki;
            bind mo: grid;
            bind mi: thread;
        }
        stage xs[k, m] = x in shared at y.ko ring(0) via tma { box k by 8 -> kc, kb; box m by 32 -> mc, mb; }
    }
}

fn main() {}
