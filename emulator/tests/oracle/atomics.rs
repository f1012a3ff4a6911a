//! What atomic operations leave in memory and return (9.7.13.5, 9.7.13.6): each thread has a place of its own, in
//! global memory by its address and generically, and in shared memory.

use std::fmt::Write as _;

use tilewright_conformance::file::{Case, Param};
use tilewright_emulator::{Launch, Memory, Options, Program};
use tilewright_ptx::ScalarType;
use tilewright_ptx::isa::Op;

use super::harness::agrees;
use super::inputs::{self, Random};
use super::integer::{cut, number};
use super::meaning::Want;
use super::real::{self, F32, Round};
use super::table::{Source, Variant};

/// Where the place is.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Place {
    Global,
    Shared,
}

/// From the old value and the operands to the new value.
pub type Function = Box<dyn Fn(&[u64]) -> Want>;

/// The operation of a variant on a scalar in a place; `None` if there is no oracle.
fn function(variant: &Variant, place: Place) -> Option<Function> {
    let ty = *variant.types.last()?;
    let (bits, signed) = (ty.bits(), ty.is_signed());
    let read = move |raw: u64| number(bits, signed, raw);
    let word = variant.words.iter().find(|word| {
        matches!(word.as_str(), "and" | "or" | "xor" | "add" | "min" | "max" | "inc" | "dec" | "exch" | "cas")
    })?;
    if bits > 64 {
        return None;
    }
    let exactly = |function: fn(&[u64]) -> u64| -> Function { Box::new(move |x| Want::Bits(function(x))) };
    Some(match (word.as_str(), inputs::format(ty)) {
        ("add", Some((format, _))) => {
            // Sums of f32 in global memory flush; `.noftz` says what the others do anyway.
            let flush = move |raw: u64| if format == F32 && place == Place::Global { format.flushed(raw) } else { raw };
            Box::new(move |x| {
                let sum = real::add(format.decode(flush(x[0])), format.decode(flush(x[1])), Round::Even);
                let bits = flush(format.encode(&sum, Round::Even));
                if format.is_nan(bits) { Want::Nan(format) } else { Want::Bits(bits) }
            })
        }
        (word @ ("min" | "max"), Some((format, _))) => {
            let max = word == "max";
            Box::new(move |x| match real::order(&format.decode(x[0]), &format.decode(x[1])) {
                // What becomes of a NaN is not said.
                None => Want::Open,
                Some(order) if order.is_eq() => Want::Bits(if max { x[0] & x[1] } else { x[0] | x[1] }),
                Some(order) => Want::Bits(if order.is_lt() == max { x[1] } else { x[0] }),
            })
        }
        ("add", None) => Box::new(move |x| Want::Bits(cut(bits, read(x[0]) + read(x[1])))),
        ("min", None) => Box::new(move |x| Want::Bits(cut(bits, read(x[0]).min(read(x[1]))))),
        ("max", None) => Box::new(move |x| Want::Bits(cut(bits, read(x[0]).max(read(x[1]))))),
        ("and", _) => exactly(|x| x[0] & x[1]),
        ("or", _) => exactly(|x| x[0] | x[1]),
        ("xor", _) => exactly(|x| x[0] ^ x[1]),
        ("inc", _) => exactly(|x| if x[0] >= x[1] { 0 } else { x[0] + 1 }),
        ("dec", _) => exactly(|x| if x[0] == 0 || x[0] > x[1] { x[1] } else { x[0] - 1 }),
        ("exch", _) => exactly(|x| x[1]),
        ("cas", _) => exactly(|x| if x[0] == x[1] { x[2] } else { x[0] }),
        _ => return None,
    })
}

/// Whether a variant has an oracle.
pub fn has_oracle(variant: &Variant) -> bool {
    // Other operations have modifiers of the same names.
    matches!(variant.form.op, Op::Atomic(_)) && function(variant, Place::Global).is_some()
}

/// Variants whose order, scope and cache hints are the usual ones, which change nothing about values.
fn is_plain(variant: &Variant) -> bool {
    let unusual = ["relaxed", "acquire", "release", "acq_rel", "cta", "cluster", "gpu", "sys", "L2::cache_hint"];
    !variant.words.iter().any(|word| unusual.contains(&word.as_str()) || word.contains("::"))
}

/// Rows: of each element the old value and the operands.
const ROWS: usize = 64;
/// Room of a thread.
const ROOM: usize = 32;

/// What an atomic operation is on.
struct Shape {
    ty: ScalarType,
    bits: u32,
    bytes: usize,
    /// Elements of a vector.
    count: usize,
    /// Whether it returns the old value.
    returns: bool,
    /// The old value and the operands.
    operands: usize,
}

