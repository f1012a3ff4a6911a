//! The notation in which the table spells a form, and its reader.
//!
//! ```text
//! fma.<rn|rz>[.ftz][.sat].f32 d, a, b, c
//! add.<rn|rz>[.<f16|bf16@7.8/90>] …          a modifier with the PTX version and target it needs
//! ld[.volatile][.<$space>].<$mem> dst, *a     groups of alternatives, an address
//! cp.async.bulk.commit_group @8.0/90          what the whole form needs
//! ```
//! **Modifiers** follow the mnemonic in the order of printing: `.word` required, `.<a|b>` one of, `[.word]` and
//! `[.<a|b>]` optional. `$name` stands for a group in `group` below. `word@8.0/90` needs that version and target.
//!
//! **Operands** are `name`, `name:type` and so on, where
//! - a name starting with `d` is written, every other is read; `_d` may be the sink `_`, `_` must be; a source may be
//!   an immediate;
//! - `d[|p]` and `d|p` are a pair whose second part is a predicate;
//! - `*a` is an address, `*a:shared` in that space, otherwise in the space of the first space modifier (generic without
//!   one);
//! - `#n:0..15`, `#n:4|8|16`, `#n` are immediates; `!p` is a source predicate that may be negated;
//! - types: `T0`, `T1`… the type modifier of that number (`T0` when nothing is said), `W` twice as wide as `T0`, or a
//!   type;
//! - after the type: `xN` a vector of N, `xV` as `.v2 .v4` says (scalar without), `xX` as `.x1 .x2 .x4` says, `xD` and
//!   `xH` the accumulator of `wgmma` (m·n/128 registers, or half as many with packed halves), `xO` the offsets of an
//!   `im2col` copy;
//! - then `!` no immediate, `+` the register may be wider than the type, `&` also symbols and special registers, `/`
//!   (before `&`) also a vector of equal parts that together have the type's size;
//! - then `{0..15}`, `{0..1024/32}`, `{1|2}`: what a constant here may be (`/32`: multiples of 32 only);
//! - `name?` may be left out, `name?a|b` is present exactly when one of these modifiers is, `…@8.0/90` needs that
//!   version and target;
//! - after the operands, `-a|b+c|d` forbids every combination of one of `a b` with one of `c d`;
//! - `label`, `table`, `callee`, `args`, `rets`, `tensor` as types are what they say.

use super::form::{Count, ImmRule, OperandKind, OperandSpec, Presence, Said, Slot, TypeRule};
use crate::modifier::{Flag, Modifier};
use crate::types::{ScalarType, Shape, StateSpace};
use crate::version::Requirement;

/// The mnemonic of a line of the table, and what follows.
pub(crate) fn mnemonic(line: &'static str) -> (&'static str, &'static str) {
    let (bytes, mut at) = (line.as_bytes(), 0);
    while at < bytes.len() && !matches!(bytes[at], b'.' | b'[' | b' ') {
        at += 1;
    }
    line.split_at(at)
}

impl Said {
    /// Reads a line of the table.
    pub(super) fn read(syntax: &'static str) -> Result<Self, String> {
        let (line, requirement) = match syntax.rsplit_once(" @") {
            Some((line, need)) => (line, parse_requirement(need)?),
            None => (syntax, Requirement::ANCIENT),
        };
        let mut parts = line.split(" -");
        let line = parts.next().unwrap_or_default();
        let exclusions = parts.map(parse_exclusion).collect::<Result<_, _>>()?;
        let (head, operands) = line.split_once(' ').unwrap_or((line, ""));
        let (mnemonic, rest) = mnemonic(head);
        let slots = parse_slots(rest)?;
        let operands: Vec<OperandSpec> =
            operands.split(", ").filter(|text| !text.is_empty()).map(parse_operand).collect::<Result<_, _>>()?;
        let needs = slots.iter().flat_map(|slot| &slot.alternatives).map(|(_, need)| need);
        let is_plain = needs.chain(operands.iter().map(|o| &o.requirement)).all(|need| *need == Requirement::ANCIENT);
        Ok(Said { mnemonic, slots, operands, requirement, exclusions, is_plain })
    }
}

