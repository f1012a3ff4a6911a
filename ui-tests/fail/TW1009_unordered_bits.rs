//! A float sum by atomic operations that promises the same bits every time.

tilewright::schedule! {
    kernel Total(x: f32[N]) -> (y: f32[]) {
        y[] = sum(|k| x[k]);
        schedule y { split k by 256 -> b, t; bind b: grid; bind t: thread; reduce t; reduce b by atomic; }
    }
}

fn main() {}
