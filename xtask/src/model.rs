//! `cargo xtask model`: what a product of bf16 matrices and attention on Hopper are limited by, on paper, and what
//! share of the tensor cores' peak is left. `docs/model.md` explains it and has its tables.
//!
//! **Guarantee**: arithmetic over the tile and three counts of instructions. Nothing was measured on a device.
//!
//! **Formula**: an iteration takes as long as the slowest of tensor cores, shared memory, L2 and issue slots; a tile
//! its iterations and its epilogue; a launch as many tiles one after the other as it has waves, or what device memory
//! takes. **Approximated**: the four overlap without loss, blocks keep step, and two latencies are assumed.
//! **Source**: of each number, beside it.

use std::fmt::Write;

use tilewright_cli::cost::gpu::H100;

/// The GPU, in clocks of its multiprocessors: what `tilewright inspect --cost` has of H100 SXM, and more.
struct Machine;

impl Machine {
    /// Those of H100 SXM and H200.
    const MULTIPROCESSORS: f64 = H100.multiprocessors as f64;
    /// 10⁹ clocks in a second under load.
    const CLOCK: f64 = 1.83;
    /// Multiply-adds of a multiprocessor's four tensor cores in a clock: the data sheet's 989 TFLOP/s of dense bf16 at
    /// 1.83 GHz.
    const MULTIPLY_ADDS: f64 = 2048.0;
    /// Bytes of shared memory in a clock: 32 banks of 4 bytes (CUDA programming guide).
    const SHARED: f64 = 128.0;
    /// Bytes that L2 delivers in a clock, in all: DeepGEMM's model. For Hopper there is no official number; A100 has
    /// 5,120 for 108 multiprocessors, as much for each.
    const L2: f64 = 6150.0;
    /// Bytes of device memory in a clock. H200 has 1.43 times as many.
    const DEVICE_MEMORY: f64 = H100.memory / Self::CLOCK;
    /// Results of exponentials in a clock: the throughput of special functions, compute capability 9.0 (CUDA
    /// programming guide, arithmetic instructions).
    const EXPONENTIALS: f64 = H100.lanes.special;
    /// Bytes of L2.
    const L2_SIZE: f64 = 50.0 * (1 << 20) as f64;
    /// **Assumed**: from a tensor copy to shared memory's release by it, beside the bytes.
    const STORE: f64 = 500.0;
    /// **Assumed**: from the start of a launch to its first product.
    const START: f64 = 2000.0;
}

/// A way to divide the product.
#[derive(Clone, Copy)]
struct Tile {
    name: &'static str,
    /// Rows, columns and terms of a block's iteration.
    block: [f64; 3],
    /// Columns of an instruction, which has 64 rows and 16 terms.
    columns: f64,
    /// Blocks of a cluster along rows and columns.
    cluster: [f64; 2],
}

const TILES: [Tile; 5] = [
    Tile {
        name: "128 × 256, clusters 2 × 1 (`Gemm`)",
        block: [128.0, 256.0, 64.0],
        columns: 256.0,
        cluster: [2.0, 1.0],
    },
    Tile { name: "256 × 128, clusters 1 × 2", block: [256.0, 128.0, 64.0], columns: 128.0, cluster: [1.0, 2.0] },
    Tile { name: "128 × 256, no clusters", block: [128.0, 256.0, 64.0], columns: 256.0, cluster: [1.0, 1.0] },
    Tile { name: "128 × 128, no clusters", block: [128.0, 128.0, 64.0], columns: 128.0, cluster: [1.0, 1.0] },
    Tile {
        name: "64 × 256 in turn, clusters 2 × 1 (`PingPong`)",
        block: [64.0, 256.0, 64.0],
        columns: 256.0,
        cluster: [2.0, 1.0],
    },
];

/// Clocks of an iteration, by what takes them.
struct Iteration {
    tensor_cores: f64,
    shared_memory: f64,
    l2: f64,
    issue: f64,
}

