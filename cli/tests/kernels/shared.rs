//! A kernel whose blocks share memory.

tilewright::schedule! {
    pub kernel Total(x: f32[N]) -> (y: f32[]) {
        y[] = sum(|k| x[k]);
        schedule y { split k by 128 -> b, t; bind b: grid; bind t: thread; reduce t; reduce b by grid; }
    }
}
