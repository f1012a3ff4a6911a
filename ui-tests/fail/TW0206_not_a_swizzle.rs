//! A swizzle of axes that do not form a square.

tilewright::schedule! {
    kernel Copy(x: f32[M, N]) -> (y: f32[M, N]) {
        y[i, j] = x[i, j];
        schedule y {
            split i by 8 -> io, ii;
            split j by 16 -> jo, ji;
            swizzle ii, ji by xor -> p, q;
        }
    }
}

fn main() {}
