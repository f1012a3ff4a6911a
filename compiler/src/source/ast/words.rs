//! The closed sets of words: element types, operators, reductions, places, engines.

/// Declares an enum whose values are words of the language, with the table that parser, printer and suggestions read.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name { $($(#[$variant_meta])* $variant,)* }

        impl $name {
            /// Every value, in the order of the documentation.
            pub const ALL: &'static [$name] = &[$($name::$variant),*];
            /// The spelling of every value, in the same order.
            pub const WORDS: &'static [&'static str] = &[$($word),*];

            /// The spelling.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                Self::WORDS[self as usize]
            }

            /// The value spelled so.
            #[must_use]
            pub fn from_word(word: &str) -> Option<$name> {
                let index = Self::WORDS.iter().position(|&known| known == word)?;
                Some(Self::ALL[index])
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

words! {
    /// Prefix operators.
    UnaryOp {
        /// Arithmetic negation.
        Neg = "-",
        /// Logical negation.
        Not = "!",
    }
}

words! {
    /// Infix operators.
    BinaryOp {
        /// Product.
        Mul = "*",
        /// Quotient: floor in an index, truncation in a value.
        Div = "/",
        /// Remainder of that quotient.
        Rem = "%",
        /// Sum.
        Add = "+",
        /// Difference.
        Sub = "-",
        /// Shift towards the high bits.
        Shl = "<<",
        /// Shift towards the low bits.
        Shr = ">>",
        /// Bitwise and.
        BitAnd = "&",
        /// Bitwise exclusive or.
        BitXor = "^",
        /// Bitwise or.
        BitOr = "|",
        /// Equality.
        Eq = "==",
        /// Inequality.
        Ne = "!=",
        /// Less.
        Lt = "<",
        /// Less or equal.
        Le = "<=",
        /// Greater.
        Gt = ">",
        /// Greater or equal.
        Ge = ">=",
        /// Logical and.
        And = "&&",
        /// Logical or.
        Or = "||",
    }
}

impl BinaryOp {
    /// Binding strength, larger is tighter; all are left associative, comparisons do not associate at all.
    #[must_use]
    pub const fn precedence(self) -> u8 {
        match self {
            BinaryOp::Or => 1,
            BinaryOp::And => 2,
            BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => 3,
            BinaryOp::BitOr => 4,
            BinaryOp::BitXor => 5,
            BinaryOp::BitAnd => 6,
            BinaryOp::Shl | BinaryOp::Shr => 7,
            BinaryOp::Add | BinaryOp::Sub => 8,
            BinaryOp::Mul | BinaryOp::Div | BinaryOp::Rem => 9,
        }
    }

    /// Whether it compares.
    #[must_use]
    pub const fn is_comparison(self) -> bool {
        self.precedence() == 3
    }

    /// Whether it works on bits.
    #[must_use]
    pub const fn is_bitwise(self) -> bool {
        matches!(self.precedence(), 4..=7)
    }
}

words! {
    /// The reductions.
    ReductionKind {
        /// Sum, from +0.
        Sum = "sum",
        /// Product, from 1.
        Prod = "prod",
        /// Greatest value.
        Max = "max",
        /// Least value.
        Min = "min",
        /// Logical and.
        All = "all",
        /// Logical or.
        Any = "any",
        /// Smallest index of a greatest value.
        Argmax = "argmax",
        /// Smallest index of a least value.
        Argmin = "argmin",
        /// Sum of products, open to tensor cores.
        Dot = "dot",
        /// Prefix sums.
        Scan = "scan",
        /// The one term that belongs to an element, which the author promises.
        Only = "only",
    }
}

words! {
    /// How free the order of a `sum` is.
    ReductionOrder {
        /// In index order.
        Ordered = "ordered",
        /// Any, and it may differ from run to run.
        Unordered = "unordered",
        /// Any, of partial sums that are rescaled.
        Online = "online",
    }
}

words! {
    /// Where the results of a stage live.
    Place {
        /// Device memory: an output tensor, or memory of the launch of which each block has a part.
        Global = "global",
        /// Shared memory of the block.
        Shared = "shared",
        /// Registers of the threads.
        Registers = "registers",
    }
}

words! {
    /// What moves a staged copy.
    Engine {
        /// The tensor memory accelerator.
        Tma = "tma",
        /// Asynchronous copies by threads.
        CpAsync = "cp_async",
    }
}

words! {
    /// The function of a `swizzle`.
    SwizzleFunction {
        /// Exclusive or.
        Xor = "xor",
    }
}

words! {
    /// The level at which a `reduce` combines.
    ReduceBy {
        /// Lanes of a warp.
        Warp = "warp",
        /// Threads of a CTA.
        Cta = "cta",
        /// CTAs of a cluster.
        Cluster = "cluster",
        /// CTAs of the grid, by workspace and ticket.
        Grid = "grid",
        /// Atomic operations on the result.
        Atomic = "atomic",
    }
}

words! {
    /// Tensor-core instruction families.
    MmaEngine {
        /// Warpgroup, asynchronous, operands in shared memory.
        Wgmma = "wgmma",
        /// Warp, operands in registers.
        MmaSync = "mma_sync",
    }
}

words! {
    /// What an instance of a stage holds.
    RegionKind {
        /// The smallest box around what is asked for, all of it computed.
        Cover = "cover",
        /// That box, of which only what is asked for is computed.
        Exact = "exact",
        /// A run of elements in row-major order.
        Flat = "flat",
    }
}

words! {
    /// The correctness model of a staged copy, demanded by hand.
    FillModel {
        /// Holes are zero.
        Zero = "zero",
        /// Holes may hold anything.
        Any = "any",
    }
}

/// Words that begin a statement; a name before a bracket begins one, too.
pub(crate) const STATEMENTS: &[&str] = &["launch", "schedule", "stage", "inline", "unit", "tune", "pass"];

/// The ops, for suggestions and for telling where one starts.
pub(crate) const OPS: &[&str] = &[
    "split",
    "merge",
    "reorder",
    "resize",
    "swizzle",
    "bind",
    "vectorize",
    "unroll",
    "reduce",
    "like",
    "box",
    "tile",
    "layout",
    "multicast",
    "mma",
    "fragment",
    "region",
    "fill",
    "l2",
    "online",
];
