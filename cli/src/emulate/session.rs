//! The launches of a plan under one seed: memory, buffers, arguments, and what is there afterwards.

use std::collections::BTreeMap;
use std::path::Path;

use tilewright_emulator::{Arg, Extent, HeapBlock, Launch, Memory, Options, Program, Report};

use super::argument::{self, Argument, Buffer, Source};
use super::expect::Compared;
use super::script::{Plan, Step};
use super::{map, names, npy};

/// Device memory that a command may use.
const CAPACITY: u64 = 64 << 30;

/// Programs by their files: each is parsed once.
pub type Programs = BTreeMap<String, Program>;

/// What the launches of a plan did.
pub struct Ran {
    /// The seed.
    pub seed: u64,
    /// Kernel and report of each launch.
    pub launches: Vec<(String, Report)>,
    /// What was compared.
    pub compared: Vec<Compared>,
    /// Files to write, and what goes there; the number of bytes of the buffer.
    pub outputs: Vec<(String, Vec<u8>, u64)>,
    /// What is left of the device's heap.
    pub heap: Vec<HeapBlock>,
}

/// A launch with its arguments read.
struct Ready<'p> {
    step: &'p Step,
    program: &'p Program,
    entry: String,
    parameters: Vec<(String, u64)>,
    args: Vec<Argument>,
}

/// A buffer in memory.
struct Placed {
    base: u64,
    name: String,
    buffer: Buffer,
}

/// The memory of a plan.
struct Session {
    memory: Memory,
    placed: Vec<Placed>,
    /// Those that have names, by number.
    named: BTreeMap<String, usize>,
}

/// Reads the PTX files of a plan.
///
/// # Errors
/// What is wrong, as text.
pub fn programs(plan: &Plan) -> Result<Programs, String> {
    let mut programs = Programs::new();
    for step in &plan.steps {
        let path = &step.ptx;
        if programs.contains_key(path) {
            continue;
        }
        let text = std::fs::read_to_string(path).map_err(|error| format!("{path} cannot be read: {error}"))?;
        let program = Program::parse(&text).map_err(|error| format!("{path}: {error}"))?;
        programs.insert(path.clone(), program);
    }
    Ok(programs)
}

/// Runs all launches of a plan.
///
/// # Errors
/// What cannot be run, as text.
pub fn run(plan: &Plan, programs: &Programs, options: &Options) -> Result<Ran, String> {
    let ready: Vec<Ready<'_>> = plan.steps.iter().map(|step| prepare(step, programs)).collect::<Result<_, _>>()?;
    let mut session = Session { memory: Memory::new(CAPACITY), placed: Vec::new(), named: BTreeMap::new() };
    for (name, text) in &plan.buffers {
        let refuse = |error| format!("buffer `{name}` (`{text}`): {error}");
        match argument::parse(text).map_err(refuse)? {
            Argument::Pointer(Source::Own(buffer)) => {
                let at = session.place(name.clone(), buffer).map_err(refuse)?;
                session.named.insert(name.clone(), at);
            }
            _ => return Err(refuse("it is no buffer".to_owned())),
        }
    }
    // Before any kernel runs, which may take long.
    let mut args = Vec::new();
    for launch in &ready {
        args.push(session.arguments(launch)?);
    }
    for path in session.placed.iter().filter_map(|placed| placed.buffer.to.as_deref()) {
        can_be_written(path)?;
    }
    let mut launches = Vec::new();
    for (Ready { step, program, entry, .. }, args) in ready.iter().zip(args) {
        session.symbols(program, &step.symbols)?;
        let launch = Launch {
            entry: entry.clone(),
            grid: step.grid,
            block: step.block,
            dynamic_shared: step.shared,
            args,
            extents: session.extents(),
            ..Launch::default()
        };
        let report = program.launch(&launch, &session.memory, options).map_err(|error| error.to_string())?;
        // What a kernel that was stopped has left is no input.
        let stopped = report.trap().is_some();
        launches.push((entry.clone(), report));
        if stopped {
            break;
        }
    }
    let (mut compared, mut outputs) = (Vec::new(), Vec::new());
    for placed in &session.placed {
        let Placed { base, name, buffer } = placed;
        if buffer.to.is_none() && buffer.expected.is_none() {
            continue;
        }
        let mut data = vec![0; buffer.bytes as usize];
        session.memory.read(*base, &mut data).map_err(|error| error.to_string())?;
        compared.extend(buffer.expected.as_ref().map(|expected| expected.compare(name, buffer, &data)));
        if let Some(path) = &buffer.to {
            outputs.push((path.clone(), file_of(path, buffer, data), buffer.bytes));
        }
    }
    Ok(Ran { seed: options.seed, launches, compared, outputs, heap: session.memory.heap_blocks() })
}

/// What goes to a file.
fn file_of(path: &str, buffer: &Buffer, data: Vec<u8>) -> Vec<u8> {
    if !argument::is_npy(path) {
        return data;
    }
    let bytes = || ("u1".to_owned(), vec![data.len() as u64]);
    let (dtype, shape) = buffer.form.clone().unwrap_or_else(bytes);
    npy::write(&npy::Npy { dtype, shape, data })
}

