//! `--data x=-1..1`: which numbers a tensor gets in the place of those that are drawn by itself.
//!
//! **Property.** Every number lies in the range that was given, a float as rounded to the type of the tensor, as the
//! ends are; and the same seed gives the same numbers on every machine. **Formula.** A number of a range is drawn
//! evenly: of integers any but the end. `normal` is the sum of twelve numbers from −1/2 to 1/2, times the deviation:
//! its variance is 1, and no function of a library is asked, which machines compute differently. `distinct` is an order
//! of the numbers from 0 on, as many as there are elements. **Approximation.** So a normal number has no more than six
//! deviations, and of types with fewer numbers than elements, distinct ones begin anew.

use std::fmt;

use tilewright::kernel::ElementType;
use tilewright::kernel::format::Format;
use tilewright::kernel::info::{ParameterKind, Role};
use tilewright_kernel::KernelInfo;

use crate::inputs::Random;

/// The numbers of one tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct Data {
    /// The tensor.
    pub name: String,
    /// As it was given.
    text: String,
    numbers: Numbers,
}

#[derive(Clone, Debug, PartialEq)]
enum Numbers {
    /// Of integers.
    Whole {
        from: i128,
        to: i128,
    },
    /// Of floats.
    Real {
        from: f64,
        to: f64,
    },
    Normal {
        deviation: f64,
    },
    /// Integers from 0 on, each once.
    Distinct,
}

impl fmt::Display for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.name, self.text)
    }
}

/// What is given for tensors of a kernel, such as `ids=0..100`, `x=-1..1`, `w=normal`, `w=normal:0.02` and
/// `p=distinct`.
///
/// # Errors
/// What to tell the user of a text that is none, a tensor that the kernel does not read, or a range that has no number
/// of its type.
pub fn parse(kernel: &KernelInfo, given: &[String]) -> Result<Vec<Data>, String> {
    let mut all: Vec<Data> = Vec::new();
    for text in given {
        let wrong = |why: &str| format!("`--data {text}`: {why}");
        let Some((name, numbers)) = text.split_once('=') else {
            return Err(wrong("data is given as NAME=FROM..TO, NAME=normal or NAME=distinct, such as x=-1..1"));
        };
        let (name, numbers) = (name.trim(), numbers.trim());
        let read: Vec<_> = kernel
            .parameters
            .iter()
            .filter(|p| matches!(&p.kind, ParameterKind::Tensor(tensor) if tensor.role != Role::Output))
            .collect();
        let Some(parameter) = read.iter().find(|p| p.name == name) else {
            let known: Vec<&str> = read.iter().map(|p| &*p.name).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(wrong(&format!("kernel {} reads no tensor `{name}`; it reads {known}", kernel.name)));
        };
        if all.iter().any(|data| data.name == name) {
            return Err(wrong(&format!("`{name}` has data already")));
        }
        let found = of(parameter.element, numbers).map_err(|why| wrong(&why))?;
        all.push(Data { name: name.to_owned(), text: numbers.to_owned(), numbers: found });
    }
    Ok(all)
}

/// Data for the tensors that places of a scatter by `only` are read from, but for those that have some already: each
/// number once, so that the promise is kept where the places are nothing but these.
pub fn promised(kernel: &KernelInfo, given: &[Data]) -> Vec<Data> {
    let names = kernel.algorithm.promised().into_iter().filter_map(|read| kernel.parameters.get(usize::from(read)));
    let open = names.filter(|read| given.iter().all(|data| data.name != *read.name));
    let distinct = |name: String| Data { name, text: "distinct".to_owned(), numbers: Numbers::Distinct };
    open.map(|read| distinct(read.name.to_string())).collect()
}

