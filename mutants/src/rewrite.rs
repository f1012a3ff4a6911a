//! The source with every mutant in it, each behind its switch: one build serves all of them.

use std::ops::Range;

use crate::sites::{Form, Site};

/// A site with the numbers of its alternatives; those that do not compile are left out.
#[derive(Clone, Debug)]
pub struct Numbered {
    /// The site.
    pub site: Site,
    /// The number of each alternative that is written.
    pub numbers: Vec<Option<u32>>,
}

/// A changed file, and where in it each mutant is.
#[derive(Clone, Debug, Default)]
pub struct Rewritten {
    /// The text.
    pub text: String,
    /// Bytes of the text that only exist for one mutant.
    pub own: Vec<(Range<usize>, u32)>,
    /// Bytes of the text of each site, with its mutants.
    pub around: Vec<(Range<usize>, Vec<u32>)>,
}

/// Writes a file with its sites; `sites` are in the order of [`sites`](crate::sites::sites()).
pub fn rewrite(text: &str, sites: &[Numbered]) -> Rewritten {
    let mut out = Rewritten::default();
    let mut next = 0;
    part(text, 0..text.len(), sites, &mut next, &mut out);
    out
}

/// Writes a range, with all sites inside it.
fn part(text: &str, range: Range<usize>, sites: &[Numbered], next: &mut usize, out: &mut Rewritten) {
    let mut at = range.start;
    while let Some(Numbered { site, numbers }) = sites.get(*next)
        && site.bytes.end <= range.end
    {
        *next += 1;
        out.text.push_str(&text[at..site.bytes.start]);
        at = site.bytes.end;
        let start = out.text.len();
        let written: Vec<(u32, &String)> =
            numbers.iter().zip(&site.alternatives).filter_map(|(n, a)| Some(((*n)?, &a.1))).collect();
        if written.is_empty() {
            part(text, site.bytes.clone(), sites, next, out);
            continue;
        }
        let on = |number: u32| format!("tilewright_kernel::switch::on({number})");
        let own = |out: &mut Rewritten, text: String, number: u32| {
            let from = out.text.len();
            out.text.push_str(&text);
            out.own.push((from..out.text.len(), number));
        };
        match site.form {
            // What was written comes first, so that types are inferred from it.
            Form::Expression => {
                let none: Vec<String> = written.iter().map(|w| format!("!{}", on(w.0))).collect();
                out.text.push_str(&format!("(if {} {{ ", none.join(" && ")));
                part(text, site.bytes.clone(), sites, next, out);
                out.text.push_str(" }");
                for (n, (number, alternative)) in written.iter().enumerate() {
                    let is_last = n + 1 == written.len();
                    let when = if is_last { String::new() } else { format!(" if {}", on(*number)) };
                    own(out, format!(" else{when} {{ {alternative} }}"), *number);
                }
                out.text.push(')');
            }
            Form::Statement => {
                own(out, format!("if !{} {{ ", on(written[0].0)), written[0].0);
                part(text, site.bytes.clone(), sites, next, out);
                out.text.push_str(" }");
            }
            Form::Start => {
                for (number, alternative) in &written {
                    own(out, format!("if {} {{ {alternative} }} ", on(*number)), *number);
                }
            }
            Form::Iteration => {
                out.text.push('(');
                part(text, site.bytes.clone(), sites, next, out);
                let number = written[0].0;
                own(out, format!(").into_iter().skip(usize::from({}))", on(number)), number);
            }
        }
        out.around.push((start..out.text.len(), written.iter().map(|w| w.0).collect()));
    }
    out.text.push_str(&text[at..range.end]);
}

impl Rewritten {
    /// The mutants that an error of the Rust compiler between these bytes is about: the one whose own text it is,
    /// otherwise those of the smallest site around it, otherwise all that it covers.
    pub fn blamed(&self, bytes: &Range<usize>) -> Vec<u32> {
        let inside = |range: &Range<usize>| range.start <= bytes.start && bytes.end <= range.end;
        if let Some((_, number)) = self.own.iter().filter(|o| inside(&o.0)).min_by_key(|o| o.0.len()) {
            return vec![*number];
        }
        if let Some((_, numbers)) = self.around.iter().filter(|a| inside(&a.0)).min_by_key(|a| a.0.len()) {
            return numbers.clone();
        }
        self.between(bytes)
    }

