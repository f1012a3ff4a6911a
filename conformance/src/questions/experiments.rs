//! The experiments.

use serde_json::json;
use tilewright_kernel::tensor_map::Swizzle;

use super::{BEFORE, Found, Lab, Place, Question, REDUCE, STORE, TILE, bytes, word};
use crate::file::Map;

pub(super) const QUESTIONS: [Question; 8] = [
    Question {
        number: 1,
        asks: "how many elements, and bytes of a transaction, has a box whose element stride does not divide it; and \
               what does a store with an element stride write?",
        assumed: "⌈box / stride⌉ elements, all counted; a store leaves out what the stride skips",
        expected: "ceil",
        places: &[
            Place {
                file: "compiler/src/diag/codes/tw0301_no_zero_fill.rs",
                symbol: "does not divide its box",
                when: &["ceil", "ceil, loads only"],
                change: "boxes whose stride does not divide them may be admitted where no slot needs a zero",
            },
            Place {
                file: "compiler/src/diag/codes/tw0316_unknown_store.rs",
                symbol: "Strided(String)",
                when: &["ceil"],
                change: "stores of strided tiles may be admitted",
            },
            Place {
                file: "kernel/src/tensor_map/mod.rs",
                symbol: "self.box_size.div_ceil(self.element_stride)",
                when: &["floor"],
                change: "the emulator and `tile_bytes` count too many elements",
            },
        ],
        experiment: strides,
    },
    Question {
        number: 2,
        asks: "how far are rows apart in shared memory whose inner box is narrower than the span of the swizzle?",
        assumed: "they stand densely, and the swizzle permutes chunks by their addresses",
        expected: "dense",
        places: &[Place {
            file: "compiler/src/tma/rules.rs",
            symbol: "NarrowSwizzle",
            when: &["dense", "spans"],
            change: "TW0407 may admit inner boxes below the span of the swizzle, with this distance of rows",
        }],
        experiment: narrow,
    },
    Question {
        number: 3,
        asks: "does a swizzled load work from a global address that is a multiple of 16 bytes and not of 128?",
        assumed: "it works: the driver asks for 16 bytes, the programming guide for 128",
        expected: "works",
        places: &[Place {
            file: "kernel/src/tensor_map/mod.rs",
            symbol: "self.address.is_multiple_of(GRANULE)",
            when: &["wrong", "fails"],
            change: "maps with a swizzle must ask for addresses that are multiples of 128",
        }],
        experiment: address,
    },
    Question {
        number: 4,
        asks: "does bit 21 of a map's control word, which newer drivers set for tensors of 128 KiB and more, change loads \
               outside of the tensor?",
        assumed: "it changes nothing on Hopper; the emulator does not look at it",
        expected: "same",
        places: &[Place {
            file: "kernel/src/tensor_map/encoding.rs",
            symbol: "LARGE_BYTES",
            when: &["differs", "fails"],
            change: "the emulator must look at the bit, and loads that begin outside of large tensors must be refused",
        }],
        experiment: large,
    },
    Question {
        number: 5,
        asks: "what does a store write into the rest of the 16 bytes in which a row ends?",
        assumed: "the bytes of the tile in shared memory",
        expected: "tile",
        places: &[
            Place {
                file: "compiler/src/diag/codes/tw0315_store_granule.rs",
                symbol: "would write past its rows",
                when: &["kept"],
                change: "rows of any length may be admitted",
            },
            Place {
                file: "emulator/src/bulk/tile.rs",
                symbol: "size.next_multiple_of(GRANULE)",
                when: &["kept", "zeros"],
                change: "stores of the emulator write something else there",
            },
        ],
        experiment: overhang,
    },
    Question {
        number: 6,
        asks: "which NaN fills elements outside of the tensor, of each type?",
        assumed: "the one that instructions return: all bits of exponent and fraction",
        expected: "canonical",
        places: &[Place {
            file: "emulator/src/bulk/tile.rs",
            symbol: "fn nan(format: Format)",
            when: &["another"],
            change: "the emulator must fill with the bits that were seen",
        }],
        experiment: fill,
    },
    Question {
        number: 7,
        asks: "does a reduction of f32 by tensor copies (add) flush subnormal numbers?",
        assumed: "nothing: the emulator refuses reductions by copies",
        expected: "refused",
        places: &[Place {
            file: "emulator/src/decode/lower/bulk.rs",
            symbol: "AsyncCopy::CpReduceAsyncBulkTensor",
            when: &["kept", "flushed"],
            change: "the emulator may execute reductions by copies, with this rule for f32",
        }],
        experiment: subnormals,
    },
    Question {
        number: 8,
        asks: "do words 16 to 18 of a map, which drivers fill beyond the 64 bytes that are known, matter?",
        assumed: "they do not; the emulator does not look at them",
        expected: "unused",
        places: &[Place {
            file: "kernel/src/tensor_map/encoding.rs",
            symbol: "words[16]",
            when: &["used"],
            change: "the emulator must read these words, and question 1 must be asked with both counts",
        }],
        experiment: tail,
    },
];

