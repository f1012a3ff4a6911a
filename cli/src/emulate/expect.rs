//! `expect:FILE,RTOL,ATOL`: what a buffer must hold after the launch.

use super::argument::{self, Buffer, Form};

/// A file to compare with, and by how much an element may differ: |got − want| ≤ `atol` + `rtol`·|want|. A NaN equals
/// a NaN.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    /// The file.
    pub file: String,
    /// Its data.
    pub bytes: Vec<u8>,
    /// Its type and shape, if it says them.
    pub form: Option<Form>,
    /// Relative tolerance.
    pub rtol: f64,
    /// Absolute tolerance.
    pub atol: f64,
}

/// What a comparison has found.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// The file.
    pub file: String,
    /// The parameter or buffer.
    pub buffer: String,
    /// Elements.
    pub elements: u64,
    /// Elements that differ by more than they may.
    pub wrong: u64,
    /// The first of them: its index, what is there, and what was expected.
    pub first: Option<(u64, String, String)>,
}

impl Expectation {
    /// Reads `FILE`, `FILE,RTOL` or `FILE,RTOL,ATOL`, and the file.
    ///
    /// # Errors
    /// What is wrong, as text.
    pub fn parse(text: &str) -> Result<Expectation, String> {
        let mut parts = text.split(',');
        let file = parts.next().unwrap_or_default();
        let mut tolerance = |what: &str| match parts.next() {
            None => Ok(0.0),
            Some(part) => match part.trim().parse::<f64>() {
                Ok(value) if value >= 0.0 && value.is_finite() => Ok(value),
                _ => Err(format!("`{part}` is no {what} tolerance, such as 1e-5")),
            },
        };
        let (rtol, atol) = (tolerance("relative")?, tolerance("absolute")?);
        if let Some(rest) = parts.next() {
            return Err(format!("`{rest}` follows the two tolerances"));
        }
        let (bytes, form) = argument::contents(file)?;
        if form.is_none() && (rtol, atol) != (0.0, 0.0) {
            return Err(format!("{file} is compared byte by byte: a tolerance needs a file of NumPy's"));
        }
        Ok(Expectation { file: file.to_owned(), bytes, form, rtol, atol })
    }

    /// Compares what a buffer holds, element by element, or byte by byte if the file does not say of what type.
    pub fn compare(&self, name: &str, buffer: &Buffer, got: &[u8]) -> Compared {
        let dtype = self.form.as_ref().map_or("u1", |(dtype, _)| dtype.as_str());
        let size = dtype.get(1..).and_then(|size| size.parse::<usize>().ok()).filter(|size| *size > 0).unwrap_or(1);
        let number = |bytes: &[u8]| number(dtype, buffer.bf16, bytes);
        let mut compared = Compared {
            file: self.file.clone(),
            buffer: name.to_owned(),
            elements: (self.bytes.len() / size) as u64,
            wrong: 0,
            first: None,
        };
        for (at, (mine, wanted)) in (0..).zip(got.chunks(size).zip(self.bytes.chunks(size))) {
            let close = match (number(mine), number(wanted)) {
                _ if mine == wanted => true,
                (Some(mine), Some(wanted)) => {
                    mine == wanted
                        || mine.is_nan() && wanted.is_nan()
                        || mine.is_finite()
                            && wanted.is_finite()
                            && (mine - wanted).abs() <= self.atol + self.rtol * wanted.abs()
                }
                _ => false,
            };
            if !close {
                compared.wrong += 1;
                let text =
                    |bytes: &[u8]| number(bytes).map_or_else(|| format!("{bytes:02x?}"), |value| format!("{value}"));
                compared.first.get_or_insert_with(|| (at, text(mine), text(wanted)));
            }
        }
        compared
    }
}

/// An element as a number; none for types that are compared bit by bit, and for integers that have no exact one.
fn number(dtype: &str, bf16: bool, bytes: &[u8]) -> Option<f64> {
    let mut word = [0; 8];
    word[..bytes.len().min(8)].copy_from_slice(&bytes[..bytes.len().min(8)]);
    let bits = u64::from_le_bytes(word);
    let value = match dtype {
        "f2" => tilewright::f16::from_bits(bits as u16).to_f64(),
        "f4" => f64::from(f32::from_bits(bits as u32)),
        "f8" => f64::from_bits(bits),
        "u2" if bf16 => tilewright::bf16::from_bits(bits as u16).to_f64(),
        "u1" | "u2" | "u4" => bits as f64,
        "i1" => f64::from(bits as u8 as i8),
        "i2" => f64::from(bits as u16 as i16),
        "i4" => f64::from(bits as u32 as i32),
        _ => return None,
    };
    Some(value)
}

impl std::fmt::Display for Compared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Compared { file, buffer, elements, wrong, first } = self;
        match first {
            None => write!(f, "`{buffer}` is as in {file}: {elements} elements"),
            Some((at, got, want)) => write!(
                f,
                "`{buffer}` is not as in {file}: {wrong} of {elements} elements differ, the first at {at}: {got}, expected {want}"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(dtype: &str, bf16: bool, got: &[u8], want: &[u8], rtol: f64) -> u64 {
        let form = Some((dtype.to_owned(), vec![]));
        let expectation = Expectation { file: "w".to_owned(), bytes: want.to_vec(), form, rtol, atol: 0.0 };
        let buffer = Buffer { initial: None, bytes: 0, form: None, to: None, writable: true, bf16, expected: None };
        expectation.compare("x", &buffer, got).wrong
    }

    #[test]
    fn elements_may_differ_within_their_tolerance() {
        let floats = |values: &[f32]| -> Vec<u8> { values.iter().flat_map(|value| value.to_le_bytes()).collect() };
        let want = floats(&[1.0, f32::NAN, f32::INFINITY, 0.0]);
        assert_eq!(compare("f4", false, &want, &want, 0.0), 0);
        assert_eq!(compare("f4", false, &floats(&[1.01, f32::NAN, f32::INFINITY, -0.0]), &want, 0.02), 0);
        assert_eq!(compare("f4", false, &floats(&[1.03, f32::NAN, f32::INFINITY, 0.0]), &want, 0.02), 1);
        assert_eq!(compare("f4", false, &floats(&[1.0, 0.0, f32::MAX, 1e-30]), &want, 0.02), 3);
        // 1.0 and its successor in bf16.
        assert_eq!(compare("u2", true, &[0x81, 0x3f], &[0x80, 0x3f], 0.01), 0);
        assert_eq!(compare("u2", false, &[0x81, 0x3f], &[0x80, 0x3f], 0.0), 1);
        // 64-bit integers are compared exactly.
        assert_eq!(compare("i8", false, &[1, 0, 0, 0, 0, 0, 0, 0x7f], &[0, 0, 0, 0, 0, 0, 0, 0x7f], 1.0), 1);
    }
}
