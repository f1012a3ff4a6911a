//! `cargo xtask replay save|compare`: what the compiler makes of many sources, kept and compared with what it makes of
//! the same sources later. A change that should keep everything shows that it did; another shows what it changed and
//! what that costs.
//!
//! | room | holds |
//! | --- | --- |
//! | [`sources`] | what is compiled: the repository's kernels and generated ones |
//! | [`record`] | what became of one source |
//! | [`difference`] | two records of one source, side by side |
//! | [`costs`] | barriers, instructions and registers of PTX |

pub mod costs;
pub mod difference;
pub mod record;
pub mod sources;

use std::collections::BTreeMap;
use std::path::PathBuf;

use rayon::prelude::*;
use serde_json::{Value, json};

use crate::{Failure, root};
use record::Record;

/// Bytes of stack of a thread that compiles: sources nest deeply.
const STACK: usize = 64 << 20;

/// Sources by name, each with what became of it.
type Kept = BTreeMap<String, (String, Record)>;

/// Where records are kept unless a file is named.
fn default_file() -> PathBuf {
    root().join("target/replay.json")
}

/// Compiles sources, in parallel; the order is theirs.
fn compile(sources: BTreeMap<String, String>) -> Result<Kept, Failure> {
    let pool = rayon::ThreadPoolBuilder::new().stack_size(STACK).build().map_err(|e| e.to_string())?;
    let one = |(name, text): (String, String)| {
        let record = Record::of(&name, &text);
        (name, (text, record))
    };
    // A panic is a result like others; its message would only interleave.
    std::panic::set_hook(Box::new(|_| {}));
    let kept = pool.install(|| sources.into_par_iter().map(one).collect());
    let _ = std::panic::take_hook();
    Ok(kept)
}

/// Compiles everything and keeps it.
///
/// # Errors
/// A source cannot be read, or the file not be written.
pub fn save(file: Option<&str>) -> Result<(), Failure> {
    let file = file.map_or_else(default_file, PathBuf::from);
    let kept = compile(sources::all()?)?;
    let kernels: usize = kept.values().map(|(_, record)| record.kernels.len()).sum();
    let shown = |(name, (source, record)): (&String, &(String, Record))| {
        (name.clone(), json!({ "source": source, "record": record.to_json() }))
    };
    let value = Value::Object(kept.iter().map(shown).collect());
    let failed = |e: std::io::Error| format!("{}: {e}", file.display());
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    std::fs::write(&file, value.to_string()).map_err(failed)?;
    println!("replay: {} sources, {kernels} kernels kept in {}", kept.len(), file.display());
    Ok(())
}

/// Compiles the sources that were kept, and shows what is different now.
///
/// # Errors
/// Something is; or the file cannot be read.
pub fn compare(file: Option<&str>) -> Result<(), Failure> {
    let file = file.map_or_else(default_file, PathBuf::from);
    let before = read(&file)?;
    let sources = before.iter().map(|(name, (source, _))| (name.clone(), source.clone())).collect();
    let after = compile(sources)?;
    let pairs = before.iter().filter_map(|(name, (_, before))| Some((name.as_str(), before, &after.get(name)?.1)));
    let report = difference::report(pairs)?;
    println!("{}", report.text);
    if report.differences == 0 { Ok(()) } else { Err(format!("{} sources differ", report.differences)) }
}

/// What was kept.
fn read(file: &std::path::Path) -> Result<Kept, Failure> {
    let text = std::fs::read_to_string(file)
        .map_err(|e| format!("{}: {e}; `cargo xtask replay save` makes it", file.display()))?;
    let value: Value = serde_json::from_str(&text).map_err(|e| format!("{}: {e}", file.display()))?;
    let entry = |(name, value): (&String, &Value)| {
        let source = value.get("source")?.as_str()?.to_owned();
        Some((name.clone(), (source, Record::from_json(value.get("record")?)?)))
    };
    let kept = value.as_object().and_then(|entries| entries.iter().map(entry).collect());
    kept.ok_or_else(|| format!("{}: not what `cargo xtask replay save` writes", file.display()))
}
