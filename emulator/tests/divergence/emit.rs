//! Programs as PTX text.

use std::fmt::Write as _;

use super::{Case, Collective, Condition, Layout, REGISTERS, Statement, Trips};

/// What a thread's registers hold at the start, by its number in the grid.
pub fn start(thread: u32) -> [u32; REGISTERS] {
    std::array::from_fn(|register| {
        let x = (thread + 1).wrapping_mul(0x9e37_79b9).wrapping_add((register as u32).wrapping_mul(0x85eb_ca6b));
        (x ^ x >> 15).wrapping_mul(0x2c1b_3c6d)
    })
}

struct Writer {
    text: String,
    /// What stands behind the end.
    behind: String,
    /// Numbers of labels and predicates.
    next: u32,
    /// Labels of loops: their ends and their next turns.
    loops: Vec<u32>,
}

/// The module of a program, whose kernel stores every thread's registers.
pub fn module(case: &Case) -> String {
    let mut writer = Writer { text: String::new(), behind: String::new(), next: 0, loops: Vec::new() };
    writer.statements(&case.body);
    let mut registers = String::new();
    for register in 0..REGISTERS {
        let _ = writeln!(
            registers,
            "add.u32 %x, %i, 1; mul.lo.u32 %x, %x, 0x9e3779b9; add.u32 %x, %x, {};\nshr.u32 %y, %x, 15; xor.b32 %x, %x, %y; mul.lo.u32 %r{register}, %x, 0x2c1b3c6d;",
            (register as u32).wrapping_mul(0x85eb_ca6b)
        );
    }
    // Threads that exit early store their registers first.
    format!(
        ".version 8.8\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 out) {{\n\
         .shared .align 4 .b32 words[{words}];\n.shared .align 4 .b32 flags[512];\n\
         .reg .b32 %r<{REGISTERS}>, %i, %b, %t, %lane, %x, %y, %c<{next}>, %n<{next}>; .reg .pred %p<{next}>, %q; .reg .b64 %out;\n\
         mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; mov.u32 %lane, %laneid; mad.lo.u32 %i, %b, {block}, %t;\n\
         ld.param.u64 %out, [out]; mad.wide.u32 %out, %i, {row}, %out;\n\
         mov.u32 %y, flags; mad.lo.u32 %x, %t, 4, %y;\n{clear}bar.sync 0;\n\
         {registers}{body}bra END;\n{behind}END: st.global.v4.u32 [%out], {{%r0, %r1, %r2, %r3}};\nret;\n}}\n",
        words = case.block,
        next = writer.next + 1,
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
                self.line(&format!("@{p} st.global.v4.u32 [%out], {{%r0, %r1, %r2, %r3}};\n@{p} exit;"));
            }
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
            Statement::Barrier => self.line("bar.sync 0;"),
            Statement::Count(d, a) => {
                self.line(&format!("and.b32 %x, %r{a}, 1; setp.ne.u32 %q, %x, 0; bar.red.popc.u32 %r{d}, 0, %q;"));
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
            Collective::From(lane) => format!("shfl.sync.idx.b32 %r{d}, %r{a}, {lane}, 0x1f, {mask};"),
            Collective::Shuffle(mode, amount, control) => {
                format!("shfl.sync.{mode}.b32 %r{d}|%q, %r{a}, {amount}, {control:#x}, {mask}; {flag}")
            }
        };
        self.line(&line);
    }
}
