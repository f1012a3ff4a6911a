//! Random programs without races, in which collective operations are reached by the lanes that they name.

use super::{Case, Collective, Condition, Function, Layout, REGISTERS, Statement, Trips};

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

/// What is known where a statement stands.
#[derive(Clone, Copy)]
struct Place {
    depth: u32,
    /// The lanes of every warp that are here together, if that does not depend on data.
    lanes: Option<u32>,
    /// Whether all threads of the block are.
    block: bool,
    /// Whether threads may leave a loop.
    in_loop: bool,
    /// Whether threads may exit: nothing collective follows.
    last: bool,
    /// Whether the place is executed more than once.
    again: bool,
    /// Whether it may be, while its function runs once.
    turns: bool,
    /// Whether only some blocks come here.
    some_blocks: bool,
    /// Whether it is in a function.
    function: bool,
    /// Whether threads may return from the function because of data: nobody in it knows who is there.
    free: bool,
}

struct Generator {
    random: Random,
    /// Statements that may still be made.
    left: u32,
    /// Words of shared memory that lanes wait for.
    flags: u32,
    /// Lanes of every warp that have exited.
    gone: u32,
    /// Those, and the lanes that have returned from the function.
    away: u32,
    functions: Vec<Function>,
    /// How many of the functions are called from several places, first in the list.
    common: usize,
}

/// The program of a number.
pub fn case(number: u64) -> Case {
    let mut random = Random(number);
    let block = [64, 96, 32, 128][random.below(4)];
    let grid = 1 + random.below(3) as u32;
    let mut generator = Generator { random, left: 0, flags: 0, gone: 0, away: 0, functions: Vec::new(), common: 0 };
    let top = Place {
        depth: 0,
        lanes: Some(u32::MAX),
        block: true,
        in_loop: false,
        last: false,
        again: false,
        turns: false,
        some_blocks: false,
        function: false,
        free: false,
    };
    for _ in 0..3 {
        generator.left = 12;
        let place = Place { depth: 1, lanes: None, block: false, again: true, function: true, free: true, ..top };
        let function = Function { before: generator.statements(place, 4), after: generator.statements(place, 3) };
        generator.functions.push(function);
        generator.common += 1;
    }
    generator.left = 70;
    let mut body = generator.statements(top, 14);
    generator.left = 15;
    body.extend(generator.statements(Place { lanes: None, block: false, last: true, ..top }, 5));
    Case { body, functions: generator.functions, grid, block }
}

impl Generator {
    fn register(&mut self) -> usize {
        self.random.below(REGISTERS)
    }

    fn statements(&mut self, place: Place, most: usize) -> Vec<Statement> {
        let count = 1 + self.random.below(most);
        (0..count).filter_map(|_| self.statement(place)).collect()
    }

    fn data(&mut self) -> Condition {
        Condition::Data(self.register(), 1 << self.random.below(6) | 1 << self.random.below(32))
    }

