//! A program with known results, and what it shows.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use tilewright_emulator::{Arg, Launch, Memory, Options, Program};
use tilewright_ptx::isa::{Form, Op};
use tilewright_ptx::{Inst, Modifier};

/// Words of a thread in `x` and in `y`.
pub const ROW: usize = 16;

/// `%r0` the thread; `%rd0`, `%rd1` the buffers x and y, `%rd2`, `%rd3` the thread's 64 bytes of them, `%r1` its 64
/// bytes of shared memory, whose first are at `tile`.
pub const PROLOGUE: &str = "\
.reg .pred %p<8>; .reg .b16 %h<16>; .reg .b32 %r<40>; .reg .f32 %f<40>; .reg .b64 %rd<24>; .reg .f64 %fd<24>; .reg .b128 %q<4>;
.shared .align 1024 .b8 tile[8192]; .shared .align 8 .b64 bar; .local .align 16 .b8 room[64];
ld.param.u64 %rd0, [x];
ld.param.u64 %rd1, [y];
mov.u32 %r0, %tid.x;
mul.wide.u32 %rd4, %r0, 64;
add.u64 %rd2, %rd0, %rd4;
add.u64 %rd3, %rd1, %rd4;
mov.u32 %r2, tile;
mad.lo.u32 %r1, %r0, 64, %r2;
";

/// What a block of a cluster has instead.
const OF_CLUSTER: &str = "\
mov.u32 %r33, %cluster_ctarank;
mov.u32 %r34, %ntid.x;
mad.lo.u32 %r0, %r33, %r34, %r0;
mul.wide.u32 %rd4, %r0, 64;
add.u64 %rd2, %rd0, %rd4;
add.u64 %rd3, %rd1, %rd4;
";

/// A form of the table, or one of its modifiers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Key {
    op: Op,
    form: u16,
    modifier: Option<Modifier>,
}

impl Key {
    pub fn form(&self) -> &'static Form {
        &self.op.forms()[usize::from(self.form)]
    }

    pub fn told(&self) -> String {
        self.modifier.map_or_else(|| "the form".to_owned(), |modifier| format!("`.{modifier}`"))
    }
}

/// What an instruction is an example of.
pub fn keys(inst: &Inst) -> Vec<Key> {
    let all = std::iter::once(None).chain(inst.modifiers.iter().copied().map(Some));
    all.map(|modifier| Key { op: inst.op, form: inst.form, modifier }).collect()
}

pub fn keys_of_form(form: &Form) -> Vec<Key> {
    let words = form.slots.iter().flat_map(|slot| slot.alternatives.iter().map(|(modifier, _)| Some(*modifier)));
    let all: BTreeSet<_> = std::iter::once(None).chain(words).collect();
    all.into_iter().map(|modifier| Key { op: form.op, form: form.index, modifier }).collect()
}

/// Choices of modifiers of a form that have every alternative, each as few times as comes about, and none that
/// `without` excludes.
pub fn spread(form: &Form, without: impl Fn(&Modifier) -> bool) -> Vec<Vec<Modifier>> {
    let mut missing: BTreeSet<Modifier> = keys_of_form(form).into_iter().filter_map(|key| key.modifier).collect();
    missing.retain(|modifier| !without(modifier));
    let mut chosen = Vec::new();
    loop {
        // In every slot a word that is still missing, or else the first; then without what excludes another.
        let mut modifiers: Vec<Modifier> = Vec::new();
        for slot in &form.slots {
            let mut allowed = slot.alternatives.iter().map(|(modifier, _)| *modifier).filter(|m| !without(m));
            let first = allowed.clone().next();
            let new = allowed.find(|modifier| missing.contains(modifier) && fits(form, &modifiers, *modifier));
            modifiers.extend(new.or(if slot.optional { None } else { first }));
        }
        let before = missing.len();
        for modifier in &modifiers {
            missing.remove(modifier);
        }
        if missing.len() == before && !chosen.is_empty() {
            return chosen;
        }
        assert!(form.arrange(&modifiers, false).is_some(), "{modifiers:?} of `{}`", form.syntax);
        chosen.push(modifiers);
    }
}

