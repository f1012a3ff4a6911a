//! A unit that another launch has, one that none has, and one of neighbours that two extents count.

tilewright::schedule! {
    kernel Halves(x: f32[M, N]) -> (y: f32[M, N]) {
        y[i, j] = 2.0 * x[i, j];
        launch threads(96);
        unit half { domain: [block / 64, 64], box: [1, 32] }
        schedule y { split i by 2 -> b, h; split j by 32 -> q, t; bind b: grid; bind h: half; bind t: thread; }
    }

    kernel Wide(x: f32[M, N]) -> (y: f32[M, N]) {
        y[i, j] = 2.0 * x[i, j];
        launch threads(96);
        unit wide { domain: [block], box: [2048] }
        schedule y { split i by 2 -> b, h; split j by 32 -> q, t; bind b: grid; bind h: wide; bind t: thread; }
    }

    kernel Eights(x: f32[M, N]) -> (y: f32[M, N]) {
        y[i, j] = 2.0 * x[i, j];
        launch threads(64);
        unit eight { domain: [block / 32, 32], box: [1, 8] }
        schedule y { split i by 8 -> b, h; split j by 8 -> q, t; bind b: grid; bind h: eight; bind t: thread; }
    }
}

fn main() {}
