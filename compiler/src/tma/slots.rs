//! One copy, slot by slot: the definition that the theorems speak about and that replays their witnesses.

/// One dimension of one tiled copy, as numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy {
    /// Elements of the tensor along it: S ≥ 1.
    pub size: i128,
    /// Elements that the box spans: B ≥ 1.
    pub box_size: i128,
    /// Distance between two slots: e ≥ 1.
    pub element_stride: i128,
    /// Where the box starts, before the phase is added; anywhere.
    pub start: i128,
    /// Elements of the box that were asked for, counted from its start: 1 ≤ L ≤ B.
    pub live: i128,
}

/// What a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Slot {
    /// An element of the region that was asked for.
    Live,
    /// An element that was not asked for.
    Hole,
    /// Zero: its position lies outside the tensor.
    Outside,
}

impl Copy {
    /// Slots of the tile: ⌈B / e⌉.
    pub fn tile(&self) -> i128 {
        (self.box_size + self.element_stride - 1).div_euclid(self.element_stride)
    }

    /// What the slots of one phase hold, in order. Phase s copies the positions start + s + t·e.
    pub fn slots(&self, phase: i128) -> impl Iterator<Item = Slot> + '_ {
        (0..self.tile()).map(move |t| {
            let offset = phase + t * self.element_stride;
            let position = self.start + offset;
            if !(0..self.size).contains(&position) {
                Slot::Outside
            } else if offset < self.live {
                Slot::Live
            } else {
                Slot::Hole
            }
        })
    }
}

/// What a copy of several dimensions mixes. A slot of the tile is one slot of each dimension; it is live if all of them
/// are, and outside if one of them is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// Some slot is live.
    pub live: bool,
    /// Some slot is a hole that holds an element.
    pub hole: bool,
}

/// What the copy with these phases holds.
pub fn content(dimensions: &[Copy], phases: &[i128]) -> Content {
    let mut content = Content { live: true, hole: false };
    let mut inside = true;
    for (copy, phase) in dimensions.iter().zip(phases) {
        let has = |kind: Slot| copy.slots(*phase).any(|slot| slot == kind);
        content.live &= has(Slot::Live);
        content.hole |= has(Slot::Hole);
        inside &= has(Slot::Live) || has(Slot::Hole);
    }
    // A hole in one dimension holds an element only where every other dimension is inside the tensor.
    content.hole &= inside;
    content
}