/// Whether a word excludes none of the others.
fn fits(form: &Form, modifiers: &[Modifier], next: Modifier) -> bool {
    form.exclusions.iter().all(|(first, second)| {
        let has = |list: &[Modifier]| modifiers.iter().any(|modifier| list.contains(modifier));
        !(first.contains(&next) && has(second) || second.contains(&next) && has(first))
    })
}

/// Mnemonic and modifiers.
pub fn head(form: &Form, modifiers: &[Modifier]) -> String {
    let words = modifiers.iter().map(|modifier| format!(".{modifier}"));
    std::iter::once(form.mnemonic.to_owned()).chain(words).collect()
}

/// What stands in a thread's row of y afterwards, from its number and all of x.
pub type Want = std::rc::Rc<dyn Fn(usize, &[u32]) -> Vec<u32>>;

#[derive(Clone)]
pub struct Demo {
    /// Declarations before the kernel.
    pub before: String,
    /// Further parameters, and what they get from the addresses of x and y.
    pub params: String,
    pub args: std::rc::Rc<dyn Fn(u64, u64) -> Vec<Arg>>,
    pub body: String,
    /// Threads of all blocks.
    pub block: usize,
    /// Blocks, of one cluster.
    pub blocks: usize,
    /// Directives of the kernel.
    pub directives: &'static str,
    /// Whether removing one of these instructions changes nothing: hints.
    pub silent: bool,
    /// What the launch ends with, if with a finding.
    pub ends: Option<&'static str>,
    pub want: Want,
}

impl Demo {
    pub fn new(body: impl Into<String>, want: impl Fn(usize, &[u32]) -> Vec<u32> + 'static) -> Demo {
        Demo {
            before: String::new(),
            params: String::new(),
            args: std::rc::Rc::new(|_, _| Vec::new()),
            body: body.into(),
            block: 32,
            blocks: 1,
            directives: "",
            silent: false,
            ends: None,
            want: std::rc::Rc::new(want),
        }
    }

    pub fn of(self, block: usize) -> Demo {
        Demo { block, ..self }
    }

    /// The same threads in this many blocks of one cluster; `%r0` is the number in all of them, `%r33` the rank.
    pub fn across(self, blocks: usize) -> Demo {
        let body = format!("{OF_CLUSTER}{}", self.body);
        Demo { blocks, body, ..self }
    }

    pub fn directed(self, directives: &'static str) -> Demo {
        Demo { directives, ..self }
    }

    pub fn silent(self) -> Demo {
        Demo { silent: true, ..self }
    }

    pub fn ends(self, finding: &'static str) -> Demo {
        Demo { ends: Some(finding), ..self }
    }

    pub fn after(self, before: impl Into<String>) -> Demo {
        Demo { before: before.into(), ..self }
    }

    pub fn with(self, params: &str, args: impl Fn(u64, u64) -> Vec<Arg> + 'static) -> Demo {
        Demo { params: format!(", {params}"), args: std::rc::Rc::new(args), ..self }
    }

    /// The module, without one line of the body if one is given.
    pub fn text(&self, without: Option<usize>) -> String {
        let mut body = String::new();
        for (number, line) in self.body.lines().enumerate() {
            let _ = writeln!(body, "{}", if Some(number) == without { "" } else { line });
        }
        format!(
            ".version 8.8\n.target sm_90a\n.address_size 64\n{}\n.visible .entry k(.param .u64 x, .param .u64 y{}) {} {{\n{PROLOGUE}{body}ret;\n}}\n",
            self.before, self.params, self.directives
        )
    }

