//! The record of a choice: `= (128, 3) by "h200 at M=4096,N=4096: 0f3a…";`.

use std::fmt;

use tilewright_kernel::info::KernelInfo;

use super::Tuned;
use crate::diag::codes::StaleRecord;
use crate::source::Span;

/// What was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// A value of each constant.
    pub values: Vec<u64>,
    /// What chose them.
    pub ranking: Ranking,
    /// See [`digest`].
    pub digest: u64,
    /// From `=` to the text.
    pub span: Span,
}

/// What chose the values: the text of a record without the digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranking {
    /// A GPU of the cost report, such as `h200`, or the name of a device.
    pub machine: String,
    /// Whether launches were timed there.
    pub measured: bool,
    /// Sizes, `M=4096,N=4096`; empty if the kernel has none.
    pub sizes: String,
}

/// Stands between the machine and the sizes.
const AT: &str = " at ";
/// Stands after a machine on which launches were timed.
const MEASURED: &str = ", measured";

impl fmt::Display for Ranking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { machine, measured, sizes } = self;
        let at = if sizes.is_empty() { "" } else { AT };
        write!(f, "{machine}{}{at}{sizes}", if *measured { MEASURED } else { "" })
    }
}

impl Ranking {
    /// The text of a record, and the digest at its end; none without one.
    #[must_use]
    pub fn read(text: &str) -> Option<(Ranking, u64)> {
        let (before, digest) = text.rsplit_once(": ")?;
        let is_digest = digest.len() == 16 && digest.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        let digest = u64::from_str_radix(digest, 16).ok().filter(|_| is_digest)?;
        let (machine, sizes) = before.rsplit_once(AT).unwrap_or((before, ""));
        let (machine, measured) = match machine.strip_suffix(MEASURED) {
            Some(machine) => (machine, true),
            None => (machine, false),
        };
        Some((Ranking { machine: machine.to_owned(), measured, sizes: sizes.to_owned() }, digest))
    }
}

impl Tuned {
    /// What is wrong with the record for this kernel, which has its values: its digest is another one.
    #[must_use]
    pub(crate) fn stale(&self, info: &KernelInfo) -> Option<StaleRecord> {
        let record = self.record.as_ref()?;
        let is_stale = digest(self, &record.values, info) != record.digest;
        let (measured, span) = (record.ranking.measured, record.span);
        is_stale.then(|| StaleRecord { kernel: info.name.to_string(), measured, span })
    }

    /// The record of a choice, as it stands in the source, from `=` on.
    #[must_use]
    pub fn written(&self, values: &[u64], ranking: &Ranking, info: &KernelInfo) -> String {
        let values_text: Vec<String> = values.iter().map(u64::to_string).collect();
        let text = format!("{ranking}: {:016x}", digest(self, values, info));
        format!("= ({}) by {text:?}", values_text.join(", "))
    }
}

/// A digest of a kernel and of what it was chosen from: the constants with their candidates and values, the facts, the
/// PTX with how it is launched, and the tensor maps. The same on every machine.
///
/// FNV-1a, of 64 bits. It notices changes and is no protection against somebody who wants it to be the same.
#[must_use]
pub fn digest(tuned: &Tuned, values: &[u64], info: &KernelInfo) -> u64 {
    let mut hash = Fnv::new();
    for (constant, value) in tuned.constants.iter().zip(values) {
        hash.text(&constant.name);
        constant.candidates.iter().for_each(|candidate| hash.number(*candidate));
        hash.text("is");
        hash.number(*value);
    }
    hash.text("facts");
    info.facts.iter().chain(info.requirements.iter()).for_each(|fact| hash.text(&fact.text));
    hash.text("launch");
    let names = |dim: u16| info.dims.get(usize::from(dim)).map_or("", |dim| &*dim.name);
    hash.text(&info.launch.blocks.display(&names).to_string());
    hash.number(info.launch.threads.into());
    hash.number(info.launch.cluster.into());
    info.entries.iter().for_each(|entry| hash.number(entry.shared_bytes.into()));
    hash.text("maps");
    for map in info.maps.iter() {
        hash.text(&format!("{:?} {:?} {:?}", map.format, map.swizzle, map.promotion));
        map.dimensions.iter().for_each(|along| hash.number(along.box_size.into()));
    }
    hash.text(&info.ptx.text);
    hash.0
}

/// Fowler, Noll and Vo's hash, 1a, of 64 bits.
struct Fnv(u64);

impl Fnv {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    /// A text and its length, so that two texts are not one that is longer.
    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.bytes(text.as_bytes());
    }

    fn number(&mut self, number: u64) {
        self.bytes(&number.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values that the authors of the hash publish.
    #[test]
    fn the_hash_is_the_published_one() {
        for (text, expected) in
            [("", 0xcbf2_9ce4_8422_2325), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8)]
        {
            let mut hash = Fnv::new();
            hash.bytes(text.as_bytes());
            assert_eq!(hash.0, expected, "{text}");
        }
    }

    #[test]
    fn a_record_is_read_as_it_is_written() {
        let digest = 0x0123_4567_89ab_cdef;
        for (machine, measured, sizes) in
            [("h200", false, "M=4096,N=8"), ("NVIDIA H200: at home", true, "N=8"), ("a100", false, "")]
        {
            let ranking = Ranking { machine: machine.to_owned(), measured, sizes: sizes.to_owned() };
            let text = format!("{ranking}: {digest:016x}");
            assert_eq!(Ranking::read(&text), Some((ranking, digest)), "{text}");
        }
        for text in
            ["", "h200", "h200: 0123", "h200: 0123456789ABCDEF", "h200 at N=8: 0123456789abcdeg", ": +123456789abcdef"]
        {
            assert_eq!(Ranking::read(text), None, "{text}");
        }
    }
}