impl Shape {
    fn of(variant: &Variant) -> Self {
        let ty = *variant.types.last().unwrap_or(&ScalarType::B32);
        Self {
            ty,
            bits: ty.bits(),
            bytes: ty.bytes() as usize,
            count: variant.words.iter().find_map(|word| word.strip_prefix('v')?.parse().ok()).unwrap_or(1),
            returns: variant.form.mnemonic == "atom",
            operands: if variant.has("cas") { 3 } else { 2 },
        }
    }

    /// The variant on one element, from which rows are drawn.
    fn of_elements(&self, variant: &Variant) -> Variant {
        let source = Source { ty: self.ty, register: self.bits, constant: false, fixed: None };
        Variant { sources: vec![source; self.operands], ..variant.clone() }
    }
}

fn check(variant: &Variant, place: Place, random: &mut Random) -> Result<(), String> {
    let Some(function) = function(variant, place) else { return Ok(()) };
    let Shape { ty, bits, bytes, count, returns, operands } = Shape::of(variant);
    // Elements of the old value, then of each operand.
    let scalar = Shape::of(variant).of_elements(variant);
    let scalars = inputs::rows(&scalar, ROWS * count, random.next());
    let rows: Vec<&[Vec<u64>]> = scalars.chunks(count).collect();

    let groups: Vec<String> = (0..=operands)
        .map(|group| {
            let names: Vec<String> = (0..count).map(|element| format!("%v{group}_{element}")).collect();
            if count == 1 { names[0].clone() } else { format!("{{{}}}", names.join(", ")) }
        })
        .collect();
    let mut body = String::new();
    for group in 0..=operands {
        for element in 0..count {
            let _ = writeln!(body, ".reg .b{bits} %v{group}_{element};");
        }
    }
    let (base, space) = if place == Place::Shared { ("%s", "shared") } else { ("%place", "global") };
    for element in 0..count {
        for operand in 0..operands {
            let _ = writeln!(
                body,
                "ld.global.b{bits} %v{operand}_{element}, [%in+{}];",
                (element * operands + operand) * 8
            );
        }
        let _ = writeln!(body, "st.{space}.b{bits} [{base}+{}], %v0_{element};", element * bytes);
    }
    let address = match (place, variant.has("global") || variant.has("shared")) {
        (Place::Shared, false) => "[%generic]".to_owned(),
        _ => format!("[{base}]"),
    };
    let mut list = vec![address];
    list.extend(groups[1..operands].iter().cloned());
    if returns {
        list.insert(0, groups[operands].clone());
    }
    let _ = writeln!(body, "{} {};", variant.head(), list.join(", "));
    for element in 0..count {
        if returns {
            let _ = writeln!(body, "st.global.b{bits} [%out+{}], %v{operands}_{element};", element * 16);
        }
        let _ = writeln!(body, "ld.{space}.b{bits} %v0_{element}, [{base}+{}];", element * bytes);
        let _ = writeln!(body, "st.global.b{bits} [%out+{}], %v0_{element};", element * 16 + 8);
    }
    let text = format!(
        ".version 8.8\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 places, .param .u64 out) {{\n\
         .shared .align 16 .b8 shared[{shared}];\n.reg .b64 %in, %place, %out, %s, %generic; .reg .b32 %i, %c;\n\
         mov.u32 %i, %tid.x; mov.u32 %c, %ctaid.x; mad.lo.u32 %c, %c, 32, %i;\n\
         ld.param.u64 %in, [in]; mad.wide.u32 %in, %c, {row}, %in; ld.param.u64 %place, [places]; mad.wide.u32 %place, %c, {ROOM}, %place;\n\
         ld.param.u64 %out, [out]; mad.wide.u32 %out, %c, {result}, %out; mov.u64 %s, shared; mad.wide.u32 %s, %i, {ROOM}, %s;\n\
         cvta.shared.u64 %generic, %s;\n{body}ret;\n}}\n",
        shared = 32 * ROOM,
        row = count * operands * 8,
        result = count * 16,
    );
    let told = |error: tilewright_emulator::Error| format!("{error}\n{text}");
    let memory = Memory::new(1 << 24);
    let flat: Vec<u8> = scalars.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
    let input = memory.alloc(flat.len() as u64, "in").map_err(told)?;
    memory.write(input, &flat).map_err(told)?;
    let places = memory.alloc((ROWS * ROOM) as u64, "places").map_err(told)?;
    let size = ROWS * count * 16;
    let out = memory.alloc(size as u64, "out").map_err(told)?;
    memory.fill(out, size as u64, 0).map_err(told)?;
    let launch = Launch {
        entry: "k".to_owned(),
        grid: [(ROWS / 32) as u32, 1, 1],
        block: [32, 1, 1],
        args: vec![input.into(), places.into(), out.into()],
        ..Launch::default()
    };
    let options = Options { threads: Some(1), ..Options::default() };
    let report = Program::parse(&text).and_then(|program| program.launch(&launch, &memory, &options)).map_err(told)?;
    if !report.findings.is_empty() {
        return Err(report.to_string());
    }
    let mut got = vec![0; size];
    memory.read(out, &mut got).map_err(told)?;
    let got: Vec<u64> = got.chunks_exact(8).map(|word| word.try_into().map_or(0, u64::from_le_bytes)).collect();
    let halves = inputs::format(ty).is_some_and(|(_, parts)| parts == 2);
    for (at, row) in rows.iter().copied().flatten().enumerate() {
        let want = if halves {
            let half =
                |shift: u32| function(&row.iter().map(|value| value >> shift & 0xffff).collect::<Vec<_>>()).half();
            Want::Halves(half(0), half(16))
        } else {
            function(row)
        };
        let (old, new) = (got[at * 2], got[at * 2 + 1]);
        if returns && old != row[0] {
            return Err(format!("returns {old:#x} instead of {:#x}", row[0]));
        }
        if !agrees(want, new, false) {
            return Err(format!("{row:x?} leaves {new:#x}, wanted {want:x?}"));
        }
    }
    Ok(())
}

