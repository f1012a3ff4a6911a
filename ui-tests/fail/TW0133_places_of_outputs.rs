//! What outputs begin as, and what `only` promises.

tilewright::schedule! {
    kernel Moved(p: u32[N], x: i32[N]) -> (y: i32[M]) {
        y[p[i]] = x[i];
        schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    }

    kernel Halves(p: u32[N], x: f16[N]) -> (y: f16[M]) {
        y[p[i]] = x[i];
        schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    }

    kernel Kept(inout y: i32[M], p: u32[N], x: i32[N]) {
        y[p[i]] max= only(|i| x[i]);
        schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    }

    kernel Value(p: u32[N], x: i32[N]) -> (y: i32[M]) {
        y[p[i]] = 2 * only(|i| x[i]);
        schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    }

    kernel Between(p: u32[N], x: i32[N]) -> (y: i32[N]) {
        t[p[i]] = sum(|i| x[i]);
        y[j] = t[j];
        schedule y { split j by 256 -> b, t; bind b: grid; bind t: thread; }
    }
}

fn main() {}
