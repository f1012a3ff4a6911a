//! Tensor maps near all limits, and broken bytes of them: what has bytes is what these bytes say, and a copy by any of
//! them ends.

use std::sync::OnceLock;

use tilewright_emulator::{Arg, Launch, Memory, Options, Program};
use tilewright_kernel::tensor_map::{Dimension, ENCODED_BYTES, Fill, Format, Promotion, Swizzle, TensorMap};

use super::{Answer, Original, Wrong};
use crate::rng::Rng;

/// Bytes of the device's memory: maps are placed near its start.
const CAPACITY: u64 = 1 << 20;
/// Bytes of a map in which its fields are.
const FIELDS: usize = 76;
/// Bytes of the tensor that there is.
const TENSOR: u64 = 1 << 18;
/// Warp instructions of a copy.
const INSTRUCTIONS: u64 = 2000;
/// One of so many inputs is copied by.
const COPIED: usize = 4;
/// Most bytes of a tile that is copied: what takes no time.
const MOST_COPIED: u64 = 1 << 14;

/// Most of a map; what is broken of it is drawn for each input.
pub struct Drawn {
    map: TensorMap,
    store: bool,
}

/// A map that keeps the rules, most of the time.
pub fn draw(rng: &mut Rng) -> Drawn {
    let format = *rng.pick(&Format::ALL);
    let rank = 1 + rng.below(5);
    let swizzle = *rng.pick(&Swizzle::ALL);
    let mut stride = u64::from(format.bytes());
    let mut dimensions = Vec::new();
    for at in 0..rank {
        let boxes: &[u32] = if at == 0 { &[16, 32, 8, 4] } else { &[1, 2, 3, 8, 16] };
        let size = *rng.pick(&[1, 7, 16, 33, 64, 100, 1 << 20, 1 << 32]);
        dimensions.push(Dimension { size, stride, box_size: *rng.pick(boxes), element_stride: 1 });
        let next = stride.saturating_mul(size).min((1 << 40) - 16).next_multiple_of(16);
        stride = if rng.chance(80) { next } else { 16 * rng.range(0, 64) as u64 };
    }
    let fill = if rng.chance(20) { Fill::Nan } else { Fill::Zero };
    let address = 16 * rng.range(0, 1 << 10) as u64;
    Drawn {
        map: TensorMap { format, address, dimensions, swizzle, fill, promotion: Promotion::None },
        store: rng.chance(40),
    }
}

/// A number near a limit, or any.
fn near(rng: &mut Rng) -> u64 {
    let limit: u64 = *rng.pick(&[0, 1, 8, 16, 32, 128, 256, 1 << 16, 1 << 31, 1 << 32, 1 << 40, 1 << 47, u64::MAX]);
    match rng.below(4) {
        0 => rng.bits(),
        1 => limit.wrapping_sub(1),
        2 => limit.wrapping_add(1),
        _ => limit,
    }
}