    /// All mutants between these bytes.
    pub fn between(&self, bytes: &Range<usize>) -> Vec<u32> {
        let covered = self.around.iter().filter(|a| bytes.start <= a.0.start && a.0.end <= bytes.end);
        covered.flat_map(|a| a.1.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sites::{Variants, sites, variants};

    fn rewritten(text: &str, without: &[u32]) -> Rewritten {
        let file = syn::parse_file(text).expect("Rust");
        let mut units = Variants::new();
        variants(&file, &mut units);
        let mut number = 0;
        let numbered = |site: Site| {
            let numbers = (site.alternatives.iter())
                .map(|_| {
                    number += 1;
                    (!without.contains(&number)).then_some(number)
                })
                .collect();
            Numbered { site, numbers }
        };
        let all: Vec<Numbered> = sites(text, &file, &units).into_iter().map(numbered).collect();
        rewrite(text, &all)
    }

    #[test]
    fn nested_sites_are_written_inside_each_other() {
        let text = "fn f(a: i64, b: i64) -> i64 { a + b * 2 }";
        let out = rewritten(text, &[]);
        syn::parse_file(&out.text).expect(&out.text);
        let expected = "fn f(a: i64, b: i64) -> i64 { if tilewright_kernel::switch::on(1) { return 0; } \
            (if !tilewright_kernel::switch::on(2) { a + (if !tilewright_kernel::switch::on(3) { b * \
            (if !tilewright_kernel::switch::on(4) { 2 } else { 3 }) } else { b + 2 }) } else { a - b * 2 }) }";
        assert_eq!(out.text, expected);
        let error = out.text.find("b + 2").expect("there");
        assert_eq!(out.blamed(&(error..error + 5)), [3]);
        let inner = out.text.find("b * (").expect("there");
        assert_eq!(out.blamed(&(inner..inner + 1)), [3], "the smallest site around it");
        assert_eq!(out.blamed(&(0..out.text.len())), [1, 4, 3, 2]);
    }

    #[test]
    fn nothing_is_left_of_what_does_not_compile() {
        let text = "fn f(v: &mut Vec<i64>) { for x in 0..9 { v.push(x); } if v.is_empty() { return; } v.clear(); }";
        let all: Vec<u32> = (1..40).collect();
        assert_eq!(rewritten(text, &all).text, text);
        syn::parse_file(&rewritten(text, &[]).text).expect("Rust");
    }

    #[test]
    fn what_is_not_run_or_not_an_expression_stays() {
        for text in [
            "const N: usize = 3; static M: [u8; 2] = [1, 2];",
            "const fn f() -> u32 { 1 + 2 }",
            "#[cfg(test)] mod tests { fn f() { g(1); } }",
            "#[test] fn t() { assert!(1 == 2); }",
            "fn f(x: [u8; 4]) { match x { [1, ..] | [_, 2..=3, ..] => {} _ => {} } }",
            "enum E { A = 1, B }",
        ] {
            let out = rewritten(text, &[]).text;
            let started = out.replace("if tilewright_kernel::switch::on(1) { return; } ", "");
            assert_eq!(started, text);
        }
    }

    #[test]
    fn chains_that_bind_keep_what_they_bind() {
        let text = "fn f(a: Option<i64>) -> char { if let Some(x) = a && x < 3 { 'x' } else { 'y' } }";
        let out = rewritten(text, &[]);
        syn::parse_file(&out.text).expect(&out.text);
        assert!(out.text.contains("if let Some(x) = a && (if !tilewright_kernel::switch::on("), "{}", out.text);
    }

    #[test]
    fn variants_go_round() {
        let out = rewritten("enum Op { Add, Sub, Of(u32) } fn f() -> Op { Op::Sub }", &[]).text;
        assert!(out.ends_with("{ (if !tilewright_kernel::switch::on(1) { Op::Sub } else { Op::Add }) }"), "{out}");
    }
}