impl Iteration {
    fn of(tile: &Tile, figures: &Figures) -> Self {
        let [m, n, k] = tile.block;
        // Each instruction reads both of its factors.
        let instructions = (m / 64.0) * (n / tile.columns) * (k / 16.0);
        let read = instructions * (64.0 + tile.columns) * 16.0 * 2.0;
        let written = (m + n) * k * 2.0;
        let fetched = (m / tile.cluster[1] + n / tile.cluster[0]) * k * 2.0;
        Self {
            tensor_cores: m * n * k / Machine::MULTIPLY_ADDS,
            shared_memory: (read + written) / Machine::SHARED,
            l2: fetched * Machine::MULTIPROCESSORS / Machine::L2,
            // A scheduler has a warp of each of the two warpgroups, and one that copies, whose loop is taken to be as
            // long as theirs.
            issue: 3.0 * figures.main_loop,
        }
    }

    fn clocks(&self) -> f64 {
        self.tensor_cores.max(self.shared_memory).max(self.l2).max(self.issue)
    }

    fn limit(&self) -> String {
        let parts = [
            ("tensor cores", self.tensor_cores),
            ("shared memory", self.shared_memory),
            ("L2", self.l2),
            ("issue slots", self.issue),
        ];
        let most: Vec<&str> = parts.iter().filter(|part| part.1 >= self.clocks()).map(|part| part.0).collect();
        most.join(", ")
    }
}

/// A block of attention: 128 queries of two warpgroups, and so many keys.
struct Attention {
    /// Elements of a head.
    head: f64,
    keys: f64,
    /// Instructions of a warp for it: those of the main loop in `tests/examples/machine_code.rs`, at most.
    instructions: f64,
}

const ATTENTION: [Attention; 4] = [
    Attention { head: 64.0, keys: 128.0, instructions: 445.0 },
    Attention { head: 96.0, keys: 128.0, instructions: 475.0 },
    Attention { head: 128.0, keys: 128.0, instructions: 500.0 },
    Attention { head: 256.0, keys: 64.0, instructions: 445.0 },
];

/// Clocks of a block, by what takes them.
struct OfBlock {
    tensor_cores: f64,
    exponentials: f64,
    issue: f64,
    shared_memory: f64,
    l2: f64,
}

impl OfBlock {
    const QUERIES: f64 = 128.0;
    const WARPGROUPS: f64 = 2.0;

    fn of(block: &Attention) -> Self {
        let Attention { head, keys, instructions } = *block;
        // Scores read queries and keys in shared memory; the other product has its left factor in registers.
        let read = Self::WARPGROUPS * (64.0 + 2.0 * keys) * head * 2.0;
        let fetched = 2.0 * keys * head * 2.0;
        Self {
            tensor_cores: 2.0 * Self::QUERIES * keys * head / Machine::MULTIPLY_ADDS,
            exponentials: Self::QUERIES * keys / Machine::EXPONENTIALS,
            // A scheduler has a warp of each warpgroup.
            issue: Self::WARPGROUPS * instructions,
            shared_memory: (read + fetched) / Machine::SHARED,
            l2: fetched * Machine::MULTIPROCESSORS / Machine::L2,
        }
    }

    fn parts(&self) -> [(&'static str, f64); 5] {
        [
            ("tensor cores", self.tensor_cores),
            ("exponentials", self.exponentials),
            ("issue slots", self.issue),
            ("shared memory", self.shared_memory),
            ("L2", self.l2),
        ]
    }

    fn clocks(&self) -> f64 {
        self.parts().iter().fold(0.0, |most, part| part.1.max(most))
    }

    /// The share of a warpgroup's time in which its products run, if nothing else does meanwhile: the rest takes as
    /// long as its instructions, one in a clock, or its exponentials.
    fn in_sequence(&self) -> f64 {
        let [products, issue, exponentials] =
            [self.tensor_cores, self.issue, self.exponentials].map(|all| all / Self::WARPGROUPS);
        products / (products + issue.max(exponentials))
    }
}

/// What the assembler makes of the kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// Instructions of the main loop.
    pub main_loop: f64,
    /// Instructions after it, for a tile.
    pub epilogue: f64,
}

