//! What is known of CTAs: for each of them, up to which epochs everything that its lanes did is ordered before
//! something.
//!
//! A launch has many CTAs, and whoever comes late knows of all of them: a vector for each release would take the square
//! of their number. So a clock is a tree over the bits of CTA numbers whose parts are shared; what two clocks have in
//! common is one pointer, and joining them visits only where they differ.

use std::sync::Arc;

use crate::lanes::LANES;

/// Log2 of a node's children.
const BITS: u32 = 4;
const CHILDREN: usize = 1 << BITS;

/// What is known of one CTA.
#[derive(Clone, Debug, Default)]
pub struct Part {
    /// The last epoch of each warp of which everything is known, whatever the lane.
    pub epochs: Vec<u32>,
    /// Warps of which more is known of some lanes, in order: the last epoch of each lane.
    pub lanes: Vec<(usize, [u32; LANES])>,
}

impl Part {
    /// Whether what a lane did in an epoch is known.
    pub fn holds(&self, warp: usize, lane: usize, epoch: u32) -> bool {
        self.holds_all(warp, epoch) || self.row(warp).is_some_and(|row| epoch <= row[lane])
    }

    /// Whether what every lane did in an epoch is known.
    pub fn holds_all(&self, warp: usize, epoch: u32) -> bool {
        self.epochs.get(warp).is_some_and(|known| epoch <= *known)
    }

    fn row(&self, warp: usize) -> Option<&[u32; LANES]> {
        self.lanes.iter().find(|(of, _)| *of == warp).map(|(_, row)| row)
    }

    /// Whether it has all that the other one has.
    fn covers(&self, other: &Part) -> bool {
        other.epochs.iter().enumerate().all(|(warp, epoch)| {
            self.holds_all(warp, *epoch) || self.row(warp).is_some_and(|row| row.iter().all(|known| epoch <= known))
        }) && other
            .lanes
            .iter()
            .all(|(warp, row)| row.iter().enumerate().all(|(lane, epoch)| self.holds(*warp, lane, *epoch)))
    }

    fn join(&self, other: &Part) -> Part {
        let mut sum = self.clone();
        sum.epochs.resize(self.epochs.len().max(other.epochs.len()), 0);
        sum.epochs.iter_mut().zip(&other.epochs).for_each(|(known, new)| *known = (*known).max(*new));
        for (warp, row) in &other.lanes {
            match sum.lanes.iter_mut().find(|(of, _)| of == warp) {
                Some((_, known)) => known.iter_mut().zip(row).for_each(|(known, new)| *known = (*known).max(*new)),
                None => sum.lanes.push((*warp, *row)),
            }
        }
        let epochs = &sum.epochs;
        sum.lanes.retain(|(warp, row)| row.iter().any(|epoch| *epoch > epochs[*warp]));
        sum.lanes.sort_unstable_by_key(|(warp, _)| *warp);
        sum
    }
}

#[derive(Debug)]
enum Node {
    Part(Part),
    Children([Option<Arc<Node>>; CHILDREN]),
}

/// What is known of all CTAs.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Levels above the parts.
    height: u32,
    root: Option<Arc<Node>>,
}

impl Known {
    /// Only a part of one CTA.
    pub fn of(cta: u64, part: Part) -> Known {
        let mut node = Arc::new(Node::Part(part));
        let mut height = 0;
        while height == 0 || beyond(cta, height) {
            node = above(node, child(cta, height));
            height += 1;
        }
        Known { height, root: Some(node) }
    }

    /// Whether it is nothing.
    pub fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    /// Whether both are one, which is quick to say, and may be denied of equal ones.
    pub fn is_same(&self, other: &Known) -> bool {
        match (&self.root, &other.root) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (a, b) => a.is_none() && b.is_none(),
        }
    }

    /// What is known of a CTA.
    pub fn get(&self, cta: u64) -> Option<&Part> {
        if self.height == 0 || beyond(cta, self.height) {
            return None;
        }
        let (mut node, mut height) = (self.root.as_ref()?, self.height);
        loop {
            match &**node {
                Node::Part(part) => return Some(part),
                Node::Children(children) => {
                    height -= 1;
                    node = children[child(cta, height)].as_ref()?;
                }
            }
        }
    }

    /// Adds what another one has.
    pub fn join(&mut self, other: &Known) {
        let Some(theirs) = &other.root else { return };
        let Some(own) = &self.root else {
            *self = other.clone();
            return;
        };
        let height = self.height.max(other.height);
        let own = (self.height..height).fold(own.clone(), |node, _| above(node, 0));
        let theirs = (other.height..height).fold(theirs.clone(), |node, _| above(node, 0));
        *self = Known { height, root: Some(join(&own, &theirs)) };
    }
}

