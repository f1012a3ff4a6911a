//! Refusals: what cannot be run at all. What goes wrong while a kernel runs is a [`crate::Finding`].

use std::fmt;

/// Why a program cannot be decoded, a launch cannot start, or memory cannot be used.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The text is not PTX that the parser accepts.
    Parse {
        /// The parser's messages, with lines.
        message: String,
    },
    /// An instruction or declaration that the emulator does not execute.
    Unsupported {
        /// Line of the PTX text.
        line: u32,
        /// The instruction or declaration as written.
        what: String,
        /// Section of the PTX manual that describes it, empty for declarations.
        section: &'static str,
        /// More, if there is more to say.
        why: String,
    },
    /// The program has no such kernel.
    NoEntry {
        /// The name asked for.
        entry: String,
        /// The kernels it has.
        known: Vec<String>,
    },
    /// The program has no such variable.
    NoSymbol {
        /// The name asked for.
        name: String,
        /// The variables it has in global and constant memory.
        known: Vec<String>,
    },
    /// Grid or block are not launchable.
    BadShape {
        /// What is wrong, with numbers.
        message: String,
    },
    /// Not one argument for each parameter.
    ArgumentCount {
        /// Parameters of the kernel.
        expected: usize,
        /// Arguments given.
        given: usize,
    },
    /// An argument's bytes do not fill its parameter.
    ArgumentSize {
        /// Name of the parameter.
        parameter: String,
        /// Its size in bytes.
        expected: u64,
        /// Bytes given.
        given: u64,
    },
    /// More shared memory than a CTA can have.
    SharedMemory {
        /// Bytes asked for.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// An address range that is not inside one allocation.
    BadAddress {
        /// First address.
        address: u64,
        /// Bytes.
        bytes: u64,
    },
    /// No room for an allocation.
    OutOfMemory {
        /// Bytes asked for.
        bytes: u64,
        /// Bytes in use.
        used: u64,
        /// Bytes in all.
        capacity: u64,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Parse { message } => write!(f, "the PTX text does not parse: {message}"),
            Error::Unsupported { line, what, section, why } => {
                write!(f, "line {line}: the emulator does not support `{what}`")?;
                if !section.is_empty() {
                    write!(f, " (PTX manual {section})")?;
                }
                if why.is_empty() { Ok(()) } else { write!(f, ": {why}") }
            }
            Error::NoEntry { entry, known } => {
                write!(f, "there is no kernel `{entry}` in the program; it has {}", Listed(known))
            }
            Error::NoSymbol { name, known } => {
                write!(f, "there is no variable `{name}` in the program; it has {}", Listed(known))
            }
            Error::BadShape { message } => f.write_str(message),
            Error::ArgumentCount { expected, given } => {
                write!(f, "the kernel has {expected} parameters, and {given} arguments were given")
            }
            Error::ArgumentSize { parameter, expected, given } => {
                write!(f, "parameter `{parameter}` has {expected} bytes, and its argument has {given}")
            }
            Error::SharedMemory { bytes, limit } => {
                write!(f, "the launch needs {bytes} bytes of shared memory a block; the limit is {limit}")
            }
            Error::BadAddress { address, bytes: 0 } => write!(f, "no allocation starts at {address:#x}"),
            Error::BadAddress { address, bytes } => {
                write!(f, "the {bytes} bytes from {address:#x} are not inside one allocation")
            }
            Error::OutOfMemory { bytes, used, capacity } => {
                write!(f, "cannot allocate {bytes} bytes of device memory: {used} of {capacity} are in use")
            }
        }
    }
}

impl std::error::Error for Error {}

struct Listed<'a>(&'a [String]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none");
        }
        for (i, name) in self.0.iter().enumerate() {
            write!(f, "{}`{name}`", if i == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}
