//! Times of launches, as `device-check` takes them.
//!
//! A sample is some launches one after the other, between two events of the device. Launches take turns at several sets
//! of memory, each with its own random inputs: together they have at least twice the bytes of the second-level cache,
//! so that a launch finds nothing of what it needs there, however small it is. A launch before the first event, which
//! is not timed, lets the host be ahead of the device. On the emulator the events are of the host's clock.
//!
//! [`serve`] takes samples when another program asks for them, so that they can take turns with samples of that
//! program.

use std::io::{BufRead, Write};
use std::path::PathBuf;

use rayon::prelude::*;
use serde_json::{Value, json};
use tilewright::kernel::KernelInfo;
use tilewright::{Device, Prepared};
use tilewright_cli::sizes::{self, Given};
use tilewright_cli::trial::Trial;

use crate::Failure;
use crate::kernels::{self, Kernel};

/// Bytes of the second-level cache if nobody says how many: as many as that of any GPU so far has.
pub const CACHE_BYTES: u64 = 128 << 20;
/// Sets of memory, at most.
const MOST_SETS: u64 = 64;
/// Samples of which the median is told, at most.
const SAMPLES: u32 = 21;
/// Launches of a sample, at most.
const LAUNCHES: u32 = 10;
/// Launches of a sample that another program may ask for, at most.
const MOST_LAUNCHES: u32 = 10_000;
/// Seconds that the timing of one kernel takes, or one launch if that is longer.
const TIMED_SECONDS: f64 = 1.0;

/// One timing.
pub(crate) struct Timing {
    pub(crate) kernel: String,
    pub(crate) dims: String,
    /// Of traffic: each input once, each output once.
    bytes: u64,
    /// Median.
    pub(crate) seconds: f64,
    /// Samples, and launches of each.
    pub(crate) samples: (u32, u32),
    sets: Sets,
    /// What the driver's assembler did that costs speed.
    pub(crate) losses: Vec<String>,
}

impl Timing {
    /// Bytes a nanosecond.
    pub(crate) fn gigabytes(&self) -> f64 {
        self.bytes as f64 / self.seconds / 1e9
    }

    pub(crate) fn json(&self, copy: Option<f64>) -> Value {
        json!({
            "kernel": self.kernel, "dims": self.dims, "bytes": self.bytes, "seconds": self.seconds,
            "gigabytes_per_second": self.gigabytes(), "of_copy": copy.map(|c| self.gigabytes() / c),
            "samples": self.samples.0, "launches": self.samples.1, "losses": self.losses,
            "sets": self.sets.count, "set_bytes": self.sets.bytes, "cache_bytes": self.sets.cache,
        })
    }
}

/// The sets of memory that launches take turns at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sets {
    count: u64,
    /// Of the tensors of one set.
    bytes: u64,
    /// Of the second-level cache; 0 if launches need not take turns.
    cache: u64,
}

impl Sets {
    /// At least two, and enough for twice the cache, as far as half of the memory that is free suffices; one if there
    /// is no cache.
    fn new(bytes: u64, cache: u64, free: Option<u64>) -> Self {
        let least = if cache == 0 { 1 } else { 2 };
        let wanted = cache.saturating_mul(2).div_ceil(bytes.max(1)).clamp(least, MOST_SETS);
        let room = free.map_or(u64::MAX, |free| free / 2 / bytes.max(1)).max(1);
        Self { count: wanted.min(room), bytes, cache }
    }
}

/// A kernel at some sizes on one device, with its sets of memory.
pub(crate) struct Rotation<'k> {
    kernel: &'k KernelInfo,
    dims: String,
    device: &'k Device,
    trials: Vec<Trial<'k>>,
    prepared: Vec<Prepared<'static>>,
    sets: Sets,
    /// The set of the next launch.
    next: usize,
}

