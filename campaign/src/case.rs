//! One kernel with all its checks.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use tilewright_compiler::diag::Code;

use crate::ast::{Dims, Kernel};
use crate::cases::timed;
use crate::compile::{Outcome, compile, message};
use crate::execute::{self, Ran};
use crate::proved::{WORK, proved, values_of};
use crate::rng::Rng;
use crate::{interpret, judge, sizes};

/// A check that failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What kind of failure, for counting and shrinking.
    pub class: String,
    /// Everything known.
    pub detail: String,
    /// The sizes.
    pub dims: Option<Dims>,
}

/// The result of one case.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Whether it compiled.
    pub accepted: bool,
    /// Launches that ran.
    pub launches: u32,
    /// What is counted: codes with their verdicts.
    pub counts: Vec<String>,
    /// Failures.
    pub failures: Vec<Failure>,
}

impl Report {
    fn fail(&mut self, class: &str, detail: String) {
        self.failures.push(Failure { class: class.to_owned(), detail, dims: None });
    }
}

/// Longest time of the processor that one compilation may take.
const COMPILE_TIME: Duration = Duration::from_secs(10);
/// Shapes per accepted kernel.
const SHAPES: usize = 3;

/// Runs all checks on a kernel; `seed` decides sizes and data.
pub fn check(kernel: &Kernel, seed: u64) -> Report {
    let mut report = Report::default();
    let (outcome, used) = timed(|| compile(&kernel.to_string()));
    if used > COMPILE_TIME {
        report.fail("slow", format!("{used:?}"));
    }
    match outcome {
        Outcome::NotTokens => report.fail("not-tokens", String::new()),
        Outcome::Panicked(message) => report.fail("panic", message),
        Outcome::Refused(errors, text) => {
            let mut counted: Vec<String> = Vec::new();
            for error in &errors {
                if error.found.code == Code::TW9001 {
                    report.fail("internal", text.clone());
                    continue;
                }
                match catch_unwind(AssertUnwindSafe(|| judge::judge(kernel, error))) {
                    Ok(Ok(verdict)) => counted.push(format!("{} {}", error.found.code, verdict.name())),
                    Ok(Err(failure)) => {
                        report.failures.push(Failure { detail: format!("{}\n{text}", failure.detail), ..failure });
                    }
                    Err(payload) => report.failures.push(Failure {
                        class: "campaign-panic".to_owned(),
                        detail: message(&*payload),
                        dims: None,
                    }),
                }
            }
            counted.sort();
            counted.dedup();
            report.counts = counted;
        }
        Outcome::Accepted(info, entries) => {
            report.accepted = true;
            let mut rng = Rng::new(seed);
            for _ in 0..SHAPES {
                let Some(dims) = sizes::sample(kernel, &mut rng) else {
                    report.counts.push("no-sizes".to_owned());
                    break;
                };
                if let Err(detail) = interpret::exactly_once(kernel, &dims) {
                    report.failures.push(Failure { class: "not-exactly-once".to_owned(), detail, dims: Some(dims) });
                    break;
                }
                match proved(&info, &entries, &values_of(&info, |name| dims.get(name)), WORK) {
                    Ok(counts) => report.counts.extend(counts),
                    Err((class, detail)) => {
                        report.failures.push(Failure { class, detail, dims: Some(dims) });
                        break;
                    }
                }
                let ran = catch_unwind(AssertUnwindSafe(|| execute::run(kernel, &info, &dims, &mut rng)));
                match ran {
                    Ok(Ok(Ran::Compared)) => report.launches += 1,
                    Ok(Ok(Ran::Empty)) => report.counts.push("not-launched".to_owned()),
                    Ok(Ok(Ran::Undetermined)) => report.counts.push("reference-undetermined".to_owned()),
                    Ok(Err(failure)) => {
                        report.failures.push(failure);
                        break;
                    }
                    Err(payload) => {
                        let class = "panic-while-running".to_owned();
                        report.failures.push(Failure { class, detail: message(&*payload), dims: Some(dims) });
                        break;
                    }
                }
            }
        }
    }
    report
}
