//! The table of diagnostic codes: one row a code. Codes are never reused.

use super::Level;

/// Declares [`Code`] and its table from rows `CODE name level "summary";`.
macro_rules! codes {
    ($($code:ident $name:literal $level:ident $summary:literal;)*) => {
        /// A diagnostic code. The hundreds name the question: see the table in this file.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs, reason = "the row of each code says what it is")]
        pub enum Code { $($code,)* }

        impl Code {
            /// Every code, in order.
            pub const ALL: &'static [Code] = &[$(Code::$code,)*];

            /// The row of this code.
            #[must_use]
            pub const fn row(self) -> &'static Row {
                const ROWS: &[Row] = &[$(Row { code: stringify!($code), name: $name, level: Level::$level, summary: $summary },)*];
                &ROWS[self as usize]
            }

            /// The code written so: `TW0401`.
            #[must_use]
            pub fn from_text(text: &str) -> Option<Code> {
                Self::ALL.iter().copied().find(|code| code.row().code == text)
            }
        }
    };
}

/// What is fixed about a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// `TW0001`
    pub code: &'static str,
    /// A short name in words joined by `-`.
    pub name: &'static str,
    /// Whether it stops the compilation.
    pub level: Level,
    /// One line for lists of codes and the title of its page.
    pub summary: &'static str,
}