    /// y afterwards, or what went wrong.
    fn run(&self, program: &Program, seed: u64) -> Result<Vec<u32>, String> {
        let memory = Memory::new(1 << 22);
        let told = |error: tilewright_emulator::Error| error.to_string();
        let x: Vec<u8> = self.x().iter().flat_map(|word| word.to_le_bytes()).collect();
        let size = x.len() as u64;
        let (from, to) = (memory.alloc(size, "x").map_err(told)?, memory.alloc(size, "y").map_err(told)?);
        memory.write(from, &x).map_err(told)?;
        memory.fill(to, size, 0xee).map_err(told)?;
        let args = [vec![from.into(), to.into()], (self.args)(from, to)].concat();
        let (block, grid) = ([(self.block / self.blocks) as u32, 1, 1], [self.blocks as u32, 1, 1]);
        let cluster = (self.blocks > 1).then_some(grid);
        let launch = Launch { entry: "k".to_owned(), grid, block, cluster, args, ..Launch::default() };
        let options = Options { seed, threads: Some(1), budget: 1 << 17, ..Options::default() };
        let report = program.launch(&launch, &memory, &options).map_err(told)?;
        if !report.is_clean() {
            return Err(report.to_string());
        }
        let mut bytes = vec![0; size as usize];
        memory.read(to, &mut bytes).map_err(told)?;
        Ok(bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect())
    }

    pub fn x(&self) -> Vec<u32> {
        (0..(self.block * ROW) as u32).map(tilewright_conformance::file::mixed).collect()
    }

    /// Runs the program, then once without each instruction that nothing has shown yet; adds what this one shows.
    pub fn check(&self, shown: &mut BTreeSet<Key>) -> Result<(), String> {
        let text = self.text(None);
        let x = self.x();
        let mut want = vec![0xeeee_eeee; x.len()];
        for (thread, row) in want.chunks_exact_mut(ROW).enumerate() {
            for (place, word) in row.iter_mut().zip((self.want)(thread, &x)) {
                *place = word;
            }
        }
        // What is right, or the word that is not.
        let judge = |program: &Program, seed: u64| -> Result<(), String> {
            match (self.run(program, seed), self.ends) {
                (Err(report), Some(finding)) if report.contains(finding) => Ok(()),
                (Err(mistake), _) => Err(mistake),
                (Ok(_), Some(finding)) => Err(format!("no {finding}")),
                (Ok(got), None) => match (0..got.len()).find(|at| got[*at] != want[*at]) {
                    None => Ok(()),
                    Some(at) => {
                        Err(format!("word {} of thread {} is {:#x}, not {:#x}", at % ROW, at / ROW, got[at], want[at]))
                    }
                },
            }
        };
        let program = Program::parse(&text).map_err(|error| format!("{error}\n{text}"))?;
        for seed in 0..4 {
            judge(&program, seed).map_err(|mistake| format!("seed {seed}: {mistake}\n{text}"))?;
        }
        let module = tilewright_ptx::parse(&text).map_err(|error| error.to_string())?;
        let first = text.lines().count() - self.body.lines().count() - 2;
        let mut insts: Vec<(usize, Vec<Key>)> = Vec::new();
        for function in &module.functions {
            function.for_each_inst(&mut |inst| {
                let line = (inst.line as usize).checked_sub(first + 1);
                if let Some(line) = line.filter(|line| super::is_ours(inst.op) && *line < self.body.lines().count()) {
                    insts.push((line, keys(inst)));
                }
            });
        }
        for (line, keys) in &insts {
            let alone = insts.iter().filter(|(other, _)| other == line).count() == 1;
            if !alone || keys.iter().all(|key| shown.contains(key)) {
                continue;
            }
            let text = self.text(Some(*line));
            let Ok(program) = Program::parse(&text) else { continue };
            let changes = (0..4).any(|seed| judge(&program, seed).is_err());
            if changes != self.silent {
                shown.extend(keys);
            } else if self.silent && self.body.lines().nth(*line).is_some_and(|line| line.ends_with("// a hint")) {
                return Err(format!("line {line} is no hint\n{text}"));
            }
        }
        Ok(())
    }
}