/// A map of f32 over a buffer: columns and rows of the tensor, bytes from row to row, the box, the stride along rows.
fn rows(of: &str, (columns, rows): (u64, u64), pitch: u64, (width, height): (u32, u32), step: u32) -> Map {
    Map {
        of: of.to_owned(),
        offset: 0,
        element: "f32".to_owned(),
        sizes: vec![columns, rows],
        strides: vec![4, pitch],
        boxes: vec![width, height],
        steps: vec![1, step],
        swizzle: 16,
        nan: false,
    }
}

/// Words that tell where they stood.
fn numbered(words: u32) -> Vec<u8> {
    bytes((0..words).map(|n| 0x4000_0000 | n))
}

/// A number of bytes, if one was found.
fn count(bytes: Option<u32>) -> String {
    bytes.map_or_else(|| "an unknown number of".to_owned(), |bytes| bytes.to_string())
}

const UNTOUCHED: u32 = u32::from_le_bytes([BEFORE; 4]);

fn refused(lab: &Lab<'_>, what: &str) -> Found {
    let said = lab.said();
    Found { name: "refused", words: format!("{what} was refused: {said}"), seen: json!({ "said": said }) }
}

fn strides(lab: &mut Lab<'_>) -> Found {
    // Rows of one chunk; a box of 10 rows, of which every third is copied: 4 of them, or 3. What is most likely comes
    // first, and then a store of every second row of 8: a machine may fault where the number of bytes is wrong, and
    // take no more work.
    let map = rows("x", (4, 40), 16, (4, 10), 3);
    let mut tried = vec![(64_u32, lab.load(&map, numbered(160), (0, 0), 64))];
    let tile = bytes((0..16).map(|n| 0x5000_0000 | n));
    let stored = lab.write(STORE, &rows("y", (4, 16), 16, (4, 8), 2), tile, vec![BEFORE; 256], (0, 0));
    let told_of_store = lab.said();
    tried.extend([48, 160].map(|bytes| (bytes, lab.load(&map, numbered(160), (0, 0), bytes))));
    // Who expects fewer bytes than come may see an end on the way; who expects more sees none.
    let counted = tried.iter().filter(|(_, loaded)| loaded.as_ref().is_some_and(|l| l.complete)).map(|(b, _)| *b).max();
    let Some(image) = tried.iter().find_map(|(_, loaded)| loaded.as_ref()) else { return refused(lab, "the load") };
    let brought: Vec<u32> = (0..TILE / 16)
        .map(|row| image.word(4 * row))
        .take_while(|word| *word != UNTOUCHED)
        .map(|word| (word & 0xffff) / 4)
        .collect();
    let written = stored.as_ref().map(|y| (0..16).map(|row| word(y, 4 * row)).collect::<Vec<_>>());
    let skips = written.as_ref().map(|rows| {
        let want =
            |row: usize| if row < 8 && row.is_multiple_of(2) { 0x5000_0000 | (2 * row as u32) } else { UNTOUCHED };
        rows.iter().enumerate().all(|(row, got)| *got == want(row))
    });
    let name = match (counted, brought.as_slice(), skips) {
        (Some(64), [0, 3, 6, 9], Some(true)) => "ceil",
        (Some(64), [0, 3, 6, 9], _) => "ceil, loads only",
        (Some(48), [0, 3, 6], _) => "floor",
        _ => "other",
    };
    let told = match skips {
        Some(true) => "a store leaves out what the stride skips".to_owned(),
        Some(false) => "a store writes other rows than those of the stride".to_owned(),
        None => format!("the store was refused: {told_of_store}"),
    };
    Found {
        name,
        words: format!("of 10 rows by 3 the load brings {brought:?} and counts {} bytes; {told}", count(counted)),
        seen: json!({ "rows": brought, "bytes": counted, "stored": written }),
    }
}

/// Where each word of a tile of 8 rows of `words` words is, if rows are `pitch` bytes apart and chunks are permuted.
fn permuted(swizzle: Swizzle, pitch: u32, words: u32) -> impl Fn(u32, u32) -> usize {
    move |row, column| {
        debug_assert!(column < words);
        swizzle.apply(row * pitch + 4 * column) as usize / 4
    }
}

