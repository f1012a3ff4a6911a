//! A constant of the schedule in an equation, in a shape and in a fact.

tilewright::schedule! {
    kernel Scale(x: f32[N]) -> (y: f32[N])
    where N % T == 0
    {
        y[i] = T as f32 * sum(|k in 0..T| x[i]);
        tune T in [128, 256];
        schedule y { split i by T -> b, t; bind b: grid; bind t: thread; }
    }

    kernel Rows(x: f32[M, T]) -> (y: f32[M]) {
        y[i] = x[i, 0];
        tune T in [128, 256];
        schedule y { split i by T -> b, t; bind b: grid; bind t: thread; }
    }
}

fn main() {}
