//! What a program computes, by its structure: a statement is executed by the threads that come to it, and they meet
//! again after it.

use super::{Case, Collective, Condition, Function, REGISTERS, Statement, Trips};

/// Which threads of a block.
type Threads = Vec<bool>;

struct Block<'a> {
    functions: &'a [Function],
    number: u32,
    registers: Vec<[u32; REGISTERS]>,
    /// Threads that left the innermost loop, or its turn.
    left: Vec<[Threads; 2]>,
    /// Threads that returned from the function.
    returned: Vec<Threads>,
    /// Threads that are no more.
    gone: Threads,
}

/// The registers of all threads at their ends.
pub fn run(case: &Case) -> Vec<u32> {
    (0..case.grid)
        .flat_map(|number| {
            let start = |thread: u32| super::emit::start(number * case.block + thread);
            let all = vec![true; case.block as usize];
            let mut block = Block {
                functions: &case.functions,
                number,
                registers: (0..case.block).map(start).collect(),
                left: Vec::new(),
                returned: Vec::new(),
                gone: vec![false; all.len()],
            };
            block.run(&case.body, all);
            block.registers.into_iter().flatten().collect::<Vec<_>>()
        })
        .collect()
}

fn which(threads: &Threads, test: impl Fn(usize) -> bool) -> Threads {
    threads.iter().enumerate().map(|(thread, here)| *here && test(thread)).collect()
}

fn join(a: Threads, b: &Threads) -> Threads {
    a.into_iter().zip(b).map(|(a, b)| a || *b).collect()
}

impl Block<'_> {
    fn holds(&self, condition: Condition, thread: usize) -> bool {
        match condition {
            Condition::Lane(mask) => mask >> (thread % 32) & 1 == 1,
            Condition::Block(bits) => self.number & bits != 0,
            Condition::Data(register, bits) => self.registers[thread][register] & bits != 0,
        }
    }

    /// Executes statements; gives the threads that come to their end.
    fn run(&mut self, statements: &[Statement], mut here: Threads) -> Threads {
        for statement in statements {
            here = self.statement(statement, here);
        }
        here
    }

    fn statement(&mut self, statement: &Statement, here: Threads) -> Threads {
        let threads: Vec<usize> = (0..here.len()).filter(|thread| here[*thread]).collect();
        match statement {
            Statement::Compute(word, d, a, b) => {
                for thread in threads {
                    let registers = &mut self.registers[thread];
                    let (x, y) = (registers[*a], b.map_or_else(|constant| constant, |b| registers[b]));
                    registers[*d] = match *word {
                        "add.u32" => x.wrapping_add(y),
                        "sub.u32" => x.wrapping_sub(y),
                        "xor.b32" => x ^ y,
                        "mul.lo.u32" => x.wrapping_mul(y),
                        "max.u32" => x.max(y),
                        _ => x >> y,
                    };
                }
                here
            }
            Statement::If(condition, first, second, _) => {
                let yes = which(&here, |thread| self.holds(*condition, thread));
                let no = which(&here, |thread| !yes[thread]);
                let first = self.run(first, yes);
                let second = self.run(second, no);
                join(first, &second)
            }
            Statement::Switch(register, arms) => {
                let parts = [0, 1, 2, 3].map(|arm| which(&here, |thread| self.registers[thread][*register] & 3 == arm));
                let ends: Vec<Threads> = arms.iter().zip(parts).map(|(arm, part)| self.run(arm, part)).collect();
                ends.iter().fold(vec![false; here.len()], join)
            }
            Statement::Loop(trips, body) => self.repeat(*trips, body, here),
            Statement::Break(condition) | Statement::Continue(condition) => {
                let leave = which(&here, |thread| self.holds(*condition, thread));
                let place = usize::from(matches!(statement, Statement::Continue(_)));
                if let Some(left) = self.left.last_mut() {
                    left[place] = join(std::mem::take(&mut left[place]), &leave);
                }
                which(&here, |thread| !leave[thread])
            }
            Statement::Exit(condition) => {
                let leave = which(&here, |thread| self.holds(*condition, thread));
                self.gone = join(std::mem::take(&mut self.gone), &leave);
                which(&here, |thread| !leave[thread])
            }
            Statement::Return(condition) => {
                let leave = which(&here, |thread| self.holds(*condition, thread));
                if let Some(returned) = self.returned.last_mut() {
                    *returned = join(std::mem::take(returned), &leave);
                }
                which(&here, |thread| !leave[thread])
            }
            Statement::Call(function, depth) => {
                let depths = self.registers.iter().map(|registers| depth.map_or(0, |register| registers[register] & 3));
                self.call(*function, here, depths.collect())
            }
            Statement::Active(d, _) => {
                threads.iter().for_each(|thread| {
                    let register = &mut self.registers[*thread][*d];
                    *register = register.wrapping_add(1);
                });
                here
            }
            Statement::Collective(operation, d, a, masks) => {
                let before = self.registers.clone();
                for thread in threads {
                    let lane = thread % 32;
                    let mask = masks.iter().find(|mask| *mask >> lane & 1 == 1).copied().unwrap_or(0);
                    let warp = &before[thread - lane..thread - lane + 32];
                    let values: Vec<(u32, u32)> = (0..32)
                        .filter(|lane| mask >> lane & 1 == 1 && !self.gone[thread / 32 * 32 + *lane as usize])
                        .map(|lane| (lane, warp[lane as usize][*a]))
                        .collect();
                    self.registers[thread][*d] = collective(*operation, lane as u32, &values, warp[lane][*d]);
                }
                here
            }
            Statement::Count(d, a, _) => {
                let count = threads.iter().filter(|thread| self.registers[**thread][*a] & 1 == 1).count();
                threads.iter().for_each(|thread| self.registers[*thread][*d] = count as u32);
                here
            }
            Statement::Exchange(d, a, bits) => {
                let before = self.registers.clone();
                threads.iter().for_each(|thread| self.registers[*thread][*d] = before[thread ^ *bits as usize][*a]);
                here
            }
            Statement::WarpBarrier(_) | Statement::Wait(..) | Statement::Barrier(_) => here,
        }
    }

    /// A call by these threads; each goes as deep as it is told.
    fn call(&mut self, number: usize, here: Threads, depths: Vec<u32>) -> Threads {
        let function = &self.functions[number];
        self.returned.push(vec![false; here.len()]);
        // A loop of the caller is none of the function's.
        let loops = std::mem::take(&mut self.left);
        let mut here = self.run(&function.before, here);
        let deeper = which(&here, |thread| depths[thread] > 0);
        if deeper.contains(&true) {
            let stay = which(&here, |thread| !deeper[thread]);
            let next = depths.iter().map(|depth| depth.saturating_sub(1)).collect();
            here = join(self.call(number, deeper, next), &stay);
        }
        let end = self.run(&function.after, here);
        self.left = loops;
        join(end, &self.returned.pop().unwrap_or_default())
    }

    fn repeat(&mut self, trips: Trips, body: &[Statement], here: Threads) -> Threads {
        let left: Vec<u32> = self
            .registers
            .iter()
            .map(|registers| match trips {
                Trips::Always(count) => count,
                Trips::Data(register, bits) => registers[register] & bits,
            })
            .collect();
        let none = vec![false; here.len()];
        let (mut going, mut done) = (here, none.clone());
        for turn in 0.. {
            let finished = which(&going, |thread| left[thread] <= turn);
            going = which(&going, |thread| !finished[thread]);
            done = join(done, &finished);
            if !going.contains(&true) {
                break;
            }
            self.left.push([none.clone(), none.clone()]);
            let end = self.run(body, going);
            let [broken, continued] = self.left.pop().unwrap_or_default();
            done = join(done, &broken);
            going = join(end, &continued);
        }
        done
    }
}

