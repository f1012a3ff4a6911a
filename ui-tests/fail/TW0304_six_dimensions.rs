//! More dimensions than a tensor map has, none of which follow each other in memory.

tilewright::schedule! {
    kernel Sums(x: f32[A, B, C, D, E, F; s1, s2, s3, s4, s5, 1]) -> (y: f32[A])
    where
        s1 % 4 == 0, s2 % 4 == 0, s3 % 4 == 0, s4 % 4 == 0, s5 % 4 == 0,
        B <= 2, C <= 2, D <= 2, E <= 2, F <= 16
    {
        y[a] = sum(|b, c, d, e, f| x[a, b, c, d, e, f]);
        launch threads(32);
        schedule y { split a by 32 -> ao, ai; bind ao: grid; bind ai: thread; }
        stage xs[a, b, c, d, e, f] = x in shared at y.ao via tma { box f by 16 -> fc, fb; }
    }
}

fn main() {}
