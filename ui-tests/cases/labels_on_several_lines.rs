//! Other places are drawn from the tokens of the macro; comments between them do not matter.

tilewright::schedule! {
    /// A dot product of two vectors
    kernel Dot(
        x: f32[N], // the first
        z: f32[M], /* the second */
    ) -> (y: f32[]) {
        y[] = sum(|k|
            x[k] // N of them
                * /* times */ z[k]
        );
    }
}

fn main() {}
