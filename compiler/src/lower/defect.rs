//! What the rooms before this one let through although it cannot be built: our own bug, told as TW9001.
//!
//! **Rule.** Lowering never puts a value of its own in the place of one that it does not know. A kernel that stores
//! such a value passes every check of addresses, order and coverage, and computes something else. What is not known
//! becomes a [`Defect`], and no kernel is made.

use std::fmt;

use crate::emit::functions::NoFunction;
use crate::kernel_ir::Fault;

/// What is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Defect {
    /// A function that its type does not have, which the program room should have refused.
    Function(NoFunction),
    /// The register that holds an element of a stage is not known here; who reads it should have been refused (TW0711).
    Register(String),
    /// An axis of a stage has no value where an element is read or stored.
    Axis(String),
    /// What a read takes from a stage is not there.
    Instance(String),
    /// A variable of a fold stands outside of it.
    Variable,
    /// A size that cannot be written down, loops that do not pair up, or accesses that no barrier orders.
    Plan(&'static str),
    /// What a transformation left is no kernel: which one, and the first thing that is wrong.
    Transformed(&'static str, Fault),
}

impl From<NoFunction> for Defect {
    fn from(missing: NoFunction) -> Self {
        Self::Function(missing)
    }
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Function(NoFunction { op, element }) => write!(f, "there is no {op:?} of {element}"),
            Self::Register(stage) => write!(f, "the register of `{stage}` that is accessed is not known"),
            Self::Axis(stage) => write!(f, "an axis of `{stage}` has no value where an element is accessed"),
            Self::Instance(stage) => write!(f, "`{stage}` reads an instance that is not there"),
            Self::Variable => f.write_str("a variable of a fold stands outside of it"),
            Self::Plan(what) => f.write_str(what),
            Self::Transformed(by, Fault { line, problem }) => {
                write!(f, "{by} left no kernel: {problem:?} in statement {line}")
            }
        }
    }
}
