//! What is made of the entry points of a kernel, each piece without what the others find: PTX, the registers that
//! threads hold, the trial, and what is said of speed. Two threads share the pieces.

use tilewright_kernel::info::KernelInfo;
use tilewright_ptx::Module;
use tilewright_theory::side_by_side::{all, piece};

use crate::banks;
use crate::diag::Diagnostics;
use crate::emit::{Emission, EmitError, EntryPoint};
use crate::extent::Facts;
use crate::kernel_ir::{HeldIn, Kernel, held};
use crate::lower::Entry;
use crate::plan::Analysed;
use crate::plan::cycles::Use;
use crate::program::Program;
use crate::trial::{Trial, Wrong};

/// Statements of entry points for which a thread is worth its time.
const MANY: usize = 256;

/// What was made.
pub(crate) struct Made<'k> {
    /// What threads hold, for each entry point.
    pub held: Vec<Vec<HeldIn<'k>>>,
    pub entry_points: Result<Vec<EntryPoint>, EmitError>,
    /// Whether the trial decided everything where a size is 0.
    pub tried: Result<bool, Box<Wrong>>,
    /// How each stage uses banks, and what is to be said of speed.
    pub banks: (Vec<Vec<Use>>, Diagnostics),
}

/// What is made from.
#[derive(Clone, Copy)]
pub(crate) struct Input<'a, 'k> {
    pub program: &'a Program,
    pub facts: &'a Facts,
    pub stages: &'a [Analysed],
    pub has_roles: bool,
    pub entries: &'k [Entry],
}

impl<'k> Made<'k> {
    pub(crate) fn of(from: Input<'_, 'k>, info: &KernelInfo, emission: &Emission<'_>, trial: &Trial) -> Self {
        let Input { program, facts, stages, has_roles, entries } = from;
        let speed = &banks::Parts { program, facts, analysed: stages, has_roles };
        let mut found: Vec<_> = (0..speed.count()).map(|_| None).collect();
        let parts = trial.parts(info, entries);
        let mut tried: Vec<_> = parts.iter().map(|_| None).collect();
        let mut held_in: Vec<_> = entries.iter().map(|_| None).collect();
        let mut entry_points: Vec<_> = entries.iter().map(|_| None).collect();
        let emitted = entry_points.iter_mut().enumerate().map(|(at, place)| piece(place, move || emission.entry(at)));
        let mut pieces: Vec<_> = emitted.collect();
        pieces.extend(tried.iter_mut().zip(parts).map(|(place, part)| piece(place, move || part.run(info))));
        let of_speed = |(n, place)| piece(place, move || speed.find(n));
        pieces.extend(found.iter_mut().enumerate().map(of_speed));
        pieces.extend(held_in.iter_mut().zip(entries).map(|(place, entry)| piece(place, || held(&entry.kernel))));
        all(are_many(entries), pieces);
        let done = "every piece is done";
        Self {
            held: held_in.into_iter().map(|held| held.expect(done)).collect(),
            entry_points: entry_points.into_iter().map(|entry_point| entry_point.expect(done)).collect(),
            tried: Trial::outcome(tried.into_iter().map(|part| part.expect(done))),
            banks: speed.all(found.into_iter().map(|part| part.expect(done))),
        }
    }
}

/// The text of a module, and what `more` gives.
pub(crate) fn printed<R: Send>(module: Module, entries: &[Entry], more: impl FnOnce() -> R + Send) -> (String, R) {
    let (module, parts) = module.in_parts(MANY);
    let (mut texts, mut other) = (parts.iter().map(|_| None).collect::<Vec<_>>(), None);
    let mut pieces = vec![piece(&mut other, more)];
    pieces.extend(texts.iter_mut().zip(parts).map(|(place, part)| piece(place, || module.text_of(part))));
    all(are_many(entries), pieces);
    (texts.into_iter().flatten().collect(), other.expect("every piece is done"))
}

/// Whether entry points have enough statements.
fn are_many(entries: &[Entry]) -> bool {
    let statements = |kernel: &Kernel| kernel.regions.iter().map(|region| region.statements.len()).sum::<usize>();
    entries.iter().map(|entry| statements(&entry.kernel)).sum::<usize>() >= MANY
}