/// Finds the kernel of a launch and reads its arguments.
fn prepare<'p>(step: &'p Step, programs: &'p Programs) -> Result<Ready<'p>, String> {
    let program = programs.get(&step.ptx).ok_or_else(|| format!("{} was not read", step.ptx))?;
    let entry = entry(program, step.entry.as_deref())?;
    let parameters = program.parameters(&entry).map_err(|error| error.to_string())?;
    let parse = |(index, text): (usize, &String)| {
        argument::parse(text).map_err(|error| format!("argument {} (`{text}`): {error}", index + 1))
    };
    let args = step.args.iter().enumerate().map(parse).collect::<Result<_, _>>()?;
    Ok(Ready { step, program, entry, parameters, args })
}

/// The kernel asked for, or the only one.
fn entry(program: &Program, name: Option<&str>) -> Result<String, String> {
    let known: Vec<&str> = program.entries().chain(program.refused().map(|(name, _)| name)).collect();
    if let Some(name) = name {
        return names::find(&known, name).map(str::to_owned);
    }
    match known[..] {
        [only] => Ok(only.to_owned()),
        [] => Err("the file has no kernel".to_owned()),
        _ => Err(format!("the file has several kernels; name one with --entry: {}", names::listed(&known))),
    }
}

impl Session {
    /// Allocates a buffer and gives it its contents.
    fn place(&mut self, name: String, buffer: Buffer) -> Result<usize, String> {
        let base = self.memory.alloc(buffer.bytes, &name).map_err(|error| error.to_string())?;
        let filled = match &buffer.initial {
            None => Ok(()),
            Some(bytes) if bytes.len() as u64 == buffer.bytes => self.memory.write(base, bytes),
            Some(_) => self.memory.fill(base, buffer.bytes, 0),
        };
        filled.map_err(|error| error.to_string())?;
        self.placed.push(Placed { base, name, buffer });
        Ok(self.placed.len() - 1)
    }

    /// The arguments of a launch, with their buffers in memory.
    fn arguments(&mut self, launch: &Ready<'_>) -> Result<Vec<Arg>, String> {
        let mut args = Vec::new();
        for (index, (argument, text)) in launch.args.iter().zip(&launch.step.args).enumerate() {
            let parameter = launch.parameters.get(index);
            let name = parameter.map_or_else(|| format!("argument {}", index + 1), |(name, _)| name.clone());
            let refuse = |error| format!("argument {} (`{text}`): {error}", index + 1);
            let sources = argument::sources(argument);
            let several = sources.len() > 1;
            let mut places = Vec::new();
            for (number, source) in sources.into_iter().enumerate() {
                places.push(match source {
                    Source::Own(buffer) => {
                        let name = if several { format!("{name}.{number}") } else { name.clone() };
                        self.place(name, buffer.clone()).map_err(refuse)?
                    }
                    Source::Named(name) => match self.named.get(name) {
                        Some(at) => *at,
                        None => return Err(refuse(format!("no script names a buffer `{name}`"))),
                    },
                });
            }
            args.push(match argument {
                Argument::Map(extents, _) => {
                    let Placed { base, buffer, .. } = &self.placed[places[0]];
                    Arg(map::encode(extents, buffer, *base).map_err(refuse)?)
                }
                other => Arg(argument::layout(other, &mut places.iter().map(|at| self.placed[*at].base)).0),
            });
        }
        Ok(args)
    }

    /// Every buffer: a kernel may come to one by a pointer that another kernel has stored.
    fn extents(&self) -> Vec<Extent> {
        let extent = |placed: &Placed| {
            let Placed { base, name, buffer } = placed;
            let element = buffer.form.as_ref().and_then(|(dtype, _)| dtype.get(1..)?.parse().ok()).unwrap_or(0);
            Extent { base: *base, bytes: buffer.bytes, label: name.clone(), element, read_only: !buffer.writable }
        };
        self.placed.iter().map(extent).collect()
    }

    fn symbols(&self, program: &Program, symbols: &[(String, String)]) -> Result<(), String> {
        for (name, path) in symbols {
            let (bytes, _) = argument::contents(path)?;
            let refuse = |error| format!("`--symbol {name}={path}`, {} bytes: {error}", bytes.len());
            program.write_symbol(&self.memory, name, &bytes).map_err(refuse)?;
        }
        Ok(())
    }
}

/// Whether a file may stand at this path.
///
/// # Errors
/// Why not.
pub fn can_be_written(path: &str) -> Result<(), String> {
    let path = Path::new(path);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let why = match folder {
        _ if path.is_dir() => "it is a folder".to_owned(),
        Some(folder) if !folder.is_dir() => format!("there is no folder {}", folder.display()),
        _ => return Ok(()),
    };
    Err(format!("{} cannot be written: {why}", path.display()))
}
