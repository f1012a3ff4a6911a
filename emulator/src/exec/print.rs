//! The formats of `printf` (C17 7.21.6.1, without `%n` and wide characters).

/// What a conversion takes from the list of arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Argument {
    /// 32 bits.
    Word,
    /// 64 bits: long integers, pointers and floats.
    Wide,
    /// The address of a string.
    Text,
}

/// Most characters of a field or of a number's digits.
const MOST: usize = 1024;

#[derive(Clone, Copy, Debug, Default)]
struct Spec {
    left: bool,
    plus: bool,
    space: bool,
    alternative: bool,
    zeros: bool,
    width: usize,
    precision: Option<usize>,
    long: bool,
    /// Bytes of a short integer.
    short: Option<u32>,
}

/// The text of a format; `next` gives the arguments, as bits and, for a string, its bytes.
pub fn format(text: &[u8], mut next: impl FnMut(Argument) -> (u64, Option<Vec<u8>>)) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| *byte == b'%') {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        match conversion(&rest[1..], &mut next) {
            Some((bytes, used)) => {
                out.extend(bytes);
                rest = &rest[1 + used..];
            }
            // No conversion: the text itself.
            None => {
                out.push(b'%');
                rest = &rest[1..];
            }
        }
    }
    out.extend_from_slice(rest);
    out
}

/// The text of a conversion after its `%`, and its length.
fn conversion(text: &[u8], next: &mut impl FnMut(Argument) -> (u64, Option<Vec<u8>>)) -> Option<(Vec<u8>, usize)> {
    let mut spec = Spec::default();
    let mut at = 0;
    loop {
        match text.get(at)? {
            b'-' => spec.left = true,
            b'+' => spec.plus = true,
            b' ' => spec.space = true,
            b'#' => spec.alternative = true,
            b'0' => spec.zeros = true,
            _ => break,
        }
        at += 1;
    }
    let mut number = |at: &mut usize| -> i64 {
        if text.get(*at) == Some(&b'*') {
            *at += 1;
            return i64::from(next(Argument::Word).0 as i32);
        }
        let mut value = 0i64;
        while let Some(digit) = text.get(*at).filter(|byte| byte.is_ascii_digit()) {
            value = (value * 10 + i64::from(digit - b'0')).min(MOST as i64);
            *at += 1;
        }
        value
    };
    let width = number(&mut at);
    spec.left |= width < 0;
    spec.width = (width.unsigned_abs() as usize).min(MOST);
    if text.get(at) == Some(&b'.') {
        at += 1;
        spec.precision = usize::try_from(number(&mut at)).ok().map(|digits| digits.min(MOST));
    }
    loop {
        match text.get(at)? {
            b'l' | b'j' | b'z' | b't' | b'L' | b'q' => spec.long = true,
            b'h' => spec.short = Some(if spec.short.is_some() { 1 } else { 2 }),
            _ => break,
        }
        at += 1;
    }
    let kind = *text.get(at)?;
    let field = match kind {
        b'%' => b"%".to_vec(),
        b'd' | b'i' | b'u' | b'x' | b'X' | b'o' => {
            let bits = next(if spec.long { Argument::Wide } else { Argument::Word }).0;
            integer(spec, kind, bits)
        }
        b'p' => {
            let bits = next(Argument::Wide).0;
            padded(Spec { zeros: false, ..spec }, "", &format!("{bits:#x}"))
        }
        b'c' => {
            let byte = next(Argument::Word).0 as u8;
            padded_bytes(spec, vec![byte])
        }
        b's' => {
            let mut bytes = next(Argument::Text).1.unwrap_or_else(|| b"(null)".to_vec());
            bytes.truncate(spec.precision.unwrap_or(usize::MAX));
            padded_bytes(spec, bytes)
        }
        b'f' | b'F' | b'e' | b'E' | b'g' | b'G' | b'a' | b'A' => {
            float(spec, kind, f64::from_bits(next(Argument::Wide).0))
        }
        _ => return None,
    };
    Some((field, at + 1))
}

