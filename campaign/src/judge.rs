//! Refusals against the interpreter: the printed witness fails, no smaller sizes do, and the proposed fact helps.

use tilewright_compiler::diag::Code;

use crate::ast::{Dims, Kernel, Node, Value};
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

/// Whether an intermediate whose domain is inferred is read with `or`.
fn reads_inferred_domain(kernel: &Kernel) -> bool {
    let is_inferred =
        |name: &str| kernel.parameter(name).is_none() && kernel.equation(name).is_some_and(|e| !e.domain_written);
    fn any(value: &Value, test: &dyn Fn(&Value) -> bool) -> bool {
        test(value) || value.operands().into_iter().any(|v| any(v, test))
    }
    let guarded = |v: &Value| matches!(&v.node, Node::Read { tensor, or: Some(_), .. } if is_inferred(tensor));
    kernel.equations.iter().any(|e| any(&e.value, &guarded))
}

/// Whether a claim is told of an element of an intermediate whose domain is inferred.
fn is_of_inferred_domain(kernel: &Kernel, claim: &str) -> bool {
    let name = claim.split('[').next().unwrap_or_default();
    kernel.parameter(name).is_none() && kernel.equation(name).is_some_and(|e| !e.domain_written)
}

/// Whether another equation reads what this one computes.
fn is_read(kernel: &Kernel, equation: &crate::ast::Equation) -> bool {
    let reads = |e: &crate::ast::Equation, t: &String| e.value.to_string().contains(&format!("{t}["));
    equation.targets.iter().any(|t| kernel.equations.iter().any(|e| reads(e, t)))
}

/// What a counterexample says after the sizes, as the interpreter says it.
fn claimed(case: &Case, rest: &str) -> String {
    let Case::OutOfBounds(_) = case else { return rest.to_owned() };
    // `y[0] with k = 1 reads t[2], which reads x[3], where `c``: the element computed and the element read.
    let path = rest.split(", where ").next().unwrap_or(rest);
    let element = path.split_inclusive(']').next().unwrap_or(path);
    let read = path.rsplit("reads ").next().unwrap_or(path);
    format!("{element} reads {read}")
}

/// What the search for a witness goes by: not the strides of outputs, which follow from what else there is.
fn sizes_of(kernel: &Kernel, mut names: Vec<String>) -> Vec<String> {
    let strides = kernel.output_strides();
    names.retain(|name| !strides.contains(name));
    names
}

/// Points visited in search of smaller sizes, or of any if no witness was printed.
const POINTS: i64 = 1_500_000;

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
        return match structural(kernel, error) {
            Some(false) => Err(fail("claim-wrong", "the interpreter does not find it so".to_owned(), None)),
            Some(true) => Ok(Verdict::Confirmed),
            None => Ok(Verdict::Structural),
        };
    };
    let Some(text) = &diagnostic.counterexample else {
        let names = sizes_of(kernel, kernel.dims());
        let found = interpret::smallest(kernel, &case, &names, 60, POINTS);
        return Ok(if found.is_some() { Verdict::WitnessMissed } else { Verdict::Undecided });
    };
    if reads_inferred_domain(kernel) && matches!(case, Case::OutOfBounds(_)) {
        return Ok(Verdict::Structural); // where `or` begins is then for the compiler's rules of ranges to say
    }
    let (printed, rest) = parse(kernel, text);
    let mut dims = printed.clone();
    if interpret::complete(kernel, &mut dims).is_none() {
        return Err(fail("witness-inadmissible", "the sizes do not satisfy the facts".to_owned(), Some(dims)));
    }
    let claim = claimed(&case, rest);
    if is_of_inferred_domain(kernel, &claim) && matches!(case, Case::OutOfBounds(_)) {
        return Ok(Verdict::Structural); // and so is which elements there are
    }
    match interpret::find(kernel, &case, &dims, &|w| claim.starts_with(w.as_str())) {
        Ok(Some(_)) | Err(interpret::TooLarge) => {}
        Ok(None) => {
            let real = interpret::fails(kernel, &case, &dims);
            let detail = format!("the printed point does not fail; at these sizes: {real:?}");
            return Err(fail("witness-wrong", detail, Some(dims)));
        }
    }
    // Points are tried in the order of the loops, by both.
    if let (Case::CutVector(_), Ok(Some(first))) = (&case, interpret::fails(kernel, &case, &dims))
        && !claim.starts_with(&first)
    {
        return Err(fail("witness-not-smallest", format!("a smaller point fails: {first}"), Some(dims)));
    }
    // Of a read outside that stands in several places, the finding is about one of them; the source does not say which.
    if let Case::OutOfBounds(Access { text: Some(read), .. }) = &case {
        let is_inlined = |e: &&crate::ast::Equation| kernel.computed(&e.targets[0]).is_some() && is_read(kernel, e);
        let plain = |text: &str| text.replace([' ', '(', ')'], "");
        let times = |e: &crate::ast::Equation| plain(&e.value.to_string()).matches(&plain(read)).count();
        if kernel.equations.iter().filter(is_inlined).any(|e| times(e) > 0)
            || kernel.equations.iter().map(times).sum::<usize>() > 1
        {
            return Ok(Verdict::Confirmed);
        }
    }
    let names = sizes_of(kernel, printed.keys().cloned().collect());
    let total: i64 = names.iter().map(|name| printed[name]).sum();
    if let Some((smaller, witness)) = interpret::smallest(kernel, &case, &names, total - 1, POINTS) {
        let detail = format!("smaller sizes fail: {smaller:?}: {witness}");
        return Err(fail("witness-not-smallest", detail, Some(dims)));
    }
    Ok(Verdict::Confirmed)
}