impl Figures {
    /// Those of `Gemm` in the table of `docs/ladder.md`.
    pub fn read(page: &str) -> Option<Self> {
        let cells = |line: &str| line.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
        let head = cells(page.lines().find(|line| line.starts_with("| step |"))?);
        let row = cells(page.lines().find(|line| line.starts_with("| 6 Gemm |"))?);
        let of = |name: &str| row[head.iter().position(|cell| cell == name)?].parse().ok();
        Some(Self { main_loop: of("loop")?, epilogue: of("epilogue")? })
    }
}

/// Clocks between the products of two tiles, by what takes them. Both warpgroups write a part, wait until the
/// accelerator has read the part before, whose slot the next part takes, and hand theirs over.
/// Nobody waits for the last part.
struct Epilogue {
    instructions: f64,
    waits: f64,
}

impl Epilogue {
    fn of(tile: &Tile, figures: &Figures) -> Self {
        let [m, n, _] = tile.block;
        // Two warps of a scheduler; what they write to shared memory is among their instructions.
        let instructions = 2.0 * figures.epilogue;
        let read = Machine::STORE + m * n * 2.0 / PARTS / Machine::SHARED;
        Self { instructions, waits: (PARTS - 1.0) * (read - instructions / PARTS).max(0.0) }
    }

    fn clocks(&self) -> f64 {
        self.instructions + self.waits
    }
}

/// One product by one tile.
struct Prediction {
    tiles: f64,
    waves: f64,
    /// Clocks that the tensor cores of all multiprocessors need at least, for the product without its padding.
    ideal: f64,
    /// Clocks of the iterations of a multiprocessor, of its epilogues, and of device memory.
    iterations: f64,
    epilogues: f64,
    device_memory: f64,
}

impl Prediction {
    fn of(tile: &Tile, figures: &Figures, [m, n, k]: [f64; 3]) -> Self {
        let [bm, bn, bk] = tile.block;
        let [rows, columns] = [bm * tile.cluster[0], bn * tile.cluster[1]];
        let [down, across] = [(m / rows).ceil(), (n / columns).ceil()];
        let tiles = down * across;
        let at_one_time = Machine::MULTIPROCESSORS / (tile.cluster[0] * tile.cluster[1]);
        let waves = (tiles / at_one_time).ceil();
        Self {
            tiles,
            waves,
            ideal: m * n * k / (Machine::MULTIPLY_ADDS * Machine::MULTIPROCESSORS),
            iterations: waves * (k / bk).ceil() * Iteration::of(tile, figures).clocks(),
            epilogues: waves * Epilogue::of(tile, figures).clocks(),
            device_memory: memory([m, n, k], [rows, columns], [down, across], at_one_time) / Machine::DEVICE_MEMORY,
        }
    }

    fn share(&self, epilogues: f64) -> f64 {
        self.ideal / (Machine::START + self.iterations + epilogues).max(self.device_memory)
    }
}

/// Parts in which a tile is stored.
const PARTS: f64 = 4.0;
/// Tiles of a group of the raster, along rows.
const RASTER: f64 = 8.0;

/// Bytes of device memory. The tiles of a wave read each row and column once, and nothing is left for the next wave
/// unless both factors fit in half of L2.
fn memory([m, n, k]: [f64; 3], [rows, columns]: [f64; 2], [down, across]: [f64; 2], at_one_time: f64) -> f64 {
    let (once, result) = ((m + n) * k * 2.0, m * n * 2.0);
    if once <= Machine::L2_SIZE / 2.0 {
        return once + result;
    }
    let high = RASTER.min(down);
    let wide = (at_one_time / high).min(across);
    let of_wave = ((high * rows).min(m) + (wide * columns).min(n)) * k * 2.0;
    once.max(of_wave * down * across / (high * wide)) + result
}

