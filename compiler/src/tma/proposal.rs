//! What to write for a layout that the accelerator writes: with a swizzle by name, and as ops.

use tilewright_kernel::tensor_map::Swizzle;

use crate::plan::staged::{Part, Staged, TileAxis};

/// `layout […] swizzle n`: what counts tiles, then the axes of the tile as the boxes made them, in this order.
pub(super) fn sugar(staged: &Staged, order: &[usize], mode: Swizzle) -> String {
    let tile = order.iter().flat_map(|axis| &staged.axes[*axis].boxed.tile).map(|t| t.name.clone());
    let swizzle = if mode == Swizzle::None { String::new() } else { format!(" swizzle {}", mode.span()) };
    format!("layout [{}]{swizzle}", counting(staged).chain(tile).collect::<Vec<_>>().join(", "))
}

/// The same as ops, which exchange chunks of a row by the number of the row: rows by eights, these by as many as fill
/// 128 bytes, and a row by chunks of 16 bytes. None where there is nothing to exchange. `taken` are names that cannot
/// be used.
pub(super) fn ops(staged: &Staged, order: &[usize], mode: Swizzle, taken: &[String]) -> Option<String> {
    if mode == Swizzle::None {
        return None;
    }
    let (inner, outer) = order.split_last()?;
    let several = |t: &&TileAxis| t.extent > 1;
    let outer: Vec<&TileAxis> = outer.iter().flat_map(|axis| &staged.axes[*axis].boxed.tile).filter(several).collect();
    let inner: Vec<&TileAxis> = staged.axes[*inner].boxed.tile.iter().filter(several).collect();
    let mut made: Vec<String> = Vec::new();
    let mut new = |name: &str| {
        let is_free = |n: &String| !taken.contains(n) && !made.contains(n);
        let numbered = (2..).map(|n| format!("{name}{n}"));
        let found = std::iter::once(name.to_owned()).chain(numbered).find(is_free).unwrap_or_default();
        made.push(found.clone());
        found
    };
    let mut text = Vec::new();
    let mut one = |axes: &[&TileAxis], name: &str, new: &mut dyn FnMut(&str) -> String| match axes {
        [] => None,
        [only] => Some(only.name.clone()),
        _ => {
            let names: Vec<&str> = axes.iter().map(|t| t.name.as_str()).collect();
            let merged = new(name);
            text.push(format!("merge {} -> {merged}", names.join(", ")));
            Some(merged)
        }
    };
    let row = one(&outer, "row", &mut new)?;
    let column = one(&inner, "column", &mut new)?;
    let (chunks, same) = (mode.span() / 16, 128 / mode.span());
    let (eights, eight) = (new("eights"), new("eight"));
    text.push(format!("split {row} by 8 -> {eights}, {eight}"));
    let mut side = eight;
    let mut rest = Vec::new();
    if same > 1 {
        let (by, of) = (new("x"), new("same"));
        text.push(format!("split {side} by {same} -> {by}, {of}"));
        (side, rest) = (by, vec![of]);
    }
    let (chunk, lane) = (new("chunk"), new("lane"));
    text.push(format!("split {column} by {} -> {chunk}, {lane}", 16 / staged.element.bytes()));
    debug_assert_eq!(chunks * 16, mode.span());
    let (x, y) = (new("x2"), new("y2"));
    text.push(format!("swizzle {side}, {chunk} by xor -> {x}, {y}"));
    let slots = [eights, x].into_iter().chain(rest).chain([y, lane]);
    text.push(format!("layout [{}]", counting(staged).chain(slots).collect::<Vec<_>>().join(", ")));
    Some(text.join("; "))
}

/// What counts tiles, in the order of the buffer: boxes, then phases.
fn counting(staged: &Staged) -> impl Iterator<Item = String> {
    let counts = |part: Part| {
        let of_axis = move |(name, p): (String, Part)| (p == part).then_some(name);
        staged
            .axes
            .iter()
            .filter(move |a| a.count(part) > 1)
            .flat_map(move |a| a.names().into_iter().filter_map(of_axis))
    };
    counts(Part::Box).chain(counts(Part::Phase))
}