/// The result of a lane (9.7.9.6, 9.7.13.9 onwards); `values` are those of the lanes of the mask that have not exited.
fn collective(operation: Collective, lane: u32, values: &[(u32, u32)], before: u32) -> u32 {
    let mask = values.iter().fold(0, |mask, (lane, _)| mask | 1 << lane);
    let own = values.iter().find(|(other, _)| *other == lane).map_or(0, |(_, value)| *value);
    let ballot = values.iter().filter(|(_, value)| value & 1 == 1).fold(0, |mask, (lane, _)| mask | 1 << lane);
    let equal = values.iter().filter(|(_, value)| *value == own).fold(0, |mask, (lane, _)| mask | 1 << lane);
    // Predicates are added to the result register.
    let flag = |yes: bool| before.wrapping_add(u32::from(yes));
    match operation {
        Collective::Ballot => ballot,
        Collective::All => flag(ballot == mask),
        Collective::Any => flag(ballot != 0),
        Collective::Uniform => flag(ballot == 0 || ballot == mask),
        Collective::MatchAny => equal,
        Collective::MatchAll => {
            if equal == mask {
                mask.wrapping_add(1)
            } else {
                0
            }
        }
        Collective::Reduce(word) => {
            let numbers = || values.iter().map(|(_, value)| *value);
            let signed = || numbers().map(|value| value as i32);
            match word {
                "add.u32" | "add.s32" => numbers().fold(0, u32::wrapping_add),
                "min.u32" => numbers().min().unwrap_or(0),
                "max.u32" => numbers().max().unwrap_or(0),
                "min.s32" => signed().min().unwrap_or(0) as u32,
                "max.s32" => signed().max().unwrap_or(0) as u32,
                "and.b32" => numbers().fold(u32::MAX, |a, b| a & b),
                "or.b32" => numbers().fold(0, |a, b| a | b),
                _ => numbers().fold(0, |a, b| a ^ b),
            }
        }
        // Which lane is left open; here it is the first.
        Collective::Elect => flag(mask.trailing_zeros() == lane).wrapping_add(mask.trailing_zeros() << 8),
        Collective::From(source) => values.iter().find(|(lane, _)| *lane == source).map_or(0, |(_, value)| *value),
        Collective::Shuffle(mode, amount, control) => {
            let (lane, amount) = (i64::from(lane), i64::from(amount));
            let (clamp, segment) = (i64::from(control & 31), i64::from(control >> 8 & 31));
            let (least, most) = (lane & segment, (lane & segment) | (clamp & !segment & 31));
            let (source, inside) = match mode {
                "up" => (lane - amount, lane - amount >= most),
                "down" => (lane + amount, lane + amount <= most),
                "bfly" => (lane ^ amount, lane ^ amount <= most),
                _ => (least | (amount & !segment & 31), least | (amount & !segment & 31) <= most),
            };
            let value = values[(if inside { source } else { lane }) as usize].1;
            value.wrapping_add(u32::from(inside))
        }
    }
}
