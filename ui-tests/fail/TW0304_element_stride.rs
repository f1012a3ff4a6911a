//! A stride beyond what the accelerator counts.

tilewright::schedule! {
    kernel Columns(x: f32[K, M]) -> (y: f32[M]) where M % 4 == 0 {
        y[m] = sum(|k| x[k, m]);
        launch threads(32);
        schedule y {
            split m by 32 -> mo, mi; split k by 64 -> ko, ki; reorder mo, ko, mi, ki;
            bind mo: grid; bind mi: thread;
        }
        stage xs[k, m] = x in shared at y.ko via tma {
            box k by 64 -> kc, kb;
            tile kb by 16 -> kt, ks;
            box m by 32 -> mc, mb;
        }
    }
}

fn main() {}