impl<'k> Rotation<'k> {
    /// # Errors
    /// Sizes that the kernel refuses, tensors that are too large, or a failure of the device.
    pub(crate) fn new(
        kernel: &'k KernelInfo,
        given: &Given,
        dims: &[i64],
        device: &'k Device,
        (seed, cache): (u64, u64),
    ) -> Result<Self, String> {
        let shown = given.iter().map(|(name, value)| format!("{name} = {value}")).collect::<Vec<_>>().join(", ");
        let failed = |error: &dyn std::fmt::Display| format!("at {shown}: {error}");
        let free = device.properties().map_err(|e| failed(&e))?.map(|p| p.free_bytes);
        let sets = Sets::new(tensor_bytes(kernel, dims).map_err(|e| failed(&e))?, cache, free);
        // Random numbers take longer than anything else here.
        let trials = (0..sets.count).into_par_iter().map(|n| Trial::new(kernel, dims, seed.wrapping_add(n), device));
        let trials = trials.collect::<Result<Vec<_>, _>>().map_err(|e| failed(&e))?;
        let prepared = trials.iter().map(|trial| trial.prepare(device.as_ref()));
        let prepared = prepared.collect::<Result<_, _>>().map_err(|e| failed(&e))?;
        Ok(Self { kernel, dims: shown, device, trials, prepared, sets, next: 0 })
    }

    fn launch(&mut self) -> Result<(), String> {
        let turn = self.next % self.prepared.len();
        self.next = turn + 1;
        self.prepared[turn].run().map_err(|e| format!("at {}: {e}", self.dims))
    }

    /// Seconds of one of so many launches.
    fn sample(&mut self, launches: u32) -> Result<f64, String> {
        let dims = self.dims.clone();
        let failed = |error: tilewright::Error| format!("at {dims}: {error}");
        self.launch()?;
        let start = self.device.as_ref().record().map_err(failed)?;
        for _ in 0..launches {
            self.launch()?;
        }
        let end = self.device.as_ref().record().map_err(failed)?;
        Ok(end.since(&start).map_err(failed)?.as_secs_f64() / f64::from(launches))
    }

    /// Seconds of one launch, after a few that load the code and raise the clocks.
    fn warm(&mut self) -> Result<f64, String> {
        let mut one = self.sample(1)?;
        for _ in 0..3 {
            if one < TIMED_SECONDS / 10.0 {
                one = self.sample(1)?;
            }
        }
        Ok(one)
    }

    fn losses(&self) -> Result<Vec<String>, String> {
        let code = self.prepared.first().map(Prepared::machine_code).transpose();
        let code = code.map_err(|e| format!("at {}: {e}", self.dims))?;
        Ok(code.flatten().map_or_else(Vec::new, |code| code.losses()))
    }

    /// What is told of a median of samples.
    fn timing(&self, seconds: f64, samples: (u32, u32)) -> Result<Timing, String> {
        let bytes = self.trials.first().map_or(0, |trial| trial.traffic);
        let (kernel, dims, losses) = (self.kernel.name.to_string(), self.dims.clone(), self.losses()?);
        Ok(Timing { kernel, dims, bytes, seconds, samples, sets: self.sets, losses })
    }

    /// The median of some samples.
    ///
    /// # Errors
    /// A failure of the device.
    pub(crate) fn time(&mut self) -> Result<Timing, String> {
        let room = (TIMED_SECONDS / self.warm()?.max(1e-9)).max(1.0);
        let launches = (room / f64::from(SAMPLES)).clamp(1.0, f64::from(LAUNCHES)) as u32;
        let count = (room / f64::from(launches)).clamp(1.0, f64::from(SAMPLES)) as u32;
        let mut samples = (0..count).map(|_| self.sample(launches)).collect::<Result<Vec<_>, _>>()?;
        samples.sort_by(f64::total_cmp);
        self.timing(samples[samples.len() / 2], (count, launches))
    }

    /// One line of JSON about the row, then one for each line of the input: see [`serve`].
    fn serve(&mut self, input: impl BufRead, output: &mut dyn Write) -> Result<(), String> {
        let one = self.warm()?;
        let mut answer = |value: &Value| {
            writeln!(output, "{value}").and_then(|()| output.flush()).map_err(|e| format!("an answer: {e}"))
        };
        answer(&self.timing(one, (1, 1))?.json(None))?;
        for line in input.lines() {
            let line = line.map_err(|e| format!("a request: {e}"))?;
            match line.trim().parse() {
                Ok(launches @ 1..=MOST_LAUNCHES) => {
                    let seconds = self.sample(launches)?;
                    answer(&json!({ "seconds": seconds, "launches": launches }))?;
                }
                _ => {
                    let line: String = line.chars().take(40).collect();
                    answer(&json!({ "error": format!("`{line}` is no number from 1 to {MOST_LAUNCHES}") }))?;
                }
            }
        }
        Ok(())
    }
}

