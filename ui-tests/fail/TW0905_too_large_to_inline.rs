//! Too many reads through intermediates to be checked.

tilewright::schedule! {
    kernel Tower(x: f32[N + 1000]) -> (y: f32[N]) {
        a[i in 0..N + 900] = x[i - 1];
        b[i] = sum(|k in 1..3| a[i + k]) + sum(|k in 1..4| a[i + k]) + sum(|k in 1..5| a[i + k]) + sum(|k in 1..6| a[i + k]);
        c[i] = sum(|k in 1..3| b[i + k]) + sum(|k in 1..4| b[i + k]) + sum(|k in 1..5| b[i + k]) + sum(|k in 1..6| b[i + k]);
        d[i] = sum(|k in 1..3| c[i + k]) + sum(|k in 1..4| c[i + k]) + sum(|k in 1..5| c[i + k]) + sum(|k in 1..6| c[i + k]);
        e[i] = sum(|k in 1..3| d[i + k]) + sum(|k in 1..4| d[i + k]) + sum(|k in 1..5| d[i + k]) + sum(|k in 1..6| d[i + k]);
        f[i] = sum(|k in 1..3| e[i + k]) + sum(|k in 1..4| e[i + k]) + sum(|k in 1..5| e[i + k]) + sum(|k in 1..6| e[i + k]);
        g[i] = sum(|k in 1..3| f[i + k]) + sum(|k in 1..4| f[i + k]) + sum(|k in 1..5| f[i + k]) + sum(|k in 1..6| f[i + k]);
        y[i] = if i >= 1 { g[i] } else { 0.0 };
        inline b; inline c; inline d; inline e; inline f; inline g;
    }
}

fn main() {}
