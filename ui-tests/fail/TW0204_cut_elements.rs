//! A resize that cuts away elements of the stage.

tilewright::schedule! {
    kernel Scale(x: f32[N]) -> (y: f32[N]) {
        y[i] = 2.0 * x[i];
        schedule y {
            resize i by (0, -1) -> short;
            split short by 256 -> b, t;
            bind b: grid;
            bind t: thread;
        }
    }
}

fn main() {}