/// Products that are wanted: squares, layers of language models, few rows.
pub const SHAPES: [([u32; 3], &str); 14] = [
    ([8192, 8192, 8192], "square"),
    ([16384, 16384, 16384], "square"),
    ([4096, 4096, 4096], "square"),
    ([2048, 2048, 2048], "square"),
    ([8192, 8192, 1024], "few terms"),
    ([4096, 6144, 4096], "8 B, QKV"),
    ([4096, 4096, 4096], "8 B, projection"),
    ([4096, 14336, 4096], "8 B, up"),
    ([4096, 4096, 14336], "8 B, down"),
    ([8192, 28672, 8192], "70 B, up"),
    ([8192, 8192, 28672], "70 B, down"),
    ([512, 14336, 4096], "512 rows"),
    ([128, 14336, 4096], "128 rows"),
    ([16, 8192, 8192], "16 rows"),
];

/// The tables: iterations of each tile; the epilogue and products of the first; blocks of attention.
pub fn tables(figures: &Figures, shapes: &[([u32; 3], &str)]) -> [String; 4] {
    let mut iterations =
        "| tile of a block | tensor cores | shared memory | L2 | issue slots | limit | share of peak |\n\
        | --- | --- | --- | --- | --- | --- | --- |\n"
            .to_owned();
    for tile in &TILES {
        let of = Iteration::of(tile, figures);
        let share = 100.0 * of.tensor_cores / of.clocks();
        let Iteration { tensor_cores, shared_memory, l2, issue } = of;
        writeln!(
            iterations,
            "| {} | {tensor_cores:.0} | {shared_memory:.0} | {l2:.0} | {issue:.0} | {} | {share:.0} % |",
            tile.name,
            of.limit(),
        )
        .expect("a string");
    }
    let of = Epilogue::of(&TILES[0], figures);
    let epilogue = format!(
        "| between the products of two tiles | instructions | waits | sum |\n| --- | --- | --- | --- |\n\
         | clocks | {:.0} | {:.0} | {:.0} |\n",
        of.instructions,
        of.waits,
        of.clocks()
    );
    let mut products =
        "| M × N × K | | tiles | waves | full | epilogues | device memory | share of peak | stores hidden |\n\
        | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
            .to_owned();
    for (shape, name) in shapes {
        let of = Prediction::of(&TILES[0], figures, shape.map(f64::from));
        let at_one_time = Machine::MULTIPROCESSORS / 2.0;
        let all = Machine::START + of.iterations + of.epilogues;
        let [m, n, k] = shape;
        writeln!(
            products,
            "| {m} × {n} × {k} | {name} | {} | {} | {:.0} % | {:.1} % | {:.0} % | {:.0} % | {:.0} % |",
            of.tiles,
            of.waves,
            100.0 * of.tiles / (of.waves * at_one_time),
            100.0 * of.epilogues / all,
            100.0 * of.device_memory / all,
            100.0 * of.share(of.epilogues),
            100.0 * of.share(0.0),
        )
        .expect("a string");
    }
    let mut attention = "| elements of a head | keys of a block | tensor cores | exponentials | issue slots | shared \
        memory | L2 | limit | share of peak | in sequence |\n\
        | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
        .to_owned();
    for block in &ATTENTION {
        let of = OfBlock::of(block);
        let clocks = of.parts().map(|part| format!("{:.0}", part.1)).join(" | ");
        let limits = of.parts().into_iter().filter(|part| part.1 >= of.clocks()).map(|part| part.0);
        writeln!(
            attention,
            "| {} | {} | {clocks} | {} | {:.0} % | {:.0} % |",
            block.head,
            block.keys,
            limits.collect::<Vec<_>>().join(", "),
            100.0 * of.tensor_cores / of.clocks(),
            100.0 * of.in_sequence(),
        )
        .expect("a string");
    }
    [iterations, epilogue, products, attention]
}

