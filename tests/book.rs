//! The book in `docs`: its pages say what the command line and the compiler say today, every page is in the table of
//! contents, every link leads somewhere, and every kernel in it computes what its equations say.

use std::collections::BTreeSet;

use tilewright_cli::assembler::assembler;
use tilewright_cli::source::SourceFile;
use tilewright_compiler::diag::Code;
use xtask::book::{self, links};

/// The kernel of the page `first-kernel.md`, with its own tests.
#[path = "../docs/first_kernel.rs"]
mod first_kernel;
#[path = "support/mod.rs"]
mod support;

/// A picture in the documentation of a kernel, as `docs/rustdoc.md` has it.
mod pictured {
    tilewright::schedule! {
        /// y = 2·x
        ///
        #[doc = include_str!("../docs/pictures/bias_gelu.svg")]
        pub kernel Pictured(x: f32[N]) -> (y: f32[N]) {
            y[i] = 2.0 * x[i];
            schedule y { split i by 128 -> b, t; bind b: grid; bind t: thread; }
        }
    }

    #[test]
    fn it_is_a_kernel_all_the_same() {
        assert_eq!(Pictured::KERNEL.name, "Pictured");
    }
}

/// Pages outside of `docs` whose links are followed, too.
const OTHERS: [&str; 4] = ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "examples/README.md"];
/// The most bytes of all pictures.
const PICTURES: usize = 1_500_000;

fn pages() -> Vec<String> {
    book::files().unwrap_or_else(|e| panic!("{e}"))
}

fn text(file: &str) -> String {
    book::read(file).unwrap_or_else(|e| panic!("{e}"))
}

