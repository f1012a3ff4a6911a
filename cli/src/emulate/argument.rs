//! `--arg`: what a kernel's parameter is given.
//!
//! | written | is |
//! | --- | --- |
//! | `f32:2.5`, `u64:0x10`, `s32:-1` | a number |
//! | `bytes:00ff…` | a parameter's bytes, such as those of a struct, in hexadecimal |
//! | `null` | a null pointer |
//! | `in:FILE` | a buffer with the contents of the file |
//! | `inout:FILE`, `inout:FILE=OUT` | the same; written to the second file afterwards |
//! | `out:f32[100,16]=OUT`, `out:f32[100]` | a buffer that nobody has written yet |
//! | `zero:f32[100]=OUT`, `zero:f32[100]` | a buffer of zeros |
//! | `expect:FILE`, `expect:FILE,RTOL,ATOL` | a buffer that nobody has written yet, compared with the file afterwards |
//! | `expect:FILE,RTOL:inout:…` | any of these buffers, compared with the file afterwards |
//! | `buffer:NAME` | a buffer that a script names |
//! | `map:8x32:in:FILE.npy`, `map:8x32,swizzle128,nan:out:…` | a tensor map of any of these buffers, with this box |
//! | `struct:u64:5,ptr(in:FILE),f32:1` | a struct by value, laid out as in C; buffers stand in `ptr(…)`, other structs in `struct(…)` |
//!
//! A file whose name ends in `.npy` is NumPy's; any other is raw bytes.

use std::path::Path;

use tilewright_emulator::Arg;

use super::expect::Expectation;
use super::map::{self, Box};
use super::npy::{self, Npy};

/// A type of elements or numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element {
    /// Bytes.
    pub bytes: u64,
    /// NumPy's name; bf16 and fp8 have none and are kept as bits.
    pub dtype: &'static str,
}

/// The type with this name.
pub fn element(name: &str) -> Option<Element> {
    let (bytes, dtype) = match name {
        "u8" | "b8" | "e4m3" | "e5m2" => (1, "u1"),
        "s8" | "i8" => (1, "i1"),
        "u16" | "b16" | "bf16" => (2, "u2"),
        "s16" | "i16" => (2, "i2"),
        "f16" => (2, "f2"),
        "u32" | "b32" => (4, "u4"),
        "s32" | "i32" => (4, "i4"),
        "f32" => (4, "f4"),
        "u64" | "b64" => (8, "u8"),
        "s64" | "i64" => (8, "i8"),
        "f64" => (8, "f8"),
        _ => return None,
    };
    Some(Element { bytes, dtype })
}

/// What `--arg` says.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// A number.
    Value(Arg),
    /// The bytes of a parameter.
    Bytes(Arg),
    /// The address of a buffer.
    Pointer(Source),
    /// A tensor map over a buffer.
    Map(Box, Source),
    /// A struct by value: values, pointers and structs.
    Struct(Vec<Argument>),
}

/// Where a buffer comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// It is the argument's own.
    Own(Buffer),
    /// A script has named it.
    Named(String),
}

/// NumPy's type and shape.
pub type Form = (String, Vec<u64>);

/// A buffer in device memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Buffer {
    /// Bytes before the launch; none when nobody has written them.
    pub initial: Option<Vec<u8>>,
    /// Size in bytes.
    pub bytes: u64,
    /// NumPy's type and shape.
    pub form: Option<Form>,
    /// Where the contents go afterwards.
    pub to: Option<String>,
    /// Whether the kernel may write it.
    pub writable: bool,
    /// Whether its elements are bf16, which NumPy does not know.
    pub bf16: bool,
    /// What it must hold afterwards.
    pub expected: Option<Expectation>,
}

