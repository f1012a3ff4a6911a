//! The pages of the diagnostic codes: the rule, a wrong example, what the message says, a right example.
//!
//! `tilewright explain TW0401` prints one; [`page`] gives its text. Both examples of each page are tested.

/// Declares a module of documentation for each code, and the table of their texts.
macro_rules! pages {
    ($($module:ident $code:literal)*) => {
        $(
            #[doc = include_str!(concat!("../errors/", $code, ".md"))]
            pub mod $module {}
        )*

        /// Every code and its page, in order.
        const PAGES: &[(&str, &str)] = &[$(($code, include_str!(concat!("../errors/", $code, ".md"))),)*];
    };
}

pages! {
    tw0001 "TW0001"
    tw0002 "TW0002"
    tw0003 "TW0003"
    tw0004 "TW0004"
    tw0005 "TW0005"
    tw0006 "TW0006"
    tw0007 "TW0007"
    tw0008 "TW0008"
    tw0009 "TW0009"
    tw0010 "TW0010"
    tw0011 "TW0011"
    tw0101 "TW0101"
    tw0102 "TW0102"
    tw0103 "TW0103"
    tw0104 "TW0104"
    tw0105 "TW0105"
    tw0106 "TW0106"
    tw0107 "TW0107"
    tw0108 "TW0108"
    tw0109 "TW0109"
    tw0110 "TW0110"
    tw0111 "TW0111"
    tw0112 "TW0112"
    tw0113 "TW0113"
    tw0114 "TW0114"
    tw0115 "TW0115"
    tw0116 "TW0116"
    tw0117 "TW0117"
    tw0118 "TW0118"
    tw0119 "TW0119"
    tw0120 "TW0120"
    tw0121 "TW0121"
    tw0122 "TW0122"
    tw0123 "TW0123"
    tw0124 "TW0124"
    tw0125 "TW0125"
    tw0126 "TW0126"
    tw0127 "TW0127"
    tw0128 "TW0128"
    tw0129 "TW0129"
    tw0130 "TW0130"
    tw0131 "TW0131"
    tw0132 "TW0132"
    tw0150 "TW0150"
    tw0151 "TW0151"
    tw0152 "TW0152"
    tw0201 "TW0201"
    tw0202 "TW0202"
    tw0203 "TW0203"
    tw0204 "TW0204"
    tw0205 "TW0205"
    tw0206 "TW0206"
    tw0207 "TW0207"
    tw0208 "TW0208"
    tw0209 "TW0209"
    tw0301 "TW0301"
    tw0302 "TW0302"
    tw0303 "TW0303"
    tw0304 "TW0304"
    tw0305 "TW0305"
    tw0306 "TW0306"
    tw0307 "TW0307"
    tw0310 "TW0310"
    tw0311 "TW0311"
    tw0312 "TW0312"
    tw0313 "TW0313"
    tw0314 "TW0314"
    tw0315 "TW0315"
    tw0316 "TW0316"
    tw0317 "TW0317"
    tw0318 "TW0318"
    tw0319 "TW0319"
    tw0401 "TW0401"
    tw0402 "TW0402"
    tw0403 "TW0403"
    tw0404 "TW0404"
    tw0405 "TW0405"
    tw0406 "TW0406"
    tw0407 "TW0407"
    tw0408 "TW0408"
    tw0409 "TW0409"
    tw0410 "TW0410"
    tw0411 "TW0411"
    tw0412 "TW0412"
    tw0490 "TW0490"
    tw0501 "TW0501"
    tw0502 "TW0502"
    tw0504 "TW0504"
    tw0505 "TW0505"
    tw0506 "TW0506"
    tw0507 "TW0507"
    tw0508 "TW0508"
    tw0509 "TW0509"
    tw0601 "TW0601"
    tw0602 "TW0602"
    tw0603 "TW0603"
    tw0604 "TW0604"
    tw0605 "TW0605"
    tw0606 "TW0606"
    tw0610 "TW0610"
    tw0611 "TW0611"
    tw0612 "TW0612"
    tw0690 "TW0690"
    tw0702 "TW0702"
    tw0703 "TW0703"
    tw0704 "TW0704"
    tw0706 "TW0706"
    tw0707 "TW0707"
    tw0708 "TW0708"
    tw0709 "TW0709"
    tw0710 "TW0710"
    tw0711 "TW0711"
    tw0712 "TW0712"
    tw0713 "TW0713"
    tw0714 "TW0714"
    tw0790 "TW0790"
    tw0901 "TW0901"
    tw0902 "TW0902"
    tw0903 "TW0903"
    tw0904 "TW0904"
    tw0990 "TW0990"
    tw0991 "TW0991"
    tw0992 "TW0992"
    tw0993 "TW0993"
    tw1001 "TW1001"
    tw1002 "TW1002"
    tw1003 "TW1003"
    tw1004 "TW1004"
    tw1005 "TW1005"
    tw1006 "TW1006"
    tw1007 "TW1007"
    tw1008 "TW1008"
    tw1009 "TW1009"
    tw1010 "TW1010"
    tw1090 "TW1090"
    tw9001 "TW9001"
}

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
