//! What the command `tilewright` is made of, for the command itself and for the tools of the repository.
//!
//! | room | holds |
//! | --- | --- |
//! | [`args`] | the command line |
//! | [`source`] | Rust files, their `schedule!` invocations, findings at their places |
//! | [`findings`] | findings and their edits as JSON |
//! | [`check`], [`fix`] | `tilewright check`; its `--fix` |
//! | [`inspect`] | `tilewright inspect`, text and JSON |
//! | [`assembler`] | NVIDIA's assembler, where there is one |
//! | [`cost`] | `tilewright inspect --cost` |
//! | [`tune`] | `tilewright tune`: candidates of a schedule's constants, ranked |
//! | [`draw`] | `tilewright draw`: a picture of a kernel |
//! | [`explain`] | `tilewright explain` |
//! | [`prove`] | a kernel at sizes of all kinds: the separate checker, the emulator |
//! | [`sizes`] | the value of every dimension, and sizes that satisfy the facts |
//! | [`inputs`] | random tensors of types that are known at run time only |
//! | [`data`] | numbers that the user gives a tensor: `--data x=-1..1` |
//! | [`trial`] | one launch compared with the reference |
//! | [`run`] | `tilewright run` |
//! | [`template`] | `tilewright new` |
//! | [`emulate`] | `tilewright emulate`: PTX of any compiler on files of data |
#![forbid(unsafe_code)]

pub mod args;
pub mod assembler;
pub mod check;
pub mod cost;
pub mod data;
pub mod draw;
pub mod emulate;
pub mod explain;
pub mod findings;
pub mod fix;
pub mod inputs;
pub mod inspect;
pub mod prove;
pub mod run;
pub mod sizes;
pub mod source;
pub mod template;
pub mod trial;
pub mod tune;

/// How a command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Nothing is wrong.
    Good,
    /// The kernel or its result is wrong, or a launch was refused.
    Bad,
    /// The command was used wrongly: an unknown name, a file that cannot be read.
    Usage,
}

impl Status {
    /// The exit code.
    pub fn code(self) -> u8 {
        match self {
            Self::Good => 0,
            Self::Bad => 1,
            Self::Usage => 2,
        }
    }
}

/// What a command prints, and how it ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// For standard output.
    pub text: String,
    /// For standard error.
    pub errors: String,
    /// How it ends.
    pub status: Status,
}

impl Output {
    /// Wrong usage, with what is wrong.
    pub fn usage(message: impl std::fmt::Display) -> Self {
        Self { text: String::new(), errors: format!("error: {message}\n"), status: Status::Usage }
    }
}

/// `a, b, c`, or what to say of an empty list.
fn listed<T: AsRef<str>>(names: &[T], none: &str) -> String {
    if names.is_empty() {
        return none.to_owned();
    }
    names.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", ")
}
