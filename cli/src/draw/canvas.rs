//! A page of SVG: shapes and texts at places in pixels, from the top to the bottom.
//!
//! **Property.** A text never takes more room than it is measured to take, in the fonts that browsers have for
//! `monospace`, and is shortened to the room that it is given, with the whole of it as a tooltip. The page knows the
//! box of each text, so that tests can see that none overlaps another one. **Approximation.** A character is measured
//! as wide as the widest of these fonts has it ([`ADVANCE`]); one that such a font may lack, as wide as it is high.
//!
//! The tree of elements, escapes and the order of attributes are those of the crate `svg`.

use std::fmt::Write as _;

use svg::Node as _;
use svg::node::Text;
use svg::node::element::{Element, Style as StyleElement, Title};

/// Width of a character of a monospaced font in its sizes: Courier New and DejaVu Sans Mono have 0.60, Menlo 0.602,
/// Consolas 0.55.
pub const ADVANCE: f64 = 0.61;
/// How far letters reach above and below the line, in sizes.
const ASCENT: f64 = 0.8;
const DESCENT: f64 = 0.24;

/// From one line of a paragraph to the next, in sizes.
const LINE: f64 = 1.4;

/// What follows a text that was shortened.
const MORE: char = '…';

/// A box on the page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Left end.
    pub x: f64,
    /// Upper end.
    pub y: f64,
    /// Width.
    pub width: f64,
    /// Height.
    pub height: f64,
}

impl Bounds {
    /// Whether two have a part of positive size in common.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.x < other.x + other.width
            && other.x < self.x + self.width
            && self.y < other.y + other.height
            && other.y < self.y + self.height
    }
}

/// Where a text stands beside its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// It begins there.
    Start,
    /// It is in the middle of the room.
    Middle,
    /// It ends there.
    End,
}

/// How a text looks: a size in pixels, and a class of the style sheet.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Pixels.
    pub size: f64,
    /// Class of the style sheet.
    pub class: &'static str,
}

/// A page that grows downwards.
#[derive(Debug)]
pub struct Canvas {
    width: f64,
    height: f64,
    root: Element,
    /// The box of each text, and the text as it is shown.
    texts: Vec<(Bounds, String)>,
}

impl Canvas {
    /// An empty page of a width, with a class and a style sheet for it, and a title.
    pub fn new(width: f64, (class, sheet): (&str, &str), title: &str) -> Self {
        let mut root = Element::new("svg");
        root.assign("xmlns", "http://www.w3.org/2000/svg");
        root.assign("role", "img");
        root.assign("class", class);
        root.append(Title::new(title));
        root.append(StyleElement::new(sheet));
        Self { width, height: 0.0, root, texts: Vec::new() }
    }

    /// Width of the page.
    pub fn width(&self) -> f64 {
        self.width
    }

    /// The boxes of its texts, each with what is shown.
    pub fn texts(&self) -> &[(Bounds, String)] {
        &self.texts
    }

    /// The page as text, with so much room below the last shape.
    pub fn finish(mut self, margin: f64) -> String {
        let (width, height) = (self.width, self.height + margin);
        self.root.assign("width", number(width));
        self.root.assign("height", number(height));
        self.root.assign("viewBox", format!("0 0 {} {}", number(width), number(height)));
        let mut paper = Element::new("rect");
        paper.assign("class", "paper");
        paper.assign("width", number(width));
        paper.assign("height", number(height));
        self.root.get_children_mut().insert(2, paper.into());
        let mut text = String::new();
        let _ = writeln!(text, "{}", self.root);
        text
    }

    fn push(&mut self, mut element: Element, class: &str, tooltip: Option<&str>) {
        element.assign("class", class);
        if let Some(tooltip) = tooltip.filter(|t| !t.is_empty()) {
            element.append(Title::new(tooltip));
        }
        self.root.append(element);
    }

    fn reach(&mut self, bottom: f64) {
        self.height = self.height.max(bottom);
    }

    /// A text at `(x, y)`, the end of the room at the line that letters stand on, in a room that is `room` wide.
    pub fn text(&mut self, (x, y): (f64, f64), room: f64, anchor: Anchor, style: Style, text: &str) {
        let (shown, width) = shortened(text, style.size, room);
        if shown.is_empty() {
            return;
        }
        let (at, left, word) = match anchor {
            Anchor::Start => (x, x, "start"),
            Anchor::Middle => (x + room / 2.0, x + (room - width) / 2.0, "middle"),
            Anchor::End => (x + room, x + room - width, "end"),
        };
        let mut element = Element::new("text");
        element.assign("x", number(at));
        element.assign("y", number(y));
        element.assign("font-size", number(style.size));
        if anchor != Anchor::Start {
            element.assign("text-anchor", word);
        }
        let mut tooltip = None;
        if shown != text {
            tooltip = Some(text);
        }
        element.append(Text::new(shown.clone()));
        self.push(element, style.class, tooltip);
        let bounds = Bounds { x: left, y: y - ASCENT * style.size, width, height: (ASCENT + DESCENT) * style.size };
        self.reach(bounds.y + bounds.height);
        self.texts.push((bounds, shown));
    }

