//! `allow` of what is not there. Warnings; denied here, so that they are seen. The last two kernels have none.
#![deny(deprecated, unknown_lints)]

tilewright::schedule! {
    #[allow(TW0690, TW0609, TW0201, TW9999)]
    kernel Scale(x: f32[N]) -> (y: f32[N]) {
        y[i] = 2.0 * x[i];
        schedule y { split i by 128 -> b, t; bind b: grid; bind t: thread; }
    }

    #[allow(TW0690, non_camel_case_types, reason = "half of the threads are enough")]
    kernel scale_twice(x: f32[N]) -> (y: f32[N]) {
        y[i] = 2.0 * x[i];
        launch threads(256);
        schedule y { split i by 128 -> b, t; bind b: grid; bind t: thread; }
    }

    #[allow(TW0112)]
    #[allow(TW0011, TW9999)]
    kernel Unread(x: f32[N], a: f32) -> (y: f32[N]) {
        y[i] = 2.0 * x[i];
        schedule y { split i by 128 -> b, t; bind b: grid; bind t: thread; }
    }
}

fn main() {}
