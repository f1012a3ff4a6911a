//! What a first hour gets wrong, each with the help that leads to the fix.

tilewright::schedule! {
    kernel Swapped(x: f32[M, N]) -> (y: f32[N, M]) {
        y[i, j] = x[i, j];
        schedule y { merge i, j -> ij; split ij by 256 -> b, t; bind b: grid; bind t: thread; }
    }
    kernel Suffix(x: f16[N]) -> (y: f16[N]) {
        y[i] = x[i] * 0.5f32;
        schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    }
    kernel Bound(x: f32[M, N], length: u32[M]) -> (y: f32[M]) {
        y[row] = sum(|place in 0..length[row]| x[row, place]);
        schedule y { split row by 256 -> b, t; bind b: grid; bind t: thread; }
    }
    kernel Helper(inout x: f32[N]) {
        f[i] = 2.0 * x[i];
        x[i] = f[i] + f[N - 1 - i];
        schedule x { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    }
    kernel Tail(x: f32[N]) -> (y: f32[N]) {
        y[i] = 2.0 * x[i];
        schedule y { split i by 4 -> io, v; split io by 256 -> b, t; bind b: grid; bind t: thread; vectorize v; }
    }
}

fn main() {}
