//! Programs as PTX text.

use std::fmt::Write as _;

use super::{Case, Collective, Condition, Function, Layout, REGISTERS, Statement, Trips};

/// What a thread's registers hold at the start, by its number in the grid.
pub fn start(thread: u32) -> [u32; REGISTERS] {
    std::array::from_fn(|register| {
        let x = (thread + 1).wrapping_mul(0x9e37_79b9).wrapping_add((register as u32).wrapping_mul(0x85eb_ca6b));
        (x ^ x >> 15).wrapping_mul(0x2c1b_3c6d)
    })
}

struct Writer {
    text: String,
    /// What stands after the end.
    behind: String,
    /// Numbers of labels and predicates.
    next: u32,
    /// Labels of loops: their ends and their next turns.
    loops: Vec<u32>,
    /// The function that is written; none for the kernel.
    function: Option<usize>,
    block: u32,
}

/// How a function takes and gives the registers.
#[derive(Clone, Copy, PartialEq)]
enum Convention {
    /// In memory for parameters.
    Memory,
    /// In registers.
    Registers,
    /// In memory, called by its address.
    Address,
}

fn convention(function: usize) -> Convention {
    [Convention::Memory, Convention::Registers, Convention::Address][function % 3]
}

const FOUR: &str = "{%r0, %r1, %r2, %r3}";

/// Declarations of a body's registers, and the special ones.
fn registers(next: u32) -> String {
    format!(
        ".reg .b32 %r<{REGISTERS}>, %i, %b, %t, %lane, %x, %y, %depth, %deeper, %c<{next}>, %n<{next}>; .reg .pred %p<{next}>, %q; .reg .b64 %out, %to;\n\
         mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; mov.u32 %lane, %laneid;\n"
    )
}

/// The head of a function up to its parameters.
fn head(number: usize) -> String {
    match convention(number) {
        Convention::Registers => format!(
            ".func (.reg .b32 o0, .reg .b32 o1, .reg .b32 o2, .reg .b32 o3) f{number}(.reg .b32 i0, .reg .b32 i1, .reg .b32 i2, .reg .b32 i3, \
             .reg .b64 out, .reg .b32 depth)"
        ),
        _ => format!(
            ".func (.param .align 16 .b8 back[16]) f{number}(.param .align 16 .b8 given[16], .param .b64 out, .param .b32 depth)"
        ),
    }
}

fn function(number: usize, function: &Function, block: u32, next: &mut u32) -> String {
    let mut writer = Writer::new(Some(number), *next, block);
    writer.statements(&function.before);
    let label = writer.number();
    writer.line(&format!("setp.eq.u32 %q, %depth, 0; @%q bra D{label};\nsub.u32 %deeper, %depth, 1;"));
    writer.call(number);
    writer.line(&format!("D{label}:"));
    writer.statements(&function.after);
    writer.leave();
    *next = writer.next;
    let takes = match convention(number) {
        Convention::Registers => {
            "mov.b32 %r0, i0; mov.b32 %r1, i1; mov.b32 %r2, i2; mov.b32 %r3, i3; mov.b64 %out, out; mov.b32 %depth, depth;".to_owned()
        }
        _ => format!("ld.param.v4.b32 {FOUR}, [given]; ld.param.b64 %out, [out]; ld.param.b32 %depth, [depth];"),
    };
    // What stands after the end of the function goes back into it.
    format!("{} {{\n{}{takes}\n{}{}}}\n", head(number), registers(writer.next + 1), writer.text, writer.behind)
}