/// The page of the model with its tables as they are now.
pub fn page(old: &str, figures: &Figures) -> String {
    let mut tables = tables(figures, &SHAPES).into_iter();
    let mut lines = old.lines().peekable();
    let mut new = String::new();
    while let Some(line) = lines.next() {
        if line.starts_with('|') {
            while lines.next_if(|line| line.starts_with('|')).is_some() {}
            new += &tables.next().unwrap_or_default();
        } else {
            new += line;
            new.push('\n');
        }
    }
    new
}

/// Prints the tables, for the shapes of the page or for one.
///
/// # Errors
/// The counts of instructions are not in `docs/ladder.md`.
pub fn print(shape: Option<[u32; 3]>) -> Result<(), crate::Failure> {
    let path = crate::root().join("docs/ladder.md");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let figures = Figures::read(&text).ok_or("docs/ladder.md has no row of `Gemm`")?;
    let one = shape.map(|shape| [(shape, "")]);
    println!("{}", tables(&figures, one.as_ref().map_or(&SHAPES[..], |one| &one[..])).join("\n"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIGURES: Figures = Figures { main_loop: 47.0, epilogue: 857.0 };

    #[test]
    fn an_iteration_is_the_arithmetic_of_its_tile() {
        let of = Iteration::of(&TILES[0], &FIGURES);
        // Eight instructions of 128 clocks; they read 10 KiB each, and 48 KiB are written, 128 bytes in a clock.
        assert_eq!((of.tensor_cores, of.shared_memory), (1024.0, 1024.0));
        // 32 KiB for each of 132 multiprocessors.
        assert!((of.l2 - 32768.0 * 132.0 / 6150.0).abs() < 1e-9);
        // Sixteen instructions that read 6 KiB.
        assert_eq!(Iteration::of(&TILES[1], &FIGURES).shared_memory, (16.0 * 6144.0 + 49152.0) / 128.0);
    }

    #[test]
    fn a_product_without_losses_reaches_the_peak() {
        // As many tiles as there are clusters, and very many terms.
        let shape = [f64::from(256 * 11), f64::from(256 * 6), 1e9];
        let of = Prediction::of(&TILES[0], &FIGURES, shape);
        assert_eq!((of.tiles, of.waves), (66.0, 1.0));
        assert!((of.share(of.epilogues) - 1.0).abs() < 1e-3, "{}", of.share(of.epilogues));
        // One more tile is one more wave.
        let of = Prediction::of(&TILES[0], &FIGURES, [256.0 * 11.0, 256.0 * 6.0 + 1.0, 1e9]);
        assert_eq!(of.waves, 2.0);
    }

    #[test]
    fn a_block_of_attention_is_the_arithmetic_of_its_sizes() {
        let of = OfBlock::of(&ATTENTION[2]);
        // Sixteen instructions of 64 clocks for each of two warpgroups.
        assert_eq!((of.tensor_cores, of.exponentials), (2048.0, 1024.0));
        // Eight of them read 6 KiB, eight 4 KiB; 64 KiB are fetched.
        assert_eq!(of.shared_memory, (2.0 * 8.0 * (6144.0 + 4096.0) + 65536.0) / 128.0);
        assert!((of.in_sequence() - 1024.0 / (1024.0 + 512.0)).abs() < 1e-9);
    }

    #[test]
    fn figures_are_found_by_their_names() {
        let page = "| step | a | loop | epilogue |\n| --- | --- | --- | --- |\n| 6 Gemm | x | 47 | 857 |\n";
        assert_eq!(Figures::read(page), Some(FIGURES));
    }
}