/// Codes about the form of a schedule that numbers decide: true if the numbers agree, none if there is nothing to
/// replay.
///
/// The others have nothing to replay: TW00 and TW01 are about words, names and types; TW0202, TW0205, TW0206 and TW0403
/// quote the extent that they refuse; TW0207 and TW0406 refuse what is not known while compiling, whatever the sizes
/// are; TW0702, TW0703 and TW1008 are about which axis belongs to a reduction. That their edits help is checked for
/// all.
fn structural(kernel: &Kernel, error: &Error) -> Option<bool> {
    let title = &error.found.title;
    let number = || title.split(|c: char| !c.is_ascii_digit()).find_map(|w| w.parse::<i64>().ok());
    let mut dims = Dims::new();
    interpret::complete(kernel, &mut dims)?;
    let domains = interpret::domains(kernel, &dims)?;
    let bound = |d: &interpret::Domain, unit: &str| d.leaves.iter().any(|l| d.axes[*l].unit == Some(unit));
    match error.found.code {
        // Nothing tells the threads apart, or the lanes of a warp.
        Code::TW0601 => {
            let stage = quoted(title, "element of ")?;
            domains.iter().find(|d| d.stage == stage).map(|d| !bound(d, "thread"))
        }
        // A bound extent need not be a literal: some stage binds so many, or more for larger sizes.
        Code::TW0602 => {
            let named = |unit: &str| title.contains(&format!(" {unit}s are"));
            let unit = ["warpgroup", "warp"].into_iter().find(|unit| named(unit)).unwrap_or("thread");
            Some(domains.iter().any(|d| bound(d, unit) && d.count(unit) <= number().unwrap_or(0)))
        }
        Code::TW0603 => {
            let has = |unit: &str, size: i64| {
                title.contains(&format!("whole {unit}s"))
                    && number().is_some_and(|n| n % size != 0)
                    && domains.iter().any(|d| bound(d, "warp") || bound(d, "warpgroup"))
            };
            Some(has("warp", 32) || has("warpgroup", 128))
        }
        Code::TW0405 => {
            let (axis, inside) = (quoted(title, "")?, quoted(title, "over ")?);
            domains.iter().find(|d| d.vector.is_some_and(|v| d.axes[v].name == axis)).map(|d| {
                let at = |name: &str| d.leaves.iter().position(|l| d.axes[*l].name == name);
                at(inside) > at(axis) && at(inside).is_some_and(|k| d.axes[d.leaves[k]].unit.is_none())
            })
        }
        _ => None,
    }
}

/// A proposed edit makes its message go away, is itself understood, and if it was the only message, leaves nothing of
/// its kind.
fn help(kernel: &Kernel, error: &Error) -> Result<(), Failure> {
    let diagnostic = &error.found;
    for (text, source) in &error.edited {
        let fail = |detail: String| Failure {
            class: format!("help-does-not-help {}", diagnostic.code),
            detail: format!("`{text}`: {detail}\n  {}\nedited:\n{source}", diagnostic.title),
            dims: None,
        };
        match compile(source) {
            Outcome::Accepted(..) => {}
            Outcome::Refused(errors, report) => {
                let before = match compile(&kernel.to_string()) {
                    Outcome::Refused(before, _) => before,
                    _ => Vec::new(),
                };
                // Several places may be worded alike; the edit is for one of them.
                let same = |e: &&Error| {
                    e.found.code == diagnostic.code && e.found.title == diagnostic.title && e.places == error.places
                };
                if errors.iter().filter(same).count() >= before.iter().filter(same).count() {
                    return Err(fail(format!("the error stays\n{report}")));
                }
                // An edit may uncover what is checked later; it may not be wrong itself.
                let states_a_fact = text.contains("`where ");
                let is_wrong = |e: &&Error| match e.found.code {
                    Code::TW0202 => true,
                    Code::TW0203 => states_a_fact,
                    code => code < Code::TW0201,
                };
                if text.starts_with("did you mean") {
                    continue; // a guess at a name; it promises no more
                }
                let known = |e: &Error| before.iter().any(|b| b.found.code == e.found.code);
                if let Some(new) = errors.iter().find(|e| is_wrong(e) && !known(e)) {
                    return Err(fail(format!("the edit itself is refused: {}", new.found.title)));
                }
            }
            Outcome::Panicked(message) => return Err(fail(format!("the compiler panicked: {message}"))),
            Outcome::NotTokens => return Err(fail("not Rust tokens".to_owned())),
        }
    }
    Ok(())
}
