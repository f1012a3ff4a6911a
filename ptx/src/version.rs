//! PTX versions, targets, what an instruction needs of both, and which driver understands a version.

use std::fmt;

/// A PTX ISA version such as 8.0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct PtxVersion {
    /// Before the point.
    pub major: u8,
    /// After the point.
    pub minor: u8,
}

impl PtxVersion {
    /// `major.minor`.
    pub const fn new(major: u8, minor: u8) -> Self {
        PtxVersion { major, minor }
    }

    /// Reads `8.0`.
    pub fn from_text(text: &str) -> Option<Self> {
        let (major, minor) = text.split_once('.')?;
        Some(PtxVersion { major: decimal(major)?, minor: decimal(minor)? })
    }

    /// The oldest CUDA release whose assembler and driver accept this version (release notes of the PTX manual, part
    /// 13), as (major, minor); `None` for versions younger than this table.
    pub fn cuda_release(self) -> Option<(u8, u8)> {
        Some(match (self.major, self.minor) {
            (0..=5, _) => (8, 0),
            (6, 0) => (9, 0),
            (6, 1) => (9, 1),
            (6, 2) => (9, 2),
            (6, 3) => (10, 0),
            (6, 4) => (10, 1),
            (6, 5) => (10, 2),
            (7, minor @ 0..=8) => (11, minor),
            (8, minor @ 0..=6) => (12, [0, 1, 2, 3, 4, 5, 7][usize::from(minor)]),
            (8, 7) => (12, 8),
            (8, 8) => (12, 9),
            (9, minor @ 0..=2) => (13, minor),
            _ => return None,
        })
    }

    /// The number that `cuDriverGetVersion` reports for the oldest driver that accepts this version: 1000·major +
    /// 10·minor.
    pub fn minimum_driver(self) -> Option<u32> {
        self.cuda_release().map(|(major, minor)| 1000 * u32::from(major) + 10 * u32::from(minor))
    }
}

impl fmt::Display for PtxVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A `.target` architecture such as `sm_90` or `sm_90a`.
///
/// `sm_90` code runs on 9.0 and everything newer; `sm_90a` code only on exactly 9.0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Target {
    /// Ten times the compute capability: 90 for 9.0.
    pub sm: u16,
    /// Whether features of exactly this architecture may be used (the `a` suffix).
    pub specific: bool,
}

impl Target {
    /// A portable target: `Target::sm(90)` is `sm_90`.
    pub const fn sm(sm: u16) -> Self {
        Target { sm, specific: false }
    }

    /// An architecture-specific target: `Target::sm_a(90)` is `sm_90a`.
    pub const fn sm_a(sm: u16) -> Self {
        Target { sm, specific: true }
    }

    /// Reads `sm_90a`. The family suffix `f` is not supported.
    pub fn from_text(text: &str) -> Option<Self> {
        Target::from_number(text.strip_prefix("sm_")?)
    }

    /// Reads `90a`.
    pub(crate) fn from_number(text: &str) -> Option<Self> {
        let (digits, specific) = match text.strip_suffix('a') {
            Some(digits) => (digits, true),
            None => (text, false),
        };
        if !(2..=3).contains(&digits.len()) {
            return None;
        }
        Some(Target { sm: decimal(digits)?, specific })
    }

    /// Whether code for this target may use a feature that needs `need`.
    pub const fn provides(self, need: Target) -> bool {
        if need.specific { self.specific && self.sm == need.sm } else { self.sm >= need.sm }
    }

    /// Whether a device of this compute capability (ten times, 90 for 9.0) can run code for this target.
    pub const fn runs_on(self, device_sm: u16) -> bool {
        if self.specific { device_sm == self.sm } else { device_sm >= self.sm }
    }

    /// The PTX version that introduced the `.target` word itself.
    pub const fn introduced(self) -> PtxVersion {
        match (self.sm, self.specific) {
            (0..=62, _) => PtxVersion::new(5, 0),
            (63..=72, _) => PtxVersion::new(6, 1),
            (73..=75, _) => PtxVersion::new(6, 3),
            (76..=80, _) => PtxVersion::new(7, 0),
            (81..=86, _) => PtxVersion::new(7, 1),
            (87, _) => PtxVersion::new(7, 4),
            (88, _) => PtxVersion::new(9, 0),
            (89 | 90, false) => PtxVersion::new(7, 8),
            (89 | 90, true) => PtxVersion::new(8, 0),
            (91..=101, _) => PtxVersion::new(8, 6),
            (102..=120, _) => PtxVersion::new(8, 7),
            _ => PtxVersion::new(8, 8),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}{}", self.sm, if self.specific { "a" } else { "" })
    }
}

/// What a form, a modifier or an operand needs: the lowest PTX version and the lowest target.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Requirement {
    /// Lowest `.version`.
    pub version: PtxVersion,
    /// Lowest `.target`.
    pub target: Target,
}

impl Requirement {
    /// Older than anything the table distinguishes: every version from 6.3 and every target from `sm_75` has it.
    pub const ANCIENT: Requirement = Requirement { version: PtxVersion::new(1, 0), target: Target::sm(10) };

    /// What both need together. Two different architecture-specific targets have no common target; the higher wins and
    /// the verifier reports the other.
    pub fn and(self, other: Requirement) -> Requirement {
        let target = match (self.target.specific, other.target.specific) {
            (true, false) if self.target.sm >= other.target.sm => self.target,
            (false, true) if other.target.sm >= self.target.sm => other.target,
            _ => self.target.max(other.target),
        };
        Requirement { version: self.version.max(other.version), target }
    }

    /// Whether a module with this version and target may use it.
    pub fn met_by(self, version: PtxVersion, target: Target) -> bool {
        version >= self.version && target.provides(self.target)
    }

    /// Reads `8.0/90a`, `8.0` or `/90a`.
    pub(crate) fn from_text(text: &str) -> Option<Requirement> {
        let (version, target) = match text.split_once('/') {
            Some((version, target)) => (version, Some(target)),
            None => (text, None),
        };
        let mut need = Requirement::ANCIENT;
        if !version.is_empty() {
            need.version = PtxVersion::from_text(version)?;
        }
        if let Some(target) = target {
            need.target = Target::from_number(target)?;
        }
        Some(need)
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PTX {} and {}", self.version, self.target)
    }
}

/// A plain decimal number: no sign, no leading `+`.
fn decimal<T: std::str::FromStr>(digits: &str) -> Option<T> {
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}
