//! Roles: who computes, who brings what is read, and who is in between.

use super::Plan;
use super::nest::Units;
use crate::compose::ast::Schedule;
use crate::rng::Rng;

/// A role: its name, its units, the threads that run a tile.
type Role = (&'static str, String, i64);

/// The roles that a kernel may have; those that run nothing are left out of it.
#[derive(Clone, Debug)]
pub(super) struct Roles {
    /// In the order of the launch; `math` is among them, and runs the outputs.
    all: Vec<Role>,
    /// Registers of each, for whole warpgroups.
    registers: Option<Vec<i64>>,
}

impl Roles {
    /// The item of `launch`.
    pub(super) fn item(&self, schedules: &[Schedule]) -> String {
        let used = |name: &str| schedules.iter().any(|s| s.clauses.iter().any(|c| c == &format!("by {name}")));
        let part = |(n, (name, unit, _)): (usize, &Role)| {
            let registers = self.registers.as_ref().map(|r| format!(" regs({})", r[n])).unwrap_or_default();
            (*name == "math" || used(name)).then(|| format!("{name}: {unit}{registers}"))
        };
        let parts: Vec<String> = self.all.iter().enumerate().filter_map(part).collect();
        format!("roles {{ {} }}", parts.join(", "))
    }
}

impl Plan<'_> {
    /// Decides whether there are roles, and which.
    pub(super) fn roles(&mut self) {
        let total = self.units.threads();
        let features = [
            "roles",
            "other-role",
            "roles-three",
            "role-chain",
            "role-regs",
            "alternate",
            "role-stores",
            "ring-grid",
            "beside-role",
        ];
        if total % 32 != 0 || !self.chance(26, &features) {
            return;
        }
        let registers = total % 128 == 0 && self.chance(25, &["role-regs"]);
        let warps = total / 32;
        let own = match warps % 4 {
            0 if registers || self.rng.chance(40) => format!("{} warpgroup", warps / 4),
            _ => format!("{warps} warp"),
        };
        // Each warpgroup is then all of the role for its tiles.
        let alternates = total == 128 && self.chance(25, &["alternate"]);
        self.persistent |= alternates && self.rng.chance(95);
        let in_turn = |rng: &mut Rng| format!("{} warpgroup alternate", rng.pick(&[2, 2, 3]));
        let own = if alternates { in_turn(self.rng) } else { own };
        let mut all: Vec<Role> = vec![("math", own.clone(), total)];
        for name in ["mid", "load", "save"] {
            // As many threads as `math` has may run an output beside one of it.
            let alike = name == "mid" && self.chance(30, &["beside-role"]);
            let (unit, threads) = match self.rng.below(4) {
                _ if alike => (own.clone(), total),
                _ if alternates && self.rng.chance(25) => (in_turn(self.rng), 128),
                _ if registers => ("warpgroup".to_owned(), 128),
                0 => ("2 warp".to_owned(), 64),
                _ => ("warp".to_owned(), 32),
            };
            // Warpgroups begin at a warp that four divides.
            let at = if self.rng.chance(if alternates { 10 } else { 70 }) { 0 } else { all.len() };
            all.insert(at, (name, unit, threads));
        }
        let registers = registers.then(|| {
            let of = |role: &Role| {
                if role.0 == "math" { *self.rng.pick(&[152, 232, 240]) } else { *self.rng.pick(&[24, 40, 64]) }
            };
            all.iter().map(of).collect()
        });
        self.roles = Some(Roles { all, registers });
    }

    /// The role that a stage or a copy in shared memory says, if it says one, and the units that it has then. What
    /// loads reads no other role's work; what is in between does.
    pub(super) fn role(&mut self, is_copy: bool, units: Units) -> (Option<&'static str>, Units) {
        let Some(roles) = self.roles.clone() else { return (None, units) };
        let middle = self.chance(25, &["roles-three", "role-chain"]);
        let name = match self.rng.below(100) {
            0..65 if is_copy => {
                if middle && self.rng.chance(20) {
                    "mid"
                } else {
                    "load"
                }
            }
            0..65 => {
                if middle {
                    "mid"
                } else {
                    "load"
                }
            }
            65..82 => "math",
            _ => return (None, units),
        };
        let threads = roles.all.iter().find(|r| r.0 == name).map_or(32, |r| r.2);
        if name == "math" { (Some(name), units) } else { (Some(name), Units::Threads(threads)) }
    }

    /// The role of an output beside one of `math`.
    pub(super) fn beside_role(&mut self) -> Option<&'static str> {
        let threads = self.units.threads();
        let alike = self.roles.as_ref()?.all.iter().any(|role| role.0 == "mid" && role.2 == threads);
        Some(if alike && self.chance(50, &["beside-role"]) { "mid" } else { "math" })
    }

    /// The role of what an output is written through.
    pub(super) fn store_role(&mut self) -> Option<&'static str> {
        self.roles.as_ref()?;
        if self.chance(50, &["role-stores"]) { Some(*self.rng.pick(&["save", "save", "load"])) } else { None }
    }
}