/// What a text means for a type.
fn of(element: ElementType, text: &str) -> Result<Numbers, String> {
    let format = Format::of(element);
    if text == "distinct" {
        return match format.is_none() && element != ElementType::Bool {
            true => Ok(Numbers::Distinct),
            false => Err(format!("distinct numbers are integers, and it is {element}")),
        };
    }
    if let Some(rest) = text.strip_prefix("normal") {
        let deviation = match rest.strip_prefix(':') {
            None if rest.is_empty() => 1.0,
            Some(number) => number.trim().parse().map_err(|_| format!("`{number}` is no number"))?,
            None => return Err(format!("`{text}` is no range; normal numbers are `normal` or `normal:0.5`")),
        };
        let Some(format) = format else { return Err(format!("normal numbers are floats, and it is {element}")) };
        if !(deviation > 0.0 && is_finite(format, SPREAD * deviation)) {
            return Err(format!("a deviation of {deviation} is none of {element}: six of them are a number above 0"));
        }
        return Ok(Numbers::Normal { deviation });
    }
    let (from, to) = text.split_once("..").ok_or_else(|| format!("`{text}` is no range, such as 0..100"))?;
    let (from, to) = (from.trim(), to.trim());
    if let Some(format) = format {
        let number = |text: &str| text.parse::<f64>().map_err(|_| format!("`{text}` is no number"));
        let (from, to) = (number(from)?, number(to)?);
        if let Some(outside) = [from, to].into_iter().find(|end| !is_finite(format, *end)) {
            return Err(format!("{outside} is no number of {element}"));
        }
        return match from < to {
            true => Ok(Numbers::Real { from, to }),
            false => Err(format!("a range from {from} to {to} has no number")),
        };
    }
    if element == ElementType::Bool {
        return Err("of bool there are false and true alone, and both are drawn".to_owned());
    }
    let number = |text: &str| text.parse::<i128>().map_err(|_| format!("`{text}` is no integer"));
    let (from, to) = (number(from)?, number(to)?);
    let bits = 8 * element.bytes();
    let (least, most) = match element.is_signed_integer() {
        true => (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1),
        false => (0, (1_i128 << bits) - 1),
    };
    if from >= to {
        return Err(format!("a range from {from} up to {to}, without {to}, has no number"));
    }
    if from < least || to - 1 > most {
        return Err(format!("{element} has {least} to {most}"));
    }
    Ok(Numbers::Whole { from, to })
}

/// Most deviations of a normal number from 0.
const SPREAD: f64 = 6.0;

fn is_finite(format: Format, number: f64) -> bool {
    number.is_finite() && format.value(format.from_f64(number)).is_finite()
}

