//! Blocks that read different elements take no copy together.

tilewright::schedule! {
    kernel Outer(a: f32[M], b: f32[N]) -> (c: f32[M, N]) where N % 4 == 0 {
        c[i, j] = a[i] * b[j];
        launch cluster(2), threads(64);
        schedule c {
            split j by 128 -> jo, j1;
            split j1 by 64 -> jc, t;
            bind i, jo: grid;
            bind jc: cta;
            bind t: thread;
        }
        stage bs[j] = b in shared at c.jc via tma { multicast c.jc; }
    }
}

fn main() {}
