//! A block that has a part of a warpgroup, where instances belong to warpgroups.

tilewright::schedule! {
    #[allow(TW0690)]
    kernel Centred(x: f32[M, N]) -> (y: f32[M, N]) {
        s[i] = sum(|j| x[i, j]);
        y[i, j] = x[i, j] - s[i];
        launch threads(192);
        schedule y {
            split i by 1 -> b, g;
            split j by 128 -> r, t;
            bind b: grid;
            bind g: warpgroup;
            bind t: thread;
        }
        schedule s in registers per warpgroup at y.b {
            split j by 128 -> r, t;
            bind t: thread;
            reduce t;
        }
    }
}

fn main() {}
