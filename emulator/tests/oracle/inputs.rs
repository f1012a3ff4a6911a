//! What instructions are given: edges of each type, numbers near other operands, and random ones.

use tilewright_ptx::ScalarType;

use super::real::{self, BF16, E4M3, E5M2, F16, F32, F64, Format, Round};
use super::table::Variant;

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn pick(&mut self, from: &[u64]) -> u64 {
        from[self.below(from.len())]
    }

    /// Bits of a number: any, or one near 1.
    pub fn float(&mut self, format: Format) -> u64 {
        let bits = self.next() & (format.sign() | format.nan());
        if self.below(2) == 0 {
            return bits;
        }
        let exponent = (format.one() >> format.fraction) + self.next() % 16;
        let part = bits & ((1 << format.fraction) - 1);
        ((exponent.saturating_sub(8) << format.fraction | part) & format.nan()) | bits & format.sign()
    }
}

/// The format of each part of a type, and how many parts.
pub fn format(ty: ScalarType) -> Option<(Format, u32)> {
    use ScalarType::{Bf16, Bf16x2, E4m3, E4m3x2, E5m2, E5m2x2, F16x2};
    Some(match ty {
        ScalarType::F16 => (F16, 1),
        F16x2 => (F16, 2),
        Bf16 => (BF16, 1),
        Bf16x2 => (BF16, 2),
        ScalarType::F32 => (F32, 1),
        ScalarType::F64 => (F64, 1),
        E4m3 => (E4M3, 1),
        E4m3x2 => (E4M3, 2),
        E5m2 => (E5M2, 1),
        E5m2x2 => (E5M2, 2),
        _ => return None,
    })
}

fn float_edges(format: Format) -> Vec<u64> {
    let one = format.one();
    let least = 1u64 << format.fraction;
    let mut edges = Vec::new();
    let mut centres = vec![0, least, one, one + least, one - least, one + least / 2, format.infinity(), format.nan()];
    // Where integers of 8, 16, 32 and 64 bits end.
    for power in [7u64, 8, 15, 16, 31, 32, 63, 64] {
        if one + (power << format.fraction) < format.infinity() {
            centres.push(one + (power << format.fraction));
        }
    }
    for centre in centres {
        for delta in [0u64, 1, 2, 3, u64::MAX, u64::MAX - 1] {
            let magnitude = centre.wrapping_add(delta) & format.nan();
            edges.extend([magnitude, magnitude | format.sign()]);
        }
    }
    // Halves between integers, a quiet and a signalling NaN.
    for value in [0.5, 1.5, 2.5, 3.5, 0.75, 126.5, 127.5, 254.5, 255.5, 32767.5, 65535.5] {
        let bits = format.encode(&F64.decode(f64::to_bits(value)), Round::Even);
        edges.extend([bits, bits | format.sign()]);
    }
    if !format.finite {
        edges.extend([
            format.infinity() | 1,
            format.infinity() | (least / 2),
            format.infinity() | (least / 2) | format.sign() | 1,
        ]);
    }
    edges.sort_unstable();
    edges.dedup();
    edges
}

fn integer_edges(bits: u32) -> Vec<u64> {
    let ones = u64::MAX >> (64 - bits);
    let mut edges = vec![0xaaaa_aaaa_aaaa_aaaa & ones, 0x1234_5678_9abc_def0 & ones, 0xfedc_ba98_7654_3210 & ones];
    let centres = [0, 1 << (bits - 1), 1 << (bits / 2), ones >> (bits / 2), 1 << (bits / 2 - 1), 1 << (bits - 2)];
    for centre in centres {
        for delta in [0, 1, 2, 3, 7, u64::MAX, u64::MAX - 1, u64::MAX - 6] {
            edges.push(u64::wrapping_add(centre, delta) & ones);
        }
    }
    // Powers near what f16, f32 and f64 hold exactly, and what halves of the result hold.
    for power in [7, 8, 11, 15, 16, 23, 24, 25, 31, 32, 53, 54] {
        if power < bits {
            edges.extend([(1 << power) - 1, 1 << power, (1 << power) + 1].map(|edge: u64| edge & ones));
            edges.push((1u64 << power).wrapping_neg() & ones);
        }
    }
    edges.sort_unstable();
    edges.dedup();
    edges
}

/// Amounts of shifts, positions and lengths of fields.
const AMOUNTS: &[u64] = &[
    0,
    1,
    2,
    4,
    7,
    8,
    15,
    16,
    17,
    24,
    30,
    31,
    32,
    33,
    40,
    47,
    48,
    62,
    63,
    64,
    65,
    127,
    128,
    255,
    256,
    257,
    288,
    0xffff,
    0x1_0000,
    0x8000_0000,
    0xffff_ffe0,
    0xffff_ffff,
];

