//! `tilewright emulate`: a kernel of a PTX file on the emulator, on data from files. Nothing of the language is needed:
//! the PTX may come from any compiler.

pub mod argument;
pub mod map;
pub mod npy;
mod report;

use std::path::Path;

use tilewright_emulator::{Arg, Extent, Launch, MatrixModel, Memory, Options, Program, Report};

use self::argument::{Argument, Buffer};
use crate::{Output, Status};

/// Device memory that a command may use.
const CAPACITY: u64 = 64 << 30;

/// What was asked for: the options of the command.
#[derive(Clone, Debug, clap::Args)]
pub struct Request {
    /// A PTX file.
    pub file: String,
    /// The kernel; may be left out if there is only one.
    #[arg(long)]
    pub entry: Option<String>,
    /// Blocks: X, X,Y or X,Y,Z.
    #[arg(long, value_parser = triple, default_value = "1", allow_hyphen_values = true)]
    pub grid: [u32; 3],
    /// Threads of a block: X, X,Y or X,Y,Z.
    #[arg(long, value_parser = triple, allow_hyphen_values = true)]
    pub block: [u32; 3],
    /// An argument; once for every parameter.
    #[arg(long = "arg", allow_hyphen_values = true)]
    pub args: Vec<String>,
    /// Contents of a variable in global or constant memory: NAME=FILE.
    #[arg(long = "symbol")]
    pub symbols: Vec<String>,
    /// Bytes of dynamic shared memory.
    #[arg(long, default_value_t = 0, allow_hyphen_values = true)]
    pub shared: u32,
    /// Decides the order of execution.
    #[arg(long, default_value_t = 0, allow_hyphen_values = true)]
    pub seed: u64,
    /// Move approximate results within the bounds that the manual gives, by the seed.
    #[arg(long)]
    pub perturb: bool,
    /// What tensor cores compute: fast, ampere or hopper.
    #[arg(long, default_value = "fast", value_parser = matrix_model)]
    pub matrix: MatrixModel,
    /// Warp instructions that the launch may execute.
    #[arg(long, allow_hyphen_values = true)]
    pub budget: Option<u64>,
    /// Print JSON; the format is described in docs/emulate.md.
    #[arg(long)]
    pub json: bool,
}

fn matrix_model(text: &str) -> Result<MatrixModel, String> {
    match text {
        "fast" => Ok(MatrixModel::Fast),
        "ampere" => Ok(MatrixModel::Ampere),
        "hopper" => Ok(MatrixModel::Hopper),
        _ => Err("it is fast, ampere or hopper".to_owned()),
    }
}

/// `X`, `X,Y` or `X,Y,Z`.
///
/// # Errors
/// That it is none of these.
pub fn triple(text: &str) -> Result<[u32; 3], String> {
    let mut shape = [1; 3];
    let parts: Vec<&str> = text.split(',').collect();
    if parts.len() > 3 {
        return Err("at most three numbers are expected: X,Y,Z".to_owned());
    }
    for (extent, part) in shape.iter_mut().zip(parts) {
        *extent = part.trim().parse().map_err(|_| format!("`{part}` is no number from 0 to 4294967295"))?;
    }
    Ok(shape)
}

/// What a launch was, for its report.
struct Done {
    entry: String,
    report: Report,
    /// File and bytes of every output.
    written: Vec<(String, u64)>,
}

/// Runs a kernel and writes its outputs.
pub fn emulate(request: &Request) -> Output {
    match launch(request) {
        Err(error) => {
            let text = if request.json { report::refusal(request, &error) } else { String::new() };
            Output { text, ..Output::usage(error) }
        }
        Ok(done) => {
            let good = done.report.is_clean();
            let text = if request.json { report::json(request, &done) } else { report::text(&done) };
            Output { text, errors: String::new(), status: if good { Status::Good } else { Status::Bad } }
        }
    }
}

