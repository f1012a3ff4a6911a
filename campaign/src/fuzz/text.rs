//! Text in pieces, and changes of some of them.

use crate::rng::Rng;

/// Signs that stand where nobody expects them: what is not ASCII, what ends lines, what begins comments and strings.
const ODD: &[&str] = &["é", "\0", "\n", "\r", "\"", "'", "//", "/*", "*/", "\\", "\u{2028}", "\u{feff}", "#", "\t"];

/// One of so many texts has a piece very often.
const MANY_TIMES: usize = 200;

/// What a sign belongs to: words hold together, as spaces do; any other sign stands for itself.
fn class(c: char) -> u8 {
    match c {
        _ if c.is_alphanumeric() || matches!(c, '_' | '$' | '%') => 1,
        _ if c.is_whitespace() => 2,
        _ => 0,
    }
}

/// The pieces of a text: together they are the text.
pub fn pieces(text: &str) -> Vec<&str> {
    let mut list = Vec::new();
    let mut start = 0;
    let mut last = 0;
    for (at, c) in text.char_indices() {
        let own = class(c);
        if at > start && (own != last || own == 0) {
            list.push(&text[start..at]);
            start = at;
        }
        last = own;
    }
    if start < text.len() {
        list.push(&text[start..]);
    }
    list
}

/// A text with one to five changes, most often few: pieces left out, repeated, exchanged, replaced by words or signs.
pub fn broken(text: &str, words: &[&str], rng: &mut Rng) -> String {
    let mut list = pieces(text);
    let mut own: Option<(usize, String)> = None;
    if rng.below(MANY_TIMES) == 0 && !list.is_empty() {
        // What is nested, or follows each other, without end.
        let (at, piece) = (rng.below(list.len()), *rng.pick(&list));
        let times = *rng.pick(&[50, 500, 5000]);
        list.splice(at..at, std::iter::repeat_n(piece, times));
    }
    for _ in 0..*rng.pick(&[1, 1, 1, 2, 2, 3, 5]) {
        if list.is_empty() {
            break;
        }
        let (a, b) = (rng.below(list.len()), rng.below(list.len()));
        match rng.below(14) {
            0 => drop(list.remove(a)),
            1 => list.insert(b, list[a]),
            2 => list.swap(a, b),
            3 | 10 | 11 => list[a] = *rng.pick::<&str>(words),
            4 => list.insert(a, *rng.pick::<&str>(words)),
            5 | 12 | 13 => list[a] = list[b],
            6 => list.insert(a, *rng.pick::<&str>(ODD)),
            // A part goes, or comes twice.
            7 => drop(list.drain(a..(a + 1 + rng.below(12)).min(list.len()))),
            8 => {
                let part: Vec<&str> = list[a..(a + 1 + rng.below(12)).min(list.len())].to_vec();
                list.splice(b..b, part);
            }
            // A sign within a piece becomes another, of one piece at most.
            _ if own.is_none() => {
                let mut signs: Vec<char> = list[a].chars().collect();
                let at = rng.below(signs.len());
                signs[at] = char::from(32 + rng.below(95) as u8);
                own = Some((a, signs.into_iter().collect()));
            }
            _ => list.truncate(a),
        }
    }
    if let Some((at, piece)) = &own
        && let Some(place) = list.get_mut(*at)
    {
        *place = piece;
    }
    list.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_the_text() {
        let text = "split i by 4 -> io, v; // é\n\n";
        assert_eq!(pieces(text).concat(), text);
        assert_eq!(pieces("a1 ->b")[..], ["a1", " ", "-", ">", "b"]);
        assert!(pieces("").is_empty());
    }

    /// A text is broken in many ways, and always in the same way by the same numbers.
    #[test]
    fn numbers_decide_how_a_text_is_broken() {
        let text = "z[i] = a * x[i] + y[i];";
        let of = |n| broken(text, &["kernel"], &mut Rng::of_case(1, n));
        let all: std::collections::BTreeSet<String> = (0..200).map(of).collect();
        assert!(all.len() > 150, "{}", all.len());
        assert!((0..200).all(|n| of(n) == of(n)));
    }
}
