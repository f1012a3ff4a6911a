//! The `schedule!` of the examples, found without a parser of Rust: the examples are ours.

use proc_macro2::{TokenStream, TokenTree};

/// Of each example, by name, the text inside the braces of each `schedule!`.
pub fn invocations() -> Vec<(String, String)> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let mut found = Vec::new();
    for path in std::fs::read_dir(folder).expect("examples").flatten().map(|entry| entry.path()) {
        if path.extension().is_some_and(|e| e == "rs") {
            let text = std::fs::read_to_string(&path).expect("an example");
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            bodies(&name, text.parse().expect("Rust"), &mut found);
        }
    }
    found.sort();
    found
}

fn bodies(example: &str, tokens: TokenStream, found: &mut Vec<(String, String)>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        let TokenTree::Group(group) = token else { continue };
        match &tokens[..at] {
            [.., TokenTree::Ident(name), TokenTree::Punct(bang)] if name == "schedule" && bang.as_char() == '!' => {
                found.push((example.to_owned(), group.stream().to_string()));
            }
            _ => bodies(example, group.stream(), found),
        }
    }
}