    fn statement(&mut self, place: Place) -> Option<Statement> {
        self.left = self.left.checked_sub(1)?;
        // Who is left of the lanes that came here.
        let lanes = place.lanes.map(|lanes| lanes & !self.away).filter(|lanes| *lanes != 0);
        let place = Place { lanes, ..place };
        let inner = Place { depth: place.depth + 1, ..place };
        let nests = place.depth < 4;
        let once = !place.again && !place.some_blocks;
        Some(match (self.random.below(21), place.lanes) {
            (0..=2, _) => self.compute(),
            (3 | 4, _) if nests => {
                let unknown = Place { lanes: None, block: false, ..inner };
                let condition = self.data();
                self.branch(condition, unknown, unknown)
            }
            (5, _) if nests => {
                let unknown = Place { lanes: None, block: false, ..inner };
                let register = self.register();
                Statement::Switch(register, std::array::from_fn(|_| self.statements(unknown, 2)))
            }
            (6 | 7, _) if nests => self.repeat(place, inner),
            (8, _) if place.in_loop => match self.random.below(2) {
                0 => Statement::Break(self.data()),
                _ => Statement::Continue(self.data()),
            },
            (8, _) if place.last => Statement::Exit(self.data()),
            // By the lane or the block: who is where stays known.
            (9 | 10, Some(lanes)) if nests => self.known_branch(lanes, inner),
            (11..=13, Some(lanes)) => self.collective(lanes),
            (14, Some(lanes)) => self.warp_barrier(lanes, place),
            // Not where some have returned already.
            (15, Some(_)) if place.block && self.away == self.gone => {
                let (d, a) = (self.register(), self.register());
                // A barrier without a number of threads waits for those that have exited.
                let counted = self.away != 0 || self.random.below(4) == 0;
                match self.random.below(4) {
                    0 => Statement::Barrier(counted),
                    1 => Statement::Count(d, a, counted),
                    _ if self.away != 0 => Statement::Barrier(counted),
                    _ => Statement::Exchange(d, a, 1 + self.random.below(31) as u32),
                }
            }
            (16 | 17, _) => self.call(place, inner),
            (18, Some(lanes)) if once && self.may_go(lanes) => {
                let leave = self.mask(lanes);
                if lanes & !leave == 0 && !lanes & !self.gone == 0 {
                    return Some(self.compute());
                }
                (self.gone, self.away) = (self.gone | leave, self.away | leave);
                Statement::Exit(Condition::Lane(leave))
            }
            (18 | 19, Some(lanes)) if place.function && !place.turns && !place.some_blocks => {
                let leave = self.mask(lanes);
                self.away |= leave;
                Statement::Return(Condition::Lane(leave))
            }
            (18 | 19, None) if place.free => Statement::Return(self.data()),
            (20, Some(lanes)) => Statement::Active(self.register(), lanes),
            _ => self.compute(),
        })
    }

    /// Whether some of these lanes may exit, and half a warp is left.
    fn may_go(&mut self, lanes: u32) -> bool {
        lanes.count_ones() > 1 && self.gone.count_ones() < 12 && self.random.below(3) == 0
    }

    /// A call of a function that others call, or of one for this place, in which it is known who is there.
    fn call(&mut self, place: Place, inner: Place) -> Statement {
        let own = place.lanes.is_some() && place.depth < 3 && self.random.below(2) == 0;
        if !own {
            if self.common == 0 {
                return self.compute();
            }
            // Not from one another, which would take exponentially long.
            let recursive = !place.free && self.random.below(3) == 0;
            let recursive = recursive.then(|| self.register());
            return Statement::Call(self.random.below(self.common), recursive);
        }
        let away = self.away;
        let inside = Place { in_loop: false, turns: false, function: true, free: false, last: false, ..inner };
        let function = Function { before: self.statements(inside, 4), after: self.statements(inside, 2) };
        self.functions.push(function);
        self.away = away | self.gone;
        Statement::Call(self.functions.len() - 1, None)
    }

    fn compute(&mut self) -> Statement {
        let word = ["add.u32", "sub.u32", "xor.b32", "mul.lo.u32", "max.u32", "shr.u32"][self.random.below(6)];
        let (d, a) = (self.register(), self.register());
        let constant = if word == "shr.u32" { 1 + self.random.below(9) as u32 } else { self.random.next() as u32 | 1 };
        let b = if word == "shr.u32" || self.random.below(2) == 0 { Err(constant) } else { Ok(self.register()) };
        Statement::Compute(word, d, a, b)
    }

    fn branch(&mut self, condition: Condition, then: Place, otherwise: Place) -> Statement {
        let layout = [Layout::ThenFirst, Layout::ElseFirst, Layout::OutOfLine][self.random.below(3)];
        let first = self.statements(then, 4);
        let second = if self.random.below(3) == 0 { Vec::new() } else { self.statements(otherwise, 4) };
        Statement::If(condition, first, second, layout)
    }

