//! What a load, store or atomic operation asks for: what is accessed, by which lanes, at which addresses.

use super::elements::{Pattern, nibble};
use crate::counters::Traffic;
use crate::decode::op::{Access, Strength};
use crate::lanes::{LANES, Mask, Wide};
use crate::shadow::cell::AccessKind;
use crate::shadow::line::Run;

/// What happens at an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Touch {
    Load,
    Store,
    Atomic,
    /// An atomic operation that does not look at the old value.
    Exchange,
}

/// What is accessed, apart from the addresses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub pc: u32,
    /// Bytes of an element.
    pub bytes: u8,
    /// Elements a lane.
    pub count: u8,
    pub touch: Touch,
    pub strength: Strength,
}

impl Shape {
    /// Whether the bytes must have been written before.
    #[inline(always)]
    pub fn looks(&self) -> bool {
        matches!(self.touch, Touch::Load | Touch::Atomic)
    }
    /// Bytes a lane accesses.
    #[inline(always)]
    pub fn total(&self) -> u64 {
        u64::from(self.bytes) * u64::from(self.count)
    }
    /// The words of a lane's access with the bytes it touches of each, as four bits.
    #[inline(always)]
    pub fn words(&self, address: u64) -> impl Iterator<Item = (usize, u8)> + use<> {
        let (at, total) = (address as usize, self.total() as usize);
        let bytes = nibble(at, total.min(4) as u8);
        (at / 4..(at + total).div_ceil(4)).map(move |word| (word, bytes))
    }
    #[inline(always)]
    pub fn kind(&self) -> AccessKind {
        match (self.touch, self.strength) {
            (Touch::Atomic | Touch::Exchange, _) | (Touch::Store, Strength::Strong { .. }) => AccessKind::Atomic,
            (Touch::Load, Strength::Strong { .. }) => AccessKind::StrongRead,
            (Touch::Load, _) => AccessKind::Read,
            (Touch::Store, _) => AccessKind::Write,
        }
    }
    /// As [`Shape::kind`], to other CTAs.
    pub fn kind_outside(&self) -> AccessKind {
        match (self.kind(), self.strength) {
            (AccessKind::Atomic, Strength::Strong { wide: false }) => AccessKind::Write,
            (AccessKind::StrongRead, Strength::Strong { wide: false }) => AccessKind::Read,
            (kind, _) => kind,
        }
    }
}

/// A load, store or atomic operation of some lanes in one state space, with addresses inside it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request<'r> {
    pub shape: Shape,
    /// Where a load puts and a store finds its data; none for what moves its data itself.
    pub access: Option<&'r Access>,
    /// The lanes, at least one.
    pub run: Mask,
    pub pattern: Pattern,
    /// Where the pattern does not tell: see [`Request::address`].
    addresses: &'r Wide,
}

/// The addresses of a request whose pattern tells them.
static NOWHERE: Wide = [0; LANES];

impl<'r> Request<'r> {
    #[inline(always)]
    pub fn new(shape: Shape, access: Option<&'r Access>, addresses: &'r Wide, run: Mask) -> Self {
        let pattern = Pattern::new(addresses, run, shape.total());
        Request { shape, access, addresses, run, pattern }
    }

    /// A request whose pattern tells all addresses.
    #[inline(always)]
    pub(super) fn regular(shape: Shape, access: &'r Access, run: Mask, pattern: Pattern) -> Self {
        Request { shape, access: Some(access), run, pattern, addresses: &NOWHERE }
    }

    /// The address of a lane that takes part.
    #[inline(always)]
    pub fn address(&self, lane: usize) -> u64 {
        let pattern = &self.pattern;
        if pattern.is_uniform() {
            pattern.least
        } else if pattern.contiguous {
            let ahead = (lane as u64).wrapping_sub(u64::from(pattern.first));
            pattern.least.wrapping_add(ahead.wrapping_mul(self.shape.total()))
        } else {
            self.addresses[lane]
        }
    }

    /// Bytes that the lanes access.
    #[inline(always)]
    pub fn bytes(&self) -> u64 {
        self.shape.total() * u64::from(self.run.count_ones())
    }

    /// One past the last byte, once the addresses are known to be inside something.
    #[inline(always)]
    pub fn end(&self) -> u64 {
        self.pattern.greatest + self.shape.total()
    }

    /// Counts the request and its bytes.
    #[inline(always)]
    pub fn count(&self, traffic: &mut Traffic) {
        if self.shape.touch == Touch::Load {
            traffic.load_requests += 1;
            traffic.bytes_loaded += self.bytes();
        } else {
            traffic.store_requests += 1;
            traffic.bytes_stored += self.bytes();
        }
    }

    /// The part of some lanes.
    pub fn of(&self, run: Mask) -> Self {
        Request { run, ..*self }
    }

    /// A request of one lane.
    #[inline(always)]
    pub fn one(shape: Shape, access: Option<&'r Access>, lane: usize, address: u64) -> Self {
        let (least, lane) = (address, lane as u32);
        let pattern = Pattern { least, greatest: least, bits: least, contiguous: true, first: lane, last: lane };
        Request { shape, access, run: 1 << lane, pattern, addresses: &NOWHERE }
    }

    /// The part of one lane.
    pub fn lane(&self, lane: usize) -> Self {
        Request::one(self.shape, self.access, lane, self.address(lane))
    }

    /// The lanes in runs whose accesses follow each other, each as long as it can be, for accesses of 2^n bytes.
    #[inline(always)]
    pub fn runs<'a>(&'a self) -> Runs<'a, 'r> {
        Runs { request: self, rest: self.run }
    }
}

/// See [`Request::runs`].
pub(super) struct Runs<'a, 'r> {
    request: &'a Request<'r>,
    /// Lanes that no run had.
    rest: Mask,
}

impl Iterator for Runs<'_, '_> {
    type Item = Run;

    #[inline(always)]
    fn next(&mut self) -> Option<Run> {
        if self.rest == 0 {
            return None;
        }
        let total = self.request.shape.total();
        let first = self.rest.trailing_zeros();
        let address = self.request.address(first as usize);
        let mut lanes = 1;
        while first + lanes < LANES as u32
            && self.rest >> (first + lanes) & 1 == 1
            && self.request.address((first + lanes) as usize) == address.wrapping_add(u64::from(lanes) * total)
        {
            lanes += 1;
        }
        let run = Run { address, lane: first, lanes, shift: total.trailing_zeros() };
        self.rest &= !run.mask();
        Some(run)
    }
}
