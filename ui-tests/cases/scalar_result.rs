//! A single value beside a stage that needs many threads: no axis could be bound.

tilewright::schedule! {
    kernel Both(x: f32[N]) -> (y: f32[N], s: f32[]) {
        y[i] = 2.0 * x[i];
        s[] = sum(|i| x[i]);
        schedule y { split i by 64 -> b, t; bind b: grid; bind t: thread; }
    }
}

fn main() {}
