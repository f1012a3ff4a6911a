//! Products by warpgroups that are under way (PTX manual 9.7.15.6): what a warp knows of its own, and whether the four
//! warps of a warpgroup execute the same.
//!
//! A product may read its matrices and write its registers at any time between its instruction and a wait for its
//! group. Until then nobody else may access its registers; and `wgmma.fence` must stand between any other access of a
//! register and a product that uses it. Products of one warp happen in their order, so that one may add to what the one
//! before has left, if both have the same shape.

use std::collections::VecDeque;

use crate::matrix::Product;
use crate::registers::WARPGROUP;

/// A product that was issued and not waited for.
#[derive(Clone, Debug)]
pub struct Pending {
    /// Its number among the warp's, from 1.
    pub number: u32,
    /// The group that it belongs to, from 1.
    pub group: u32,
    /// Instruction.
    pub pc: u32,
    /// What is computed.
    pub product: Product,
    /// Number in the kernel's list.
    pub site: u32,
    /// Its first data slot.
    pub data: u32,
    /// A as it was in registers, row-major; empty if it is in shared memory.
    pub a: Vec<u32>,
    /// Addresses of the chunks of this warp's part of A, where that is in shared memory, and of B, as
    /// `Descriptor::chunks` has them.
    pub chunks: [Vec<u32>; 2],
    /// Whether D is added to.
    pub add: bool,
}

/// What is known of a matrix register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Nobody has written it.
    Unwritten,
    /// Other instructions have accessed it since the last fence.
    Touched,
    /// Nobody has since.
    Fenced,
    /// It holds D of the product of this number.
    Result(u32),
    /// A copy of such a register.
    Copy(u32),
    /// It holds a part of A of the product of this number.
    Factor(u32),
}

/// What is wrong with a use of a register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flaw {
    /// It was never written.
    Unwritten,
    /// No fence stands after another access.
    Unfenced,
    /// The product of this instruction may not have written or read it yet.
    InFlight(u32),
    /// The product of this instruction adds to it, and has another shape.
    Shape(u32),
}

/// The products of a warp.
#[derive(Debug, Default)]
pub struct Products {
    /// Those not waited for, in order.
    pub list: VecDeque<Pending>,
    /// Products issued.
    issued: u32,
    /// The last one whose result is in its registers.
    pub done: u32,
    /// The last one that was waited for.
    waited: u32,
    /// Groups closed.
    closed: u32,
    states: Vec<State>,
    /// Whether there was a fence.
    fenced: bool,
}

impl Products {
    /// The state at the start of a warp.
    pub fn reset(&mut self, registers: usize) {
        let mut states = std::mem::take(&mut self.states);
        states.clear();
        states.resize(registers, State::Unwritten);
        *self = Products { states, ..Products::default() };
    }

    /// The number of the next product, and the group that it belongs to.
    pub fn next(&self) -> (u32, u32) {
        (self.issued + 1, self.closed + 1)
    }

    /// `wgmma.fence`.
    pub fn fence(&mut self) {
        self.fenced = true;
        for state in &mut self.states {
            if *state == State::Touched {
                *state = State::Fenced;
            }
        }
    }

    /// `wgmma.commit_group`.
    pub fn commit(&mut self) {
        self.closed = self.closed.saturating_add(1);
    }

    /// `wgmma.wait_group`: the last group that is over afterwards, and the last product of it or of one before.
    pub fn wait(&mut self, keep: u32) -> (u32, u32) {
        let group = self.closed.saturating_sub(keep);
        let over = self.list.iter().take_while(|pending| pending.group <= group).last();
        (group, over.map_or(self.waited, |pending| pending.number))
    }

    /// Forgets the products up to this one, which were waited for.
    pub fn settle(&mut self, number: u32) {
        self.waited = number;
        while self.list.front().is_some_and(|pending| pending.number <= number) {
            self.list.pop_front();
        }
    }

    fn pending(&self, number: u32) -> bool {
        number > self.waited
    }

    /// The instruction and shape of a product not waited for.
    fn origin(&self, number: u32) -> Option<(u32, Product)> {
        let at = self.list.iter().find(|pending| pending.number == number);
        at.map(|pending| (pending.pc, pending.product))
    }

    fn in_flight(&self, number: u32) -> Flaw {
        Flaw::InFlight(self.origin(number).map_or(0, |(pc, _)| pc))
    }