fn integer(spec: Spec, kind: u8, bits: u64) -> Vec<u8> {
    let size = match (spec.long, spec.short) {
        (true, _) => 64,
        (false, Some(bytes)) => 8 * bytes,
        (false, None) => 32,
    };
    let (signed, unsigned) = (((bits << (64 - size)) as i64) >> (64 - size), bits & (u64::MAX >> (64 - size)));
    let (sign, mut digits) = match kind {
        b'd' | b'i' => (sign(spec, signed < 0), signed.unsigned_abs().to_string()),
        b'u' => ("", unsigned.to_string()),
        b'o' => ("", format!("{}{unsigned:o}", if spec.alternative && unsigned != 0 { "0" } else { "" })),
        b'x' => (if spec.alternative && unsigned != 0 { "0x" } else { "" }, format!("{unsigned:x}")),
        _ => (if spec.alternative && unsigned != 0 { "0X" } else { "" }, format!("{unsigned:X}")),
    };
    if let Some(least) = spec.precision {
        if least == 0 && bits == 0 {
            digits.clear();
        }
        digits.insert_str(0, &"0".repeat(least.saturating_sub(digits.len())));
    }
    padded(Spec { zeros: spec.zeros && spec.precision.is_none(), ..spec }, sign, &digits)
}

fn sign(spec: Spec, negative: bool) -> &'static str {
    match (negative, spec.plus, spec.space) {
        (true, ..) => "-",
        (false, true, _) => "+",
        (false, false, true) => " ",
        (false, false, false) => "",
    }
}

fn float(spec: Spec, kind: u8, value: f64) -> Vec<u8> {
    let sign = sign(spec, value.is_sign_negative());
    let upper = kind.is_ascii_uppercase();
    let case = |text: String| if upper { text.to_uppercase() } else { text };
    if !value.is_finite() {
        let text = if value.is_nan() { "nan" } else { "inf" };
        return padded(Spec { zeros: false, ..spec }, sign, &case(text.to_owned()));
    }
    let value = value.abs();
    let precision = spec.precision.unwrap_or(6);
    let digits = match kind.to_ascii_lowercase() {
        b'f' => fixed(value, precision, spec.alternative),
        b'e' => scientific(value, precision, spec.alternative),
        b'g' => {
            let significant = precision.max(1);
            // The exponent after rounding to that many digits decides.
            let rounded = format!("{value:.*e}", significant - 1);
            let exponent: i32 = rounded.split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or(0);
            let text = if exponent < -4 || exponent >= significant as i32 {
                scientific(value, significant - 1, spec.alternative)
            } else {
                fixed(value, (significant as i32 - 1 - exponent).max(0) as usize, spec.alternative)
            };
            if spec.alternative { text } else { without_zeros(&text) }
        }
        _ => hexadecimal(value, spec.precision),
    };
    padded(spec, sign, &case(digits))
}

fn fixed(value: f64, precision: usize, point: bool) -> String {
    format!("{value:.precision$}{}", if point && precision == 0 { "." } else { "" })
}

