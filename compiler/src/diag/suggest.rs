//! The closest known name to one that is not known.

/// Characters compared at most, so that a long name costs little.
const LONGEST: usize = 64;

/// The candidate most like `name`, if one is close enough to be meant: by edit distance with swapped neighbours, or by
/// one being the start of the other. Ties go to the earlier candidate.
#[must_use]
pub fn closest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name: Vec<char> = name.chars().take(LONGEST).flat_map(char::to_lowercase).collect();
    let limit = (name.len() / 3).max(1);
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let chars: Vec<char> = candidate.chars().take(LONGEST).flat_map(char::to_lowercase).collect();
        let shorter = name.len().min(chars.len());
        let distance = if shorter >= 3 && name[..shorter] == chars[..shorter] {
            // `reg` for `registers`
            usize::from(name.len() != chars.len())
        } else if name.len().abs_diff(chars.len()) > limit {
            continue;
        } else {
            distance(&name, &chars)
        };
        // A name of one letter is close to every other one: meant is its other case, or one with a letter more or less.
        let limit = if shorter == 0 || (shorter == 1 && name[0] != chars[0]) { 0 } else { limit };
        if distance <= limit && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Insertions, deletions, changes and swaps of neighbours that turn `a` into `b` (optimal string alignment).
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut previous: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let change = previous[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = change.min(previous[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut previous, row);
    }
    previous[b.len()]
}

#[cfg(test)]
mod tests {
    use super::closest;

    #[test]
    fn finds_what_was_meant() {
        let known = ["split", "merge", "reorder", "registers", "vectorize"];
        for (written, meant) in [
            ("spilt", Some("split")),
            ("Merge", Some("merge")),
            ("reg", Some("registers")),
            ("vectorise", Some("vectorize")),
            ("bind", None),
            ("", None),
        ] {
            assert_eq!(closest(written, known), meant, "{written}");
        }
    }

    #[test]
    fn does_not_guess_single_letters() {
        assert_eq!(closest("x", ["y", "z"]), None);
        assert_eq!(closest("n", ["m", "N"]), Some("N"));
        assert_eq!(closest("yy", ["x", "y"]), Some("y"));
        assert_eq!(closest("x", ["ys", "xs"]), Some("xs"));
    }

    #[test]
    fn prefers_the_nearer_then_the_earlier() {
        assert_eq!(closest("aab", ["aac", "aab1", "aab"]), Some("aab"));
        assert_eq!(closest("abcd", ["abce", "abcf"]), Some("abce"));
    }
}
