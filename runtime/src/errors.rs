//! The pages of the diagnostic codes: the rule, a wrong example, what the message says, a right example.
//!
//! `tilewright explain TW0401` prints one; [`page`] gives its text. Both examples of each page are tested.

// Each page stands in the compiler, in the file of its code.
tilewright_macros::__error_pages! {}

/// The page of a code as Markdown: `page("TW0401")`. `None` if there is no such code.
#[must_use]
pub fn page(code: &str) -> Option<&'static str> {
    let at = PAGES.binary_search_by_key(&code, |(code, _)| code).ok()?;
    Some(PAGES[at].1)
}

/// Every code that has a page, in order.
pub fn codes() -> impl Iterator<Item = &'static str> {
    PAGES.iter().map(|(code, _)| *code)
}

#[cfg(test)]
mod tests {
    use super::{PAGES, codes, page};

    #[test]
    fn every_page_is_found_and_starts_with_its_code() {
        assert!(PAGES.is_sorted_by(|a, b| a.0 < b.0));
        for code in codes() {
            let text = page(code).expect("a page for every code of the table");
            assert!(text.starts_with(&format!("# {code}: ")), "{text}");
        }
        assert_eq!(page("TW9999"), None);
        assert_eq!(page(""), None);
    }
}
