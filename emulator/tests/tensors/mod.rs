//! A scalar model of tiled copies, and random cases: written from the manual, slot by slot, and with nothing of the
//! emulator's.
#![allow(dead_code, reason = "each test program uses a part of it")]

use tilewright_kernel::tensor_map::{Dimension, Fill, Format, MAX_TILE_BYTES, Promotion, Swizzle, TensorMap};

/// Numbers (SplitMix64).
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

/// A tensor in memory, and a copy.
#[derive(Clone, Debug)]
pub struct Case {
    /// With address 0.
    pub map: TensorMap,
    pub start: Vec<i32>,
    /// Bytes from the start of the allocation to the tensor.
    pub offset: u64,
    /// Bytes from a multiple of 1024 in shared memory to the tile.
    pub place: u32,
    /// The allocation.
    pub tensor: Vec<u8>,
}

impl Case {
    /// A case of this rank. Stores start inside the tensor or beyond its end, loads anywhere.
    pub fn random(random: &mut Random, rank: usize, store: bool) -> Case {
        loop {
            let format = Format::ALL[random.below(10) as usize];
            let bytes = u64::from(format.bytes());
            let swizzle = Swizzle::ALL[random.below(4) as usize];
            let chunk = 16 / bytes;
            let widest = if swizzle == Swizzle::None { 4 } else { u64::from(swizzle.span()) / 16 };
            let inner_box = chunk * (1 + random.below(widest));
            let mut dimensions = vec![Dimension {
                size: 1 + random.below(3 * inner_box),
                stride: bytes,
                box_size: inner_box as u32,
                element_stride: 1,
            }];
            let mut pitch = (dimensions[0].size * bytes).next_multiple_of(16);
            for _ in 1..rank {
                let stride = pitch + 16 * random.below(2);
                let size = 1 + random.below(6);
                let box_size = 1 + random.below(6) as u32;
                let element_stride = if random.below(2) == 0 { 1 } else { 1 + random.below(8) as u32 };
                dimensions.push(Dimension { size, stride, box_size, element_stride });
                pitch = stride * size;
            }
            let fill = if format.is_float() && random.below(2) == 0 { Fill::Nan } else { Fill::Zero };
            let map = TensorMap { format, address: 0, dimensions, swizzle, fill, promotion: Promotion::None };
            // A last span that is not full would leave gaps in the image.
            let gaps = !map.tile_bytes().is_multiple_of(u64::from(swizzle.span()));
            if gaps || map.tile_bytes() > 65536 || map.tile_bytes() > MAX_TILE_BYTES || pitch > 1 << 20 {
                continue;
            }
            let start = map.dimensions.iter().enumerate().map(|(n, dimension)| {
                let (box_size, size) = (i64::from(dimension.box_size), dimension.size as i64);
                let least = if store { 0 } else { -box_size - 1 };
                let at = least + random.below((size + 1 - least) as u64) as i64;
                let chunk = if n == 0 { chunk as i64 } else { 1 };
                (at.div_euclid(chunk) * chunk) as i32
            });
            let start = start.collect();
            let tensor = (0..pitch + 48).map(|_| random.below(256) as u8).collect();
            let place = 128 * random.below(8) as u32;
            return Case { map, start, offset: 16 * random.below(3), place, tensor };
        }
    }
}

/// The slots of a tile with the coordinates of their elements.
fn each_slot(case: &Case, mut visit: impl FnMut(usize, &[i64])) {
    let dimensions = &case.map.dimensions;
    let tile: Vec<usize> = dimensions.iter().map(|d| d.box_size.div_ceil(d.element_stride) as usize).collect();
    for slot in 0..tile.iter().product::<usize>() {
        let mut rest = slot;
        let mut at = Vec::new();
        for (n, dimension) in dimensions.iter().enumerate() {
            at.push(i64::from(case.start[n]) + (rest % tile[n]) as i64 * i64::from(dimension.element_stride));
            rest /= tile[n];
        }
        visit(slot, &at);
    }
}

fn inside(case: &Case, at: &[i64]) -> bool {
    case.map.dimensions.iter().zip(at).all(|(d, at)| (0..d.size as i64).contains(at))
}

fn address(case: &Case, at: &[i64]) -> usize {
    let sum: i64 = case.map.dimensions.iter().zip(at).map(|(d, at)| d.stride as i64 * at).sum();
    sum as usize + case.offset as usize
}

/// Where byte `offset` of a tile is, from the start of the tile: chunk c of a span in row r of 128 bytes goes to c xor
/// r mod (span / 16).
fn swizzled(case: &Case, offset: usize) -> usize {
    let span = match case.map.swizzle {
        Swizzle::None => return offset,
        Swizzle::B32 => 32,
        Swizzle::B64 => 64,
        Swizzle::B128 => 128,
    };
    let address = case.place as usize + offset;
    let (row, chunk) = (address / 128, address % span / 16);
    address / span * span + (chunk ^ (row % (span / 16))) * 16 + address % 16 - case.place as usize
}

/// What a load leaves in shared memory, from the start of the tile.
pub fn slots(case: &Case) -> Vec<u8> {
    let element = case.map.format.bytes() as usize;
    let mut image = vec![0; case.map.tile_bytes() as usize];
    each_slot(case, |slot, at| {
        let mut value = vec![0; element];
        if inside(case, at) {
            let from = address(case, at);
            value.copy_from_slice(&case.tensor[from..from + element]);
        } else if case.map.fill == Fill::Nan {
            value.fill(0xff);
            value[element - 1] = 0x7f;
        }
        for (n, byte) in value.into_iter().enumerate() {
            image[swizzled(case, slot * element + n)] = byte;
        }
    });
    image
}

/// What a store makes of the allocation, when shared memory holds `image` from the start of the tile on.
pub fn stored(case: &Case, image: &[u8]) -> Vec<u8> {
    let element = case.map.format.bytes() as usize;
    let mut tensor = case.tensor.clone();
    let inner = case.map.dimensions[0].size as usize * element;
    each_slot(case, |slot, at| {
        let outer = at[1..].iter().zip(&case.map.dimensions[1..]).all(|(at, d)| (0..d.size as i64).contains(at));
        // The innermost dimension ends with the chunk of 16 bytes that it ends in.
        let reach = inner.div_ceil(16) * 16 / element;
        if outer && (0..reach as i64).contains(&at[0]) {
            let to = address(case, at);
            for n in 0..element {
                tensor[to + n] = image[swizzled(case, slot * element + n)];
            }
        }
    });
    tensor
}
