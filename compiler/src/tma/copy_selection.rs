//! Which copy a read takes, where a stage has several of one tensor: the product of a matrix with itself reads it
//! twice, in different places.
//!
//! **Property.** Every read of such a tensor takes exactly one of the copies. **Formula.** A copy is written with names
//! for the axes of its tensor; it fits a read whose indices mention them: along each axis the index has the name among
//! its variables, or has no variable.

use tilewright_kernel::algorithm::{Index, IndexId, Value, ValueId};

use super::loops::Reader;
use crate::diag::Diagnostics;
use crate::diag::codes::WhichCopy;
use crate::program::{Program, Stage};

/// The reads of `readers` that take `copy`: none if it is the only one of its tensor there.
///
/// # Errors
/// A read that no copy fits, or several: reported where it is the first of the rivals that asks.
pub fn served(
    program: &Program,
    copy: &Stage,
    readers: &[Reader<'_>],
    parameter: u16,
    diags: &mut Diagnostics,
) -> Result<Option<Vec<ValueId>>, ()> {
    let place = |stage: &Stage| stage.ast.clauses.at.as_ref().map(|at| at.stage.text.clone());
    let same = |other: &&Stage| other.ast.source.text == copy.ast.source.text && place(other) == place(copy);
    // What threads copy is nearer to its readers than what the accelerator does, and takes it from there.
    let by_threads = |n: usize| program.copies.iter().any(|copy| copy.stage == n);
    let rivals = program.stages.iter().enumerate().filter(|(n, _)| !by_threads(*n)).map(|(_, stage)| stage);
    let rivals: Vec<&Stage> = rivals.filter(same).collect();
    if rivals.len() < 2 {
        return Ok(None);
    }
    let is_first = rivals.first().is_some_and(|first| first.ast.name.text == copy.ast.name.text);
    let mut served = Vec::new();
    let mut failed = false;
    let accesses = readers.iter().flat_map(|reader| reader.accesses);
    let reads: Vec<_> = accesses.filter(|a| a.parameter == parameter && !a.is_write).collect();
    let only = reads.windows(2).all(|two| two[0].value == two[1].value);
    for read in reads {
        let Some(value) = read.value else { continue };
        let fitting: Vec<&&Stage> = rivals.iter().filter(|rival| fits(program, rival, value)).collect();
        match fitting[..] {
            [one] if one.ast.name.text == copy.ast.name.text => served.push(value),
            [_] => {}
            _ => {
                failed = true;
                if is_first {
                    let names = |stages: &[&&Stage]| stages.iter().map(|s| s.ast.name.text.clone()).collect();
                    let all: Vec<&&Stage> = rivals.iter().collect();
                    let none = fitting.is_empty();
                    let copies = names(if none { &all } else { &fitting });
                    let (tensor, span) = (copy.ast.source.text.clone(), copy.ast.head);
                    diags.report(WhichCopy { tensor, copies, none, only, read: read.span, span });
                }
            }
        }
    }
    if failed { Err(()) } else { Ok(Some(served)) }
}

/// Whether the names that a copy gives to the axes of its tensor are those of a read.
fn fits(program: &Program, copy: &Stage, read: ValueId) -> bool {
    let algorithm = &program.algorithm;
    let Value::Read { indices, .. } = algorithm.values[read as usize] else { return false };
    let indices = &algorithm.index_lists[indices.range()];
    indices.len() == copy.ast.axes.len()
        && indices.iter().zip(&copy.ast.axes).all(|(index, name)| {
            let mut names = Vec::new();
            mentioned(program, *index, &mut names);
            names.is_empty() || names.contains(&&*name.text)
        })
}

/// The names of the variables in an index.
fn mentioned<'a>(program: &'a Program, index: IndexId, names: &mut Vec<&'a str>) {
    let index = program.algorithm.indices[index as usize];
    if let Index::Axis(axis) = index {
        names.push(&program.algorithm.axes[axis as usize].name);
    }
    index.operands().for_each(|operand| mentioned(program, operand, names));
}