#[test]
fn atomic_operations() {
    let (mut count, mut mistakes) = (0, Vec::new());
    let mut random = Random(5);
    for op in tilewright_ptx::isa::Atomic::ALL {
        for variant in super::table::variants(Op::Atomic(*op)).into_iter().filter(is_plain) {
            let vector = variant.words.iter().any(|word| matches!(word.as_str(), "v2" | "v4" | "v8"));
            let places = match (variant.has("shared"), variant.has("global") || vector) {
                (true, _) => vec![Place::Shared],
                (_, true) => vec![Place::Global],
                _ => vec![Place::Global, Place::Shared],
            };
            for place in places {
                count += 1;
                if let Err(mistake) = check(&variant, place, &mut random) {
                    mistakes.push(format!("{} in {place:?}: {mistake}", variant.head()));
                }
            }
        }
    }
    assert!(mistakes.is_empty(), "{} of {count}:\n{}", mistakes.len(), mistakes.join("\n"));
    assert!(count > 100, "{count} variants");
}

#[test]
fn quads_are_refused_by_name() {
    for instruction in ["exch.b128 %q, [%p], %q", "cas.b128 %q, [%p], %q, %q"] {
        let text = format!(
            ".version 8.8\n.target sm_90a\n.address_size 64\n.visible .entry k() {{\n.reg .b128 %q; .reg .b64 %p;\natom.global.{instruction};\nret;\n}}\n"
        );
        let error = Program::parse(&text).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains("128 bits") && error.contains("line 6"), "{error}");
    }
}

/// Variants for files: operations, types and vectors that meet for the first time, two by two, and each order, scope
/// and space once a form. Hints, which are a further operand, change nothing about values.
fn chosen() -> Vec<Variant> {
    let order = ["relaxed", "acquire", "release", "acq_rel", "cta", "cluster", "gpu", "sys", "global"];
    let alone = |word: &str| order.contains(&word) || word.starts_with("shared");
    let mut all = Vec::new();
    for op in tilewright_ptx::isa::Atomic::ALL {
        let mut met = std::collections::BTreeSet::new();
        for variant in super::table::variants(Op::Atomic(*op)) {
            if !has_oracle(&variant) || variant.words.iter().any(|word| word.ends_with("cache_hint")) {
                continue;
            }
            let (single, paired): (Vec<&String>, Vec<&String>) =
                variant.words.iter().partition(|word| alone(word.as_str()));
            let pairs = paired.iter().enumerate().flat_map(|(at, a)| paired[at..].iter().map(move |b| (*a, *b)));
            let keys = pairs.chain(single.iter().map(|word| (*word, *word)));
            let form = variant.form.index;
            if keys.fold(false, |new, (a, b)| met.insert((form, a.clone(), b.clone())) | new) {
                all.push(variant);
            }
        }
    }
    all
}