/// Bytes of all tensors of a launch.
fn tensor_bytes(kernel: &KernelInfo, dims: &[i64]) -> Result<u64, sizes::SizesError> {
    let layouts = sizes::layouts(kernel, dims)?;
    let sized = kernel.parameters.iter().zip(&layouts);
    let each = sized.filter_map(|(p, l)| Some(l.as_ref()?.elements.saturating_mul(u64::from(p.element.bytes()))));
    Ok(each.fold(0, u64::saturating_add))
}

/// Which kernel to time, at which sizes.
#[derive(Clone, Debug)]
pub struct Row {
    /// Rust files, or folders of them.
    pub paths: Vec<PathBuf>,
    /// Its name.
    pub kernel: String,
    /// Such as `M=8192,N=4096`.
    pub sizes: String,
    /// Seed of the inputs.
    pub seed: u64,
    /// Bytes of the second-level cache.
    pub cache: u64,
}

impl Row {
    /// The kernel, if a file has it.
    fn kernel(&self) -> Result<Option<Kernel>, Failure> {
        for file in kernels::of_paths(&self.paths)? {
            let text = std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
            // Files without the name need not be compiled.
            if text.contains(&self.kernel) {
                let found = kernels::of_file(&file)?.into_iter().find(|k| k.info.name == *self.kernel);
                if found.is_some() {
                    return Ok(found);
                }
            }
        }
        Ok(None)
    }

    fn with<T>(
        &self,
        device: &Device,
        then: impl FnOnce(&mut Rotation<'_>) -> Result<T, String>,
    ) -> Result<T, Failure> {
        let name = &self.kernel;
        let found = self.kernel()?.ok_or_else(|| format!("there is no kernel `{name}`"))?;
        let items: Vec<String> = self.sizes.split(',').map(str::to_owned).collect();
        let given = sizes::parse(&items).map_err(|e| e.to_string())?;
        let dims = sizes::complete(&found.info, &given).map_err(|e| format!("{name}: {e}"))?;
        then(&mut Rotation::new(&found.info, &given, &dims, device, (self.seed, self.cache))?)
    }
}

/// Bytes of traffic of a row and the median of its seconds, as JSON.
///
/// # Errors
/// Files or sizes that are wrong, or a failure of the device.
pub fn time(row: &Row, device: &Device) -> Result<Value, Failure> {
    row.with(device, |rotation| Ok(rotation.time()?.json(None)))
}

/// Writes a line of JSON as [`time`] gives it, of one launch. Then each line of the input asks for a sample: it is the
/// number of its launches, and a line of JSON with `seconds` (of one of them) answers it, or one with `error` if it is
/// no such number. Returns at the end of the input.
///
/// # Errors
/// Files or sizes that are wrong, a failure of the device, or an answer that cannot be written.
pub fn serve(row: &Row, device: &Device, input: impl BufRead, output: &mut dyn Write) -> Result<(), Failure> {
    row.with(device, |rotation| rotation.serve(input, output))
}

#[cfg(test)]
mod tests {
    use tilewright::EmulatorOptions;

    use super::*;

    fn row(kernel: &str, sizes: &str, cache: u64) -> Row {
        let paths = vec![crate::root().join("examples/softmax.rs")];
        Row { paths, kernel: kernel.to_owned(), sizes: sizes.to_owned(), seed: 1, cache }
    }

    fn emulator() -> Device {
        Device::emulator(EmulatorOptions::default())
    }

    #[test]
    fn sets_exceed_the_cache_twice_and_fit_the_memory() {
        let count = |bytes, cache, free| Sets::new(bytes, cache, free).count;
        for (bytes, cache) in [(1_u64 << 20, 50_u64 << 20), (25_165_824, 128 << 20), (3 << 20, 50 << 20), (1, 31)] {
            let sets = count(bytes, cache, None);
            assert!(bytes * sets >= 2 * cache || sets == MOST_SETS, "{bytes} {cache}");
            assert!(sets == 2 || bytes * (sets - 1) < 2 * cache, "{bytes} {cache}: one fewer would do");
        }
        assert_eq!(count(1 << 30, 128 << 20, None), 2);
        assert_eq!(count(1 << 20, 128 << 20, None), MOST_SETS);
        assert_eq!(count(1 << 20, 8 << 20, Some(20 << 20)), 10);
        assert_eq!(count(1 << 30, 128 << 20, Some(1 << 30)), 1);
        assert_eq!(count(0, 1, Some(0)), 1);
        assert_eq!(count(1 << 20, 0, None), 1);
    }

