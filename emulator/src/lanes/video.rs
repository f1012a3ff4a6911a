//! SIMD video instructions of one lane (PTX manual 9.7.18.2): two halves or four bytes of a register, each with its own
//! sign.

/// What is done to each part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Average, rounded away from zero if it is not negative, else up.
    Average,
    /// Absolute difference.
    AbsDiff,
    /// Minimum.
    Min,
    /// Maximum.
    Max,
}

/// A SIMD video instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Video {
    /// What is done to each part.
    pub operation: Operation,
    /// Bits of a part: 8 or 16.
    pub bits: u32,
    /// Whether parts of the result and of the operands are signed.
    pub signed: [bool; 3],
    /// Results are clamped to the parts of the result type.
    pub saturate: bool,
    /// The result is the sum of all parts and the third operand.
    pub accumulate: bool,
}

impl Video {
    /// The result for one lane of the warp.
    pub fn apply(&self, a: u32, b: u32, c: u32) -> u32 {
        let bits = self.bits;
        let ones = (1i64 << bits) - 1;
        let part = |value: u32, at: u32, signed: bool| {
            let raw = i64::from(value >> at) & ones;
            if signed && raw >> (bits - 1) != 0 { raw - (1 << bits) } else { raw }
        };
        let (mut packed, mut sum) = (0u32, c);
        for at in (0..32).step_by(bits as usize) {
            let (x, y) = (part(a, at, self.signed[1]), part(b, at, self.signed[2]));
            let mut value = match self.operation {
                Operation::Add => x + y,
                Operation::Sub => x - y,
                Operation::Average => (x + y + i64::from(x + y >= 0)) >> 1,
                Operation::AbsDiff => (x - y).abs(),
                Operation::Min => x.min(y),
                Operation::Max => x.max(y),
            };
            if self.saturate {
                let (least, greatest) = if self.signed[0] { (-(1 << (bits - 1)), ones >> 1) } else { (0, ones) };
                value = value.clamp(least, greatest);
            }
            sum = sum.wrapping_add(value as u32);
            packed |= ((value & ones) as u32) << at;
        }
        if self.accumulate { sum } else { packed }
    }
}

#[cfg(test)]
mod tests {
    use super::{Operation, Video};

    #[test]
    fn parts_do_not_meet() {
        let plain = |operation, bits, signed| Video {
            operation,
            bits,
            signed: [signed; 3],
            saturate: false,
            accumulate: false,
        };
        assert_eq!(plain(Operation::Add, 8, false).apply(0xff01_ff7f, 0x01ff_0101, 9), 0x0000_0080);
        assert_eq!(plain(Operation::Sub, 16, false).apply(0x0001_0000, 0x0002_0001, 9), 0xffff_ffff);
        assert_eq!(plain(Operation::AbsDiff, 8, false).apply(0x00ff_1020, 0xff00_2010, 0), 0xffff_1010);
        assert_eq!(plain(Operation::AbsDiff, 8, true).apply(0x8000_0000, 0x7f00_0000, 0), 0xff00_0000);
        assert_eq!(plain(Operation::Average, 16, true).apply(0x0003_fffd, 0x0000_0000, 0), 0x0002_fffe);
        assert_eq!(plain(Operation::Min, 16, true).apply(0x8000_0001, 0x0001_ffff, 0), 0x8000_ffff);
        assert_eq!(plain(Operation::Max, 8, false).apply(0x8001_02ff, 0x7f03_0100, 0), 0x8003_02ff);
        let clamped = Video { saturate: true, ..plain(Operation::Add, 8, true) };
        assert_eq!(clamped.apply(0x7f80_0102, 0x01ff_0102, 0), 0x7f80_0204);
        let summed = Video { accumulate: true, ..plain(Operation::AbsDiff, 8, false) };
        assert_eq!(summed.apply(0x0102_0304, 0x0000_0000, 100), 110);
    }
}
