//! The colours of pictures, light and dark. Every shape has a class, and no colour of its own.

use std::fmt::Write as _;

use super::canvas::Style;

/// A section's name.
pub const HEADING: Style = Style { size: 16.0, class: "heading" };
/// A part of a section.
pub const PART: Style = Style { size: 12.0, class: "part" };
/// What a shape says.
pub const LABEL: Style = Style { size: 11.0, class: "label" };
/// What is said beside shapes.
pub const NOTE: Style = Style { size: 11.0, class: "note" };
/// What is said in small shapes.
pub const SMALL: Style = Style { size: 9.0, class: "label" };
/// Numbers along axes.
pub const TICK: Style = Style { size: 9.0, class: "note" };

/// Hues for what is told apart by number, such as buffers and slots of rings.
pub const HUES: usize = 8;
/// Banks of shared memory.
const BANKS: usize = tilewright_kernel::banks::COUNT;

/// Classes of shapes: fill and line in a light page, and in a dark one.
const SHAPES: [(&str, [&str; 2], [&str; 2]); 17] = [
    ("paper", ["#ffffff", "none"], ["#14171c", "none"]),
    ("axis", ["#f1f3f6", "#8a94a3"], ["#262c36", "#7d8899"]),
    ("grid", ["#ffd9a8", "#b87a1e"], ["#6b4410", "#e0a050"]),
    ("cta", ["#ffe9a0", "#a68a12"], ["#5c4d0c", "#d6bb3c"]),
    ("warpgroup", ["#c9e7b8", "#4f8a2f"], ["#2c4f1b", "#86c463"]),
    ("warp", ["#b4e5d3", "#268a68"], ["#145241", "#52c4a0"]),
    ("thread", ["#b8dcf7", "#2f79b0"], ["#164665", "#63b0e6"]),
    ("loop", ["#e8e4f4", "#7668ab"], ["#352d55", "#a394dd"]),
    ("vector", ["#f5c9e0", "#ab3f7c"], ["#5c1e42", "#e27db5"]),
    ("hole", ["#f9c5c0", "#b8342a"], ["#69211b", "#f08078"]),
    ("idle", ["#f1f3f6", "#c3c9d2"], ["#1f242c", "#3c4450"]),
    ("busy", ["#3f82b8", "none"], ["#559fd8", "none"]),
    ("wait", ["#e3e6ea", "#b7bec8"], ["#2b313b", "#4b5461"]),
    ("work", ["#7fa8c9", "none"], ["#3f749c", "none"]),
    ("frame", ["none", "#5b6675"], ["none", "#97a3b3"]),
    ("touched", ["none", "#14171c"], ["none", "#ffffff"]),
    ("box", ["#b8dcf7", "#2f79b0"], ["#164665", "#63b0e6"]),
];

/// Classes of lines: width, dashes, and colours in a light and a dark page.
const LINES: [(&str, &str, &str, [&str; 2]); 7] = [
    ("split", "1.3", "none", ["#8a94a3", "#7d8899"]),
    ("merge", "2.2", "none", ["#b87a1e", "#e0a050"]),
    ("resize", "1.3", "2 3", ["#ab3f7c", "#e27db5"]),
    ("swizzle", "1.3", "6 3", ["#268a68", "#52c4a0"]),
    ("order", "1", "none", ["#8a94a3", "#7d8899"]),
    ("tick", "1", "none", ["#dfe3e8", "#2b313b"]),
    ("arrival", "1.6", "none", ["#b8342a", "#f08078"]),
];

/// Classes of texts: weight, and colours in a light and a dark page.
const TEXTS: [(&str, &str, [&str; 2]); 4] = [
    ("heading", "bold", ["#14171c", "#f1f3f6"]),
    ("part", "bold", ["#2d3540", "#dbe1e8"]),
    ("label", "normal", ["#14171c", "#f1f3f6"]),
    ("note", "normal", ["#4b5461", "#aab4c1"]),
];

/// The class of a number among those that are told apart.
pub fn hue(number: usize) -> String {
    format!("hue{}", number % HUES)
}

/// The class of a slot of a buffer with so many: those of rings are told apart.
pub fn slot(number: usize, slots: u32) -> String {
    if slots == 1 { "box".to_owned() } else { hue(number) }
}

/// The colours of the slots of rings that have at most so many, with their names; none where there is no ring. Later
/// slots of long rings begin anew.
pub fn slots(slots: u32) -> impl Iterator<Item = (String, String)> {
    let told = if slots == 1 { 0 } else { (slots as usize).min(HUES) };
    let name = move |n: usize| match (n..slots as usize).step_by(HUES).map(|n| n.to_string()).collect::<Vec<_>>() {
        one if one.len() == 1 => format!("slot {n}"),
        several => format!("slots {}", several.join(", ")),
    };
    (0..told).map(move |n| (hue(n), name(n)))
}

/// The class of a bank.
pub fn bank(number: usize) -> String {
    format!("bank{}", number % BANKS)
}

/// The class of who runs an axis, by the words for it.
pub fn binding(words: &str) -> &'static str {
    match words {
        "grid" => "grid",
        "cta" => "cta",
        "vector" => "vector",
        "loop" | "unroll" => "loop",
        words if words.contains("warpgroup") => "warpgroup",
        words if words.contains("warp") => "warp",
        // Threads, and units of the kernel's own.
        _ => "thread",
    }
}

/// The class of the whole picture, in which its rules hold: where it stands in a page, it styles nothing else.
pub const PICTURE: &str = "tw";