    /// Every launch of a sample is at another set, and the launch before the first event is one of them.
    #[test]
    fn launches_take_turns() {
        let device = emulator();
        // Both tensors of a set have 4 · 8 · 4 bytes.
        let turns = row("Softmax", "M=4,N=8", 512).with(&device, |rotation| {
            let (sets, before) = (rotation.sets, rotation.next);
            rotation.sample(5)?;
            let inputs: Vec<_> = rotation.trials.iter().map(|trial| trial.read("x").unwrap()).collect();
            let written = rotation.trials.iter().all(|trial| !trial.read("y").unwrap().starts_with(&[0xa5; 4]));
            Ok((sets, before, rotation.next, inputs, written))
        });
        let (sets, before, after, inputs, written) = turns.unwrap();
        assert_eq!(sets, Sets { count: 4, bytes: 256, cache: 512 });
        assert_eq!((before, after, written), (0, 2, true));
        assert!(inputs.iter().skip(1).all(|other| *other != inputs[0]), "each set has its own numbers");
    }

    #[test]
    fn a_row_is_timed() {
        let found = time(&row("Softmax", "M=4,N=8", 512), &emulator()).unwrap();
        assert_eq!((found["bytes"].as_u64(), found["sets"].as_u64()), (Some(256), Some(4)));
        assert!(found["seconds"].as_f64().unwrap() > 0.0 && found["samples"].as_u64().unwrap() > 1, "{found}");
    }

    #[test]
    fn samples_are_taken_when_asked_for() {
        let mut output = Vec::new();
        let input = "3\n\n 1 \nmany\n0\n10001\n-1";
        serve(&row("Softmax", "M=4,N=8", 512), &emulator(), input.as_bytes(), &mut output).unwrap();
        let lines = String::from_utf8(output).unwrap();
        let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((lines.len(), lines[0]["sets"].as_u64()), (8, Some(4)));
        for (line, launches) in [(1, 3), (3, 1)] {
            assert_eq!(lines[line]["launches"].as_u64(), Some(launches));
            assert!(lines[line]["seconds"].as_f64().unwrap() > 0.0, "{}", lines[line]);
        }
        for line in [2, 4, 5, 6, 7] {
            let error = lines[line]["error"].as_str().unwrap();
            assert!(error.contains("is no number from 1 to 10000"), "{error}");
        }
    }

    /// The rows that are timed beside peers name kernels and sizes that there are, and whose sets exceed any cache.
    #[test]
    fn rows_beside_peers_can_be_timed() {
        let rows: Value = serde_json::from_str(crate::device::ROWS).unwrap();
        let files = kernels::of_paths(&[crate::root().join("examples")]).unwrap();
        let all: Vec<_> = files.iter().flat_map(|file| kernels::of_file(file).unwrap()).collect();
        let rows = rows["rows"].as_array().unwrap();
        for work in ["product", "attention", "causal_attention", "softmax"] {
            assert!(rows.iter().any(|row| row["work"] == work), "{work}");
        }
        for row in rows {
            let (name, dims) = (row["kernel"].as_str().unwrap(), row["dims"].as_object().unwrap());
            let kernel = all.iter().find(|k| k.info.name == name).unwrap_or_else(|| panic!("no kernel {name}"));
            let given: Given = dims.iter().map(|(name, n)| (name.clone(), n.as_i64().unwrap())).collect();
            let dims = sizes::complete(&kernel.info, &given).unwrap();
            let bytes = tensor_bytes(&kernel.info, &dims).unwrap();
            let sets = Sets::new(bytes, CACHE_BYTES, None);
            assert!(sets.count * bytes >= 2 * CACHE_BYTES, "{name}: {sets:?}");
            assert!(bytes <= tilewright_cli::trial::MOST_BYTES, "{name}: {bytes} bytes");
        }
    }

    #[test]
    fn what_is_wrong_is_told() {
        let failure = |row: Row| time(&row, &emulator()).unwrap_err();
        assert!(failure(row("Nothing", "M=1", 0)).contains("`Nothing`"));
        let short = failure(row("Softmax", "M=1", 0));
        assert!(short.contains("no value for N"), "{short}");
    }
}