/// Whether every word that a line requires as it stands is among some modifiers: most lines of a mnemonic are told from
/// each other by that, and need not be read.
pub(super) fn may_have(syntax: &'static str, modifiers: &[Modifier]) -> bool {
    let mut rest = mnemonic(syntax).1;
    while matches!(rest.as_bytes().first(), Some(b'.' | b'[')) {
        let Ok((slot, after)) = slot(rest) else { return true };
        rest = after;
        // A shape has no word of its own.
        if slot.is_word
            && !modifiers.iter().any(|m| m.text() == Some(slot.body))
            && Shape::from_text(slot.body).is_none()
        {
            return false;
        }
    }
    true
}

/// A slot as it is written.
struct Written {
    /// Without its dot and brackets.
    body: &'static str,
    optional: bool,
    /// Whether it is one word as it stands.
    is_word: bool,
}

/// The first slot, and what follows it.
fn slot(rest: &'static str) -> Result<(Written, &'static str), String> {
    let mut is_word = true;
    let (body, optional, after) = if let Some(inner) = rest.strip_prefix('[') {
        let (body, after) = inner.split_once(']').ok_or("`[` without `]`")?;
        is_word = false;
        (body, true, after)
    } else {
        // A word ends at the next slot; dots inside `<…>` or `@8.0` do not start one. A loop: a debug build calls what
        // iterators do.
        let (bytes, mut depth, mut at) = (rest.as_bytes(), 0, 1);
        while at < bytes.len() {
            match bytes[at] {
                b'<' => depth += 1,
                b'>' => depth -= 1,
                b'[' | b' ' if depth == 0 => break,
                b'.' if depth == 0 && !is_version_point(bytes, at) => break,
                b'|' | b'$' | b'@' => is_word = false,
                _ => {}
            }
            at += 1;
        }
        (&rest[..at], false, &rest[at..])
    };
    let body = body.strip_prefix('.').ok_or_else(|| format!("`{body}` lacks its dot"))?;
    let body = body.strip_prefix('<').and_then(|body| body.strip_suffix('>')).unwrap_or(body);
    Ok((Written { body, optional, is_word }, after))
}

fn parse_slots(mut rest: &'static str) -> Result<Vec<Slot>, String> {
    let mut slots = Vec::new();
    while !rest.is_empty() {
        let (Written { body, optional, .. }, after) = slot(rest)?;
        let mut alternatives = Vec::new();
        for word in body.split('|') {
            let (word, need) = match word.split_once('@') {
                Some((word, need)) => (word, parse_requirement(need)?),
                None => (word, Requirement::ANCIENT),
            };
            for modifier in parse_words(word)? {
                alternatives.push((modifier, need.and(space_requirement(modifier))));
            }
        }
        slots.push(Slot { alternatives, optional });
        rest = after;
    }
    Ok(slots)
}

/// One word, or those of a group.
fn parse_words(word: &str) -> Result<Vec<Modifier>, String> {
    let modifier = |text: &str| Modifier::from_text(text).ok_or_else(|| format!("no modifier `{text}`"));
    match word.strip_prefix('$') {
        None => Ok(vec![modifier(word)?]),
        Some(name) => {
            let words = group(name).ok_or_else(|| format!("no group `{word}`"))?;
            words.iter().map(|text| modifier(text)).collect()
        }
    }
}

/// `a|b+c|d`.
fn parse_exclusion(text: &str) -> Result<(Vec<Modifier>, Vec<Modifier>), String> {
    let (first, second) = text.split_once('+').ok_or("an exclusion lacks its `+`")?;
    let words = |text: &str| -> Result<Vec<Modifier>, String> {
        let words: Vec<Vec<Modifier>> = text.split('|').map(parse_words).collect::<Result<_, _>>()?;
        Ok(words.into_iter().flatten().collect())
    };
    Ok((words(first)?, words(second)?))
}

