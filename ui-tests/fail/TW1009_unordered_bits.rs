//! A float sum by atomic operations that promises the same bits every time.

tilewright::schedule! {
    kernel Total(x: f32[N]) -> (y: f32[]) {
        y[] = sum(|k| x[k]);
        schedule y { split k by 256 -> b, t; bind b: grid; bind t: thread; reduce t; reduce b by atomic; }
    }
}

// The terms of a scatter come in any order.
tilewright::schedule! {
    kernel Bag(inout y: f32[M], p: u32[N], x: f32[N]) {
        y[p[i]] += sum(|i| x[i]);
        schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    }
}

fn main() {}
