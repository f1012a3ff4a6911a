//! Programs that parse: the ten target kernels, and one that uses every production.

use super::accept;
use crate::source::ast::{ExprKind, Item, OPS};
use crate::source::print::print_program;
use crate::source::{TokenBuffer, TokenKind};

pub(super) const PROGRAMS: &str = include_str!("programs.txt");
pub(super) const EVERYTHING: &str = include_str!("everything.txt");

/// The tokens of a text, without spaces and layout.
fn tokens(source: &str) -> Vec<String> {
    let (tokens, _) = TokenBuffer::new(source.parse().expect("tokens of Rust"));
    (0..tokens.len()).map(|index| tokens.text(index).to_owned()).collect()
}

/// Canonical text comes back as it was: nothing is lost on the way to the tree, and nothing on the way out.
#[test]
fn printing_gives_the_source_back() {
    assert_eq!(print_program(&accept(PROGRAMS)), PROGRAMS);
    let printed = print_program(&accept(EVERYTHING));
    assert_eq!(tokens(&printed).join(" "), tokens(EVERYTHING).join(" ").replace("0xffff", "65535"));
    assert_eq!(print_program(&accept(&printed)), printed);
}

/// The test before this one parses what stands in these texts: an op that neither has could be missing in the parser.
#[test]
fn every_op_is_used() {
    let used = [tokens(PROGRAMS), tokens(EVERYTHING)].concat();
    let missing: Vec<&&str> = OPS.iter().filter(|op| !used.iter().any(|word| word == *op)).collect();
    assert!(missing.is_empty(), "ops that neither text has: {missing:?}");
}

/// Users pay for parsing in every build, and the macro may run unoptimised: 0.4 ms at opt-level 0 for all ten programs
/// on the machine this was written on. The bound is loose, since tests share their machine.
#[test]
fn parsing_is_fast() {
    let stream: proc_macro2::TokenStream = PROGRAMS.parse().expect("tokens of Rust");
    let best = (0..20)
        .map(|_| {
            let stream = stream.clone();
            let start = std::time::Instant::now();
            let (tokens, _) = TokenBuffer::new(stream);
            let flattened = start.elapsed();
            let (program, _) = super::super::parse(&tokens);
            assert_eq!(program.kernels.len(), 10);
            (start.elapsed(), flattened)
        })
        .min()
        .expect("twenty runs");
    println!("{best:?} for {} tokens", TokenBuffer::new(stream).0.len());
    assert!(best.0 < std::time::Duration::from_millis(20), "{best:?}");
}

/// What is no equation has no other numbers than those that constants may stand for.
#[test]
fn every_number_of_a_schedule_is_visited() {
    let (mut written, mut visited) = (0, 0);
    for text in [PROGRAMS, EVERYTHING] {
        let (tokens, _) = TokenBuffer::new(text.parse().expect("tokens of Rust"));
        for item in accept(text).kernels.iter_mut().flat_map(|kernel| &mut kernel.items) {
            let span = item.span();
            // These have numbers of their own.
            if matches!(item, Item::Equation(_) | Item::Tune(_)) {
                continue;
            }
            let all = span.first.0 as usize..=span.last.0 as usize;
            written += all.filter(|index| tokens.kind(*index) == Some(TokenKind::Literal)).count();
            item.numbers_mut(&mut |number| {
                number.visit_mut(&mut |expr| visited += usize::from(matches!(expr.kind, ExprKind::Int(_))));
            });
        }
    }
    assert!(written > 60, "{written}");
    assert_eq!(visited, written);
}