    fn known_branch(&mut self, lanes: u32, inner: Place) -> Statement {
        if self.random.below(3) == 0 {
            let condition = Condition::Block(self.random.next() as u32 & 3);
            let inner = Place { some_blocks: true, ..inner };
            return self.branch(condition, inner, inner);
        }
        let mask = self.mask(lanes);
        let side = |mask: u32| Place { lanes: (mask != 0).then_some(mask), block: false, ..inner };
        self.branch(Condition::Lane(mask), side(lanes & mask), side(lanes & !mask))
    }

    /// Some of these lanes.
    fn mask(&mut self, lanes: u32) -> u32 {
        let any = self.random.next() as u32;
        lanes & [any, 0xffff, 0x5555_5555, 0xff00_00ff, 1 << (any & 31), !(1 << (any & 31))][self.random.below(6)]
    }

    fn repeat(&mut self, place: Place, inner: Place) -> Statement {
        let inner = Place { again: true, turns: true, ..inner };
        if place.lanes.is_some() && self.random.below(2) == 0 {
            // All who are here turn equally often.
            let trips = 1 + self.random.below(3) as u32;
            return Statement::Loop(Trips::Always(trips), self.statements(Place { in_loop: false, ..inner }, 3));
        }
        let trips = Trips::Data(self.register(), [1, 3, 7, 6][self.random.below(4)]);
        let unknown = Place { lanes: None, block: false, in_loop: true, ..inner };
        Statement::Loop(trips, self.statements(unknown, 4))
    }

    fn collective(&mut self, lanes: u32) -> Statement {
        let (d, a) = (self.register(), self.register());
        // Two groups in one instruction, each with a mask of its own.
        let first = if self.random.below(3) == 0 { self.mask(lanes) } else { lanes };
        let masks = if first == 0 { [lanes, 0] } else { [first, lanes & !first] };
        let whole = masks == [u32::MAX, 0];
        // Lanes that have exited may be named, and count for nothing.
        let named = masks[0] | if self.random.below(2) == 0 { self.gone & self.random.next() as u32 } else { 0 };
        let reductions =
            ["add.u32", "min.u32", "max.u32", "add.s32", "min.s32", "max.s32", "and.b32", "or.b32", "xor.b32"];
        let operation = match self.random.below(8) {
            0 => Collective::Ballot,
            1 => Collective::All,
            2 => Collective::Any,
            3 => Collective::Uniform,
            4 if self.random.below(2) == 0 => Collective::MatchAny,
            4 => Collective::MatchAll,
            5 if self.random.below(4) == 0 => Collective::Elect,
            5 => Collective::Reduce(reductions[self.random.below(9)]),
            _ if whole => {
                let mode = ["up", "down", "bfly", "idx"][self.random.below(4)];
                let segment = [0, 0x10, 0x18, 0x1c, 0x1e][self.random.below(5)] << 8;
                let clamp = if mode == "up" { 0 } else { 0x1f };
                Collective::Shuffle(mode, self.random.below(32) as u32, segment | clamp)
            }
            _ => {
                // A lane of the group; of two groups, each has its own first lane.
                let only = masks[1] == 0;
                let members: Vec<u32> = (0..32).filter(|lane| masks[0] >> lane & 1 == 1).collect();
                if !only {
                    return Statement::Collective(Collective::Ballot, d, a, masks);
                }
                Collective::From(members[self.random.below(members.len())])
            }
        };
        Statement::Collective(operation, d, a, [named, masks[1]])
    }

    fn warp_barrier(&mut self, lanes: u32, place: Place) -> Statement {
        let mask = self.mask(lanes);
        match self.random.below(4) {
            // At different instructions in the two arms.
            0 if mask != 0 && mask != lanes => {
                let arm = || vec![Statement::WarpBarrier(lanes)];
                let (mut first, mut second) = (arm(), arm());
                first.insert(self.random.below(2), self.compute());
                second.insert(self.random.below(2), self.compute());
                Statement::If(Condition::Lane(mask), first, second, Layout::ThenFirst)
            }
            // Lanes that wait for others of their warp, wherever those stand.
            1 | 2 if mask != 0 && mask != lanes && !place.again => {
                self.flags += 1;
                Statement::Wait(mask, self.flags - 1)
            }
            _ => Statement::WarpBarrier(lanes),
        }
    }
}