fn narrow(lab: &mut Lab<'_>) -> Found {
    // Rows of 32 bytes, and a swizzle that spans 128.
    let map = Map { swizzle: 128, ..rows("x", (8, 8), 32, (8, 8), 1) };
    let tried: Vec<_> = [256_u32, 1024].map(|bytes| (bytes, lab.load(&map, numbered(64), (0, 0), bytes))).into();
    let counted = tried.iter().filter(|(_, loaded)| loaded.as_ref().is_some_and(|l| l.complete)).map(|(b, _)| *b).max();
    let Some(image) = tried.iter().find_map(|(_, loaded)| loaded.as_ref()) else { return refused(lab, "the load") };
    let is = |pitch: u32| {
        let at = permuted(Swizzle::B128, pitch, 8);
        (0..8).all(|row| (0..8).all(|column| image.word(at(row, column)) == (0x4000_0000 | (8 * row + column))))
    };
    let (name, told) = match (is(32), is(128)) {
        (true, _) => ("dense", "rows are 32 bytes apart, and chunks are permuted by their addresses"),
        (_, true) => ("spans", "rows are 128 bytes apart, and chunks are permuted by their addresses"),
        _ => ("other", "words stand elsewhere"),
    };
    let places: Vec<usize> =
        (0..64).filter_map(|n| (0..TILE / 4).find(|at| image.word(*at) == 0x4000_0000 | n)).collect();
    Found {
        name,
        words: format!("{told}; {} bytes are counted", count(counted)),
        seen: json!({ "places": places, "bytes": counted }),
    }
}

fn address(lab: &mut Lab<'_>) -> Found {
    let at = permuted(Swizzle::B128, 128, 32);
    for offset in [0_u64, 16, 48, 112] {
        let map = Map { swizzle: 128, offset, ..rows("x", (32, 8), 128, (32, 8), 1) };
        let seen = json!({ "offset": offset });
        let Some(image) = lab.load(&map, numbered(256 + 32), (0, 0), 1024) else {
            // What does not even work from a multiple of 256 says nothing of the address.
            if offset == 0 {
                return refused(lab, "the load");
            }
            let said = lab.said();
            return Found { name: "fails", words: format!("{offset} bytes from a multiple of 256: {said}"), seen };
        };
        let first = offset as u32 / 4;
        let right = |row: u32, column: u32| image.word(at(row, column)) == (0x4000_0000 | (first + 32 * row + column));
        if !image.complete || !(0..8).all(|row| (0..32).all(|column| right(row, column))) {
            let words = format!("{offset} bytes from a multiple of 256 other words arrive, or not all bytes");
            return Found { name: "wrong", words, seen };
        }
    }
    Found {
        name: "works",
        words: "from 16, 48 and 112 bytes after a multiple of 256 the tile is right".to_owned(),
        seen: json!({}),
    }
}

/// Compares loads at some places with and without a change of the map.
fn changed(
    lab: &mut Lab<'_>,
    maps: &[(Map, u32)],
    starts: &[(i32, i32)],
    edits: &[(usize, u32)],
) -> Result<bool, Found> {
    let mut same = true;
    for (map, words) in maps {
        for start in starts {
            let Some(plain) = lab.load(map, numbered(*words), *start, 512) else {
                return Err(refused(lab, "the load"));
            };
            let Some(edited) = lab.load_edited(map, numbered(*words), *start, 512, edits) else {
                let said = lab.said();
                let words = format!("with the change, the load at {start:?} fails: {said}");
                return Err(Found { name: "fails", words, seen: json!({ "at": start, "said": said }) });
            };
            same &= plain.tile == edited.tile && plain.complete == edited.complete;
        }
    }
    Ok(same)
}

fn large(lab: &mut Lab<'_>) -> Found {
    // 4 KiB and 256 KiB: of the first a driver does not set the bit, of the second a new one does. Inside, over an end,
    // outside of it.
    let maps = [(rows("x", (16, 64), 64, (16, 8), 1), 1024), (rows("x", (16, 4096), 64, (16, 8), 1), 65_536)];
    let starts = [(0, 0), (8, 60), (8, 4092), (16, 0), (0, 5000), (-16, -8)];
    match changed(lab, &maps, &starts, &[(2, 1 << 21)]) {
        Err(found) => found,
        Ok(true) => Found {
            name: "same",
            words: "with the bit and without it all loads are the same".to_owned(),
            seen: json!({}),
        },
        Ok(false) => Found { name: "differs", words: "with the bit other words arrive".to_owned(), seen: json!({}) },
    }
}