/// What the words for a part of shared memory or of the parameters need wherever they stand (5.1).
fn space_requirement(modifier: Modifier) -> Requirement {
    let text = match modifier {
        Modifier::Space(StateSpace::SharedCta) => "7.8",
        Modifier::Space(StateSpace::SharedCluster) => "7.8/90",
        Modifier::Space(StateSpace::ParamEntry | StateSpace::ParamFunc) => "8.3",
        Modifier::Flag(Flag::Cluster) => "7.8/90",
        _ => return Requirement::ANCIENT,
    };
    Requirement::from_text(text).unwrap_or(Requirement::ANCIENT)
}

/// Whether the dot belongs to a version such as `@8.0`: a digit before it, and an `@` before the number.
fn is_version_point(bytes: &[u8], at: usize) -> bool {
    let digits = bytes[..at].iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    digits > 0 && at > digits && bytes[at - digits - 1] == b'@'
}

fn parse_requirement(text: &str) -> Result<Requirement, String> {
    Requirement::from_text(text).ok_or_else(|| format!("`{text}` is no requirement"))
}

/// Groups of alternatives that many lines share.
fn group(name: &str) -> Option<Vec<String>> {
    let words = match name {
        "i16_64" => "u16 u32 u64 s16 s32 s64",
        "i32_64" => "u32 u64 s32 s64",
        "cmp" => "eq ne lt le gt ge",
        "fcmp" => "eq ne lt le gt ge equ neu ltu leu gtu geu num nan",
        "ucmp" => "eq ne lt le gt ge lo ls hi hs",
        "mem" => "b8 b16 b32 b64 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64",
        "space" => "global shared local",
        "shared" => "shared shared::cta",
        "frnd" => "rn rz rm rp",
        "irnd" => "rni rzi rmi rpi",
        "int" => "u8 u16 u32 u64 s8 s16 s32 s64",
        "rank" => "1d 2d 3d 4d 5d",
        "l1" => "L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last L1::no_allocate",
        "any_shared" => "shared shared::cta shared::cluster",
        "b64" => "b64 u64 s64 f64",
        "hints" => {
            "L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last L1::no_allocate L2::cache_hint \
             L2::64B L2::128B L2::256B"
        }
        "redop" => "add min max inc dec and or xor",
        _ => {
            // `m64k16`: every width of an accumulator, in steps of 8; `m64k32i`: the widths of integer products.
            let integer = name.strip_suffix('i');
            let (m, k) = integer.unwrap_or(name).strip_prefix('m')?.split_once('k')?;
            let widths: Vec<u32> = match integer {
                None => (8..=256).step_by(8).collect(),
                Some(_) => [8, 16, 24, 32].into_iter().chain((48..=256).step_by(16)).collect(),
            };
            return Some(widths.into_iter().map(|n| format!("m{m}n{n}k{k}")).collect());
        }
    };
    Some(words.split(' ').map(str::to_owned).collect())
}