/// One field of the map becomes another.
fn change(map: &mut TensorMap, rng: &mut Rng) {
    let at = rng.below(map.dimensions.len());
    let number = near(rng);
    match rng.below(9) {
        0 => map.address = number,
        1 => map.format = *rng.pick(&Format::ALL),
        2 => map.swizzle = *rng.pick(&Swizzle::ALL),
        3 => map.fill = Fill::Nan,
        4 => map.dimensions.push(Dimension { size: number, stride: near(rng), box_size: 1, element_stride: 1 }),
        kind => {
            let Some(dimension) = map.dimensions.get_mut(at) else { return };
            match kind {
                5 => dimension.size = number,
                6 => dimension.stride = number,
                7 => dimension.box_size = number as u32,
                _ => dimension.element_stride = number as u32,
            }
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Original for Drawn {
    /// The fields as text, or the bytes in hexadecimal; `copy` in front of what is copied by.
    fn input(&self, rng: &mut Rng) -> String {
        let mut map = self.map.clone();
        for _ in 0..rng.below(3) {
            change(&mut map, rng);
        }
        let lead = if rng.below(COPIED) == 0 { "copy " } else { "" };
        let Ok(mut bytes) = map.encode() else { return format!("{lead}{}", written(&map)) };
        for _ in 0..rng.below(4) {
            let reach = if rng.chance(80) { FIELDS } else { ENCODED_BYTES };
            let at = rng.below(reach);
            bytes[at] = if rng.chance(50) { bytes[at] ^ (1 << rng.below(8)) } else { rng.bits() as u8 };
        }
        format!("{lead}{}", hex(&bytes))
    }

    fn judge(&self, input: &str) -> Result<Answer, Wrong> {
        let (copied, input) = match input.strip_prefix("copy ") {
            Some(rest) => (true, rest),
            None => (false, input),
        };
        let (map, bytes) = match read(input) {
            Some(map) => match map.encode() {
                Err(fault) => return told(&fault.to_string(), "no map: a rule is broken"),
                Ok(bytes) => match TensorMap::decode(&bytes) {
                    Ok(again) if again == map => (map, bytes),
                    other => return Err(("other-map", format!("{map:?}\n{other:?}"))),
                },
            },
            None => {
                let Some(bytes) = bytes_of(input) else { return Ok("no map") };
                match TensorMap::decode(&bytes) {
                    Err(fault) => {
                        if copied {
                            copy(self.map.dimensions.len(), self.store, &bytes);
                        }
                        return told(&fault.to_string(), "no map: its bytes are none");
                    }
                    Ok(map) => (map, bytes),
                }
            }
        };
        let again = map.encode().ok().and_then(|bytes| TensorMap::decode(&bytes).ok());
        if again.as_ref() != Some(&map) {
            return Err(("other-map", format!("{map:?}\n{again:?}")));
        }
        if copied && map.tile_bytes() <= MOST_COPIED {
            copy(self.map.dimensions.len(), self.store, &bytes);
            return Ok("a map, copied by");
        }
        Ok("a map")
    }

    fn pieces<'a>(&self, input: &'a str) -> Vec<&'a str> {
        vec![input] // a part of a map is none
    }
}

/// An error that says something.
fn told(message: &str, answer: Answer) -> Result<Answer, Wrong> {
    if message.is_empty() { Err(("silent", answer.to_owned())) } else { Ok(answer) }
}

/// A map as text: format, address, fill and swizzle, then four numbers of each dimension.
fn written(map: &TensorMap) -> String {
    let number = |all: Option<usize>| all.unwrap_or(0);
    let format = number(Format::ALL.iter().position(|f| *f == map.format));
    let swizzle = number(Swizzle::ALL.iter().position(|s| *s == map.swizzle));
    let fill = u8::from(map.fill == Fill::Nan);
    let mut text = format!("map {format} {} {fill} {swizzle}", map.address);
    for d in &map.dimensions {
        text += &format!(" {} {} {} {}", d.size, d.stride, d.box_size, d.element_stride);
    }
    text
}

/// What [`written`] has written.
fn read(text: &str) -> Option<TensorMap> {
    let numbers: Vec<u64> = text.strip_prefix("map ")?.split(' ').map(|n| n.parse().ok()).collect::<Option<_>>()?;
    let (head, rest) = numbers.split_at_checked(4)?;
    let dimension = |d: &[u64]| {
        Some(Dimension {
            size: d[0],
            stride: d[1],
            box_size: d[2].try_into().ok()?,
            element_stride: d[3].try_into().ok()?,
        })
    };
    Some(TensorMap {
        format: *Format::ALL.get(head[0] as usize)?,
        address: head[1],
        dimensions: rest.chunks_exact(4).map(dimension).collect::<Option<_>>()?,
        swizzle: *Swizzle::ALL.get(head[3] as usize)?,
        fill: if head[2] == 1 { Fill::Nan } else { Fill::Zero },
        promotion: Promotion::None,
    })
}

fn bytes_of(text: &str) -> Option<[u8; ENCODED_BYTES]> {
    let digits = text.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
    digits.collect::<Option<Vec<u8>>>()?.try_into().ok()
}

/// A kernel that copies a tile and waits for it, of each rank, to shared memory and from there.
fn programs() -> &'static [[Option<Program>; 2]] {
    static PROGRAMS: OnceLock<Vec<[Option<Program>; 2]>> = OnceLock::new();
    PROGRAMS.get_or_init(|| {
        (1..=5).map(|rank| [false, true].map(|store| Program::parse(&kernel(rank, store)).ok())).collect()
    })
}