    /// Registers that the next product would use wrongly: D, to which it adds or not, and A. The first one and why.
    pub fn check(&self, product: &Product, add: bool, [d, a]: [&[u32]; 2]) -> Option<(u32, Flaw)> {
        let state = |register: &u32| self.states[*register as usize];
        let sum = |register: &u32| match state(register) {
            State::Unwritten if add => Some(Flaw::Unwritten),
            State::Unwritten if !self.fenced => Some(Flaw::Unfenced),
            State::Touched => Some(Flaw::Unfenced),
            State::Factor(number) if self.pending(number) => Some(self.in_flight(number)),
            State::Result(number) | State::Copy(number) if self.pending(number) => {
                let (pc, other) = self.origin(number)?;
                (other != *product).then_some(Flaw::Shape(pc))
            }
            _ => None,
        };
        let factor = |register: &u32| match state(register) {
            State::Unwritten => Some(Flaw::Unwritten),
            State::Touched => Some(Flaw::Unfenced),
            State::Result(number) | State::Copy(number) if self.pending(number) => Some(self.in_flight(number)),
            _ => None,
        };
        let find = |list: &[u32], flaw: &dyn Fn(&u32) -> Option<Flaw>| {
            list.iter().find_map(|register| flaw(register).map(|flaw| (*register, flaw)))
        };
        find(d, &sum).or_else(|| find(a, &factor))
    }

    /// Adds the next product, with its registers.
    pub fn issue(&mut self, pending: Pending, [d, a]: [&[u32]; 2]) {
        self.issued = pending.number;
        a.iter().for_each(|register| self.states[*register as usize] = State::Factor(pending.number));
        d.iter().for_each(|register| self.states[*register as usize] = State::Result(pending.number));
        self.list.push_back(pending);
    }

    /// Another instruction reads or writes a register.
    pub fn touch(&mut self, register: u32, writes: bool) -> Option<Flaw> {
        let state = self.states[register as usize];
        let flaw = match state {
            State::Result(number) | State::Factor(number) if self.pending(number) => Some(self.in_flight(number)),
            State::Copy(number) if self.pending(number) && !writes => Some(self.in_flight(number)),
            _ => None,
        };
        if writes || state != State::Unwritten {
            self.states[register as usize] = State::Touched;
        }
        flaw
    }

    /// Another instruction moves registers, or their parts: the number of the product that must be done before, and
    /// what is wrong with it. A move gives a register another name, and is no access: compilers leave moves between
    /// products that add to each other, also back to where the result was, and the assembler takes them out.
    pub fn rename(&mut self, written: &[u32], read: &[u32]) -> (u32, Option<(u32, Flaw)>) {
        let (mut state, mut last) = (State::Fenced, 0);
        for register in read {
            match self.states[*register as usize] {
                State::Result(number) | State::Copy(number) if self.pending(number) => last = last.max(number),
                State::Factor(_) | State::Touched => state = State::Touched,
                State::Unwritten => state = State::Unwritten,
                State::Fenced | State::Result(_) | State::Copy(_) => {}
            }
        }
        if last > 0 {
            state = State::Copy(last);
        }
        let mut flaw = None;
        for register in written {
            if self.states[*register as usize] == State::Result(last) {
                continue;
            }
            let found = self.touch(*register, true).map(|flaw| (*register, flaw));
            flaw = flaw.or(found);
            self.states[*register as usize] = state;
        }
        (last, flaw)
    }
}

/// What one warp executes of what its warpgroup executes together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// Instruction.
    pub pc: u32,
    /// Descriptors of a product, 0 where there is none.
    pub descriptors: [u64; 2],
    /// Whether a product adds to D.
    pub add: bool,
}

/// What is wrong with a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Misuse {
    /// The warpgroup has only so many warps.
    Partial(usize),
    /// This warp of the block has done something else there.
    Differs(usize, Step),
}

/// The steps of one warpgroup that some of its warps have made and others not.
#[derive(Clone, Debug, Default)]
struct Warpgroup {
    steps: VecDeque<Step>,
    /// Number of the first of them.
    first: u64,
    /// Steps made by each warp.
    made: [u64; WARPGROUP],
    /// Who made the last one first.
    ahead: usize,
}

/// The warpgroups of a CTA.
#[derive(Debug, Default)]
pub struct Warpgroups {
    warps: usize,
    list: Vec<Warpgroup>,
}

impl Warpgroups {
    /// The state at the start of a CTA.
    pub fn reset(&mut self, warps: usize) {
        self.warps = warps;
        self.list.clear();
        self.list.resize(warps.div_ceil(WARPGROUP), Warpgroup::default());
    }

    /// A warp of the CTA makes a step.
    ///
    /// # Errors
    /// If another warp of its warpgroup does not exist, or has made another step there.
    pub fn step(&mut self, warp: usize, step: Step) -> Result<(), Misuse> {
        let (number, own) = (warp / WARPGROUP, warp % WARPGROUP);
        if (number + 1) * WARPGROUP > self.warps {
            return Err(Misuse::Partial(self.warps - number * WARPGROUP));
        }
        let group = &mut self.list[number];
        let at = group.made[own];
        match group.steps.get((at - group.first) as usize) {
            Some(theirs) if *theirs != step => {
                return Err(Misuse::Differs(number * WARPGROUP + group.ahead, *theirs));
            }
            Some(_) => {}
            None => {
                group.steps.push_back(step);
                group.ahead = own;
            }
        }
        group.made[own] += 1;
        while group.made.iter().all(|made| *made > group.first) {
            group.steps.pop_front();
            group.first += 1;
        }
        Ok(())
    }