/// Whether an operand is an amount of a shift, a position or a length.
pub fn is_amount(variant: &Variant, source: usize) -> bool {
    match variant.form.mnemonic {
        "shl" | "shr" | "szext" => source == 1,
        "bmsk" => true,
        "shf" => source == 2,
        "bfe" | "fns" => source >= 1,
        "bfi" => source >= 2,
        _ => false,
    }
}

/// Values worth trying at an operand.
pub fn edges(variant: &Variant, source: usize) -> Vec<u64> {
    let ty = variant.sources[source].ty;
    if ty == ScalarType::Pred {
        return vec![0, 1];
    }
    if is_amount(variant, source) {
        let negative = AMOUNTS.iter().take(16).map(|amount| amount.wrapping_neg() & 0xffff_ffff);
        return AMOUNTS.iter().copied().chain(negative).collect();
    }
    match format(ty) {
        Some((format, parts)) => {
            let single = float_edges(format);
            let count = single.len();
            // Of pairs, each half goes through all edges.
            let paired = |(at, low): (usize, &u64)| low | single[(at * 37 + 11) % count] << format.bits();
            if parts == 1 { single } else { single.iter().enumerate().map(paired).collect() }
        }
        None => integer_edges(ty.bits()),
    }
}

/// Operands for this many lanes.
pub fn rows(variant: &Variant, count: usize, seed: u64) -> Vec<Vec<u64>> {
    let mut random = Random(seed);
    let arity = variant.sources.len();
    let edges: Vec<Vec<u64>> = (0..arity).map(|source| edges(variant, source)).collect();
    let mut rows: Vec<Vec<u64>> = Vec::with_capacity(count);
    // The first half: edges against edges, all of them when they are few.
    let product = edges.iter().take(2).map(Vec::len).product::<usize>();
    let start = random.below(product.max(1));
    // A step without a common factor visits every pair once.
    let step = (1 + random.below(product.max(2))..).find(|step| coprime(*step, product)).unwrap_or(1);
    for index in 0..product.min(count / 2) {
        let pair = (start + index * step) % product;
        let row = (0..arity).map(|source| match source {
            0 => edges[0][pair % edges[0].len()],
            1 => edges[1][pair / edges[0].len()],
            _ => random.pick(&edges[source]),
        });
        rows.push(row.collect());
    }
    while rows.len() < count {
        let mut row: Vec<u64> = Vec::with_capacity(arity);
        for (source, edges) in edges.iter().enumerate() {
            row.push(value(variant, source, edges, row.first().copied(), &mut random));
        }
        if arity == 3 && random.below(3) == 0 {
            cancel(variant, &mut row, &mut random);
        }
        rows.push(row);
    }
    for row in &mut rows {
        for (value, source) in row.iter_mut().zip(&variant.sources) {
            if let Some(fixed) = source.fixed {
                *value = fixed as u64;
            }
        }
    }
    rows
}

fn coprime(a: usize, b: usize) -> bool {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a == 1
}

fn value(variant: &Variant, source: usize, edges: &[u64], first: Option<u64>, random: &mut Random) -> u64 {
    let ty = variant.sources[source].ty;
    if ty == ScalarType::Pred {
        return random.next() & 1;
    }
    let ones = u64::MAX >> (64 - ty.bits().min(64));
    match (random.below(8), first) {
        (0 | 1, _) => random.pick(edges),
        // Near the first operand, or its opposite.
        (2, Some(first)) => first.wrapping_add(random.next() % 5).wrapping_sub(2) & ones,
        (3, Some(first)) => match format(ty) {
            Some((format, _)) => (first ^ format.sign()).wrapping_add(random.next() % 3) & ones,
            None => first.wrapping_neg().wrapping_add(random.next() % 3) & ones,
        },
        // Small integers.
        (4, _) if format(ty).is_none() => (random.next() as i64 >> (32 + random.below(32))) as u64 & ones,
        _ => match format(ty) {
            Some((format, 1)) => random.float(format),
            Some((format, _)) => random.float(format) | random.float(format) << format.bits(),
            None => random.next() & ones,
        },
    }
}

/// Replaces the third operand by one that nearly cancels the product of the others, where double rounding would show.
fn cancel(variant: &Variant, row: &mut [u64], random: &mut Random) {
    let Some((format, parts)) = format(variant.sources[2].ty) else { return };
    row[2] = (0..parts).fold(0, |third, part| {
        let shift = part * format.bits();
        let at = |value: u64| format.decode(value >> shift & (format.sign() | format.nan()));
        let product = real::negated(real::mul(at(row[0]), at(row[1])));
        let near = format.encode(&product, Round::Even).wrapping_add(random.next() % 5).wrapping_sub(2);
        let near = near.wrapping_sub((random.next() % 3 * u64::from(format.fraction) / 2) << format.fraction);
        third | (near & (format.sign() | format.nan())) << shift
    });
}
