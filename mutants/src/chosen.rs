//! Kernels in whose protocols mistakes are planted: those of the examples, and some of the campaign.

use std::path::Path;

use tilewright_campaign::compose;
use tilewright_campaign::compose::products::{Engine, Split};
use tilewright_cli::source::SourceFile;
use tilewright_compiler::Compiled;
use tilewright_compiler::source::TokenBuffer;
use tilewright_kernel::KernelInfo;

use crate::Failure;

/// Elements times terms of a product that is drawn.
const MOST: i64 = 1 << 20;

/// Sizes by name.
type Sizes = &'static [(&'static str, i64)];

/// A kernel: its name or text, what became of it, and the sizes to run it at.
pub type Chosen = (String, Compiled, Vec<Vec<i64>>);

/// Products of the examples: file, kernel, and sizes by name. Each of two blocks, or clusters, takes several tiles of a
/// persistent launch, and stores several parts of the last one: it then comes to all of its slots again, and most
/// mistakes make the checker find something at once.
pub const EXAMPLES: &[(&str, &str, &[Sizes])] = &[
    ("gemm", "Gemm", &[&[("M", 257), ("N", 264), ("K", 392)]]),
    ("gemm", "Linear", &[&[("M", 300), ("N", 264), ("K", 392)]]),
    ("gemm_variants", "Residual", &[&[("M", 257), ("N", 328), ("K", 392)]]),
    ("gemm_variants", "Scaled", &[&[("M", 257), ("N", 328), ("K", 784)]]),
    ("gemm_variants", "Int8", &[&[("M", 257), ("N", 336), ("K", 784)]]),
    ("gemm_variants", "Batched", &[&[("B", 2), ("M", 130), ("N", 264), ("K", 392)]]),
    ("gemm_variants", "SplitK", &[&[("M", 257), ("N", 200), ("K", 648)]]),
    ("gemm_variants", "PingPong", &[&[("M", 257), ("N", 328), ("K", 392)]]),
    ("gemm_variants", "Gated", &[&[("M", 257), ("N", 200), ("K", 392)]]),
    ("paged", "Experts", &[&[("M", 257), ("K", 392), ("E", 3), ("N", 264), ("T", 3)]]),
    ("gemm_registers", "Weights", &[&[("M", 130), ("N", 130), ("K", 400)]]),
    ("gemm_registers", "Warps", &[&[("M", 130), ("N", 136), ("K", 200)]]),
    ("attention", "Attention", &[&[("H", 1), ("S", 70), ("T", 400)]]),
];

/// Values of a kernel's dimensions.
pub fn dims_of(info: &KernelInfo, of: impl Fn(&str) -> Option<i64>) -> Vec<i64> {
    info.dims.iter().map(|dim| of(&dim.name).unwrap_or(0)).collect()
}

/// The products of the examples, compiled.
///
/// # Errors
/// An example cannot be read, or has no such kernel.
pub fn of_examples(root: &Path) -> Result<Vec<Chosen>, Failure> {
    let mut all = Vec::new();
    for (file, kernel, sizes) in EXAMPLES {
        let path = root.join("examples").join(file).with_extension("rs");
        let source = SourceFile::read(&path.to_string_lossy()).map_err(|e| format!("{}: {e}", path.display()))?;
        let found = source.kernels().find(|found| found.kernel.ast.name.text == *kernel);
        let compiled = found.ok_or_else(|| format!("{file} has no {kernel}"))?.kernel.clone();
        let info = compiled.info.as_ref().ok_or_else(|| format!("{kernel} is refused"))?;
        let value = |sizes: &[(&str, i64)], name: &str| sizes.iter().find(|s| s.0 == name).map(|s| s.1);
        let dims = sizes.iter().map(|sizes| dims_of(info, |name| value(sizes, name))).collect();
        all.push((format!("{file}::{kernel}"), compiled, dims));
    }
    Ok(all)
}

