//! Logic, shifts and bit manipulation (9.7.1.14 onwards, 9.7.8).

family! {
    /// Bitwise operations.
    Logic {
        /// Conjunction.
        And: "9.7.8.1", None, None, ["and.<pred|b16|b32|b64> d, a, b"];
        /// Disjunction.
        Or: "9.7.8.2", None, None, ["or.<pred|b16|b32|b64> d, a, b"];
        /// Exclusive disjunction.
        Xor: "9.7.8.3", None, None, ["xor.<pred|b16|b32|b64> d, a, b"];
        /// Complement.
        Not: "9.7.8.4", None, None, ["not.<pred|b16|b32|b64> d, a"];
        /// Logical complement: 1 for zero, 0 for everything else.
        Cnot: "9.7.8.5", None, None, ["cnot.<b16|b32|b64> d, a"];
        /// Any function of three inputs, by its truth table.
        Lop3: "9.7.8.6", None, None, [
            "lop3.b32 d, a, b, c, #lut:0..255",
            "lop3.<or|and>.b32 d|p, a, b, c, #lut:0..255, !q @8.2/70",
        ];
        /// Funnel shift of `b:a`.
        Shf: "9.7.8.7", None, None, ["shf.<l|r>.<clamp|wrap>.b32 d, a, b, c:u32"];
        /// Shift left; amounts above the width give 0.
        Shl: "9.7.8.8", None, None, ["shl.<b16|b32|b64> d, a, b:u32"];
        /// Shift right, arithmetic for signed types; amounts above the width are clamped.
        Shr: "9.7.8.9", None, None, ["shr.<b16|b32|b64|u16|u32|u64|s16|s32|s64> d, a, b:u32"];
        /// Number of ones.
        Popc: "9.7.1.14", None, None, ["popc.<b32|b64> d:u32, a"];
        /// Number of leading zeros.
        Clz: "9.7.1.15", None, None, ["clz.<b32|b64> d:u32, a"];
        /// Position of the highest significant bit.
        Bfind: "9.7.1.16", None, None, ["bfind[.shiftamt].<u32|u64|s32|s64> d:u32, a"];
        /// Position of the n-th set bit.
        Fns: "9.7.1.17", None, None, ["fns.b32 d, a:b32, b:b32, c:s32"];
        /// Bits in reverse.
        Brev: "9.7.1.18", None, None, ["brev.<b32|b64> d, a"];
        /// Bit field extract.
        Bfe: "9.7.1.19", None, None, ["bfe.<u32|u64|s32|s64> d, a, b:u32, c:u32"];
        /// Bit field insert.
        Bfi: "9.7.1.20", None, None, ["bfi.<b32|b64> d, a, b, c:u32, e:u32"];
        /// Sign or zero extension from bit `b`.
        Szext: "9.7.1.21", None, None, ["szext.<clamp|wrap>.<u32|s32> d, a, b:u32 @7.6/70"];
        /// Mask of `b` ones from bit `a`.
        Bmsk: "9.7.1.22", None, None, ["bmsk.<clamp|wrap>.b32 d, a:u32, b:u32 @7.6/70"];
        /// Bytes of `b:a` picked by selectors.
        Prmt: "9.7.9.7", None, None, ["prmt.b32[.<f4e|b4e|rc8|ecl|ecr|rc16>] d, a, b, c"];
    }
}
