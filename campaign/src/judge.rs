//! Refusals against the interpreter: the printed witness fails, no smaller sizes do, and the proposed fact helps.

use tilewright_compiler::diag::Code;

use crate::ast::{Dims, Kernel};
use crate::case::Failure;
use crate::compile::{Error, Outcome, compile};
use crate::interpret::{self, Access, Case};

/// How a refusal was judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The witness fails, and nothing smaller.
    Confirmed,
    /// No witness was printed, and small sizes that fail exist.
    WitnessMissed,
    /// No witness was printed, and no small sizes fail.
    Undecided,
    /// A rule about the form of the schedule; there is nothing to replay.
    Structural,
}

impl Verdict {
    /// One word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::WitnessMissed => "witness-missed",
            Self::Undecided => "undecided",
            Self::Structural => "structural",
        }
    }
}

/// The text between backticks after `lead`.
fn quoted<'a>(text: &'a str, lead: &str) -> Option<&'a str> {
    let from = text.find(&format!("{lead}`"))? + lead.len() + 1;
    let rest = &text[from..];
    Some(&rest[..rest.find('`')?])
}

/// The dimensions that a counterexample starts with, and the rest of it.
fn parse<'a>(kernel: &Kernel, text: &'a str) -> (Dims, &'a str) {
    let names = kernel.dims();
    let Some((head, rest)) = text.split_once(": ") else { return (Dims::new(), text) };
    let mut dims = Dims::new();
    for part in head.split(", ") {
        let Some((name, value)) = part.split_once(" = ") else { return (Dims::new(), text) };
        let Ok(value) = value.parse() else { return (Dims::new(), text) };
        if names.iter().any(|d| d == name) {
            dims.insert(name.to_owned(), value);
        }
    }
    (dims, rest)
}

/// The codes that say something about sizes.
const JUDGED: [Code; 7] =
    [Code::TW0201, Code::TW0204, Code::TW0401, Code::TW0402, Code::TW0404, Code::TW0901, Code::TW0902];

/// What a diagnostic claims, if the interpreter can judge it.
fn case(error: &Error) -> Option<Case> {
    let title = &error.found.title;
    let read = |lead: &str, place: usize| {
        let text = error.places.get(place).filter(|t| t.contains('[')).cloned();
        Some(Access { tensor: quoted(title, lead)?.to_owned(), text })
    };
    let axis =
        quoted(title, "vectorise ").or_else(|| quoted(title, "vectorising ")).or_else(|| quoted(title, "along "));
    let axis = || axis.map(str::to_owned);
    let own = |text: Option<&str>| text.map(str::to_owned);
    Some(match error.found.code {
        Code::TW0201 => Case::CutVector(axis()?),
        Code::TW0401 => Case::Misaligned(axis()?, read("accesses of ", 1)?),
        Code::TW0402 => Case::Straddles(axis()?, read("row of ", 1)?),
        Code::TW0404 => Case::Straddles(axis()?, read("in ", 1)?),
        Code::TW0204 => Case::Uncovered(own(quoted(title, "elements of ").or_else(|| quoted(title, "element of ")))?),
        Code::TW0901 => Case::OutOfBounds(read("outside ", 0)?),
        Code::TW0902 => Case::OutOfBounds(read("inside ", 0)?),
        _ => return None,
    })
}

/// Sizes tried when no witness was printed.
const TRIES: u32 = 400;

/// Judges one error.
///
/// # Errors
/// The witness does not fail, a smaller one does, or the help does not help.
pub fn judge(kernel: &Kernel, error: &Error) -> Result<Verdict, Failure> {
    let diagnostic = &error.found;
    let code = diagnostic.code;
    let fail = |class: &str, detail: String, dims: Option<Dims>| {
        let text = format!("{detail}\n  {}\n  {:?}", diagnostic.title, diagnostic.counterexample);
        Failure { class: format!("{class} {code}"), detail: text, dims }
    };
    help(kernel, error)?;
    let Some(case) = case(error) else {
        if JUDGED.contains(&code) {
            return Err(fail("title-not-understood", "the interpreter cannot tell what is claimed".to_owned(), None));
        }
        return Ok(Verdict::Structural);
    };
    let Some(text) = &diagnostic.counterexample else {
        let names = kernel.dims();
        let found = interpret::smallest(kernel, &case, &names, 60, TRIES);
        return Ok(if found.is_some() { Verdict::WitnessMissed } else { Verdict::Undecided });
    };
    let (printed, _) = parse(kernel, text);
    let mut dims = printed.clone();
    if interpret::complete(kernel, &mut dims).is_none() {
        return Err(fail("witness-inadmissible", "the sizes do not satisfy the facts".to_owned(), Some(dims)));
    }
    match interpret::fails(kernel, &case, &dims) {
        Ok(Some(_)) | Err(interpret::TooLarge) => {}
        Ok(None) => return Err(fail("witness-wrong", "nothing fails at the printed sizes".to_owned(), Some(dims))),
    }
    // Of an intermediate that is read several times, the finding is about one of the reads; the source does not say which.
    let read = match &case {
        Case::Misaligned(_, access) | Case::Straddles(_, access) | Case::OutOfBounds(access) => access.text.as_deref(),
        Case::CutVector(_) | Case::Uncovered(_) => None,
    };
    let is_inlined = |e: &&crate::ast::Equation| kernel.parameter(&e.targets[0]).is_none();
    if read.is_some_and(|r| {
        kernel.equations.iter().filter(is_inlined).any(|e| e.value.to_string().replace(' ', "").contains(r))
    }) {
        return Ok(Verdict::Confirmed);
    }
    let names: Vec<String> = printed.keys().cloned().collect();
    let total: i64 = printed.values().sum();
    if let Some((smaller, witness)) = interpret::smallest(kernel, &case, &names, total - 1, TRIES) {
        let detail = format!("smaller sizes fail: {smaller:?}: {witness}");
        return Err(fail("witness-not-smallest", detail, Some(dims)));
    }
    Ok(Verdict::Confirmed)
}

/// A fact that a message proposes makes that message go away, and is itself understood.
fn help(kernel: &Kernel, error: &Error) -> Result<(), Failure> {
    let diagnostic = &error.found;
    for help in &diagnostic.help {
        let Some(facts) = quoted(&help.text, "").and_then(|t| t.strip_prefix("where ")) else { continue };
        if !help.text.contains("state") {
            continue;
        }
        let mut with = kernel.clone();
        with.pasted.push(facts.to_owned());
        let fail = |detail: String| Failure {
            class: format!("help-does-not-help {}", diagnostic.code),
            detail: format!("`where {facts}`: {detail}\n  {}", diagnostic.title),
            dims: None,
        };
        match compile(&with.to_string()) {
            Outcome::Accepted(_) => {}
            Outcome::Refused(errors, report) => {
                if errors.iter().any(|e| {
                    e.found.code == diagnostic.code && e.found.title == diagnostic.title && e.places == error.places
                }) {
                    return Err(fail(format!("the error stays\n{report}")));
                }
                if let Some(new) =
                    errors.iter().find(|e| matches!(e.found.code, Code::TW0008 | Code::TW0101 | Code::TW0203))
                {
                    return Err(fail(format!("the fact itself is refused: {}", new.found.title)));
                }
            }
            Outcome::Panicked(message) => return Err(fail(format!("the compiler panicked: {message}"))),
            Outcome::NotTokens => return Err(fail("not Rust tokens".to_owned())),
        }
    }
    Ok(())
}
