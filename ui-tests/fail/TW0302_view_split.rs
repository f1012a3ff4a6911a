//! A split of a tensor map's view that leaves a remainder.

tilewright::schedule! {
    kernel Rows(x: f32[N]) -> (y: f32[N]) {
        y[i] = 2.0 * x[i];
        schedule y {
            split i by 1024 -> o, n;
            bind o: grid;
            bind n: thread;
        }
        stage xs[i] = x in shared at y.o via tma {
            split i by 32 -> a, b;
            box a by 32 -> ac, ab;
            box b by 32 -> bc, bb;
        }
    }
}

fn main() {}