fn number(name: &str, text: &str) -> Result<Arg, String> {
    let bad = || format!("`{text}` is no {name}");
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let integer = || -> Result<i128, String> {
        // A second sign would be taken for a part of the number.
        if digits.starts_with(['+', '-']) || digits.starts_with("0x+") || digits.starts_with("0x-") {
            return Err(bad());
        }
        let value = match digits.strip_prefix("0x") {
            Some(hex) => i128::from_str_radix(hex, 16),
            None => digits.parse(),
        };
        value.map(|value| if negative { -value } else { value }).map_err(|_| bad())
    };
    let float = || text.parse::<f64>().map_err(|_| bad());
    Ok(match name {
        "f16" => half(float()?, tilewright::f16::from_f64),
        "bf16" => half(float()?, tilewright::bf16::from_f64),
        "f32" => text.parse::<f32>().map_err(|_| bad())?.into(),
        "f64" => float()?.into(),
        _ => {
            let Some(Element { bytes, .. }) = element(name) else {
                return Err(format!("there is no type `{name}`"));
            };
            let value = integer()?;
            let bits = 8 * bytes as u32;
            let signed = name.starts_with(['s', 'i']);
            let (least, greatest) =
                if signed { (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1) } else { (0, (1i128 << bits) - 1) };
            if !(least..=greatest).contains(&value) {
                return Err(bad());
            }
            Arg(value.to_le_bytes()[..bytes as usize].to_vec())
        }
    })
}

fn half<T: Into<Arg>>(value: f64, round: impl Fn(f64) -> T) -> Arg {
    round(value).into()
}

/// The contents of a file, and its type and shape if it says them.
pub(super) fn contents(path: &str) -> Result<(Vec<u8>, Option<Form>), String> {
    let bytes = std::fs::read(path).map_err(|error| format!("{path} cannot be read: {error}"))?;
    if Path::new(path).extension().is_some_and(|extension| extension == "npz") {
        return Err(format!("{path}: archives of arrays are not read; save one array as .npy"));
    }
    if !is_npy(path) {
        return Ok((bytes, None));
    }
    let Npy { dtype, shape, data } = npy::read(&bytes).map_err(|error| format!("{path}: {error}"))?;
    Ok((data, Some((dtype, shape))))
}

/// Whether a file is NumPy's, by its name.
pub fn is_npy(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "npy")
}

/// `f32[100,16]` or `f32[100,16]=FILE`.
fn shaped(text: &str) -> Result<Buffer, String> {
    let (form, to) = match text.split_once('=') {
        Some((form, to)) => (form, Some(to.to_owned())),
        None => (text, None),
    };
    let bad = || format!("`{form}` is no type and shape, such as f32[100,16]");
    let (name, rest) = form.split_once('[').ok_or_else(bad)?;
    let dims = rest.strip_suffix(']').ok_or_else(bad)?;
    let Element { bytes, dtype } = element(name).ok_or_else(|| format!("there is no type `{name}`"))?;
    let shape: Vec<u64> = dims
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .map(|part| part.parse().map_err(|_| bad()))
        .collect::<Result<_, String>>()?;
    let total = shape.iter().try_fold(bytes, |size, extent| size.checked_mul(*extent));
    let bytes = total.ok_or_else(|| format!("`{form}` has more bytes than there are addresses"))?;
    let form = Some((dtype.to_owned(), shape));
    Ok(Buffer { initial: None, bytes, form, to, writable: true, bf16: name == "bf16", expected: None })
}

fn own(buffer: Buffer) -> Argument {
    Argument::Pointer(Source::Own(buffer))
}

/// `FILE,RTOL,ATOL` or `FILE,RTOL,ATOL:inout:FILE`.
fn expected(text: &str, depth: u32) -> Result<Buffer, String> {
    let starts = [":in:", ":inout:", ":out:", ":zero:"].into_iter().filter_map(|start| text.find(start));
    let (what, buffer) = match starts.min() {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let expectation = Expectation::parse(what)?;
    let buffer = match buffer.map(|text| parse_within(text, depth)).transpose()? {
        Some(Argument::Pointer(Source::Own(buffer))) => buffer,
        _ => Buffer {
            initial: None,
            bytes: expectation.bytes.len() as u64,
            form: expectation.form.clone(),
            to: None,
            writable: true,
            bf16: false,
            expected: None,
        },
    };
    if buffer.bytes != expectation.bytes.len() as u64 {
        let (have, want) = (buffer.bytes, expectation.bytes.len());
        return Err(format!("the buffer has {have} bytes, and {} has {want} to compare with", expectation.file));
    }
    Ok(Buffer { expected: Some(expectation), ..buffer })
}

/// The parts of a text between commas that are in no brackets.
fn parts(text: &str) -> Result<Vec<&str>, String> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0i32, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
        if depth < 0 {
            break;
        }
    }
    if depth != 0 {
        return Err(format!("the brackets of `{text}` do not fit"));
    }
    parts.push(text[start..].trim());
    Ok(parts)
}

