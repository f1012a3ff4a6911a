//! What is noticed of the mutant that is on: runs in a process of its own, in the changed copy.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::str::FromStr;

use tilewright_campaign::compile::message;
use tilewright_campaign::compose;
use tilewright_campaign::rng::Rng;
use tilewright_cli::prove::{self, Fault};
use tilewright_compiler::diag::Code;
use tilewright_compiler::{Compiled, trial};
use tilewright_kernel::KernelInfo;

use crate::Failure;
use crate::corpus::{Case, Made, mark};

/// Work of the separate checker for one launch.
const WORK: u64 = 2_000_000;
/// Draws of sizes for one composition.
const SHAPES: usize = 3;
/// Elements and terms that the reference may evaluate.
const REFERENCE: u64 = 3_000_000;

/// Who noticed a mutant first, in the order in which they look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Net {
    /// The process ended, or did not.
    Crash,
    /// A panic of the compiler.
    Panic,
    /// A room refused a kernel that is right, or the verifier did.
    Room,
    /// The separate checker, inside the macro.
    Macro,
    /// The separate checker on values, at more sizes.
    Values,
    /// The separate checker on indices, at more sizes.
    Indices,
    /// The separate checker on the indices of single threads, at large sizes.
    Paths,
    /// The launcher, the emulator or a sanitizer.
    Emulator,
    /// A wrong result.
    Result,
    /// Other code, and nobody noticed anything.
    Silent,
    /// No other code for any case.
    Same,
}

/// All of them, with their names.
pub const NETS: [(Net, &str); 11] = [
    (Net::Crash, "crash"),
    (Net::Panic, "panic"),
    (Net::Room, "refused"),
    (Net::Macro, "macro"),
    (Net::Values, "values"),
    (Net::Indices, "indices"),
    (Net::Paths, "paths"),
    (Net::Emulator, "emulator"),
    (Net::Result, "result"),
    (Net::Silent, "silent"),
    (Net::Same, "same"),
];

impl fmt::Display for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NETS.iter().find(|n| n.0 == *self).map_or("", |n| n.1);
        f.pad(name)
    }
}

impl FromStr for Net {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self, Failure> {
        NETS.iter().find(|n| n.1 == text).map(|n| n.0).ok_or_else(|| format!("no net: {text}"))
    }
}

/// What was noticed first, and what it says.
pub type Notice = (Net, String);

/// Compiles a case; none if it is what the unchanged compiler makes of it.
///
/// # Errors
/// What is noticed already.
pub fn compiled(case: &Case, root: &Path, expected: u64) -> Result<Option<Vec<Compiled>>, Notice> {
    match catch_unwind(AssertUnwindSafe(|| case.made(root))) {
        Ok(Ok(Made::Kernels(kernels))) => Ok((mark(&kernels) != expected).then_some(kernels)),
        Ok(Ok(Made::Refused(code, report))) => {
            let is_checker = code == Code::TW9001 && report.contains("failed in `proof`");
            Err((if is_checker { Net::Macro } else { Net::Room }, report))
        }
        Ok(Err(failure)) => Err((Net::Crash, failure)),
        Err(payload) => Err((Net::Panic, message(&*payload))),
    }
}

/// What is noticed of kernels that differ from those of the unchanged compiler.
pub fn looked(case: &Case, kernels: &[Compiled]) -> Option<Notice> {
    let looked = catch_unwind(AssertUnwindSafe(|| {
        kernels.iter().find_map(proved).or_else(|| {
            kernels.iter().find_map(|kernel| match (&kernel.info, case) {
                (None, _) => Some((Net::Room, "no kernel".to_owned())),
                (Some(info), Case::Composition { seed, index }) => composition(*seed, *index, info),
                (Some(info), Case::Invocation { .. } | Case::Text { .. }) => launched(info),
            })
        })
    }));
    looked.unwrap_or_else(|payload| Some((Net::Panic, message(&*payload))))
}

/// What the separate checker says of a kernel.
fn proved(kernel: &Compiled) -> Option<Notice> {
    let wrong = prove::at_all_sizes(kernel.info.as_ref()?, &kernel.entries, WORK).err()?;
    let net = match wrong.net {
        trial::Net::Values => Net::Values,
        trial::Net::Indices => Net::Indices,
        trial::Net::Paths => Net::Paths,
    };
    Some((net, wrong.to_string()))
}

/// A composition on the emulator, against the campaign's evaluator.
fn composition(seed: u64, index: u64, info: &KernelInfo) -> Option<Notice> {
    let (kernel, data) = compose::case(seed, index);
    let mut rng = Rng::new(data);
    for turn in 0..SHAPES {
        let dims = compose::dims(&kernel, turn, &mut rng);
        if let Err((class, detail)) = compose::execute::run(&kernel, info, &dims, &mut rng) {
            let net = if class.starts_with("mismatch") || class.starts_with("unwritten") {
                Net::Result
            } else {
                Net::Emulator
            };
            return Some((net, format!("{class}: {detail}")));
        }
    }
    None
}

/// A kernel on the emulator, against the reference evaluator.
fn launched(info: &KernelInfo) -> Option<Notice> {
    match prove::on_emulator(info, REFERENCE).err()? {
        Fault::Launch(what) => Some((Net::Emulator, what)),
        Fault::Result(what) => Some((Net::Result, what)),
    }
}
