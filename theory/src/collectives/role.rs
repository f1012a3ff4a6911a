//! Roles: ranges of the warps of a block by name, inside which ranges of warps are counted anew.

use super::ThreadSet;
use super::launch::Launch;
use super::nest::{Bind, LoopFault, Nest};
use super::unit::Unit;

/// A place in a launch with roles.
#[derive(Clone, Debug)]
pub struct Place<'a> {
    launch: &'a Launch,
    nest: Nest,
    role: Option<usize>,
}

/// Why a range of warps cannot stand where it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoleFault {
    /// No role has this name.
    Unknown {
        /// The name.
        name: String,
    },
    /// A range of warps of no role, in a launch with several.
    Unnamed,
    /// A role inside another one.
    Inside {
        /// Position of the role around.
        around: usize,
        /// Position of the other one.
        role: usize,
    },
    /// Loops around have taken blocks apart.
    Subdivided {
        /// Who runs the place the first time.
        threads: ThreadSet,
    },
    /// A range beyond the role.
    TooMany {
        /// Position of the role.
        role: usize,
        /// The first warp that is asked for.
        low: u64,
        /// After the last one.
        asked: u64,
        /// Warps of the role.
        warps: u64,
    },
    /// The warps cannot be taken there.
    Loop(LoopFault),
}

impl<'a> Place<'a> {
    /// The place outside of all loops.
    pub fn top(launch: &'a Launch) -> Self {
        Self { launch, nest: Nest::top(launch.shape), role: None }
    }

    /// Who runs it.
    pub const fn nest(&self) -> &Nest {
        &self.nest
    }

    /// The place inside a loop.
    ///
    /// # Errors
    /// As [`Nest::inside`].
    pub fn inside(&self, bind: &Bind) -> Result<Self, LoopFault> {
        Ok(Self { nest: self.nest.inside(bind)?, ..self.clone() })
    }

    /// The place where a role runs, or a range of its warps: of blocks that loops have not taken apart.
    ///
    /// # Errors
    /// Another role around, a block that is taken apart, and warps beyond the role.
    pub fn in_role(&self, name: &str, warps: Option<(u64, u64)>) -> Result<Self, RoleFault> {
        let found = self.launch.roles.iter().position(|r| r.name == name);
        let role = found.ok_or_else(|| RoleFault::Unknown { name: name.to_owned() })?;
        if let Some(around) = self.role {
            return Err(RoleFault::Inside { around, role });
        }
        if self.nest.matches(&Unit::agnostic_intact_cta()) != Ok(true) {
            return Err(RoleFault::Subdivided { threads: self.nest.first().clone() });
        }
        let own = &self.launch.roles[role];
        let (low, high) = warps.unwrap_or((0, own.warps));
        if low < high && high > own.warps {
            return Err(RoleFault::TooMany { role, low, asked: high, warps: own.warps });
        }
        let whole = Bind::range(own.first, own.first + own.warps, Unit::warp());
        let nest = self.nest.inside(&whole).map_err(RoleFault::Loop)?;
        let nest = nest.inside(&Bind::range(low, high, Unit::warp())).map_err(RoleFault::Loop);
        // A role of one warp is that warp.
        let nest =
            if (low, high, own.warps) == (0, 1, 1) { self.nest.inside(&whole).map_err(RoleFault::Loop) } else { nest };
        Ok(Self { launch: self.launch, nest: nest?, role: Some(role) })
    }

    /// The place that a range of warps runs, counted from the first one of the place around.
    ///
    /// # Errors
    /// No role around, in a launch with several; as [`Nest::inside`].
    pub fn warps(&self, low: u64, high: u64) -> Result<Self, RoleFault> {
        if self.launch.roles.len() > 1 && self.role.is_none() {
            return Err(RoleFault::Unnamed);
        }
        let nest = self.nest.inside(&Bind::range(low, high, Unit::warp())).map_err(RoleFault::Loop)?;
        Ok(Self { nest, ..self.clone() })
    }
}
