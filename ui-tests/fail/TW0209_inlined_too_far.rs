//! A stage that grows too large once its intermediates are inlined.

tilewright::schedule! {
    kernel Power(x: f32[N]) -> (y: f32[N]) {
        a[i] = x[i] * x[i] + 1.0;
        b[i] = a[i] * a[i] * a[i] * a[i];
        c[i] = b[i] * b[i] * b[i] * b[i];
        d[i] = c[i] * c[i] * c[i] * c[i];
        e[i] = d[i] * d[i] * d[i] * d[i];
        f[i] = e[i] * e[i] * e[i] * e[i];
        g[i] = f[i] * f[i] * f[i] * f[i];
        h[i] = g[i] * g[i] * g[i] * g[i];
        y[i] = h[i] * h[i] * h[i] * h[i];
    }
}

fn main() {}