fn launch(request: &Request) -> Result<Done, String> {
    let text =
        std::fs::read_to_string(&request.file).map_err(|error| format!("{} cannot be read: {error}", request.file))?;
    let program = Program::parse(&text).map_err(|error| format!("{}: {error}", request.file))?;
    let entry = entry(&program, request.entry.as_deref())?;
    let parameters = program.parameters(&entry).map_err(|error| error.to_string())?;
    let memory = Memory::new(CAPACITY);
    let (mut args, mut buffers) = (Vec::new(), Vec::new());
    let mut extents = Vec::new();
    for (index, text) in request.args.iter().enumerate() {
        let name = parameters.get(index).map_or_else(|| format!("argument {}", index + 1), |(name, _)| name.clone());
        let argument = argument::parse(text).map_err(|error| format!("argument {} (`{text}`): {error}", index + 1))?;
        match argument {
            Argument::Value(value) => args.push(value),
            Argument::Buffer(_) | Argument::Map(..) => {
                let refuse = |error| format!("argument {} (`{text}`): {error}", index + 1);
                let (map, buffer) = match argument {
                    Argument::Map(map, buffer) => (Some(map), buffer),
                    Argument::Buffer(buffer) => (None, buffer),
                    Argument::Value(_) => continue,
                };
                let base = fill(&memory, &buffer, &name).map_err(refuse)?;
                args.push(match map {
                    Some(map) => Arg(map::encode(&map, &buffer, base).map_err(refuse)?),
                    None => base.into(),
                });
                extents.push(Extent {
                    base,
                    bytes: buffer.bytes,
                    label: name,
                    element: buffer.form.as_ref().map_or(0, |(dtype, _)| element_bytes(dtype)),
                    read_only: !buffer.writable,
                });
                buffers.push((base, buffer));
            }
        }
    }
    for symbol in &request.symbols {
        let Some((name, path)) = symbol.split_once('=') else {
            return Err(format!("`{symbol}` is no NAME=FILE"));
        };
        let Argument::Buffer(buffer) = argument::parse(&format!("in:{path}"))? else { continue };
        let bytes = buffer.initial.unwrap_or_default();
        let refuse = |error| format!("`--symbol {symbol}`, {} bytes: {error}", bytes.len());
        program.write_symbol(&memory, name, &bytes).map_err(refuse)?;
    }
    let launch = Launch {
        entry: entry.clone(),
        grid: request.grid,
        block: request.block,
        cluster: None,
        dependent: false,
        dynamic_shared: request.shared,
        args,
        extents,
    };
    let mut options = Options {
        seed: request.seed,
        perturb: request.perturb.then_some(request.seed),
        matrix: request.matrix,
        ..Options::default()
    };
    if let Some(budget) = request.budget {
        options.budget = budget;
    }
    // Said before the kernel runs, which may take long.
    for path in buffers.iter().filter_map(|(_, buffer)| buffer.to.as_deref()) {
        can_be_written(path)?;
    }
    let report = program.launch(&launch, &memory, &options).map_err(|error| error.to_string())?;
    let mut written = Vec::new();
    for (base, buffer) in buffers {
        let Some(path) = buffer.to else { continue };
        let mut data = vec![0; buffer.bytes as usize];
        memory.read(base, &mut data).map_err(|error| error.to_string())?;
        let bytes = match buffer.form {
            Some((dtype, shape)) if argument::is_npy(&path) => npy::write(&npy::Npy { dtype, shape, data }),
            _ if argument::is_npy(&path) => {
                let shape = vec![data.len() as u64];
                npy::write(&npy::Npy { dtype: "u1".to_owned(), shape, data })
            }
            _ => data,
        };
        std::fs::write(&path, bytes).map_err(|error| format!("{path} cannot be written: {error}"))?;
        written.push((path, buffer.bytes));
    }
    Ok(Done { entry, report, written })
}

/// Whether a file may stand at this path.
fn can_be_written(path: &str) -> Result<(), String> {
    let path = Path::new(path);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let why = match folder {
        _ if path.is_dir() => "it is a folder".to_owned(),
        Some(folder) if !folder.is_dir() => format!("there is no folder {}", folder.display()),
        _ => return Ok(()),
    };
    Err(format!("{} cannot be written: {why}", path.display()))
}

/// Bytes of an element of NumPy's type.
fn element_bytes(dtype: &str) -> u32 {
    dtype.get(1..).and_then(|size| size.parse().ok()).unwrap_or(0)
}

/// The kernel asked for, or the only one.
fn entry(program: &Program, name: Option<&str>) -> Result<String, String> {
    if let Some(name) = name {
        return Ok(name.to_owned());
    }
    let names: Vec<&str> = program.entries().collect();
    match names[..] {
        [only] => Ok(only.to_owned()),
        [] => Err("the file has no kernel".to_owned()),
        _ => Err(format!("the file has several kernels; name one with --entry: {}", names.join(", "))),
    }
}

/// Allocates a buffer and gives it its contents.
fn fill(memory: &Memory, buffer: &Buffer, label: &str) -> Result<u64, String> {
    let base = memory.alloc(buffer.bytes, label).map_err(|error| error.to_string())?;
    let filled = match &buffer.initial {
        None => Ok(()),
        Some(bytes) if bytes.len() as u64 == buffer.bytes => memory.write(base, bytes),
        Some(_) => memory.fill(base, buffer.bytes, 0),
    };
    filled.map_err(|error| error.to_string())?;
    Ok(base)
}
