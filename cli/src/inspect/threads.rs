//! Which threads of a block run a stage, or start a copy.

use tilewright_compiler::banks::count::Walk;
use tilewright_compiler::kernel_ir::Kernel;
use tilewright_compiler::plan::Analysed;
use tilewright_kernel::KernelInfo;
use tilewright_kernel::target::WARP;

/// The threads of the block that have an iteration of the stage with a position, as runs: first thread, how many. None
/// where the stage's loops do not tell.
pub fn of_stage(info: &KernelInfo, entry: &Kernel, stages: &[Analysed], at: usize) -> Option<Vec<(u32, u32)>> {
    let walk = Walk::new(stages, at, info.dims.len())?;
    let stage = &stages[at].stage;
    let first = stage.role.and_then(|role| entry.roles().get(role)).map_or(0, |role| role.warps.start * WARP);
    let busy = (0..stage.distribution.block).filter(|thread| walk.has_work(*thread));
    Some(runs(busy.map(|thread| first + thread)))
}

/// The one thread that starts the copies of a role, or of a block without roles: the first one stands for it, since
/// the machine elects it.
pub fn elected(entry: &Kernel, role: Option<usize>) -> (u32, u32) {
    (role.and_then(|role| entry.roles().get(role)).map_or(0, |role| role.warps.start * WARP), 1)
}

/// Ascending numbers as runs.
fn runs(numbers: impl Iterator<Item = u32>) -> Vec<(u32, u32)> {
    let mut all: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match all.last_mut() {
            Some((first, count)) if *first + *count == number => *count += 1,
            _ => all.push((number, 1)),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    #[test]
    fn neighbours_are_one_run() {
        assert_eq!(super::runs([0, 1, 2, 5, 7, 8].into_iter()), [(0, 3), (5, 1), (7, 2)]);
        assert_eq!(super::runs([].into_iter()), []);
    }
}