codes! {
    // TW00: syntax.
    TW0001 "unexpected-token" Error "a token that the grammar does not allow here";
    TW0002 "unknown-word" Error "a word that the grammar does not know here";
    TW0003 "too-deep" Error "an expression or block nested too deeply";
    TW0004 "bad-literal" Error "a literal that is not a number of the language";
    TW0005 "not-supported-yet" Error "a construct that is planned and not built yet";
    TW0006 "reserved-name" Error "a word of the language or of Rust used as a name";
    TW0007 "repeated-clause" Error "a clause written twice or missing";
    TW0008 "bad-fact" Error "a fact that is not one comparison";
    TW0009 "foreign-syntax" Error "a construct of Rust that the language does not have";
    TW0010 "empty-invocation" Error "an invocation without a kernel";
    TW0011 "useless-allow" Warning "an `allow` that silences nothing";

    // TW01: names and types.
    TW0101 "unknown-name" Error "a name that nothing defines";
    TW0102 "duplicate-name" Error "a name defined twice";
    TW0103 "wrong-use" Error "a name used as something that it is not";
    TW0104 "untold-size" Error "a size or stride that no argument tells";
    TW0105 "bad-size" Error "something that is no size, or strides that do not match the sizes";
    TW0106 "wrong-rank" Error "a wrong number of indices";
    TW0107 "never-defined" Error "an output without an equation";
    TW0108 "defined-twice" Error "two equations for one tensor";
    TW0109 "assigned-input" Error "an equation for an input";
    TW0110 "cyclic-equations" Error "equations that need each other";
    TW0111 "never-read" Error "an intermediate that nothing reads";
    TW0112 "unused-input" Warning "an input that nothing reads";
    TW0113 "unknown-range" Error "an axis whose range cannot be inferred";
    TW0114 "range-conflict" Error "an axis that indexes dimensions of different sizes";
    TW0115 "output-domain" Error "a written domain that is not the output's shape";
    TW0116 "not-affine" Error "an index that is not quasi-affine";
    TW0117 "unguarded-gather" Error "a read at an index from memory, without `or`";
    TW0118 "bad-index" Error "something that is no index";
    TW0119 "type-mismatch" Error "two types that must be one";
    TW0120 "untyped-literal" Error "a literal whose type nothing fixes";
    TW0121 "wrong-operand" Error "an operation that a type does not have";
    TW0122 "wrong-literal" Error "a literal that its type does not have";
    TW0123 "wrong-arguments" Error "a wrong number of arguments";
    TW0124 "in-place-read" Error "an element updated in place that somebody else reads";
    TW0125 "wrong-tuple" Error "a tuple of the wrong length";
    TW0126 "dot-shape" Error "a `dot` that is not a sum of products";
    TW0127 "several-axes" Error "an argmax or argmin over several axes";
    TW0128 "no-such-stage" Error "a schedule for an input, or an inlined output";
    TW0129 "repeated-statement" Error "a second statement on the same thing";
    TW0130 "scalar-output" Error "an output passed by value";
    TW0131 "too-many" Error "more of something than a kernel can have";
    TW0132 "no-output" Error "a kernel that writes nothing";
    TW0150 "unknown-axis" Error "an op on an axis that its stage does not have";
    TW0151 "axis-named-twice" Error "two axes of a stage with one name";
    TW0152 "bound-twice" Error "an axis given to two parts of the machine";

    // TW02: sizes, divisibility, holes.
    TW0201 "not-divisible" Error "a size that is not known to be a multiple of what an op needs";
    TW0202 "bad-factor" Error "a factor or count that is not a literal in range";
    TW0203 "contradictory-facts" Error "facts that no size satisfies together";
    TW0204 "cut-elements" Error "a resize that cuts away elements of the stage";
    TW0205 "mixed-merge" Error "an axis of the result merged with one of the reduction";
    TW0206 "not-a-swizzle" Error "a swizzle of axes that do not form a square";
    TW0207 "not-static" Error "an extent that an op needs at compile time and nothing bounds";
    TW0208 "too-large" Error "an extent beyond exact arithmetic";
    TW0209 "inlined-too-far" Error "a stage that grows too large once its intermediates are inlined";

    // TW03: copies by the tensor memory accelerator, and by `cp.async`.
    TW0301 "no-zero-fill" Error "holes that a copy cannot fill with zeros";
    TW0302 "view-split" Error "a split of a tensor map's view that leaves a remainder";
    TW0303 "view-merge" Error "axes merged in a view that are not contiguous to each other";
    TW0304 "map-limit" Error "a box, tile or rank that no tensor map has";
    TW0305 "inner-stride" Error "a staged tensor without neighbours in memory";
    TW0306 "pitch" Error "a staged tensor whose strides are not known to be multiples of 16 bytes";
    TW0307 "inner-start" Error "a staged copy that does not start at a multiple of 16 bytes";
    TW0310 "attach-point" Error "a staged copy where none can stand";
    TW0311 "staged-for-nobody" Error "a staged copy that its reader does not read";
    TW0312 "not-a-tile" Error "a staged copy of something that is not a tile";
    TW0313 "not-whole" Error "a staged output of which an instance does not compute all";
    TW0314 "store-holes" Error "a staged output whose boxes hold elements of other instances";
    TW0315 "store-granule" Error "a staged output whose rows are not known to be multiples of 16 bytes";
    TW0316 "unknown-store" Error "a staged output that is written in a way not confirmed on hardware";
    TW0317 "which-copy" Error "a read that takes none, or several, of the copies of its tensor";
    TW0318 "not-fetched" Error "a stage that `cp.async` does not copy";
    TW0319 "not-multicast" Error "a copy that blocks of a cluster do not take together";

    // TW04: layout and alignment.
    TW0401 "misaligned-vector" Error "a vector access that is not known to be aligned";
    TW0402 "straddling-vector" Error "a vector that runs from one row into the next";
    TW0403 "vector-width" Error "an extent that no vector has";
    TW0404 "scattered-vector" Error "a vectorised axis along which the output is not contiguous";
    TW0405 "loop-inside-vector" Error "a loop inside a vectorised axis";
    TW0406 "accumulators" Error "a loop over the result inside one over the terms that needs too many accumulators";
    TW0407 "bad-swizzle" Error "a swizzle that a copy cannot have";
    TW0408 "bad-layout" Error "a layout in which a tile is not whole";
    TW0409 "unwritten-layout" Error "a layout that the accelerator does not write";
    TW0410 "cut-vector" Error "a region that may end inside a vector";
    TW0411 "bad-buffer-layout" Error "a layout that the buffer of a stage cannot have";
    TW0412 "laid-out-vector" Error "a layout that takes vectors apart";
    TW0490 "bank-conflicts" Warning "accesses of shared memory that wait for each other";

    // TW05: memory and resource budgets.
    TW0501 "unbounded-buffer" Error "a buffer whose size is not known at compile time";
    TW0502 "shared-budget" Error "more shared memory than a block has";
    TW0504 "register-budget" Error "more registers than a thread has";
    TW0505 "register-pressure" Error "more registers at one time than a thread has";
    TW0506 "role-warps" Error "warps that the roles of a block cannot have";
    TW0507 "role-registers" Error "registers that the roles of a block cannot have";
    TW0508 "unsaid-role" Error "a stage without a role, or a role without a stage";
    TW0509 "no-hand-over" Error "what one role holds where another one cannot read it";

    // TW06: collectives.
    TW0601 "same-element" Error "an element written by several threads";
    TW0602 "too-many-threads" Error "more bound iterations than units";
    TW0603 "partial-warp" Error "a block that is not made of whole warps or warpgroups";
    TW0604 "bind-order" Error "a unit bound inside a smaller one";
    TW0605 "unit-inside" Error "a unit bound inside an instance that it does not share";
    TW0606 "no-such-unit" Error "a unit that the launch or the threads around do not have";
    TW0610 "cluster-blocks" Error "a cluster that has other blocks than its axes";
    TW0611 "bad-raster" Error "a raster of an axis whose blocks have no other order";
    TW0612 "one-tile" Error "a persistent launch of one tile";
    TW0690 "idle-threads" Warning "threads of the block without work";

    // TW07: dependences, ownership, synchronisation.
    TW0702 "unscheduled-reduction" Error "an intermediate reduction without a schedule";
    TW0703 "bound-reduction" Error "a reduction axis given to several units";
    TW0704 "stage-not-around" Error "a stage that is read where it is not";
    TW0706 "no-instance" Error "a place where a stage cannot stand";
    TW0707 "held-elsewhere" Error "a register read by a thread that does not hold it";
    TW0708 "not-reduced-here" Error "a `reduce` of an axis that no unit shares";
    TW0709 "no-place" Error "a stage without a place";
    TW0710 "nothing-alike" Error "a `like` without a counterpart";
    TW0711 "register-at-run-time" Error "a register that is known at run time only";
    TW0712 "other-iterations" Error "an output beside one that runs in other iterations";
    TW0713 "no-such-region" Error "a region that a stage cannot have";
    TW0714 "not-the-last" Error "a reduction that blocks share where the last of them cannot go on alone";
    TW0790 "reduced-again" Warning "an output that is reduced again for each of its readers";

    // TW09: bounds.
    TW0901 "out-of-bounds" Error "a read outside its tensor";
    TW0902 "bounds-undecided" Error "a read that cannot be shown to stay inside its tensor";
    TW0903 "zero-divisor" Error "an integer divisor that may be 0";
    TW0904 "index-divisor" Error "the divisor of an index that may be 0 or negative";
    TW0990 "always-outside" Warning "a read with `or` that is always outside its tensor";
    TW0991 "needless-or" Warning "an `or` that is never taken";
    TW0992 "constant-condition" Warning "a comparison of indices that always gives the same";
    TW0993 "empty-range" Warning "a reduction that never has a term";

    // TW10: numerics.
    TW1001 "empty-argmax" Error "an argmax or argmin over a range that may be empty";
    TW1002 "division-by-zero" Error "an integer divided by the literal 0";
    TW1003 "storage-only" Error "arithmetic on a type for storage";
    TW1004 "not-for-double" Error "an approximate function of `f64`";
    TW1005 "dot-type" Error "a `dot` of a type that it does not exist for";
    TW1006 "order-without-effect" Error "an order for a reduction that has none";
    TW1007 "promotion" Error "a promotion interval where there is none";
    TW1008 "reordered-terms" Error "a schedule that changes the order of an ordered reduction";
    TW1009 "unordered-bits" Error "a float sum by atomic operations that is not `unordered`";
    TW1010 "place-outside" Error "an argmax or argmin over indices that are no `u32`";
    TW1090 "float-atomics" Warning "a float sum whose bits change from run to run";

    // TW90: our own bug.
    TW9001 "internal" Error "a defect of the compiler";
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.row().code)
    }
}