fn kernel(rank: usize, store: bool) -> String {
    let start = vec!["%r1"; rank].join(", ");
    let body = if store {
        format!(
            "st.shared.u32 [tile], %r1;\nfence.proxy.async.shared::cta;\n\
             cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group [%rd0, {{{start}}}], [tile];\n\
             cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n"
        )
    } else {
        format!(
            "mbarrier.init.shared::cta.b64 [bar], 1;\n\
             mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], %r2;\n\
             cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes \
             [tile], [%rd0, {{{start}}}], [bar];\n\
             wait:\nmbarrier.try_wait.parity.shared::cta.b64 %p0, [bar], 0;\n@!%p0 bra wait;\n"
        )
    };
    format!(
        ".version 8.3\n.target sm_90a\n.address_size 64\n\
         .visible .entry k(.param .align 64 .b8 map[128], .param .u32 bytes) {{\n\
         .reg .pred %p<1>; .reg .b32 %r<3>; .reg .b64 %rd<1>;\n\
         .shared .align 1024 .b8 tile[{MOST_COPIED}];\n.shared .align 8 .b64 bar;\n\
         mov.b64 %rd0, map;\ncvta.param.u64 %rd0, %rd0;\nmov.b32 %r1, 1;\nld.param.u32 %r2, [bytes];\n{body}ret;\n}}\n"
    )
}

/// Copies by what may be a map: an error or a report comes of it, and a launch ends.
fn copy(rank: usize, store: bool, bytes: &[u8; ENCODED_BYTES]) {
    let Some(Some(program)) = programs().get(rank - 1).map(|both| &both[usize::from(store)]) else { return };
    let memory = Memory::new(CAPACITY);
    let tile = TensorMap::decode(bytes).map_or(16, |map| map.tile_bytes() as u32);
    let mut bytes = bytes.to_vec();
    // An address is one in a tensor, unless it is far from all.
    let address = u64::from_le_bytes(std::array::from_fn(|at| bytes[at]));
    if let (true, Ok(base)) = (address < TENSOR, memory.alloc(TENSOR, "tensor")) {
        bytes[..8].copy_from_slice(&(base + address).to_le_bytes());
    }
    let args = vec![Arg(bytes), tile.into()];
    let launch = Launch { entry: "k".into(), grid: [1; 3], block: [1; 3], args, ..Launch::default() };
    let options = Options { budget: INSTRUCTIONS, threads: Some(1), ..Options::default() };
    let _an_error_or_a_report = program.launch(&launch, &memory, &options);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_are_written_and_read() {
        let original = draw(&mut Rng::new(3));
        assert_eq!(read(&written(&original.map)), Some(original.map.clone()));
        assert_eq!(bytes_of(&hex(&[7; ENCODED_BYTES])), Some([7; ENCODED_BYTES]));
    }

    /// A good map is copied by, in both directions and all ranks; the memory is not there, and that is told.
    #[test]
    fn every_kernel_loads_and_runs() {
        for (n, both) in programs().iter().enumerate() {
            for (store, program) in both.iter().enumerate() {
                let program = program.as_ref().unwrap_or_else(|| panic!("{}", kernel(n + 1, store == 1)));
                let dimension = |at: u64| Dimension { size: 16, stride: 4 << (4 * at), box_size: 4, element_stride: 1 };
                let memory = Memory::new(CAPACITY);
                let address = memory.alloc(TENSOR, "tensor").expect("memory");
                let map = TensorMap {
                    format: Format::F32,
                    address,
                    dimensions: (0..=n as u64).map(dimension).collect(),
                    swizzle: Swizzle::None,
                    fill: Fill::Zero,
                    promotion: Promotion::None,
                };
                let bytes = map.encode().expect("a map");
                let args = vec![Arg(bytes.to_vec()), (map.tile_bytes() as u32).into()];
                let launch = Launch { entry: "k".into(), grid: [1; 3], block: [1; 3], args, ..Launch::default() };
                let options = Options { budget: INSTRUCTIONS, ..Options::default() };
                let report = program.launch(&launch, &memory, &options).expect("a launch");
                assert!(report.counters.thread_instructions.iter().sum::<u64>() > 5, "{report}");
            }
        }
    }
}