fn parse_operand(text: &'static str) -> Result<OperandSpec, String> {
    let (text, requirement) = match text.split_once('@') {
        Some((text, need)) => (text, parse_requirement(need)?),
        None => (text, Requirement::ANCIENT),
    };
    let (text, presence) = match text.split_once('?') {
        None => (text, Presence::Always),
        Some((text, "")) => (text, Presence::Optional),
        Some((text, words)) => {
            let modifier = |word| Modifier::from_text(word).ok_or_else(|| format!("no modifier `{word}`"));
            (text, Presence::WithAny(words.split('|').map(modifier).collect::<Result<_, _>>()?))
        }
    };
    let (name, spec) = match text.split_once(':') {
        Some((name, spec)) => (name, Some(spec)),
        None => (text, None),
    };
    let (spec, range) = match spec.and_then(|spec| spec.strip_suffix('}')?.split_once('{')) {
        Some((spec, rule)) => (Some(spec), Some(parse_imm_rule(Some(rule))?)),
        None => (spec, None),
    };
    let sink = name.starts_with('_');
    let name = name.strip_prefix('_').unwrap_or(name);
    let name = if name.is_empty() { "d" } else { name };
    let mut operand = OperandSpec {
        name: name.trim_start_matches(['*', '#', '!']),
        written: name.starts_with('d'),
        kind: if name.starts_with('d') { OperandKind::Reg } else { OperandKind::Source },
        ty: TypeRule::Slot(0),
        count: Count::Scalar,
        range,
        widening: false,
        sink,
        presence,
        requirement,
    };
    if name.starts_with('#') {
        operand.ty = TypeRule::Untyped;
        operand.kind = OperandKind::Imm(parse_imm_rule(spec)?);
        return Ok(operand);
    }
    if name.starts_with('*') {
        let space = match spec {
            None => None,
            Some(text) => Some(StateSpace::from_text(text).ok_or_else(|| format!("no space `{text}`"))?),
        };
        operand.ty = TypeRule::Untyped;
        operand.kind = OperandKind::Address(space);
        return Ok(operand);
    }
    if let Some((_, rest)) = name.split_once('|') {
        operand.kind = OperandKind::Pair { optional: rest.ends_with(']') };
        operand.sink = true;
    }
    if name.starts_with('!') {
        operand.kind = OperandKind::Pred;
        operand.ty = TypeRule::Fixed(ScalarType::Pred);
    }
    if text == "_" {
        operand.kind = OperandKind::Sink;
        operand.ty = TypeRule::Untyped;
    }
    let Some(spec) = spec else {
        return Ok(operand);
    };
    let word = match spec {
        "label" => Some(OperandKind::Label),
        "table" => Some(OperandKind::Table),
        "callee" => Some(OperandKind::Callee),
        "args" | "rets" => Some(OperandKind::List),
        "tensor" => Some(OperandKind::Tensor),
        _ => None,
    };
    if let Some(kind) = word {
        operand.kind = kind;
        operand.ty = TypeRule::Untyped;
        return Ok(operand);
    }
    parse_type(&mut operand, spec)?;
    Ok(operand)
}

/// What follows the name of an operand: its type with a count, and signs for what else it may be.
fn parse_type(operand: &mut OperandSpec, mut spec: &'static str) -> Result<(), String> {
    loop {
        if let Some(rest) = spec.strip_suffix('!') {
            operand.kind = OperandKind::Reg;
            spec = rest;
        } else if let Some(rest) = spec.strip_suffix('+') {
            operand.widening = true;
            spec = rest;
        } else if let Some(rest) = spec.strip_suffix('&') {
            operand.kind = OperandKind::Any;
            spec = rest;
        } else if let Some(rest) = spec.strip_suffix('/') {
            operand.kind = if operand.kind == OperandKind::Any { OperandKind::AnyPack } else { OperandKind::Pack };
            spec = rest;
        } else {
            break;
        }
    }
    let (ty, count) = match ScalarType::from_text(spec) {
        Some(_) => (spec, None), // `f16x2` is a type, not a vector of two
        None => match spec.rsplit_once('x') {
            Some((ty, count)) => (ty, Some(count)),
            None => (spec, None),
        },
    };
    operand.ty = match ty {
        "W" => TypeRule::Wide,
        _ => match ty.strip_prefix('T').and_then(|number| number.parse().ok()) {
            Some(number) => TypeRule::Slot(number),
            None => TypeRule::Fixed(ScalarType::from_text(ty).ok_or_else(|| format!("no type `{ty}`"))?),
        },
    };
    operand.count = match count {
        None => Count::Scalar,
        Some("V") => Count::Vector,
        Some("X") => Count::Matrices,
        Some("D") => Count::Accumulators,
        Some("H") => Count::PackedAccumulators,
        Some("O") => Count::Offsets,
        Some(number) => Count::Fixed(number.parse().map_err(|_| format!("no count `{number}`"))?),
    };
    Ok(())
}

fn parse_imm_rule(spec: Option<&str>) -> Result<ImmRule, String> {
    let number = |text: &str| text.parse::<i64>().map_err(|_| format!("`{text}` is no number"));
    let Some(spec) = spec else {
        return Ok(ImmRule::Any);
    };
    if let Some((lo, hi)) = spec.split_once("..") {
        return Ok(match hi.split_once('/') {
            Some((hi, step)) => ImmRule::Multiple(number(lo)?, number(hi)?, number(step)?),
            None => ImmRule::Range(number(lo)?, number(hi)?),
        });
    }
    Ok(ImmRule::OneOf(spec.split('|').map(number).collect::<Result<_, _>>()?))
}
