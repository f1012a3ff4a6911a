//! The 128 bytes of a tensor map, written and read.

use super::{Dimension, ENCODED_BYTES, Fault, Fill, Format, GRANULE, MAX_RANK, Promotion, Swizzle, TensorMap};

/// Extent in bytes from which recent drivers mark a tensor as large.
const LARGE_BYTES: u128 = 128 * 1024;

impl TensorMap {
    /// Bytes from the first element to the end of the last.
    fn extent_bytes(&self) -> u128 {
        let reach = |d: &Dimension| u128::from(d.size - 1) * u128::from(d.stride);
        self.dimensions.iter().map(reach).sum::<u128>() + u128::from(self.format.bytes())
    }

    /// The map as the hardware reads it.
    ///
    /// # Errors
    /// A rule that is broken.
    pub fn encode(&self) -> Result<[u8; ENCODED_BYTES], Fault> {
        self.check()?;
        let rank = self.dimensions.len();
        let mut words = [0u32; ENCODED_BYTES / 4];
        words[0] = self.address as u32;
        words[1] = (self.address >> 32) as u32;
        words[2] = ((rank as u32 - 1) << 4)
            | (self.format.code() << 7)
            | (self.swizzle.code() << 13)
            | (u32::from(self.fill == Fill::Nan) << 15)
            | ((self.promotion as u32) << 17)
            | (u32::from(self.extent_bytes() >= LARGE_BYTES) << 21);
        for (i, d) in self.dimensions.iter().enumerate() {
            if i > 0 {
                let chunks = d.stride / GRANULE;
                words[2 + i] = chunks as u32;
                words[7] |= ((chunks >> 32) as u32) << (4 * (i - 1));
                words[14] |= (d.box_size - 1) << (8 * (i - 1));
            }
            words[8 + i] = (d.size - 1) as u32;
            words[13] |= (d.element_stride - 1) << (3 * i);
        }
        words[13] |= (self.dimensions[0].box_size - 1) << 24;
        let whole = |d: &Dimension| d.box_size / d.element_stride;
        words[16] = self.dimensions.iter().map(whole).product::<u32>() * self.format.bytes();
        words[18] = self.swizzle.period();
        let mut bytes = [0; ENCODED_BYTES];
        for (chunk, word) in bytes.chunks_exact_mut(4).zip(words) {
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        Ok(bytes)
    }

    /// The map that these bytes encode.
    ///
    /// # Errors
    /// Bytes that are no map of this kind: other modes of the accelerator, or a broken rule.
    pub fn decode(bytes: &[u8; ENCODED_BYTES]) -> Result<Self, NotAMap> {
        let word = |i: usize| u32::from_le_bytes([bytes[4 * i], bytes[4 * i + 1], bytes[4 * i + 2], bytes[4 * i + 3]]);
        let control = word(2);
        let bits = |from: u32, count: u32| (control >> from) & ((1 << count) - 1);
        if bits(0, 1) != 0 {
            return Err(NotAMap::Mode("im2col"));
        }
        if bits(11, 2) != 0 {
            return Err(NotAMap::Mode("an interleaved layout"));
        }
        let format = Format::ALL.into_iter().find(|f| f.code() == bits(7, 4)).filter(|_| bits(16, 1) == 0);
        let format = format.ok_or(NotAMap::Format(bits(7, 4)))?;
        let rank = bits(4, 3) as usize + 1;
        if rank > MAX_RANK {
            return Err(NotAMap::Rule(Fault::Rank(rank)));
        }
        let dimension = |i: usize| {
            let (low, high) = if i == 0 { (0, 0) } else { (word(2 + i), (word(7) >> (4 * (i - 1))) & 15) };
            let stride = (u64::from(high) << 32 | u64::from(low)) * GRANULE;
            let box_field = if i == 0 { word(13) >> 24 } else { (word(14) >> (8 * (i - 1))) & 255 };
            Dimension {
                size: u64::from(word(8 + i)) + 1,
                stride: if i == 0 { u64::from(format.bytes()) } else { stride },
                box_size: box_field + 1,
                element_stride: ((word(13) >> (3 * i)) & 7) + 1,
            }
        };
        let promotion = [Promotion::None, Promotion::B64, Promotion::B128, Promotion::B256];
        let map = Self {
            format,
            address: u64::from(word(1)) << 32 | u64::from(word(0)),
            dimensions: (0..rank).map(dimension).collect(),
            swizzle: Swizzle::ALL[bits(13, 2) as usize],
            fill: if bits(15, 1) == 1 { Fill::Nan } else { Fill::Zero },
            promotion: promotion[bits(17, 2) as usize],
        };
        map.check().map_err(NotAMap::Rule)?;
        Ok(map)
    }
}

/// Why bytes are not a map that this crate knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAMap {
    /// A mode of the accelerator that is not supported.
    Mode(&'static str),
    /// A code of an element type that is not supported.
    Format(u32),
    /// A rule of tensor maps is broken.
    Rule(Fault),
}

impl std::fmt::Display for NotAMap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Mode(mode) => write!(f, "the tensor map asks for {mode}, which is not supported"),
            Self::Format(code) => write!(f, "the tensor map has element type {code}, which is not supported"),
            Self::Rule(fault) => fault.fmt(f),
        }
    }
}

impl std::error::Error for NotAMap {}
