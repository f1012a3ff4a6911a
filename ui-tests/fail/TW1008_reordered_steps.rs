//! A schedule that changes the order of a fold without merge.

tilewright::schedule! {
    kernel Horner(x: f32[N], a: f32) -> (y: f32[]) {
        y[] = fold(|k| init 0.0, step s => s * a + x[k]);
        schedule y { split k by 32 -> ko, ki; reorder ki, ko; }
    }
}

fn main() {}
