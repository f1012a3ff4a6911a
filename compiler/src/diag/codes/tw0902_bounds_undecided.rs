//! TW0902: a read that cannot be shown to stay inside its tensor. One check decides between this and TW0901, so that
//! both have one payload, `OutOfBounds` there.

row! {
    /// As TW0901, but the compiler found neither a proof that the read stays inside its tensor nor a size for which it
    /// does not. That is refused too: a read that is not proved is not run.
    ///
    /// ## Wrong
    ///
    /// ```text
    /// kernel Add(x: f32[N], z: f32[M]) -> (y: f32[N])
    /// where N * N <= M * M
    /// {
    ///     y[i] = x[i] + z[i];
    /// }
    /// ```
    ///
    /// The message names the index and the extent. A fact that it proposes has been proved to suffice.
    ///
    /// ## Right
    ///
    /// ```text
    /// kernel Add(x: f32[N], z: f32[M]) -> (y: f32[N])
    /// where N <= M
    /// {
    ///     y[i] = x[i] + z[i];
    /// }
    /// ```
    ///
    /// ## Other ways out
    ///
    /// - `or` says what the element is outside: `z[i] or 0.0`.
    TW0902 "bounds-undecided" Error "a read that cannot be shown to stay inside its tensor"
}