/// A kernel that is no example.
fn compiled(text: &str) -> Option<Compiled> {
    let stream = text.parse().ok()?;
    let (tokens, _) = TokenBuffer::new(stream);
    tilewright_compiler::compile(&tokens).kernels.into_iter().next()
}

/// A product by warpgroups that follows an extreme, of the campaign: with sizes that come to all of its slots again, if
/// these are small, and memory says nothing of its terms.
pub fn drawn_attention(seed: u64, index: u64) -> Option<Chosen> {
    let (attention, _) = compose::attention::attention(seed, index, None);
    // Warps wait for their own fetches alone, and what they multiply is over at once.
    if attention.engine != Engine::Wgmma {
        return None;
    }
    let text = attention.to_string();
    let compiled = compiled(&text)?;
    let info = compiled.info.as_ref()?;
    let [_, tile] = attention.tile();
    let slots = attention.copies.iter().filter_map(|copy| copy.ring).max().unwrap_or(1);
    let block = attention.block * attention.again.unwrap_or(1);
    // The last block of several tiles lacks terms, if it may.
    let lacking = match (attention.divides, attention.is_eight()) {
        (true, _) => 0,
        (false, true) => 16,
        (false, false) => 1,
    };
    let terms = attention.literal.unwrap_or((slots + 2) * block - lacking);
    let turns = if attention.roles.is_some_and(|roles| roles.alternate) { 2 } else { 1 };
    let rows = if attention.square { terms } else { ((2 * turns - 1) * tile + 1).min(terms) };
    let value = |name: &str| match name {
        "M" => Some(rows),
        "N" => Some(terms),
        "H" | "G" => Some(1),
        _ => None,
    };
    let is_small = rows * terms * attention.sizes.iter().sum::<i64>() <= 8 * MOST;
    let dims = dims_of(info, value);
    (is_small && attention.memory.is_none()).then_some((text, compiled, vec![dims]))
}

/// A product of the campaign with sizes that come to all of its slots again, if it is small enough.
pub fn drawn(seed: u64, index: u64) -> Option<Chosen> {
    let (product, _) = compose::product(seed, index);
    let kernel = product.kernel();
    let text = kernel.to_string();
    let compiled = compiled(&text)?;
    let info = compiled.info.as_ref()?;
    let tile = kernel.tile?.iterations;
    let slots = product.factors.iter().filter_map(|factor| factor.ring).max().unwrap_or(1);
    let up = |n: usize, size: i64| (size.max(1) + kernel.divides[n] - 1) / kernel.divides[n] * kernel.divides[n];
    // A block with a fixed number of iterations never comes to a slot again.
    if matches!(product.split, Some(Split::By(n)) if n <= slots) {
        return None;
    }
    // Units that take tiles in turn have several each.
    let turns = product.roles.map_or(1, |roles| roles.turns);
    let rows = if turns > 1 { (2 * turns - 1) * tile[0] + 1 } else { tile[0] + 1 };
    let mut all = vec![[rows, tile[1], (slots + 1) * tile[2] + 1], [tile[0] / 2, 2 * tile[1] + 1, 2 * tile[2]]];
    if turns > 1 {
        // With few terms a tile comes to no slot again: its own barriers alone order it behind the one before.
        all.push([rows, tile[1], tile[2]]);
    }
    let is_small = all.iter().all(|sizes| sizes.iter().product::<i64>() <= MOST);
    let value = |sizes: &[i64; 3], name: &str| match name {
        "M" => Some(up(0, sizes[0])),
        "N" => Some(up(1, sizes[1])),
        "K" => Some(up(2, sizes[2])),
        _ => None,
    };
    // Strides that are told at launch have to hold so much.
    let dims = all.iter().map(|sizes| dims_of(info, |name| value(sizes, name))).collect();
    (is_small && product.factors.iter().all(|factor| !factor.pitched)).then_some((text.clone(), compiled, dims))
}
