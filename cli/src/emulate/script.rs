//! What is launched: one kernel, as the options say, or several, one after the other on the same memory, as the file of
//! `--script` says. TOML:
//!
//! ```toml
//! ptx = "k.ptx"
//!
//! [buffers]                      # each as an argument is written
//! x = "in:x.npy"
//! sums = "zero:f32[4]=sums.npy"
//!
//! [[launch]]
//! entry = "reduce"
//! grid = [4]
//! block = [256]
//! args = ["s32:1024", "buffer:x", "buffer:sums"]
//!
//! [[launch]]
//! ptx = "other.ptx"
//! block = [32]
//! shared = 1024
//! symbols = { table = "table.bin" }
//! args = ["buffer:sums", "expect:want.npy,1e-5"]
//! ```

use std::collections::BTreeMap;

use serde::Deserialize;

use super::Request;

/// A launch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// The PTX file.
    pub ptx: String,
    /// The kernel, or a part of its name.
    pub entry: Option<String>,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared: u32,
    /// Arguments.
    pub args: Vec<String>,
    /// Variables and files of their contents.
    pub symbols: Vec<(String, String)>,
}

/// All launches, and the buffers that they name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Names of buffers and what they are.
    pub buffers: Vec<(String, String)>,
    /// The launches in order.
    pub steps: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Script {
    ptx: Option<String>,
    #[serde(default)]
    buffers: BTreeMap<String, String>,
    #[serde(default)]
    launch: Vec<Launch>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Launch {
    ptx: Option<String>,
    entry: Option<String>,
    #[serde(default)]
    grid: Vec<u32>,
    block: Vec<u32>,
    #[serde(default)]
    shared: u32,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    symbols: BTreeMap<String, String>,
}

impl Plan {
    /// The plan that the options ask for.
    ///
    /// # Errors
    /// What is wrong, as text.
    pub fn of(request: &Request) -> Result<Plan, String> {
        if let Some(path) = &request.script {
            let text = std::fs::read_to_string(path).map_err(|error| format!("{path} cannot be read: {error}"))?;
            return Plan::parse(&text).map_err(|error| format!("{path}: {error}"));
        }
        let (Some(ptx), Some(block)) = (&request.file, request.block) else {
            return Err("a PTX file and `--block` are needed, or `--script`".to_owned());
        };
        let symbol = |symbol: &String| match symbol.split_once('=') {
            Some((name, file)) => Ok((name.to_owned(), file.to_owned())),
            None => Err(format!("`{symbol}` is no NAME=FILE")),
        };
        let step = Step {
            ptx: ptx.clone(),
            entry: request.entry.clone(),
            grid: request.grid,
            block,
            shared: request.shared,
            args: request.args.clone(),
            symbols: request.symbols.iter().map(symbol).collect::<Result<_, _>>()?,
        };
        Ok(Plan { buffers: Vec::new(), steps: vec![step] })
    }

    /// The plan that a file says.
    ///
    /// # Errors
    /// What is wrong, as text.
    pub fn parse(text: &str) -> Result<Plan, String> {
        let script: Script = toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
        if script.launch.is_empty() {
            return Err("it launches nothing: a `[[launch]]` is missing".to_owned());
        }
        let step = |(at, launch): (usize, Launch)| {
            let shape = |what: &str, given: &[u32]| match *given {
                [] if what == "grid" => Ok([1; 3]),
                [x] => Ok([x, 1, 1]),
                [x, y] => Ok([x, y, 1]),
                [x, y, z] => Ok([x, y, z]),
                _ => Err(format!("launch {}: `{what}` has {} numbers; it has one to three", at + 1, given.len())),
            };
            let ptx = launch.ptx.or(script.ptx.clone());
            Ok(Step {
                ptx: ptx.ok_or_else(|| format!("launch {}: it has no `ptx`, and neither has the script", at + 1))?,
                entry: launch.entry,
                grid: shape("grid", &launch.grid)?,
                block: shape("block", &launch.block)?,
                shared: launch.shared,
                args: launch.args,
                symbols: launch.symbols.into_iter().collect(),
            })
        };
        let steps = script.launch.into_iter().enumerate().map(step).collect::<Result<_, String>>()?;
        Ok(Plan { buffers: script.buffers.into_iter().collect(), steps })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_in_scripts_have_reasons() {
        let good =
            "ptx = \"k.ptx\"\n[buffers]\nx = \"zero:f32[4]\"\n[[launch]]\nblock = [32, 2]\nargs = [\"buffer:x\"]\n";
        let plan = Plan::parse(good).unwrap();
        assert_eq!((plan.steps[0].grid, plan.steps[0].block), ([1, 1, 1], [32, 2, 1]));
        for (from, to, why) in [
            ("ptx = \"k.ptx\"\n", "", "launch 1: it has no `ptx`"),
            ("block = [32, 2]\n", "", "missing field `block`"),
            ("[32, 2]", "[]", "launch 1: `block` has 0 numbers"),
            ("[32, 2]", "[1, 2, 3, 4]", "launch 1: `block` has 4 numbers"),
            ("block", "blocks", "unknown field `blocks`"),
            ("[[launch]]\nblock = [32, 2]\nargs = [\"buffer:x\"]\n", "", "it launches nothing"),
            ("[32, 2]", "[-1]", "invalid value: integer `-1`"),
        ] {
            let error = Plan::parse(&good.replace(from, to)).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