fn tail(lab: &mut Lab<'_>) -> Found {
    let maps = [(rows("x", (16, 64), 64, (16, 8), 1), 1024)];
    let found = changed(lab, &maps, &[(0, 0), (8, 60)], &[(16, 0x0fff_0f0f), (17, 0xffff_ffff), (18, 0x0fff_0f0f)]);
    match found {
        Err(found) if found.name == "fails" => Found { name: "used", ..found },
        Err(found) => found,
        Ok(true) => {
            Found { name: "unused", words: "with other words there all loads are the same".to_owned(), seen: json!({}) }
        }
        Ok(false) => Found { name: "used", words: "with other words there, others arrive".to_owned(), seen: json!({}) },
    }
}

fn overhang(lab: &mut Lab<'_>) -> Found {
    // Rows of 5 words, 8 apart; a box of 8 by 4.
    let tile = bytes((0..32).map(|n| 0x5000_0000 | n));
    let stored = lab.write(STORE, &rows("y", (5, 4), 32, (8, 4), 1), tile, vec![BEFORE; 128], (0, 0));
    let Some(y) = stored else { return refused(lab, "the store") };
    let words: Vec<u32> = (0..32).map(|at| word(&y, at)).collect();
    let rest: Vec<u32> = words.iter().enumerate().filter(|(at, _)| at % 8 >= 5).map(|(_, word)| *word).collect();
    let inside = (0..32).filter(|at| at % 8 < 5).all(|at| words[at] == 0x5000_0000 | at as u32);
    let of_tile = (0..32).filter(|at| at % 8 >= 5).all(|at| words[at] == 0x5000_0000 | at as u32);
    let (name, told) = match () {
        () if !inside => ("other", "not even the rows are what was stored"),
        () if of_tile => ("tile", "the rest of the 16 bytes has the bytes of the tile"),
        () if rest.iter().all(|word| *word == UNTOUCHED) => ("kept", "the rest of the 16 bytes is what it was"),
        () if rest.iter().all(|word| *word == 0) => ("zeros", "the rest of the 16 bytes is 0"),
        () => ("other", "the rest of the 16 bytes is something else"),
    };
    Found { name, words: told.to_owned(), seen: json!({ "rest": rest }) }
}

fn fill(lab: &mut Lab<'_>) -> Found {
    let mut seen = serde_json::Map::new();
    let mut canonical = true;
    for (element, size, want) in
        [("f16", 2, 0x7fff_u64), ("bf16", 2, 0x7fff), ("f32", 4, 0x7fff_ffff), ("f64", 8, 0x7fff_ffff_ffff_ffff)]
    {
        let (width, pitch) = (16 / size as u32, 16);
        let map = Map {
            element: element.to_owned(),
            strides: vec![size as u64, pitch],
            nan: true,
            ..rows("x", (u64::from(width), 8), pitch, (width, 8), 1)
        };
        let Some(image) = lab.load(&map, numbered(32), (0, 100), 128) else { return refused(lab, "the load") };
        let read = |at: usize| {
            image.tile[at * size..(at + 1) * size].iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte))
        };
        let got = read(0);
        let uniform = (0..128 / size).all(|at| read(at) == got);
        canonical &= uniform && got == want;
        seen.insert(element.to_owned(), json!(format!("{got:x}{}", if uniform { "" } else { ", and others" })));
    }
    let name = if canonical { "canonical" } else { "another" };
    Found {
        name,
        words: format!("elements outside are {}", serde_json::Value::Object(seen.clone())),
        seen: seen.into(),
    }
}

fn subnormals(lab: &mut Lab<'_>) -> Found {
    // What is there, what is added, and the exact sum.
    let sums = [
        [0x0000_0001_u32, 0x0000_0001, 0x0000_0002],
        [0x007f_ffff, 0x0000_0001, 0x0080_0000],
        [0x0080_0001, 0x8080_0000, 0x0000_0001],
        [0x0000_0000, 0x8000_0003, 0x8000_0003],
    ];
    let (there, added) = (bytes(sums.map(|[a, ..]| a)), bytes(sums.map(|[_, b, _]| b)));
    let map = rows("y", (4, 1), 16, (4, 1), 1);
    let Some(y) = lab.write(REDUCE, &map, added, there, (0, 0)) else { return refused(lab, "the reduction") };
    let got: Vec<u32> = (0..4).map(|at| word(&y, at)).collect();
    let exact = got.iter().zip(sums).all(|(got, [.., sum])| *got == sum);
    let flushed = got.iter().all(|word| word & 0x7fff_ffff == 0);
    let (name, told) = match (exact, flushed) {
        (true, _) => ("kept", "subnormal operands and results are kept"),
        (_, true) => ("flushed", "subnormal operands and results become 0"),
        _ => ("other", "some are kept"),
    };
    let seen: Vec<String> = got.iter().map(|word| format!("{word:08x}")).collect();
    Found { name, words: format!("{told}: {}", seen.join(", ")), seen: json!({ "sums": seen }) }
}