impl Data {
    /// So many elements, little-endian.
    pub fn elements(&self, element: ElementType, count: usize, random: &mut Random) -> Vec<u8> {
        let size = element.bytes() as usize;
        let mut bytes = Vec::with_capacity(count.saturating_mul(size));
        let float = |number: f64| Format::of(element).map_or(0, |format| format.from_f64(number));
        // Integers that are left, for distinct ones.
        let mut left: Vec<u64> = match self.numbers {
            Numbers::Distinct => (0..count as u64).collect(),
            _ => Vec::new(),
        };
        for _ in 0..count {
            let bits = match self.numbers {
                Numbers::Distinct => left.swap_remove(random.below(left.len() as u64) as usize),
                // A range of integers of 64 bits has 2^64 of them at most; the last of these is left out of as many.
                Numbers::Whole { from, to } => {
                    let below = random.below(u64::try_from(to - from).unwrap_or(u64::MAX));
                    (from + i128::from(below)) as u64
                }
                Numbers::Real { from, to } => {
                    // The length of the range may be no number.
                    let part = random.part();
                    float((from * (1.0 - part) + to * part).clamp(from, to))
                }
                Numbers::Normal { deviation } => {
                    float(deviation * ((0..12).map(|_| random.part()).sum::<f64>() - SPREAD))
                }
            };
            bytes.extend_from_slice(&bits.to_le_bytes()[..size]);
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(element: ElementType, text: &str, count: usize) -> Vec<f64> {
        let data = Data { name: "x".to_owned(), text: text.to_owned(), numbers: of(element, text).expect(text) };
        let bytes = data.elements(element, count, &mut Random::new(5));
        assert_eq!(bytes, data.elements(element, count, &mut Random::new(5)));
        let value = |chunk: &[u8]| {
            let mut bits = [0; 8];
            bits[..chunk.len()].copy_from_slice(chunk);
            let bits = u64::from_le_bytes(bits);
            match Format::of(element) {
                Some(format) => format.value(bits),
                None if element.is_signed_integer() => {
                    let free = 64 - 8 * chunk.len();
                    ((bits << free) as i64 >> free) as f64
                }
                None => bits as f64,
            }
        };
        bytes.chunks(element.bytes() as usize).map(value).collect()
    }

    /// All integers of a range are drawn, and no other; floats reach near both ends.
    #[test]
    fn ranges_are_filled() {
        for (element, from, to) in [
            (ElementType::I8, -128, 128),
            (ElementType::U16, 3, 40),
            (ElementType::I64, -2, 3),
            (ElementType::U64, 0, 1),
        ] {
            let mut all = drawn(element, &format!("{from}..{to}"), 4000);
            all.sort_by(f64::total_cmp);
            all.dedup();
            assert_eq!(all, (from..to).map(f64::from).collect::<Vec<_>>(), "{element}");
        }
        for element in [ElementType::F32, ElementType::F64, ElementType::Bf16, ElementType::E4m3] {
            let all = drawn(element, "-3 .. 5", 4000);
            assert!(all.iter().all(|x| (-3.0..=5.0).contains(x)), "{element}");
            assert!(all.iter().any(|x| *x < -2.7) && all.iter().any(|x| *x > 4.7), "{element}");
        }
        let widest = drawn(ElementType::F64, "-1.7e308..1.7e308", 100);
        assert!(widest.iter().all(|x| x.is_finite()) && widest.iter().any(|x| *x < 0.0), "{widest:?}");
    }

    /// The mean and the variance of many are near those that were asked for.
    #[test]
    fn normal_numbers_have_their_variance() {
        for (text, deviation) in [("normal", 1.0), ("normal:0.25", 0.25)] {
            let all = drawn(ElementType::F64, text, 20_000);
            let count = all.len() as f64;
            let mean = all.iter().sum::<f64>() / count;
            let variance = all.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / count;
            assert!(mean.abs() < 0.03 * deviation, "{mean}");
            assert!((variance / (deviation * deviation) - 1.0).abs() < 0.05, "{variance}");
        }
    }

    /// Each number once, in an order that is not theirs.
    #[test]
    fn distinct_numbers_are_an_order_of_all() {
        for element in [ElementType::U8, ElementType::I32, ElementType::U64] {
            let drawn = drawn(element, "distinct", 200);
            let mut sorted = drawn.clone();
            sorted.sort_by(f64::total_cmp);
            assert_eq!(sorted, (0..200).map(f64::from).collect::<Vec<_>>(), "{element}");
            assert_ne!(drawn, sorted, "{element}");
        }
    }

    #[test]
    fn what_has_no_number_is_refused() {
        let rows = [
            (ElementType::U8, "0..257", "u8 has 0 to 255"),
            (ElementType::I32, "4..4", "a range from 4 up to 4, without 4, has no number"),
            (ElementType::I32, "0.5..4", "`0.5` is no integer"),
            (ElementType::I32, "normal", "normal numbers are floats, and it is i32"),
            (ElementType::Bool, "0..2", "of bool there are false and true alone, and both are drawn"),
            (ElementType::F16, "0..1e6", "1000000 is no number of f16"),
            (ElementType::F32, "1..0", "a range from 1 to 0 has no number"),
            (ElementType::F32, "nan..0", "NaN is no number of f32"),
            (ElementType::F32, "normal:-1", "a deviation of -1 is none of f32: six of them are a number above 0"),
            (ElementType::F32, "normally", "`normally` is no range; normal numbers are `normal` or `normal:0.5`"),
            (ElementType::F32, "5", "`5` is no range, such as 0..100"),
            (ElementType::F32, "distinct", "distinct numbers are integers, and it is f32"),
            (ElementType::Bool, "distinct", "distinct numbers are integers, and it is bool"),
        ];
        for (element, text, why) in rows {
            assert_eq!(of(element, text), Err(why.to_owned()));
        }
    }
}
