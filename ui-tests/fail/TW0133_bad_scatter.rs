//! Equations whose places memory gives, and that are no scatters.

tilewright::schedule! {
    kernel Stored(inout y: f32[M], p: u32[N], x: f32[N]) {
        y[p[i]] = x[i];
        schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    }

    kernel Replaced(inout y: u32[M], p: u32[N]) {
        y[p[i]] = sum(|i| 1);
        schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    }

    kernel Output(p: u32[N], x: i32[N]) -> (y: i32[M]) {
        y[p[i]] max= max(|i| x[i]);
        schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    }

    kernel Ordered(inout y: f32[M], p: u32[N], x: f32[N]) {
        y[p[i]] += ordered sum(|i| x[i]);
        schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    }

    kernel Product(inout y: i32[M], p: u32[N], x: i32[N]) {
        y[p[i]] += prod(|i| x[i]);
        schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    }

    kernel Half(inout y: f16[M], p: u32[N], x: f16[N]) {
        y[p[i]] += unordered sum(|i| x[i]);
        schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; }
    }

    kernel Read(inout y: i32[M], p: u32[N], x: i32[N]) -> (z: i32[M]) {
        y[p[i]] += sum(|i| x[i]);
        z[j] = y[j];
        schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; }
        schedule z { split j by 256 -> b, t; bind b: grid; bind t: thread; }
    }

    kernel Copied(inout y: i32[M], p: u32[N], x: i32[N]) {
        y[p[i]] += sum(|i| x[i]);
        schedule y { split i by 256 -> b, t; bind b: grid; bind t: thread; }
        stage ys[j] = y in shared at y.b { bind j: thread; }
    }
}

fn main() {}