/// The module of a program, whose kernel stores every thread's registers.
pub fn module(case: &Case) -> String {
    let mut functions = String::new();
    let mut next = 0;
    // All are declared first: they may call one another in any order.
    let heads: String = (0..case.functions.len()).map(|number| head(number) + ";\n").collect();
    for (number, body) in case.functions.iter().enumerate() {
        functions += &function(number, body, case.block, &mut next);
    }
    let mut writer = Writer::new(None, next, case.block);
    writer.statements(&case.body);
    let mut start = String::new();
    for register in 0..REGISTERS {
        let _ = writeln!(
            start,
            "add.u32 %x, %i, 1; mul.lo.u32 %x, %x, 0x9e3779b9; add.u32 %x, %x, {};\nshr.u32 %y, %x, 15; xor.b32 %x, %x, %y; mul.lo.u32 %r{register}, %x, 0x2c1b3c6d;",
            (register as u32).wrapping_mul(0x85eb_ca6b)
        );
    }
    // Threads that exit early store their registers first.
    format!(
        ".version 8.8\n.target sm_90a\n.address_size 64\n.shared .align 4 .b32 words[{words}];\n.shared .align 4 .b32 flags[512];\n{heads}{functions}\
         .visible .entry k(.param .u64 out) {{\n{registers}mad.lo.u32 %i, %b, {block}, %t;\n\
         ld.param.u64 %out, [out]; mad.wide.u32 %out, %i, {row}, %out;\n\
         mov.u32 %y, flags; mad.lo.u32 %x, %t, 4, %y;\n{clear}bar.sync 0;\n\
         {start}{body}bra END;\n{behind}END: st.global.v4.u32 [%out], {FOUR};\nret;\n}}\n",
        words = case.block,
        registers = registers(writer.next + 1),
        block = case.block,
        row = REGISTERS * 4,
        clear = clear(case.block),
        body = writer.text,
        behind = writer.behind,
    )
}

/// Zeros the words that lanes wait for.
fn clear(block: u32) -> String {
    (0..512 / block).map(|part| format!("st.shared.u32 [%x+{}], 0;\n", part * block * 4)).collect()
}

impl Writer {
    fn new(function: Option<usize>, next: u32, block: u32) -> Writer {
        Writer { text: String::new(), behind: String::new(), next, loops: Vec::new(), function, block }
    }

    /// Calls a function with all registers, and `%deeper`.
    fn call(&mut self, function: usize) {
        let label = self.number();
        if convention(function) == Convention::Registers {
            return self.line(&format!("call (%r0, %r1, %r2, %r3), f{function}, (%r0, %r1, %r2, %r3, %out, %deeper);"));
        }
        let call = match convention(function) {
            Convention::Address => format!(
                "C{label}: .callprototype (.param .align 16 .b8 _[16]) _ (.param .align 16 .b8 _[16], .param .b64 _, .param .b32 _);\n\
                 mov.u64 %to, f{function}; call (back), %to, (given, o, d), C{label};"
            ),
            _ => format!("call (back), f{function}, (given, o, d);"),
        };
        self.line(&format!(
            "{{ .param .align 16 .b8 given[16]; .param .b64 o; .param .b32 d; .param .align 16 .b8 back[16];\n\
             st.param.v4.b32 [given], {FOUR}; st.param.b64 [o], %out; st.param.b32 [d], %deeper;\n{call}\nld.param.v4.b32 {FOUR}, [back]; }}"
        ));
    }

    /// Returns from the function.
    fn leave(&mut self) {
        self.line(match self.function.map(convention) {
            Some(Convention::Registers) => "mov.b32 o0, %r0; mov.b32 o1, %r1; mov.b32 o2, %r2; mov.b32 o3, %r3; ret;",
            Some(_) => "st.param.v4.b32 [back], {%r0, %r1, %r2, %r3}; ret;",
            None => "bra END;",
        });
    }

    /// The thread count of a barrier.
    fn threads(&self, counted: bool) -> String {
        if counted { format!(", {}", self.block) } else { String::new() }
    }