    /// A text in as many lines as it takes, from the first one's line on; where the line after the last one would be. A
    /// word that is longer than the room is shortened.
    pub fn paragraph(&mut self, (x, y): (f64, f64), room: f64, style: Style, text: &str) -> f64 {
        let mut y = y;
        let mut line = String::new();
        for word in text.split(' ') {
            let longer = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
            if line.is_empty() || measured(&longer, style.size) <= room {
                line = longer;
                continue;
            }
            self.text((x, y), room, Anchor::Start, style, &line);
            y += LINE * style.size;
            line = word.to_owned();
        }
        self.text((x, y), room, Anchor::Start, style, &line);
        y + LINE * style.size
    }

    /// A rectangle; `round` is the radius of its corners.
    pub fn rect(&mut self, at: Bounds, round: f64, class: &str, tooltip: Option<&str>) {
        let mut element = Element::new("rect");
        element.assign("x", number(at.x));
        element.assign("y", number(at.y));
        element.assign("width", number(at.width));
        element.assign("height", number(at.height));
        if round > 0.0 {
            element.assign("rx", number(round));
        }
        self.push(element, class, tooltip);
        self.reach(at.y + at.height);
    }

    /// A straight line.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let mut element = Element::new("line");
        for (name, value) in [("x1", from.0), ("y1", from.1), ("x2", to.0), ("y2", to.1)] {
            element.assign(name, number(value));
        }
        self.push(element, class, None);
        self.reach(from.1.max(to.1));
    }

    /// A curve from left to right through points, horizontal at each of them.
    pub fn curve(&mut self, points: &[(f64, f64)], class: &str, tooltip: &str) {
        let Some(((x, y), rest)) = points.split_first() else { return };
        let mut path = format!("M{} {}", number(*x), number(*y));
        let mut before = (*x, *y);
        for (x, y) in rest {
            let middle = number((before.0 + x) / 2.0);
            let (from, to) = (number(before.1), number(*y));
            let _ = write!(path, "C{middle} {from} {middle} {to} {} {to}", number(*x));
            before = (*x, *y);
        }
        let mut element = Element::new("path");
        element.assign("d", path);
        self.push(element, class, Some(tooltip));
        points.iter().for_each(|point| self.reach(point.1));
    }

    /// A small triangle that points down to a place.
    pub fn mark(&mut self, (x, y): (f64, f64), size: f64, class: &str, tooltip: &str) {
        let mut element = Element::new("path");
        let half = size / 2.0;
        let [left, right, top] = [x - half, x + half, y - size].map(number);
        element.assign("d", format!("M{left} {top}L{right} {top}L{} {}Z", number(x), number(y)));
        self.push(element, class, Some(tooltip));
        self.reach(y);
    }
}

/// Width of a text, in pixels, that no font of the list passes.
pub fn measured(text: &str, size: f64) -> f64 {
    text.chars().map(|c| if c.is_ascii() { ADVANCE } else { 1.0 }).sum::<f64>() * size
}

/// As much of a text as a room has place for, and how wide that is.
fn shortened(text: &str, size: f64, room: f64) -> (String, f64) {
    let whole = measured(text, size);
    if whole <= room {
        return (text.to_owned(), whole);
    }
    let mut kept: Vec<char> = text.chars().collect();
    while let Some(last) = kept.pop() {
        let shown: String = kept.iter().chain([&MORE]).collect();
        let width = measured(&shown, size);
        if width <= room && !(last == ' ' && kept.last() == Some(&' ')) {
            return (shown, width);
        }
    }
    (String::new(), 0.0)
}

/// A number of pixels with two digits after the point, as few as are needed.
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Style = Style { size: 10.0, class: "t" };

    #[test]
    fn texts_are_shortened_to_their_room_with_the_whole_as_a_tooltip() {
        let mut canvas = Canvas::new(100.0, ("x", ""), "x");
        canvas.text((0.0, 20.0), 40.0, Anchor::Start, PLAIN, "a < b & c > d");
        let (bounds, shown) = &canvas.texts()[0];
        assert!(
            bounds.width <= 40.0 && shown.ends_with('…') && "a < b & c > d".starts_with(shown.trim_end_matches('…'))
        );
        let page = canvas.finish(0.0);
        let tree = roxmltree::Document::parse(&page).unwrap();
        let titles = tree.descendants().filter(|n| n.has_tag_name("title")).filter_map(|n| n.text());
        assert_eq!(titles.map(str::trim).collect::<Vec<_>>(), ["x", "a < b & c > d"]);
        // Without room nothing is shown.
        let mut canvas = Canvas::new(100.0, ("x", ""), "x");
        canvas.text((0.0, 20.0), 3.0, Anchor::End, PLAIN, "abc");
        assert!(canvas.texts().is_empty());
    }

    #[test]
    fn anchors_decide_where_the_box_is() {
        let mut canvas = Canvas::new(100.0, ("x", ""), "x");
        for anchor in [Anchor::Start, Anchor::Middle, Anchor::End] {
            canvas.text((10.0, 20.0), 80.0, anchor, PLAIN, "abcd");
        }
        let width = 4.0 * ADVANCE * 10.0;
        let lefts: Vec<f64> = canvas.texts().iter().map(|t| t.0.x).collect();
        assert_eq!(lefts, [10.0, 10.0 + (80.0 - width) / 2.0, 90.0 - width]);
        let boxes: Vec<Bounds> = canvas.texts().iter().map(|t| t.0).collect();
        assert!(boxes[0].overlaps(&boxes[0]) && !boxes[0].overlaps(&boxes[1]) && !boxes[1].overlaps(&boxes[2]));
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([1.0, 0.5, 1.006, 120.0, 0.001].map(number), ["1", "0.5", "1.01", "120", "0"]);
    }
}
