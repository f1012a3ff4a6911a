//! One file a code: its row, its page, and what a check reports, with the words.
//!
//! A file `twNNNN_name.rs` opens with `row!`: the page as documentation, in Markdown, then the code, its name, its
//! level and a summary. After it stand the payloads (facts only: names, sizes, spans), each with its
//! [`IntoDiagnostic`](super::IntoDiagnostic). The list below names each file once.

use super::Level;

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
    /// The lines of its page, each after a line break.
    lines: &'static str,
}

impl Row {
    /// The page of this code, in Markdown: the rule, a wrong and a right example.
    #[must_use]
    pub fn page(&self) -> String {
        let mut page = format!("# {}: {}\n", self.code, self.summary);
        for line in self.lines.split('\n').skip(1) {
            page.push('\n');
            // Documentation has a space before each line.
            page.push_str(line.strip_prefix(' ').unwrap_or(line));
        }
        page.push('\n');
        page
    }
}

/// Declares the row of a code: its page as documentation, then `CODE name level summary`.
macro_rules! row {
    ($(#[doc = $line:literal])* $code:ident $name:literal $level:ident $summary:literal) => {
        pub(super) const ROW: super::Row = super::Row {
            code: stringify!($code),
            name: $name,
            level: $crate::diag::Level::$level,
            summary: $summary,
            lines: concat!($("\n", $line),*),
        };
    };
}

/// Declares [`Code`] from the files of this folder, and the names of what they report.
macro_rules! codes {
    ($($code:ident $file:ident;)*) => {
        $(
            mod $file;
            #[allow(unused_imports, reason = "the payload of TW0902 is that of TW0901")]
            pub use $file::*;
        )*

        /// A diagnostic code. The hundreds name the question.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs, reason = "the row of each code says what it is")]
        pub enum Code { $($code,)* }

        impl Code {
            /// Every code, in order.
            pub const ALL: &'static [Code] = &[$(Code::$code,)*];

            /// Warnings of kernels that are right, and slower than they need to be.
            pub const OF_SPEED: [Code; 3] = [Code::TW0490, Code::TW0491, Code::TW0691];

            /// Whether the edit of a finding, if it has just one, leaves the author no choice: a slip of the pen, or
            /// something without effect.
            #[must_use]
            pub fn leaves_no_choice(self) -> bool {
                const CODES: [Code; 14] = [
                    Code::TW0001, Code::TW0002, Code::TW0009, Code::TW0011, Code::TW0101, Code::TW0103, Code::TW0105,
                    Code::TW0118, Code::TW0122, Code::TW0130, Code::TW0150, Code::TW0153, Code::TW0405, Code::TW0991,
                ];
                CODES.contains(&self)
            }

            /// The row of this code.
            #[must_use]
            pub const fn row(self) -> &'static Row {
                const ROWS: &[Row] = &[$($file::ROW,)*];
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

codes! {
    // TW00: syntax.
    TW0001 tw0001_unexpected_token;
    TW0002 tw0002_unknown_word;
    TW0003 tw0003_too_deep;
    TW0004 tw0004_bad_literal;
    TW0005 tw0005_not_supported_yet;
    TW0006 tw0006_reserved_name;
    TW0007 tw0007_repeated_clause;
    TW0008 tw0008_bad_fact;
    TW0009 tw0009_foreign_syntax;
    TW0010 tw0010_empty_invocation;
    TW0011 tw0011_useless_allow;

    // TW01: names and types.
    TW0101 tw0101_unknown_name;
    TW0102 tw0102_duplicate_name;
    TW0103 tw0103_wrong_use;
    TW0104 tw0104_untold_size;
    TW0105 tw0105_bad_size;
    TW0106 tw0106_wrong_rank;
    TW0107 tw0107_never_defined;
    TW0108 tw0108_defined_twice;
    TW0109 tw0109_assigned_input;
    TW0110 tw0110_cyclic_equations;
    TW0111 tw0111_never_read;
    TW0112 tw0112_unused_input;
    TW0113 tw0113_unknown_range;
    TW0114 tw0114_range_conflict;
    TW0115 tw0115_output_domain;
    TW0116 tw0116_not_affine;
    TW0117 tw0117_unguarded_gather;
    TW0118 tw0118_bad_index;
    TW0119 tw0119_type_mismatch;
    TW0120 tw0120_untyped_literal;
    TW0121 tw0121_wrong_operand;
    TW0122 tw0122_wrong_literal;
    TW0123 tw0123_wrong_arguments;
    TW0124 tw0124_in_place_read;
    TW0125 tw0125_wrong_tuple;
    TW0126 tw0126_dot_shape;
    TW0127 tw0127_several_axes;
    TW0128 tw0128_no_such_stage;
    TW0129 tw0129_repeated_statement;
    TW0130 tw0130_scalar_output;
    TW0131 tw0131_too_many;
    TW0132 tw0132_no_output;
    TW0133 tw0133_bad_scatter;
    TW0150 tw0150_unknown_axis;
    TW0151 tw0151_axis_named_twice;
    TW0152 tw0152_bound_twice;
    TW0153 tw0153_discarded_op;

    // TW02: sizes, divisibility, holes.
    TW0201 tw0201_not_divisible;
    TW0202 tw0202_bad_factor;
    TW0203 tw0203_contradictory_facts;
    TW0204 tw0204_cut_elements;
    TW0205 tw0205_mixed_merge;
    TW0206 tw0206_not_a_swizzle;
    TW0207 tw0207_not_static;
    TW0208 tw0208_too_large;
    TW0209 tw0209_inlined_too_far;

    // TW03: copies by the tensor memory accelerator, and by `cp.async`.
    TW0301 tw0301_no_zero_fill;
    TW0302 tw0302_view_split;
    TW0303 tw0303_view_merge;
    TW0304 tw0304_map_limit;
    TW0305 tw0305_inner_stride;
    TW0306 tw0306_pitch;
    TW0307 tw0307_inner_start;
    TW0310 tw0310_attach_point;
    TW0311 tw0311_staged_for_nobody;
    TW0312 tw0312_not_a_tile;
    TW0313 tw0313_not_whole;
    TW0314 tw0314_store_holes;
    TW0315 tw0315_store_granule;
    TW0316 tw0316_unknown_store;
    TW0317 tw0317_which_copy;
    TW0318 tw0318_not_fetched;
    TW0319 tw0319_not_multicast;

    // TW04: layout and alignment.
    TW0401 tw0401_misaligned_vector;
    TW0402 tw0402_straddling_vector;
    TW0403 tw0403_vector_width;
    TW0404 tw0404_scattered_vector;
    TW0405 tw0405_loop_inside_vector;
    TW0406 tw0406_accumulators;
    TW0407 tw0407_bad_swizzle;
    TW0408 tw0408_bad_layout;
    TW0409 tw0409_unwritten_layout;
    TW0410 tw0410_cut_vector;
    TW0411 tw0411_bad_buffer_layout;
    TW0412 tw0412_laid_out_vector;
    TW0490 tw0490_bank_conflicts;
    TW0491 tw0491_scattered_access;

    // TW05: memory and resource budgets.
    TW0501 tw0501_unbounded_buffer;
    TW0502 tw0502_shared_budget;
    TW0504 tw0504_register_budget;
    TW0505 tw0505_register_pressure;
    TW0506 tw0506_role_warps;
    TW0507 tw0507_role_registers;
    TW0508 tw0508_unsaid_role;
    TW0509 tw0509_no_hand_over;

    // TW06: collectives.
    TW0601 tw0601_same_element;
    TW0602 tw0602_too_many_threads;
    TW0603 tw0603_partial_warp;
    TW0604 tw0604_bind_order;
    TW0605 tw0605_unit_inside;
    TW0606 tw0606_no_such_unit;
    TW0610 tw0610_cluster_blocks;
    TW0611 tw0611_bad_raster;
    TW0612 tw0612_one_tile;
    TW0690 tw0690_idle_threads;
    TW0691 tw0691_idle_machine;

    // TW07: dependences, ownership, synchronisation.
    TW0702 tw0702_unscheduled_reduction;
    TW0703 tw0703_bound_reduction;
    TW0704 tw0704_stage_not_around;
    TW0706 tw0706_no_instance;
    TW0707 tw0707_held_elsewhere;
    TW0708 tw0708_not_reduced_here;
    TW0709 tw0709_no_place;
    TW0710 tw0710_nothing_alike;
    TW0711 tw0711_register_at_run_time;
    TW0712 tw0712_other_iterations;
    TW0713 tw0713_no_such_region;
    TW0714 tw0714_not_the_last;
    TW0720 tw0720_bad_online;
    TW0790 tw0790_reduced_again;

    // TW08: tensor cores.
    TW0801 tw0801_no_such_product;
    TW0802 tw0802_operand_place;
    TW0803 tw0803_operand_layout;
    TW0804 tw0804_product_holes;
    TW0805 tw0805_product_threads;
    TW0890 tw0890_many_products;

    // TW09: bounds.
    TW0901 tw0901_out_of_bounds;
    TW0902 tw0902_bounds_undecided;
    TW0903 tw0903_zero_divisor;
    TW0904 tw0904_index_divisor;
    TW0990 tw0990_always_outside;
    TW0991 tw0991_needless_or;
    TW0992 tw0992_constant_condition;
    TW0993 tw0993_empty_range;

    // TW10: numerics.
    TW1001 tw1001_empty_argmax;
    TW1002 tw1002_division_by_zero;
    TW1003 tw1003_storage_only;
    TW1004 tw1004_not_for_double;
    TW1005 tw1005_dot_type;
    TW1006 tw1006_order_without_effect;
    TW1007 tw1007_promotion;
    TW1008 tw1008_reordered_terms;
    TW1009 tw1009_unordered_bits;
    TW1010 tw1010_place_outside;
    TW1011 tw1011_not_online;
    TW1090 tw1090_float_atomics;

    // TW11: constants with candidates.
    TW1101 tw1101_bad_candidates;
    TW1102 tw1102_tuned_value;
    TW1103 tw1103_too_many_combinations;
    TW1104 tw1104_no_combination;
    TW1105 tw1105_stale_record;
    TW1106 tw1106_bad_record;
    TW1190 tw1190_first_refused;

    // TW90: our own bug.
    TW9001 tw9001_internal;
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.row().code)
    }
}
