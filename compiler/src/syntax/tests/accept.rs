//! Programs that parse: the ten target kernels, and one that uses every production.

use super::super::TokenBuffer;
use super::super::print::print_program;
use super::accept;

const PROGRAMS: &str = include_str!("programs.txt");
const EVERYTHING: &str = include_str!("everything.txt");

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
