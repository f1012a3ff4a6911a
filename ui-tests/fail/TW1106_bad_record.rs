//! Records that do not fit their candidates.

tilewright::schedule! {
    kernel Scale(x: f32[N]) -> (y: f32[N]) {
        y[i] = 2.0 * x[i];
        tune T in [128, 256] = (512) by "h200 at N=1048576: 0123456789abcdef";
        schedule y { split i by T -> b, t; bind b: grid; bind t: thread; }
    }

    kernel Second(x: f32[N]) -> (y: f32[N]) {
        y[i] = 2.0 * x[i];
        tune T in [128, 256] = (128, 256) by "h200 at N=1048576: 0123456789abcdef";
        schedule y { split i by T -> b, t; bind b: grid; bind t: thread; }
    }

    kernel Third(x: f32[N]) -> (y: f32[N]) {
        y[i] = 2.0 * x[i];
        tune T in [128, 256] = (128) by "the best";
        schedule y { split i by T -> b, t; bind b: grid; bind t: thread; }
    }
}

fn main() {}