/// The style sheet. It has no empty line, which would end a picture that stands in Markdown.
pub fn sheet() -> String {
    let mut out =
        String::from("text{font-family:ui-monospace,Menlo,Consolas,\"DejaVu Sans Mono\",monospace;stroke:none}\n");
    out.push_str("line{fill:none}\npath{fill:none}\n");
    for (class, weight, _) in TEXTS {
        let _ = writeln!(out, ".{class}{{font-weight:{weight}}}");
    }
    for (class, width, dashes, _) in LINES {
        let _ = writeln!(out, ".{class}{{fill:none;stroke-width:{width};stroke-dasharray:{dashes}}}");
    }
    out.push_str(".touched{stroke-width:2}\n.free{fill-opacity:0.35;stroke-dasharray:3 2}\n");
    colours(&mut out, 0);
    out.push_str("@media (prefers-color-scheme: dark){\n");
    colours(&mut out, 1);
    out.push_str("}\n");
    let is_rule = |line: &&str| !line.starts_with(['@', '}']);
    let scoped = out.lines().map(|line| if is_rule(&line) { format!(".{PICTURE} {line}") } else { line.to_owned() });
    // In a page that is narrower than the picture, it gets lower too, and no empty room above and below.
    let whole = format!("svg.{PICTURE}{{max-width:100%;height:auto}}");
    std::iter::once(whole).chain(scoped).collect::<Vec<_>>().join("\n")
}

/// The rules of a page: light is 0, dark 1.
fn colours(out: &mut String, page: usize) {
    for (class, _, colours) in TEXTS {
        let _ = writeln!(out, ".{class}{{fill:{}}}", colours[page]);
    }
    for (class, _, _, colours) in LINES {
        let _ = writeln!(out, ".{class}{{stroke:{}}}", colours[page]);
    }
    for (class, light, dark) in SHAPES {
        let [fill, stroke] = if page == 0 { light } else { dark };
        let _ = writeln!(out, ".{class}{{fill:{fill};stroke:{stroke}}}");
    }
    // Texts stand on them: pale in a light page, deep in a dark one.
    let (saturation, fill, line) = if page == 0 { (70, 82, 38) } else { (45, 28, 62) };
    for number in 0..HUES {
        let hue = number * 360 / HUES + 15;
        let (fill, line) = (rgb(hue, saturation, fill), rgb(hue, saturation, line));
        let _ = writeln!(out, ".hue{number}{{fill:{fill};stroke:{line}}}");
    }
    for number in 0..BANKS {
        let hue = number * 360 / BANKS;
        let _ = writeln!(out, ".bank{number}{{fill:{};stroke:none}}", rgb(hue, saturation, fill));
    }
}

/// A colour by hue in degrees, saturation and lightness in percent
/// (CSS Color 4, `hslToRgb`): renderers agree on hexadecimal numbers.
fn rgb(hue: usize, saturation: usize, lightness: usize) -> String {
    let (saturation, lightness) = (saturation as f64 / 100.0, lightness as f64 / 100.0);
    let most = saturation * lightness.min(1.0 - lightness);
    let part = |n: usize| {
        let k = ((n * 30 + hue) % 360) as f64 / 30.0;
        let value = lightness - most * (k - 3.0).min(9.0 - k).clamp(-1.0, 1.0);
        (value * 255.0).round() as u8
    };
    format!("#{:02x}{:02x}{:02x}", part(0), part(8), part(4))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The relative luminance of a colour (WCAG 2.1).
    fn luminance(colour: &str) -> f64 {
        let part = |at: usize| {
            let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).expect("a hexadecimal number")) / 255.0;
            if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
    }

    /// How much lighter one colour is than the other one, from 1 to 21 (WCAG 2.1).
    fn contrast(a: &str, b: &str) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    /// Each text can be read on what it stands on: labels on all shapes that have some, the others on the page, and
    /// notes in bars of waits, too. Lines are seen on the page.
    #[test]
    fn texts_and_lines_have_contrast() {
        for page in [0, 1] {
            let text = |class: &str| TEXTS.iter().find(|t| t.0 == class).map(|t| t.2[page]).expect("a text");
            let fill = |class: &str| {
                let shape = SHAPES.iter().find(|s| s.0 == class).expect("a shape");
                if page == 0 { shape.1[0] } else { shape.2[0] }
            };
            let mut sheet = String::new();
            colours(&mut sheet, page);
            let told = sheet.lines().filter(|l| l.starts_with(".hue") || l.starts_with(".bank"));
            let mut under: Vec<&str> = told.filter_map(|l| l.split("fill:").nth(1)?.get(..7)).collect();
            assert_eq!(under.len(), HUES + BANKS);
            let labelled =
                ["axis", "grid", "cta", "warpgroup", "warp", "thread", "loop", "vector", "hole", "wait", "box"];
            under.extend(labelled.map(fill));
            for fill in under {
                assert!(contrast(text("label"), fill) >= 4.5, "{fill} in page {page}");
            }
            for class in ["heading", "part", "label", "note"] {
                assert!(contrast(text(class), fill("paper")) >= 7.0, "{class} in page {page}");
            }
            assert!(contrast(text("note"), fill("wait")) >= 4.5, "page {page}");
            for (class, .., colours) in LINES.iter().filter(|line| line.0 != "tick") {
                assert!(contrast(colours[page], fill("paper")) >= 3.0, "{class} in page {page}");
            }
        }
    }

    #[test]
    fn colours_are_those_of_the_standard() {
        let rows = [
            ((0, 100, 50), "#ff0000"),
            ((120, 100, 25), "#008000"),
            ((240, 50, 75), "#9f9fdf"),
            ((15, 0, 100), "#ffffff"),
        ];
        for ((hue, saturation, lightness), expected) in rows {
            assert_eq!(rgb(hue, saturation, lightness), expected);
        }
    }
}
