//! A number of the schedule that is neither a constant nor a size.

tilewright::schedule! {
    kernel Scale(x: f32[N]) -> (y: f32[N]) {
        y[i] = 2.0 * x[i];
        tune TILE in [128, 256];
        schedule y { split i by TILES -> b, t; bind b: grid; bind t: thread; }
    }
}

fn main() {}
