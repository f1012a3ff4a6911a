//! Findings of one call are reported together, each at its place.

tilewright::schedule! {
    kernel Scale(x: f32[N]) -> (y: f32[N]) {
        y[i] = 2.0 * x[i];
        schedule y { split i by 256 -> b, t; bind b: gird; bind t: thread; }
    }

    kernel Dot(x: f32[N], z: f32[N]) -> (y: f32[]) {
        y[] = sum(|k| x[k] * z[k])
    }
}

fn main() {}
