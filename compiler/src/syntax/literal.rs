//! Numbers: from the text of a literal token to its value and suffix.
//!
//! Rust's lexer splits most literals as the language wants them. Two cases need care: `0.5e4m3` is `0.5` of type
//! `e4m3`, never 5000 with a suffix `m3`; in a hexadecimal literal letters are digits, so only integer types can
//! follow. `0bf16` is not a token of Rust at all: write `0.0bf16`.

use crate::diag::codes::LiteralProblem;
use crate::source::ast::{ElementType, ExprKind, FloatLiteral, IntLiteral};

/// The expression of a literal.
pub(super) fn parse_number(text: &str) -> Result<ExprKind, LiteralProblem> {
    if !text.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(LiteralProblem::NotANumber);
    }
    let based = [("0x", 16), ("0o", 8), ("0b", 2)];
    if let Some((prefix, radix)) = based.into_iter().find(|(prefix, _)| text.starts_with(prefix)) {
        return parse_based(&text[prefix.len()..], radix);
    }
    let (digits, suffix) = split_decimal(text)?;
    let digits: String = digits.chars().filter(|&c| c != '_').collect();
    let fraction = digits.contains(['.', 'e', 'E']);
    if fraction || suffix.is_some_and(ElementType::is_float) {
        if let Some(ty) = suffix.filter(|ty| !ty.is_float()) {
            return Err(LiteralProblem::Fraction(ty.name()));
        }
        if digits.parse::<f64>().is_err() {
            return Err(LiteralProblem::Digits);
        }
        return Ok(ExprKind::Float(FloatLiteral { digits, suffix }));
    }
    if suffix == Some(ElementType::Bool) {
        return Err(LiteralProblem::Suffix("bool".to_owned()));
    }
    let value = digits.parse().map_err(|_| LiteralProblem::TooLarge)?;
    Ok(ExprKind::Int(IntLiteral { value, suffix }))
}

/// Cuts a decimal literal before its suffix.
fn split_decimal(text: &str) -> Result<(&str, Option<ElementType>), LiteralProblem> {
    // The types that look like an exponent, and then whatever follows the number.
    for ty in [ElementType::E4m3, ElementType::E5m2] {
        if let Some(digits) = text.strip_suffix(ty.name()) {
            return Ok((digits, Some(ty)));
        }
    }
    let mut end = text.len();
    let mut exponent = false;
    let mut previous = ' ';
    for (index, c) in text.char_indices() {
        let in_number = c.is_ascii_digit()
            || matches!(c, '_' | '.')
            || (matches!(c, '+' | '-') && matches!(previous, 'e' | 'E'))
            || (matches!(c, 'e' | 'E') && !exponent);
        if !in_number {
            end = index;
            break;
        }
        exponent |= matches!(c, 'e' | 'E');
        previous = c;
    }
    let (digits, suffix) = text.split_at(end);
    if suffix.is_empty() {
        return Ok((digits, None));
    }
    match ElementType::from_name(suffix) {
        Some(ty) => Ok((digits, Some(ty))),
        None => Err(LiteralProblem::Suffix(suffix.to_owned())),
    }
}

/// The part of a literal after `0x`, `0o` or `0b`.
fn parse_based(text: &str, radix: u32) -> Result<ExprKind, LiteralProblem> {
    let end = text.find(|c: char| c != '_' && !c.is_digit(radix)).unwrap_or(text.len());
    let (digits, suffix) = text.split_at(end);
    let suffix = match suffix {
        "" => None,
        _ => match ElementType::from_name(suffix) {
            Some(ty) if ty.is_integer() => Some(ty),
            Some(_) => return Err(LiteralProblem::Digits),
            None if suffix.starts_with(|c: char| c.is_ascii_digit()) => return Err(LiteralProblem::Digits),
            None => return Err(LiteralProblem::Suffix(suffix.to_owned())),
        },
    };
    let digits: String = digits.chars().filter(|&c| c != '_').collect();
    if digits.is_empty() {
        return Err(LiteralProblem::Digits);
    }
    let value = u64::from_str_radix(&digits, radix).map_err(|_| LiteralProblem::TooLarge)?;
    Ok(ExprKind::Int(IntLiteral { value, suffix }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(value: u64, suffix: Option<ElementType>) -> Result<ExprKind, LiteralProblem> {
        Ok(ExprKind::Int(IntLiteral { value, suffix }))
    }

    fn float(digits: &str, suffix: Option<ElementType>) -> Result<ExprKind, LiteralProblem> {
        Ok(ExprKind::Float(FloatLiteral { digits: digits.to_owned(), suffix }))
    }

    #[test]
    fn integers() {
        assert_eq!(parse_number("4"), int(4, None));
        assert_eq!(parse_number("1_000u32"), int(1000, Some(ElementType::U32)));
        assert_eq!(parse_number("0xff"), int(255, None));
        assert_eq!(parse_number("0x1f32"), int(0x1f32, None));
        assert_eq!(parse_number("0xbf16"), int(0xbf16, None));
        assert_eq!(parse_number("0xf_u8"), int(15, Some(ElementType::U8)));
        assert_eq!(parse_number("0b101i8"), int(5, Some(ElementType::I8)));
        assert_eq!(parse_number("0o17"), int(15, None));
        assert_eq!(parse_number("18446744073709551615"), int(u64::MAX, None));
    }

    #[test]
    fn floats() {
        assert_eq!(parse_number("0.5"), float("0.5", None));
        assert_eq!(parse_number("2."), float("2.", None));
        assert_eq!(parse_number("1e-3f32"), float("1e-3", Some(ElementType::F32)));
        assert_eq!(parse_number("1_0.2_5E+2"), float("10.25E+2", None));
        assert_eq!(parse_number("0.5bf16"), float("0.5", Some(ElementType::Bf16)));
        assert_eq!(parse_number("0.5tf32"), float("0.5", Some(ElementType::Tf32)));
        assert_eq!(parse_number("3f16"), float("3", Some(ElementType::F16)));
        assert_eq!(parse_number("0.5e4m3"), float("0.5", Some(ElementType::E4m3)));
        assert_eq!(parse_number("1e5m2"), float("1", Some(ElementType::E5m2)));
        assert_eq!(parse_number("1e2e5m2"), float("1e2", Some(ElementType::E5m2)));
    }

    #[test]
    fn refused() {
        for (text, problem) in [
            ("\"four\"", LiteralProblem::NotANumber),
            ("'4'", LiteralProblem::NotANumber),
            ("b'4'", LiteralProblem::NotANumber),
            ("18446744073709551616", LiteralProblem::TooLarge),
            ("0x1_0000_0000_0000_0000", LiteralProblem::TooLarge),
            ("4usize", LiteralProblem::Suffix("usize".to_owned())),
            ("4.0fp8", LiteralProblem::Suffix("fp8".to_owned())),
            ("1bool", LiteralProblem::Suffix("bool".to_owned())),
            ("0b12", LiteralProblem::Digits),
            ("0bf16", LiteralProblem::Digits),
            ("0x", LiteralProblem::Digits),
            ("1ee5", LiteralProblem::Suffix("e5".to_owned())),
            ("1e", LiteralProblem::Digits),
            ("1.5u8", LiteralProblem::Fraction("u8")),
        ] {
            assert_eq!(parse_number(text), Err(problem), "{text}");
        }
    }
}
