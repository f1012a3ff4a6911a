//! NumPy's `.npy` files, version 1 to 3, of plain numbers in C order and little-endian: what an array is, without what
//! it means. (The format: numpy/lib/format.py, "Format Version 1.0".)

/// An array as bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Npy {
    /// `f4`, `i8`, `b1` and so on, without the byte order.
    pub dtype: String,
    /// Extents.
    pub shape: Vec<u64>,
    /// Elements, little-endian.
    pub data: Vec<u8>,
}

const MAGIC: &[u8] = b"\x93NUMPY";

/// Reads a file.
///
/// # Errors
/// What is wrong with it, as text.
pub fn read(bytes: &[u8]) -> Result<Npy, String> {
    let rest = bytes.strip_prefix(MAGIC).ok_or("it does not start like a .npy file")?;
    let (version, rest) = rest.split_first_chunk::<2>().ok_or("it ends within its header")?;
    let (length, rest) = match version[0] {
        1 => {
            let (length, rest) = rest.split_first_chunk::<2>().ok_or("it ends within its header")?;
            (usize::from(u16::from_le_bytes(*length)), rest)
        }
        2 | 3 => {
            let (length, rest) = rest.split_first_chunk::<4>().ok_or("it ends within its header")?;
            (u32::from_le_bytes(*length) as usize, rest)
        }
        other => return Err(format!("version {other} of the format is unknown")),
    };
    if rest.len() < length {
        return Err("it ends within its header".to_owned());
    }
    let (header, data) = rest.split_at(length);
    let header = String::from_utf8_lossy(header);
    let descr = entry(&header, "descr")?;
    let descr = descr.trim().trim_matches(['\'', '"']);
    if entry(&header, "fortran_order")?.trim() == "True" {
        return Err("it is in Fortran order; save it in C order".to_owned());
    }
    let dtype = match descr.strip_prefix(['<', '|', '=']) {
        Some(dtype) => dtype,
        None if descr.starts_with('>') => return Err(format!("its type {descr} is big-endian")),
        None => return Err(format!("its type {descr} is not one of plain numbers")),
    };
    let size = element_bytes(dtype).ok_or_else(|| format!("its type {descr} is not one of plain numbers"))?;
    let shape = entry(&header, "shape")?;
    let shape = shape.trim().trim_start_matches('(').trim_end_matches(')');
    let shape: Vec<u64> = shape
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .map(|part| part.parse().map_err(|_| format!("its shape has `{part}`")))
        .collect::<Result<_, String>>()?;
    let wanted = shape.iter().try_fold(size, |size, extent| size.checked_mul(*extent));
    if wanted != Some(data.len() as u64) {
        return Err(format!("its shape and type do not fit its {} bytes of data", data.len()));
    }
    Ok(Npy { dtype: dtype.to_owned(), shape, data: data.to_vec() })
}

/// Bytes of an element of plain numbers.
fn element_bytes(dtype: &str) -> Option<u64> {
    let (kind, size) = dtype.split_at_checked(1)?;
    let size: u64 = size.parse().ok()?;
    let known = match kind {
        "f" => matches!(size, 2 | 4 | 8),
        "i" | "u" => matches!(size, 1 | 2 | 4 | 8),
        "c" => matches!(size, 8 | 16),
        "b" => size == 1,
        "V" => size > 0,
        _ => false,
    };
    known.then_some(size)
}

/// The value of a key of the header, which is a Python dictionary.
fn entry(header: &str, key: &str) -> Result<String, String> {
    let missing = || format!("its header has no `{key}`");
    let at = header.find(&format!("'{key}'")).ok_or_else(missing)?;
    let rest = header[at..].split_once(':').ok_or_else(missing)?.1;
    let mut depth = 0;
    let mut value = String::new();
    for c in rest.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' | '}' if depth == 0 => break,
            _ => {}
        }
        value.push(c);
    }
    Ok(value)
}

/// Writes a file, version 1.0.
pub fn write(npy: &Npy) -> Vec<u8> {
    let extents: Vec<String> = npy.shape.iter().map(u64::to_string).collect();
    let shape = match &extents[..] {
        [one] => format!("({one},)"),
        many => format!("({})", many.join(", ")),
    };
    let order = if npy.dtype.ends_with('1') && !npy.dtype.starts_with('c') { '|' } else { '<' };
    let mut header = format!("{{'descr': '{order}{}', 'fortran_order': False, 'shape': {shape}, }}", npy.dtype);
    // Data starts at a multiple of 64.
    let total = (MAGIC.len() + 4 + header.len() + 1).next_multiple_of(64);
    header.push_str(&" ".repeat(total - MAGIC.len() - 4 - header.len() - 1));
    header.push('\n');
    let mut bytes = MAGIC.to_vec();
    bytes.extend([1, 0]);
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(&npy.data);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip() {
        for (dtype, shape, bytes) in
            [("f4", vec![2, 3], 24), ("i8", vec![5], 40), ("u1", vec![], 1), ("f2", vec![0, 4], 0)]
        {
            let npy = Npy { dtype: dtype.to_owned(), shape, data: (0..bytes).collect() };
            let file = write(&npy);
            assert_eq!((file.len() - bytes as usize) % 64, 0);
            assert_eq!(read(&file), Ok(npy));
        }
    }

    #[test]
    fn numpys_own_header() {
        let mut file = b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }".to_vec();
        file.resize(127, b' ');
        file.push(b'\n');
        file.extend([0; 8]);
        assert_eq!(read(&file).map(|npy| npy.shape), Ok(vec![2]));
    }

    #[test]
    fn broken_files_have_reasons() {
        let good = write(&Npy { dtype: "f4".to_owned(), shape: vec![2], data: vec![0; 8] });
        for length in 0..good.len() {
            assert!(read(&good[..length]).is_err(), "{length} bytes");
        }
        let text = String::from_utf8_lossy(&good[10..]).into_owned();
        for (from, to, why) in [
            ("<f4", ">f4", "big-endian"),
            ("<f4", "|O8", "plain numbers"),
            ("False", "True ", "Fortran"),
            ("(2,)", "(3,)", "do not fit"),
            ("(2,)", "(x,)", "shape has"),
        ] {
            let mut bad = good[..10].to_vec();
            bad.extend(text.replace(from, to).as_bytes());
            assert!(read(&bad).is_err_and(|error| error.contains(why)), "{to}");
        }
    }
}