/// Whether a CTA's number is too large for trees of this height.
fn beyond(cta: u64, height: u32) -> bool {
    cta.checked_shr(height * BITS).is_some_and(|rest| rest != 0)
}

/// The place of a CTA's child in a node of this height.
fn child(cta: u64, height: u32) -> usize {
    (cta >> (height * BITS)) as usize % CHILDREN
}

/// A node with one child.
fn above(node: Arc<Node>, at: usize) -> Arc<Node> {
    let mut children = [const { None }; CHILDREN];
    children[at] = Some(node);
    Arc::new(Node::Children(children))
}

/// One of the nodes if it has what the other one has, so that it stays one.
fn join(a: &Arc<Node>, b: &Arc<Node>) -> Arc<Node> {
    if Arc::ptr_eq(a, b) {
        return a.clone();
    }
    match (&**a, &**b) {
        (Node::Part(x), Node::Part(y)) if x.covers(y) => a.clone(),
        (Node::Part(x), Node::Part(y)) if y.covers(x) => b.clone(),
        (Node::Part(x), Node::Part(y)) => Arc::new(Node::Part(x.join(y))),
        (Node::Children(x), Node::Children(y)) => {
            let children: [Option<Arc<Node>>; CHILDREN] = std::array::from_fn(|at| match (&x[at], &y[at]) {
                (Some(x), Some(y)) => Some(join(x, y)),
                (x, y) => x.as_ref().or(y.as_ref()).cloned(),
            });
            let same = |old: &[Option<Arc<Node>>; CHILDREN]| {
                children.iter().zip(old).all(|pair| match pair {
                    (Some(new), Some(old)) => Arc::ptr_eq(new, old),
                    (new, old) => new.is_none() && old.is_none(),
                })
            };
            if same(x) {
                a.clone()
            } else if same(y) {
                b.clone()
            } else {
                Arc::new(Node::Children(children))
            }
        }
        // Both have the same height.
        (Node::Part(_), Node::Children(_)) | (Node::Children(_), Node::Part(_)) => a.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn part(epochs: &[u32]) -> Part {
        Part { epochs: epochs.to_vec(), lanes: Vec::new() }
    }

    /// Random joins against a plain map, with numbers of CTAs of all sizes.
    #[test]
    fn joins_are_those_of_maps() {
        let mut state = 1_u64;
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let ctas = [0, 1, 15, 16, 17, 255, 256, 4095, 1 << 20, u64::from(u32::MAX), 1 << 62, u64::MAX];
        let mut all: Vec<(Known, BTreeMap<u64, [u32; 2]>)> = vec![Default::default()];
        for _ in 0..3000 {
            let one = draw(all.len() as u64) as usize;
            let (mut known, mut map) = all[one].clone();
            if draw(2) == 0 {
                let cta = ctas[draw(ctas.len() as u64) as usize];
                let epochs = [draw(9) as u32, draw(9) as u32];
                known.join(&Known::of(cta, part(&epochs)));
                let old = map.entry(cta).or_default();
                *old = [old[0].max(epochs[0]), old[1].max(epochs[1])];
            } else {
                let (other, theirs) = &all[draw(all.len() as u64) as usize];
                known.join(other);
                for (cta, epochs) in theirs {
                    let old = map.entry(*cta).or_default();
                    *old = [old[0].max(epochs[0]), old[1].max(epochs[1])];
                }
            }
            for cta in ctas {
                let found = known.get(cta).map(|part| [part.epochs[0], part.epochs[1]]);
                assert_eq!(found, map.get(&cta).copied(), "{cta}");
            }
            let mut again = known.clone();
            again.join(&all[one].0);
            assert!(again.is_same(&known), "nothing new, and yet another tree");
            all.push((known, map));
            if all.len() > 40 {
                all.swap_remove(draw(40) as usize);
            }
        }
    }

    #[test]
    fn lanes_are_told_apart() {
        let mut row = [0; LANES];
        row[3] = 7;
        let one = Part { epochs: vec![2, 5], lanes: vec![(0, row)] };
        assert!(one.holds(0, 3, 7) && one.holds(0, 4, 2) && !one.holds(0, 4, 3) && !one.holds_all(0, 7));
        let both = one.join(&part(&[6, 0]));
        assert!(both.holds(0, 3, 7) && both.holds(0, 4, 6) && both.holds(1, 0, 5));
        assert!(both.covers(&one) && !one.covers(&both));
        assert!(both.join(&part(&[7, 0])).lanes.is_empty());
    }
}
