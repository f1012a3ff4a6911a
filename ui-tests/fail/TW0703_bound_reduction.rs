//! A reduction axis given to several threads, and one given to several blocks.

tilewright::schedule! {
    kernel RowSum(x: f32[M, N]) -> (y: f32[M]) {
        y[i] = sum(|j| x[i, j]);
        schedule y { split j by 32 -> jo, t; bind i: grid; bind t: thread; }
    }
}

tilewright::schedule! {
    kernel BlockSum(x: f32[M, N]) -> (y: f32[M]) {
        y[i] = sum(|j| x[i, j]);
        launch threads(128);
        schedule y { split i by 128 -> b, t; split j by 64 -> g, r; bind b: grid; bind g: grid; bind t: thread; reduce g; }
    }
}

tilewright::schedule! {
    kernel SplitSum(x: f32[M, N]) -> (y: f32[M]) {
        y[i] = sum(|j| x[i, j]);
        launch threads(128);
        schedule y { split i by 128 -> b, t; split j by 64 -> g, r; bind b: grid; bind g: grid; bind t: thread; }
    }
}

fn main() {}