/// The members of a struct.
fn members(text: &str, depth: u32) -> Result<Vec<Argument>, String> {
    let Some(depth) = depth.checked_sub(1) else { return Err(too_deep()) };
    let member = |text: &str| {
        let inside = |word: &str| text.strip_prefix(word)?.strip_prefix('(')?.strip_suffix(')');
        if let Some(inner) = inside("struct") {
            return members(inner, depth).map(Argument::Struct);
        }
        if let Some(inner) = inside("ptr") {
            return match parse_within(inner, depth)? {
                pointer @ Argument::Pointer(_) => Ok(pointer),
                _ => Err(format!("`{inner}` is no buffer")),
            };
        }
        match parse_within(text, depth)? {
            value @ (Argument::Value(_) | Argument::Bytes(_)) => Ok(value),
            _ => Err(format!("`{text}` is no number, bytes:…, null, ptr(…) or struct(…)")),
        }
    };
    parts(text)?.into_iter().map(member).collect()
}

/// Bytes and alignment of an argument, given the addresses of the buffers that it points to, in order. A member of a
/// struct is at a multiple of its alignment, and the struct's size a multiple of its own, as in C; `bytes:` are aligned
/// to one.
pub fn layout(argument: &Argument, addresses: &mut impl Iterator<Item = u64>) -> (Vec<u8>, usize) {
    match argument {
        Argument::Value(Arg(bytes)) => (bytes.clone(), bytes.len().max(1)),
        Argument::Bytes(Arg(bytes)) => (bytes.clone(), 1),
        Argument::Pointer(_) | Argument::Map(..) => (addresses.next().unwrap_or(0).to_le_bytes().to_vec(), 8),
        Argument::Struct(members) => {
            let (mut all, mut most) = (Vec::new(), 1);
            for member in members {
                let (bytes, align) = layout(member, addresses);
                all.resize(all.len().next_multiple_of(align), 0);
                all.extend(bytes);
                most = most.max(align);
            }
            all.resize(all.len().next_multiple_of(most), 0);
            (all, most)
        }
    }
}

/// The buffers that an argument points to, in order.
pub fn sources(argument: &Argument) -> Vec<&Source> {
    match argument {
        Argument::Value(_) | Argument::Bytes(_) => Vec::new(),
        Argument::Pointer(source) | Argument::Map(_, source) => vec![source],
        Argument::Struct(members) => members.iter().flat_map(sources).collect(),
    }
}

/// Reads an argument as it stands on the command line, and the file it names.
///
/// # Errors
/// What is wrong, as text.
pub fn parse(text: &str) -> Result<Argument, String> {
    parse_within(text, NESTED)
}

/// Arguments that may stand in each other: a struct has a few, and each reads what is inside it once more.
const NESTED: u32 = 32;

fn too_deep() -> String {
    format!("more than {NESTED} arguments stand in each other")
}

