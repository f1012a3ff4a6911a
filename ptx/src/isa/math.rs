//! Roots, reciprocals and transcendental functions (9.7.3.13 onwards, 9.7.4.9 onwards).

family! {
    /// Functions of one floating-point argument.
    Math {
        /// Reciprocal.
        Rcp: "9.7.3.13, 9.7.3.14", None, None, [
            "rcp.approx[.ftz].f32 d, a",
            "rcp.<$frnd>[.ftz].f32 d, a",
            "rcp.<$frnd>.f64 d, a",
            "rcp.approx.ftz.f64 d, a",
        ];
        /// Square root.
        Sqrt: "9.7.3.15", None, None, [
            "sqrt.approx[.ftz].f32 d, a",
            "sqrt.<$frnd>[.ftz].f32 d, a",
            "sqrt.<$frnd>.f64 d, a",
        ];
        /// Reciprocal square root.
        Rsqrt: "9.7.3.16, 9.7.3.17", None, None, ["rsqrt.approx[.ftz].f32 d, a", "rsqrt.approx[.ftz].f64 d, a"];
        /// Sine.
        Sin: "9.7.3.18", None, None, ["sin.approx[.ftz].f32 d, a"];
        /// Cosine.
        Cos: "9.7.3.19", None, None, ["cos.approx[.ftz].f32 d, a"];
        /// Logarithm to base 2.
        Lg2: "9.7.3.20", None, None, ["lg2.approx[.ftz].f32 d, a"];
        /// Power of 2.
        Ex2: "9.7.3.21, 9.7.4.10", None, None, [
            "ex2.approx[.ftz].f32 d, a",
            "ex2.approx.<f16|f16x2> d, a:T0! @7.0/75",
            "ex2.approx.ftz.<bf16|bf16x2> d, a:T0! @7.8/90",
        ];
        /// Hyperbolic tangent.
        Tanh: "9.7.3.22, 9.7.4.9", None, None, [
            "tanh.approx.f32 d, a @7.0/75",
            "tanh.approx.<f16|f16x2> d, a:T0! @7.0/75",
            "tanh.approx.<bf16|bf16x2> d, a:T0! @7.8/90",
        ];
    }
}
