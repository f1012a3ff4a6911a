//! Each reason why threads have nothing to combine.

tilewright::schedule! {
    kernel InOneThread(x: f32[M, N]) -> (y: f32[M]) {
        y[i] = sum(|j| x[i, j]);
        launch threads(128);
        schedule y { split i by 128 -> b, t; bind b: grid; bind t: thread; reduce j; }
    }
}

tilewright::schedule! {
    kernel OfTheResult(x: f32[M, N]) -> (y: f32[M]) {
        y[i] = sum(|j| x[i, j]);
        launch threads(128);
        schedule y { split i by 128 -> b, t; bind b: grid; bind t: thread; reduce t; }
    }
}

tilewright::schedule! {
    kernel BeyondWarp(x: f32[M, N]) -> (y: f32[M]) {
        y[i] = sum(|j| x[i, j]);
        launch threads(128);
        schedule y { split j by 128 -> r, t; reorder i, t, r; bind i: grid; bind t: thread; reduce t by warp; }
    }
}

tilewright::schedule! {
    kernel InOrder(x: f32[M, N]) -> (y: f32[M]) {
        y[i] = ordered sum(|j| x[i, j]);
        launch threads(128);
        schedule y { split j by 128 -> r, t; reorder i, t, r; bind i: grid; bind t: thread; reduce t; }
    }
}

tilewright::schedule! {
    kernel NoMerge(x: f32[M, N]) -> (y: f32[M]) {
        y[i] = fold(|j| init 0.0, step s => s + x[i, j]);
        launch threads(128);
        schedule y { split j by 128 -> r, t; reorder i, t, r; bind i: grid; bind t: thread; reduce t; }
    }
}

tilewright::schedule! {
    kernel NoBlocks(x: f32[M, N]) -> (y: f32[M]) {
        y[i] = sum(|j| x[i, j]);
        launch threads(128);
        schedule y { split j by 128 -> r, t; reorder i, t, r; bind i: grid; bind t: thread; reduce t by grid; }
    }
}

tilewright::schedule! {
    kernel Product(x: f32[N]) -> (y: f32[]) {
        y[] = prod(|j| x[j]);
        schedule y { split j by 128 -> b, t; bind b: grid; bind t: thread; reduce t; reduce b by atomic; }
    }
}

tilewright::schedule! {
    kernel Halves(x: f16[N]) -> (y: f16[]) {
        y[] = unordered sum(|j| x[j]);
        schedule y { split j by 128 -> b, t; bind b: grid; bind t: thread; reduce t; reduce b by atomic; }
    }
}

tilewright::schedule! {
    kernel Folded(x: f32[N]) -> (y: f32[]) {
        y[] = fold(|j| init 0.0, step s => s + x[j], merge (p, q) => p + q);
        schedule y { split j by 128 -> b, t; bind b: grid; bind t: thread; reduce t; reduce b by atomic; }
    }
}

tilewright::schedule! {
    kernel TwoWays(x: u32[M, N]) -> (y: u32[]) {
        y[] = max(|i, j| x[i, j]);
        schedule y { split j by 128 -> b, t; bind i, b: grid; bind t: thread; reduce t; reduce i by atomic; reduce b by grid; }
    }
}

fn main() {}
