//! What is said of a staged copy: its form with the reason, and what is known of its holes.

use std::fmt;

use crate::extent::Facts;
use crate::plan::staged::{Form, Multicast, NotRuns, Staged, Way};
use crate::plan::{Analysed, Demand, Waiver};
use crate::tma::Level;

/// `1 tile`, `8 tiles`.
pub(super) fn counted(n: i128, what: &str) -> String {
    let s = if n == 1 { "" } else { "s" };
    format!("{n} {what}{s}")
}

/// Which instructions copy an instance.
pub(super) fn form(staged: &Staged) -> String {
    let how = if staged.has_map() { "goes by a tensor map" } else { "goes by addresses, without a tensor map" };
    format!("{how}: {}", form_reason(staged))
}

/// Why these instructions copy an instance.
pub fn form_reason(staged: &Staged) -> String {
    match &staged.form {
        Form::Runs(_) => "each run lies inside the tensor, and they are no more than tiles would be".to_owned(),
        Form::Tiles(NotRuns::Swizzled) => "it is swizzled".to_owned(),
        Form::Tiles(NotRuns::Promoted) => "that tells the L2 cache what to fetch together".to_owned(),
        Form::Tiles(NotRuns::Holes(axis)) => format!("boxes of {axis} have slots that nobody asks for"),
        Form::Tiles(NotRuns::Ends(axis)) => format!("boxes of {axis} are not known to lie inside the tensor"),
        Form::Tiles(NotRuns::Short(runs, elements)) => {
            let tiles = counted(staged.copies(), "tile");
            format!("{tiles} instead of {} of {elements} elements", counted(*runs, "run"))
        }
        Form::Tiles(NotRuns::Granule) => "runs of it are not multiples of 16 bytes".to_owned(),
        Form::Tiles(NotRuns::TooLong) => "it is too long for one barrier".to_owned(),
    }
}

/// Which blocks of a cluster take a copy together.
pub(super) fn multicast(multicast: &Multicast, staged: &Staged) -> String {
    let Multicast { blocks, along, by, .. } = multicast;
    let who = match by.map(|axis| &staged.axes[axis]) {
        Some(axis) => format!("each copies one box of {}", axis.name),
        None => "the first of them copies all".to_owned(),
    };
    format!(
        "goes to the {blocks} blocks along {along}: {who}, and a slot is filled again after a barrier of the cluster"
    )
}

/// Whether a predicate is waived because of the zeros of a copy.
pub fn relies_on(waiver: &Waiver, staged: &Staged) -> bool {
    matches!(&waiver.demand, Demand::Zero(copies) if copies.contains(&staged.name))
}

/// What is known of the holes of a copy. Displayed, it is a sentence without its subject.
#[derive(Clone, Copy, Debug)]
pub struct Holes {
    way: Way,
    has_map: bool,
    redirect: bool,
    level: Level,
    is_strong: bool,
}

impl Holes {
    /// Of a copy of a stage.
    pub fn of(staged: &Staged, analysed: &Analysed, facts: &Facts) -> Self {
        Self {
            way: staged.way,
            has_map: staged.has_map(),
            redirect: staged.redirect,
            level: staged.level(facts, &analysed.symbolic),
            is_strong: analysed.waived.iter().any(|w| relies_on(w, staged)),
        }
    }

    /// The level: what zeros in all holes take.
    pub fn level(&self) -> u8 {
        match self.level {
            Level::Free => 1,
            Level::Redirect => 2,
            Level::Impossible => 3,
        }
    }

    /// The correctness model that readers need: `strong` or `weak`; none for a copy to a tensor.
    pub fn model(&self) -> Option<&'static str> {
        match self.way {
            Way::Load => Some(if self.is_strong { "strong" } else { "weak" }),
            Way::Store => None,
        }
    }
}

impl fmt::Display for Holes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(model) = self.model() else {
            return f.write_str(if self.has_map {
                "writes nothing that its instance does not compute (Theorem G)"
            } else {
                "writes its region and nothing else"
            });
        };
        if !self.has_map {
            return f.write_str("holds its region and nothing else");
        }
        let reader = if self.is_strong { "its reader folds in its holes" } else { "its reader is predicated" };
        let holes = match self.level {
            Level::Free => "every hole is zero (Theorem G)",
            Level::Redirect if self.redirect => "copies without a live slot go out of bounds, then every hole is zero",
            Level::Redirect => "copies without a live slot hold elements that nobody asked for",
            Level::Impossible => "some copy holds elements that nobody asked for beside live ones",
        };
        write!(f, "has {model} correctness, for {reader}; level {}: {holes}", self.level())
    }
}