/// At least two digits of exponent, with its sign.
fn scientific(value: f64, precision: usize, point: bool) -> String {
    let text = format!("{value:.precision$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let point = if point && precision == 0 { "." } else { "" };
    format!("{mantissa}{point}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

fn without_zeros(text: &str) -> String {
    let (mantissa, exponent) = match text.find('e') {
        Some(at) => text.split_at(at),
        None => (text, ""),
    };
    let mantissa = if mantissa.contains('.') { mantissa.trim_end_matches('0').trim_end_matches('.') } else { mantissa };
    format!("{mantissa}{exponent}")
}

/// `%a`: the leading digit is 1, or 0 for numbers below the normal ones.
fn hexadecimal(value: f64, precision: Option<usize>) -> String {
    let bits = value.to_bits();
    let (mut fraction, raw) = (bits & ((1 << 52) - 1), (bits >> 52) as i32);
    let exponent = if raw == 0 && fraction == 0 { 0 } else { raw.max(1) - 1023 };
    let mut lead = u64::from(raw != 0);
    let mut digits = 13;
    if let Some(keep) = precision.filter(|keep| *keep < 13) {
        let drop = 4 * (13 - keep as u32);
        let whole = lead << 52 | fraction;
        let (kept, lost, half) = (whole >> drop, whole & ((1 << drop) - 1), 1u64 << (drop - 1));
        let kept = kept + u64::from(lost > half || lost == half && kept & 1 == 1);
        (lead, fraction, digits) = (kept >> (4 * keep), kept & ((1u64 << (4 * keep)) - 1), keep);
    }
    let mut text = if digits == 0 { String::new() } else { format!("{fraction:0digits$x}") };
    match precision {
        None => text.truncate(text.trim_end_matches('0').len()),
        Some(least) => text.push_str(&"0".repeat(least.saturating_sub(text.len()))),
    }
    let point = if text.is_empty() { "" } else { "." };
    format!("0x{lead}{point}{text}p{exponent:+}")
}

/// Sign and digits in a field, with zeros between them if asked for.
fn padded(spec: Spec, sign: &str, digits: &str) -> Vec<u8> {
    let missing = spec.width.saturating_sub(sign.len() + digits.len());
    if spec.zeros && !spec.left {
        return format!("{sign}{}{digits}", "0".repeat(missing)).into_bytes();
    }
    padded_bytes(spec, format!("{sign}{digits}").into_bytes())
}

fn padded_bytes(spec: Spec, mut bytes: Vec<u8>) -> Vec<u8> {
    let missing = vec![b' '; spec.width.saturating_sub(bytes.len())];
    if spec.left {
        bytes.extend(missing);
        bytes
    } else {
        [missing, bytes].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the format gives for these values.
    fn print(text: &str, values: &[u64]) -> String {
        let mut values = values.iter();
        let bytes = format(text.as_bytes(), |argument| {
            let value = values.next().copied().unwrap_or(0);
            (value, (argument == Argument::Text && value != 0).then(|| format!("text{value}").into_bytes()))
        });
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The right-hand sides are what glibc prints.
    #[test]
    fn fields_are_those_of_c() {
        let f = |value: f64| value.to_bits();
        let cases: &[(&str, &[u64], &str)] = &[
            ("%d|%5d|%-5d|%05d|%+d|% d", &[7, 7, 7, 7, 7, 7], "7|    7|7    |00007|+7| 7"),
            (
                "%d %u %x %X %#x %o %#o",
                &[u64::MAX, 0xffff_ffff, 255, 255, 255, 8, 8],
                "-1 4294967295 ff FF 0xff 10 010",
            ),
            (
                "%lld %llu %lx %hd %hhu",
                &[u64::MAX, u64::MAX, 1 << 40, 0x1_ffff, 0x1ff],
                "-1 18446744073709551615 10000000000 -1 255",
            ),
            ("%.3d|%8.3d|%.0d|%-+6d|", &[5, 5, 0, 5], "005|     005||+5    |"),
            (
                "%f %.0f %#.0f %10.3f|%-10.2f|%+.1f",
                &[f(1.5), f(2.5), f(3.0), f(2.0 / 3.0), f(-1.0), f(0.25)],
                "1.500000 2 3.      0.667|-1.00     |+0.2",
            ),
            (
                "%e %.2E %.0e %e",
                &[f(12345.678), f(0.00012), f(5.0), f(0.0)],
                "1.234568e+04 1.20E-04 5e+00 0.000000e+00",
            ),
            (
                "%g %g %g %g %g %#g",
                &[f(100_000.0), f(1e6), f(0.0001), f(0.00001), f(1.5), f(1.5)],
                "100000 1e+06 0.0001 1e-05 1.5 1.50000",
            ),
            (
                "%a %a %.2a %.0a %a",
                &[f(1.0), f(-0.1), f(1.999), f(1.5), f(0.0)],
                "0x1p+0 -0x1.999999999999ap-4 0x2.00p+0 0x2p+0 0x0p+0",
            ),
            (
                "%f %F %5g|%-5e|%05f",
                &[f(f64::INFINITY), f(f64::NEG_INFINITY), f(f64::INFINITY), f(f64::INFINITY), f(f64::INFINITY)],
                "inf -INF   inf|inf  |  inf",
            ),
            ("%s %10s|%-7s|%.2s %s", &[1, 2, 3, 4, 0], "text1      text2|text3  |te (null)"),
            ("%c%c %p %% 100%", &[65, 66, 0x1234], "AB 0x1234 % 100%"),
            ("%*d %-*d| %.*f", &[5, 7, 4, 7, 2, f(1.0)], "    7 7   | 1.00"),
            ("%y %", &[1], "%y %"),
        ];
        for (text, values, want) in cases {
            assert_eq!(print(text, values), *want, "{text}");
        }
    }
}