    /// A warp that has ended without a step that another one of its warpgroup made.
    pub fn left_out(&self) -> Option<(usize, Step)> {
        self.list.iter().enumerate().find_map(|(number, group)| {
            let step = *group.steps.front()?;
            let own = group.made.iter().position(|made| *made == group.first)?;
            Some((number * WARPGROUP + own, step))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::{Element, Sum};
    use crate::num::format::Round;

    fn product(n: usize) -> Product {
        let (c, d) = (Sum::F32, Sum::F32);
        let (a, b) = (Element::Bf16, Element::Bf16);
        Product { m: 16, n, k: 16, a, b, c, d, saturate: false, and: false, round: Round::Nearest }
    }

    #[test]
    fn registers_from_fence_to_wait() {
        let mut products = Products::default();
        products.reset(4);
        let (eight, d, a) = (product(8), [0, 1], [2]);
        // Never written, never fenced, written and not fenced, fenced.
        assert_eq!(products.check(&eight, true, [&d, &[]]), Some((0, Flaw::Unwritten)));
        assert_eq!(products.check(&eight, false, [&d, &[]]), Some((0, Flaw::Unfenced)));
        d.iter().chain(&a).for_each(|register| assert_eq!(products.touch(*register, true), None));
        assert_eq!(products.check(&eight, true, [&d, &a]), Some((0, Flaw::Unfenced)));
        products.fence();
        assert_eq!(products.check(&eight, true, [&d, &a]), None);
        let (number, group) = products.next();
        products.issue(pending(number, group), [&d, &a]);
        // Another of the same shape may follow, and may read the same A; one of another shape may not.
        assert_eq!(products.check(&eight, true, [&d, &a]), None);
        assert_eq!(products.check(&product(16), true, [&d, &a]), Some((0, Flaw::Shape(7))));
        assert_eq!(products.check(&eight, false, [&[3], &d]), Some((0, Flaw::InFlight(7))));
        assert_eq!(products.check(&eight, false, [&a, &[]]), Some((2, Flaw::InFlight(7))));
        // A move of the result is another name for it; what is named so may be written again, not read.
        assert_eq!(products.rename(&[3], &[0]), (1, None));
        assert_eq!(products.rename(&[0], &[3]), (1, None));
        assert_eq!(products.rename(&[2], &[3]), (1, Some((2, Flaw::InFlight(7)))));
        assert_eq!(products.rename(&[2, 3], &[0]), (1, None));
        assert_eq!(products.touch(3, false), Some(Flaw::InFlight(7)));
        // Nothing was committed: a wait waits for nothing.
        assert_eq!(products.wait(0), (0, 0));
        products.commit();
        assert_eq!(products.wait(1), (0, 0));
        assert_eq!(products.touch(1, false), Some(Flaw::InFlight(7)));
        let (group, number) = products.wait(0);
        assert_eq!((group, number), (1, 1));
        products.settle(number);
        assert_eq!(products.touch(0, false), None);
        assert_eq!(products.check(&eight, true, [&d, &[]]), Some((0, Flaw::Unfenced)));
        assert!(products.list.is_empty());
    }

    fn pending(number: u32, group: u32) -> Pending {
        let chunks = [Vec::new(), Vec::new()];
        Pending { number, group, pc: 7, product: product(8), site: 0, data: 0, a: Vec::new(), chunks, add: true }
    }

    #[test]
    fn warps_of_a_group_make_the_same_steps() {
        let step = |pc| Step { pc, descriptors: [0; 2], add: false };
        let mut groups = Warpgroups::default();
        groups.reset(6);
        assert_eq!(groups.step(5, step(1)), Err(Misuse::Partial(2)));
        for warp in [2, 0, 3] {
            assert_eq!(groups.step(warp, step(1)), Ok(()));
        }
        assert_eq!(groups.step(0, step(2)), Ok(()));
        assert_eq!(groups.left_out(), Some((1, step(1))));
        assert_eq!(groups.step(1, step(3)), Err(Misuse::Differs(0, step(1))));
        assert_eq!(groups.step(1, step(1)), Ok(()));
        assert_eq!(groups.left_out(), Some((1, step(2))));
        for warp in 1..4 {
            assert_eq!(groups.step(warp, step(2)), Ok(()));
        }
        assert_eq!(groups.left_out(), None);
    }
}
