//! More blocks of a cluster than can be counted.

tilewright::schedule! {
    kernel Scale(x: f32[N]) -> (y: f32[N]) {
        y[i] = 2.0 * x[i];
        schedule y {
            split i into 1000000000 -> a, r1;
            split r1 into 1000000000 -> b, r2;
            split r2 into 1000000000 -> c, r3;
            split r3 into 1000000000 -> d, r4;
            split r4 into 1000000000 -> e, r5;
            bind a, b, c, d, e: cta;
        }
    }
}

fn main() {}
