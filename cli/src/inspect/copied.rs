//! What is told of a staged copy.

use tilewright_compiler::plan::staged::{self, Part};

/// A staged copy.
pub struct CopyView {
    pub name: String,
    pub tensor: String,
    pub way: &'static str,
    /// The loop that an instance stands in; none for the block as a whole.
    pub role: Option<String>,
    pub at: Option<String>,
    pub ring: u32,
    /// The thread that starts it, as a run of threads: one that the machine elects, for which the first stands.
    pub elected: (u32, u32),
    pub form: &'static str,
    /// Why that form.
    pub reason: String,
    /// Tiles or runs of an instance, and the bytes of each.
    pub copies: i128,
    pub copy_bytes: i128,
    pub axes: Vec<CopyAxisView>,
    /// Names of what counts places in the buffer, outermost first, with how many there are, and elements between
    /// neighbours.
    pub places: Vec<(String, [i128; 2])>,
    /// Bytes of the span; none without a swizzle.
    pub swizzle: Option<u32>,
    /// Of all buffers.
    pub buffer_bytes: i128,
    /// The blocks of a cluster that take each instance together, if several do.
    pub multicast: Option<MulticastView>,
    pub level: u8,
    /// None for a copy to a tensor.
    pub model: Option<&'static str>,
    /// What is known of its holes, in words.
    pub holes: String,
    /// Conditions of predicates that are waived because its holes are zero.
    pub zeros_for: Vec<String>,
}

/// Blocks of a cluster that take a copy together.
pub struct MulticastView {
    /// Axis of the cluster.
    pub along: String,
    pub blocks: u32,
    /// From one of them to the next, in numbers of blocks.
    pub stride: u32,
    /// The axis whose boxes they divide among each other; none if the first of them copies all.
    pub by: Option<String>,
}

/// An axis of the TMA domain of a staged copy.
pub struct CopyAxisView {
    pub name: String,
    pub size: String,
    pub stride: String,
    pub start: String,
    pub extent: i128,
    pub box_size: i128,
    pub element_stride: i128,
    pub boxes: i128,
}

/// What a step in the buffer of a copy counts, how many of these there are, and how far a step goes.
pub fn place(axis: &staged::Axis, step: &staged::Step) -> (String, [i128; 2]) {
    let (name, count) = match step.part {
        Part::Box => (format!("{} box", axis.name), axis.boxes()),
        Part::Phase => (format!("{} phase", axis.name), axis.boxed.element_stride),
        Part::Slot => (axis.name.clone(), axis.tile()),
    };
    (name, [count, step.stride])
}
