//! A `dot` of a type that it does not exist for.

tilewright::schedule! {
    kernel Dot(x: i64[N], z: i64[N]) -> (y: i64[]) {
        y[] = dot(|k| x[k] * z[k]);
    }
}

fn main() {}