    fn number(&mut self) -> u32 {
        self.next += 1;
        self.next
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn statements(&mut self, statements: &[Statement]) {
        for statement in statements {
            self.statement(statement);
        }
    }

    /// A predicate with the value of a condition.
    fn condition(&mut self, condition: Condition) -> String {
        let number = self.number();
        let bits = match condition {
            Condition::Lane(mask) => format!("shr.u32 %x, {mask:#x}, %lane; and.b32 %x, %x, 1;"),
            Condition::Block(bits) => format!("and.b32 %x, %b, {bits};"),
            Condition::Data(register, bits) => format!("and.b32 %x, %r{register}, {bits:#x};"),
        };
        self.line(&format!("{bits} setp.ne.u32 %p{number}, %x, 0;"));
        format!("%p{number}")
    }

    fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Compute(word, d, a, b) => {
                let b = b.map_or_else(|constant| format!("{constant:#x}"), |b| format!("%r{b}"));
                self.line(&format!("{word} %r{d}, %r{a}, {b};"));
            }
            Statement::If(condition, first, second, layout) => self.branch(*condition, first, second, *layout),
            Statement::Switch(register, arms) => {
                let label = self.number();
                let labels: Vec<String> = (0..4).map(|arm| format!("S{label}_{arm}")).collect();
                self.line(&format!("T{label}: .branchtargets {};", labels.join(", ")));
                self.line(&format!("and.b32 %x, %r{register}, 3; brx.idx %x, T{label};"));
                for (arm, name) in arms.iter().zip(labels) {
                    self.line(&format!("{name}:"));
                    self.statements(arm);
                    self.line(&format!("bra E{label};"));
                }
                self.line(&format!("E{label}:"));
            }
            Statement::Loop(trips, body) => {
                let label = self.number();
                let trips = match trips {
                    Trips::Always(count) => format!("mov.u32 %n{label}, {count};"),
                    Trips::Data(register, bits) => format!("and.b32 %n{label}, %r{register}, {bits};"),
                };
                self.line(&format!("{trips} mov.u32 %c{label}, 0;\nL{label}: setp.ge.u32 %p{label}, %c{label}, %n{label}; @%p{label} bra E{label};"));
                self.loops.push(label);
                self.statements(body);
                self.loops.pop();
                self.line(&format!("N{label}: add.u32 %c{label}, %c{label}, 1; bra L{label};\nE{label}:"));
            }
            Statement::Break(condition) | Statement::Continue(condition) => {
                let p = self.condition(*condition);
                let label = self.loops.last().copied().unwrap_or(0);
                let kind = if matches!(statement, Statement::Break(_)) { 'E' } else { 'N' };
                self.line(&format!("@{p} bra {kind}{label};"));
            }
            Statement::Exit(condition) => {
                let p = self.condition(*condition);
                self.line(&format!(
                    "@{p} st.global.v4.u32 [%out], {{%r0, %r1, %r2, %r3}};\n@{p} {};",
                    if self.function.is_none() && p.len().is_multiple_of(2) { "ret" } else { "exit" }
                ));
            }
            Statement::Return(condition) => {
                let p = self.condition(*condition);
                let label = self.number();
                self.line(&format!("@!{p} bra R{label};"));
                self.leave();
                self.line(&format!("R{label}:"));
            }
            Statement::Call(function, depth) => {
                self.line(&match depth {
                    Some(register) => format!("and.b32 %deeper, %r{register}, 3;"),
                    None => "mov.b32 %deeper, 0;".to_owned(),
                });
                self.call(*function);
            }
            Statement::Active(d, lanes) => self.line(&format!(
                "activemask.b32 %x; shr.u32 %y, %x, %lane; and.b32 %y, %y, 1; add.u32 %r{d}, %r{d}, %y;\n\
                 and.b32 %x, %x, {:#x}; setp.ne.u32 %q, %x, 0; selp.u32 %x, 2, 0, %q; add.u32 %r{d}, %r{d}, %x;",
                !lanes
            )),
            Statement::Collective(operation, d, a, masks) => self.collective(*operation, *d, *a, *masks),
            Statement::WarpBarrier(mask) => self.line(&format!("bar.warp.sync {mask:#x};")),
            Statement::Wait(mask, word) => {
                // One word for each warp; the lanes that wait may stand before those they wait for.
                let label = self.number();
                let p = self.condition(Condition::Lane(*mask));
                self.line(&format!(
                    "mov.u32 %y, flags; shr.u32 %x, %t, 5; mad.lo.u32 %y, %x, 4, %y; add.u32 %y, %y, {};\n@!{p} bra F{label};\n\
                     W{label}: ld.volatile.shared.u32 %x, [%y]; setp.eq.u32 %q, %x, 0; @%q bra W{label};\nbra E{label};\n\
                     F{label}: st.volatile.shared.u32 [%y], 1;\nE{label}:",
                    word * 16
                ));
            }
            Statement::Barrier(counted) => self.line(&format!("bar.sync 0{};", self.threads(*counted))),
            Statement::Count(d, a, counted) => {
                let threads = self.threads(*counted);
                self.line(&format!(
                    "and.b32 %x, %r{a}, 1; setp.ne.u32 %q, %x, 0; bar.red.popc.u32 %r{d}, 0{threads}, %q;"
                ));
            }
            Statement::Exchange(d, a, bits) => self.line(&format!(
                "mov.u32 %y, words; mad.lo.u32 %x, %t, 4, %y; st.shared.u32 [%x], %r{a}; bar.sync 0;\n\
                 xor.b32 %x, %t, {bits}; mad.lo.u32 %x, %x, 4, %y; ld.shared.u32 %r{d}, [%x]; bar.sync 0;"
            )),
        }
    }

    fn branch(&mut self, condition: Condition, first: &[Statement], second: &[Statement], layout: Layout) {
        let p = self.condition(condition);
        let label = self.number();
        match layout {
            Layout::ThenFirst => {
                self.line(&format!("@!{p} bra B{label};"));
                self.statements(first);
                self.line(&format!("bra E{label};\nB{label}:"));
                self.statements(second);
            }
            Layout::ElseFirst => {
                self.line(&format!("@{p} bra B{label};"));
                self.statements(second);
                self.line(&format!("bra E{label};\nB{label}:"));
                self.statements(first);
            }
            Layout::OutOfLine => {
                self.line(&format!("@{p} bra B{label};"));
                self.statements(second);
                let before = std::mem::take(&mut self.text);
                self.line(&format!("B{label}:"));
                self.statements(first);
                self.line(&format!("bra E{label};"));
                let arm = std::mem::replace(&mut self.text, before);
                self.behind.push_str(&arm);
            }
        }
        self.line(&format!("E{label}:"));
    }

    fn collective(&mut self, operation: Collective, d: usize, a: usize, masks: [u32; 2]) {
        let mask = if masks[1] == 0 {
            format!("{:#x}", masks[0])
        } else {
            let p = self.condition(Condition::Lane(masks[0]));
            let number = self.number();
            self.line(&format!("selp.b32 %c{number}, {:#x}, {:#x}, {p};", masks[0], masks[1]));
            format!("%c{number}")
        };
        let flag = format!("selp.u32 %x, 1, 0, %q; add.u32 %r{d}, %r{d}, %x;");
        let bit = format!("and.b32 %x, %r{a}, 1; setp.ne.u32 %q, %x, 0;");
        let line = match operation {
            Collective::Ballot => format!("{bit} vote.sync.ballot.b32 %r{d}, %q, {mask};"),
            Collective::All => format!("{bit} vote.sync.all.pred %q, %q, {mask}; {flag}"),
            Collective::Any => format!("{bit} vote.sync.any.pred %q, %q, {mask}; {flag}"),
            Collective::Uniform => format!("{bit} vote.sync.uni.pred %q, %q, {mask}; {flag}"),
            Collective::MatchAny => format!("match.any.sync.b32 %r{d}, %r{a}, {mask};"),
            Collective::MatchAll => format!("match.all.sync.b32 %r{d}|%q, %r{a}, {mask}; {flag}"),
            Collective::Reduce(word) => format!("redux.sync.{word} %r{d}, %r{a}, {mask};"),
            Collective::Elect => {
                format!("elect.sync %x|%q, {mask}; shl.b32 %x, %x, 8; add.u32 %r{d}, %r{d}, %x; {flag}")
            }
            Collective::From(lane) => format!("shfl.sync.idx.b32 %r{d}, %r{a}, {lane}, 0x1f, {mask};"),
            Collective::Shuffle(mode, amount, control) => {
                format!("shfl.sync.{mode}.b32 %r{d}|%q, %r{a}, {amount}, {control:#x}, {mask}; {flag}")
            }
        };
        self.line(&line);
    }
}
