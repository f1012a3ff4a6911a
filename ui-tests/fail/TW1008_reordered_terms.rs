//! A schedule that changes the order of an ordered reduction.

tilewright::schedule! {
    kernel Sum(x: f32[N]) -> (y: f32[]) {
        y[] = ordered sum(|k| x[k]);
        schedule y { split k by 32 -> ko, ki; reorder ki, ko; }
    }
}

fn main() {}