/// The kernels of the conformance files: one a variant, each thread on a place of its own after its operands, in global
/// memory or, if the instruction says so, in shared memory.
pub fn conformance() -> (Vec<Case>, String) {
    let (mut cases, mut ptx) = (Vec::new(), String::new());
    for (number, variant) in chosen().iter().enumerate() {
        let shared = variant.words.iter().any(|word| word.starts_with("shared"));
        let place = if shared { Place::Shared } else { Place::Global };
        let Some(function) = function(variant, place) else { continue };
        cases.push(case(variant, place, &function, &format!("{}_{number}", variant.form.mnemonic), &mut ptx));
    }
    (cases, ptx)
}

/// Threads of a kernel of the files.
const THREADS: usize = 16;

fn case(variant: &Variant, place: Place, function: &Function, entry: &str, ptx: &mut String) -> Case {
    let Shape { ty, bits, bytes, count, returns, operands } = Shape::of(variant);
    let scalar = Shape::of(variant).of_elements(variant);
    let scalars = inputs::rows(&scalar, THREADS * count, bits.into());
    // The operands of each element, then the room; rows begin at multiples of 16 bytes.
    let filled = (count * operands).next_multiple_of(2);
    let (x, each) = (filled + ROOM / 8, if returns { 2 } else { 1 });
    let name = |group: usize, element: usize| format!("%v{group}_{element}");
    let group = |group: usize| {
        let names: Vec<String> = (0..count).map(|element| name(group, element)).collect();
        if count == 1 { names[0].clone() } else { format!("{{{}}}", names.join(", ")) }
    };
    let (base, space) = if place == Place::Shared { ("%s", "shared") } else { ("%place", "global") };
    let _ = write!(
        ptx,
        "\n.visible .entry {entry}(.param .u64 x, .param .u64 y) {{\n\
         .shared .align 16 .b8 room[{}]; .reg .b64 %x, %y, %place, %s; .reg .b32 %i; .reg .b{bits} {};\n\
         mov.u32 %i, %tid.x; ld.param.u64 %x, [x]; mad.wide.u32 %x, %i, {}, %x; add.u64 %place, %x, {};\n\
         ld.param.u64 %y, [y]; mad.wide.u32 %y, %i, {}, %y; mov.u64 %s, room; mad.wide.u32 %s, %i, {ROOM}, %s;\n",
        THREADS * ROOM,
        (0..=operands).flat_map(|group| (0..count).map(move |n| name(group, n))).collect::<Vec<_>>().join(", "),
        8 * x,
        8 * filled,
        8 * each * count
    );
    for element in 0..count {
        for operand in 0..operands {
            let _ = writeln!(
                ptx,
                "ld.global.b{bits} {}, [%x+{}];",
                name(operand, element),
                (element * operands + operand) * 8
            );
        }
        let _ = writeln!(ptx, "st.{space}.b{bits} [{base}+{}], {};", element * bytes, name(0, element));
    }
    let mut list = vec![format!("[{base}]")];
    list.extend((1..operands).map(group));
    if returns {
        list.insert(0, group(operands));
    }
    let _ = writeln!(ptx, "{} {};", variant.head(), list.join(", "));
    for element in 0..count {
        let at = 8 * each * element;
        let _ = writeln!(ptx, "ld.{space}.b{bits} {}, [{base}+{}];", name(0, element), element * bytes);
        let _ = writeln!(ptx, "st.global.b{bits} [%y+{at}], {};", name(0, element));
        if returns {
            let _ = writeln!(ptx, "st.global.b{bits} [%y+{}], {};", at + 8, name(operands, element));
        }
    }
    ptx.push_str("ret;\n}\n");
    let halves = inputs::format(ty).is_some_and(|(_, parts)| parts == 2);
    let row = |elements: &[Vec<u64>]| {
        let mut given: Vec<u64> = elements.iter().flatten().copied().collect();
        given.resize(x, 0);
        let mut left = Vec::new();
        for element in elements {
            let half =
                |shift: u32| function(&element.iter().map(|value| value >> shift & 0xffff).collect::<Vec<_>>()).half();
            let want = if halves { Want::Halves(half(0), half(16)) } else { function(element) };
            left.push(super::conformance::told(want).to_string());
            left.extend(returns.then(|| format!("{:x}", element[0])));
        }
        let given: Vec<String> = given.iter().map(|word| format!("{word:x}")).collect();
        (given.join(" "), left.join(" "))
    };
    Case {
        entry: entry.to_owned(),
        instructions: vec![variant.head()],
        formats: vec![ty.to_string(); each * count],
        blocks: 1,
        threads: THREADS as u32,
        params: vec![Param::X, Param::Y],
        slot: 8,
        x,
        y: each * count,
        before: 0,
        mixed: false,
        rows: scalars.chunks(count).map(row).collect(),
    }
}