/// Pictures that pages show, from the root.
fn shown() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for page in pages() {
        let links = links::links(&text(&page)).into_iter();
        found.extend(
            links.filter_map(|l| links::resolved(&page, &l.target).ok()??.0.ends_with(".svg").then_some(l.target)),
        );
    }
    found.into_iter().map(|target| target.rsplit('/').next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn pages_and_pictures_are_what_programs_say() {
    book::enter().unwrap_or_else(|e| panic!("{e}"));
    let mut wrong = Vec::new();
    for page in book::all().unwrap_or_else(|e| panic!("{e}")) {
        wrong.extend(book::compare(&page.name, &text(&page.name), &page.text, "book").err());
        for (name, picture) in &page.pictures {
            wrong.extend(book::compare(name, &book::read(name).unwrap_or_default(), picture, "book").err());
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    if assembler().is_none() {
        println!("skipped: the costs of the book, which want NVIDIA's assembler in PTXAS");
    }
}

#[test]
fn pictures_are_shown_and_small() {
    let folder = xtask::root().join("docs/pictures");
    let files = xtask::kernels::files(&folder, "svg").unwrap_or_else(|e| panic!("{e}"));
    let name = |path: &std::path::PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    assert_eq!(files.iter().map(name).collect::<BTreeSet<_>>(), shown(), "pictures that no page shows");
    let bytes: u64 = files.iter().map(|path| std::fs::metadata(path).map_or(0, |m| m.len())).sum();
    assert!((1..=PICTURES as u64).contains(&bytes), "{bytes} bytes of pictures");
}

#[test]
fn every_page_is_in_the_table_of_contents() {
    let summary = "docs/SUMMARY.md";
    let found = links::links(&text(summary)).into_iter().map(|link| {
        let place = links::resolved(summary, &link.target).unwrap_or_else(|e| panic!("{e}"));
        place.unwrap_or_else(|| panic!("{} is no page", link.target)).0
    });
    let found: Vec<String> = found.collect();
    let once: BTreeSet<&str> = found.iter().map(String::as_str).collect();
    assert_eq!(once.len(), found.len(), "a page stands there twice");
    let pages = pages();
    assert_eq!(pages.iter().map(String::as_str).filter(|page| *page != summary).collect::<BTreeSet<_>>(), once);
}

#[test]
fn links_lead_somewhere() {
    let (mut wrong, mut followed) = (Vec::new(), 0);
    for page in pages().into_iter().chain(OTHERS.map(str::to_owned)) {
        for link in links::links(&text(&page)) {
            let at = format!("{page}:{}: `{}`", link.line, link.target);
            let (path, anchor) = match links::resolved(&page, &link.target) {
                Ok(Some(place)) => place,
                Ok(None) => continue,
                Err(why) => {
                    wrong.push(why);
                    continue;
                }
            };
            followed += 1;
            if !xtask::root().join(&path).exists() {
                wrong.push(format!("{at}: there is no {path}"));
            } else if page.starts_with("docs/") && path.ends_with(".md") && !path.starts_with("docs/") {
                // mdBook takes every such link for a page of the book.
                wrong.push(format!("{at}: a page outside of the book; link to its folder"));
            } else if page.starts_with("docs/") && page != "docs/SUMMARY.md" && path.ends_with("README.md") {
                wrong.push(format!("{at}: mdBook calls that page `index`, and follows no link to it"));
            } else if let Some(anchor) = anchor
                && !links::anchors(&text(&path)).contains(&anchor)
            {
                wrong.push(format!("{at}: {path} has no heading #{anchor}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(followed > 80, "{followed} links");
}

/// What is Rust in a page is taken from a file that is tested, or a documentation test of this package.
#[test]
fn no_rust_stands_untested() {
    let tested = text("tests/lib.rs");
    let mut wrong = Vec::new();
    for page in pages().into_iter().chain(OTHERS.map(str::to_owned)).filter(|page| page != "docs/ladder.md") {
        let mut named = false;
        let mut is_code = false;
        for (number, line) in (1..).zip(text(&page).lines()) {
            if let Some(language) = line.strip_prefix("```").filter(|_| !is_code) {
                let is_tested = language != "rust" || tested.contains(&format!("include_str!(\"../{page}\")"));
                if (language.starts_with("rust,") && !named) || !is_tested {
                    wrong.push(format!("{page}:{number}: ```{language}"));
                }
                named = false;
            } else if line.starts_with("<!-- kernel ") || line.starts_with("<!-- tests ") {
                named = true;
            }
            is_code ^= line.starts_with("```");
        }
    }
    assert!(wrong.is_empty(), "Rust that nothing tests:\n{}", wrong.join("\n"));
}

#[test]
fn codes_are_those_that_there_are() {
    let codes: BTreeSet<String> = Code::ALL.iter().map(ToString::to_string).collect();
    for page in pages() {
        for after in text(&page).split("TW").skip(1) {
            let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
            let code = format!("TW{digits}");
            assert!(digits.len() != 4 || codes.contains(&code), "{page} names {code}");
        }
    }
}

/// The sizes of each kernel that only this book has, in the order of its dimensions: one element, no elements, sizes
/// that no tile divides, several tiles.
fn sizes(kernel: &str) -> &'static [&'static [i64]] {
    match kernel {
        "Center" => &[&[1, 4], &[3, 1028], &[2, 4096], &[0, 8]],
        "BiasGelu" | "SwiGlu" => &[&[1, 8], &[5, 24], &[3, 1000], &[0, 8]],
        "Rope" => &[&[1, 1, 8], &[5, 3, 24], &[2, 7, 128], &[3, 0, 8]],
        "Adam" | "Dropout" => &[&[4], &[1000], &[2052], &[0]],
        "ResidualRmsNorm" => &[&[1, 8], &[3, 2056], &[2, 8192], &[0, 8]],
        "LogSoftmaxLoss" => &[&[1, 4], &[3, 1028], &[2, 2048], &[0, 4]],
        "ArgMax" => &[&[1, 1], &[9, 100], &[17, 33], &[0, 5]],
        "GroupNorm" => &[&[1, 1, 1, 4], &[2, 2, 3, 20], &[1, 3, 5, 260], &[0, 2, 1, 4]],
        "Embedding" => &[&[1, 1, 8], &[5, 7, 24], &[3, 2, 1304], &[0, 2, 8], &[3, 0, 8]],
        "BatchedTranspose" => &[&[1, 1, 1], &[2, 33, 34], &[1, 64, 5], &[2, 0, 3]],
        "Dequantise" => &[&[1, 64], &[3, 192], &[5, 1024], &[0, 64]],
        "Depthwise" => &[&[1, 1, 1, 1], &[2, 2, 9, 33], &[1, 3, 8, 64], &[1, 0, 3, 3]],
        "MaxPool" => &[&[1, 1, 1, 4], &[2, 2, 3, 8], &[1, 3, 5, 36], &[1, 0, 2, 4]],
        "Histogram" => &[&[16], &[4080], &[4112], &[0]],
        "SparseRows" => &[&[2, 9, 3, 1], &[20, 200, 7, 19], &[10, 0, 4, 9], &[1, 5, 5, 0]],
        "MatVec" => &[&[1, 8], &[9, 520], &[17, 256], &[3, 0]],
        _ => panic!("no sizes of {kernel}"),
    }
}

#[test]
fn kernels_compute_what_their_equations_say() {
    let mut count = 0;
    let mut files = xtask::kernels::files(&xtask::root().join("docs/cookbook"), "rs").unwrap_or_else(|e| panic!("{e}"));
    files.push(xtask::root().join("docs/first_kernel.rs"));
    for path in files {
        let file = SourceFile::read(&path.to_string_lossy()).unwrap_or_else(|e| panic!("{e}"));
        let findings = file.findings();
        assert_eq!((findings.errors, findings.warnings), (0, 0), "{}", findings.text);
        for found in file.kernels() {
            let name = found.kernel.info.as_ref().map(|info| info.name.to_string()).expect("a finished kernel");
            support::runs(&name, found.kernel, sizes(&name), 2);
            count += 1;
        }
    }
    assert!(count >= 17, "{count} kernels");
}