fn parse_within(text: &str, depth: u32) -> Result<Argument, String> {
    let Some(depth) = depth.checked_sub(1) else { return Err(too_deep()) };
    if text == "null" {
        return Ok(Argument::Value(0u64.into()));
    }
    let Some((kind, rest)) = text.split_once(':') else {
        return Err(format!("`{text}` is no argument; see `tilewright emulate --help`"));
    };
    match kind {
        "bytes" => {
            let digits: Vec<u8> = rest.bytes().filter(|byte| *byte != b'_').collect();
            let pairs = digits.chunks(2).map(|pair| {
                let text = std::str::from_utf8(pair).ok().filter(|text| text.len() == 2 && !text.starts_with('+'))?;
                u8::from_str_radix(text, 16).ok()
            });
            let bytes: Option<Vec<u8>> = pairs.collect();
            bytes.map(|bytes| Argument::Bytes(Arg(bytes))).ok_or_else(|| format!("`{rest}` is not in hexadecimal"))
        }
        "in" | "inout" => {
            let (path, to) = match rest.split_once('=') {
                Some((path, to)) if kind == "inout" => (path, Some(to.to_owned())),
                _ => (rest, None),
            };
            let (initial, form) = contents(path)?;
            let bytes = initial.len() as u64;
            let initial = Some(initial);
            Ok(own(Buffer { initial, bytes, form, to, writable: kind == "inout", bf16: false, expected: None }))
        }
        "out" => shaped(rest).map(own),
        "zero" => {
            let mut buffer = shaped(rest)?;
            // Filled by the device: a size that is too large is refused there.
            buffer.initial = Some(Vec::new());
            Ok(own(buffer))
        }
        "buffer" if rest.is_empty() => Err("`buffer:` names no buffer".to_owned()),
        "buffer" => Ok(Argument::Pointer(Source::Named(rest.to_owned()))),
        "expect" => expected(rest, depth).map(own),
        "struct" => members(rest, depth).map(Argument::Struct),
        "map" => {
            let Some((extents, buffer)) = rest.split_once(':') else {
                return Err(format!("`{text}` names no buffer, as in map:8x32:in:x.npy"));
            };
            match parse_within(buffer, depth)? {
                Argument::Pointer(source) => Ok(Argument::Map(map::parse(extents)?, source)),
                _ => Err(format!("`{buffer}` is no buffer")),
            }
        }
        name => number(name, rest).map(Argument::Value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Result<Vec<u8>, String> {
        match parse(text)? {
            Argument::Value(Arg(bytes)) | Argument::Bytes(Arg(bytes)) => Ok(bytes),
            _ => Err("no value".to_owned()),
        }
    }

    #[test]
    fn numbers() {
        assert_eq!(value("u32:0x10"), Ok(vec![16, 0, 0, 0]));
        assert_eq!(value("s16:-2"), Ok(vec![0xfe, 0xff]));
        assert_eq!(value("f32:1.5"), Ok(1.5f32.to_le_bytes().to_vec()));
        assert_eq!(value("bf16:1"), Ok(vec![0x80, 0x3f]));
        assert_eq!(value("f16:inf"), Ok(vec![0, 0x7c]));
        assert_eq!(value("null"), Ok(vec![0; 8]));
        assert_eq!(value("bytes:01ff"), Ok(vec![1, 255]));
        for bad in [
            "u8:256",
            "s8:128",
            "u32:-1",
            "f32:x",
            "u32:1.5",
            "s32:--5",
            "s32:0x-5",
            "bytes:+f",
            "q8:1",
            "bytes:0",
            "bytes:zz",
            "u32",
            "",
            "in:/no/such/file",
            "map:8",
            "map:8:u32:1",
            "map:8xx2:out:f32[8]",
            "map:8,swizzle48:out:f32[8]",
            "buffer:",
            "expect:/no/such/file",
            "struct:u32:1,map:8:out:f32[8]",
            "struct:u32:1,(u32:1",
            "struct:ptr(u32:1)",
            "struct:u32:1)",
            "struct:",
        ] {
            assert!(value(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn structs_are_laid_out_as_in_c() {
        let argument = parse("struct:u8:1,ptr(zero:f32[2,3]),struct(u16:2,u32:3),bytes:0405").unwrap();
        assert_eq!(sources(&argument).len(), 1);
        let (bytes, align) = layout(&argument, &mut [0x1122u64].into_iter());
        let mut wanted = vec![1, 0, 0, 0, 0, 0, 0, 0, 0x22, 0x11, 0, 0, 0, 0, 0, 0];
        wanted.extend([2, 0, 0, 0, 3, 0, 0, 0, 4, 5, 0, 0, 0, 0, 0, 0]);
        assert_eq!((bytes, align), (wanted, 8));
    }

    /// Without a limit each level reads all others again, and the stack ends.
    #[test]
    fn nested_without_end() {
        let nested = |n: usize| format!("struct:{}u8:1{}", "struct(".repeat(n), ")".repeat(n));
        assert!(parse(&nested(20)).is_ok());
        for bad in [nested(200_000), "map:8:".repeat(200_000) + "out:f32[8]", "struct:".repeat(200_000)] {
            assert!(parse(&bad).is_err_and(|why| why.starts_with("more than 32")));
        }
    }

    #[test]
    fn shapes() {
        let Ok(Argument::Pointer(Source::Own(buffer))) = parse("out:f32[3,4]=z.npy") else {
            panic!("a buffer is expected")
        };
        assert_eq!((buffer.bytes, buffer.to.as_deref()), (48, Some("z.npy")));
        for bad in ["out:f32", "out:f32[", "out:f32[-1]", "out:f33[1]", "out:f64[9999999999,9999999999]", "zero:[3]"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
