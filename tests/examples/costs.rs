//! What `tilewright inspect --cost` counts for the examples: the same as the emulator in a launch with all its checks
//! and all products, and what their algorithms ask for.

use rayon::prelude::*;
use tilewright::kernel::info::KernelInfo;
use tilewright::{Device, EmulatorOptions};
use tilewright_cli::cost::counts::{Counts, Request};
use tilewright_cli::sizes;
use tilewright_cli::trial::{Trial, least};
use tilewright_emulator::{Counters, Factor};

use crate::examples;

/// Sizes that are tried, in this order.
const POOLS: [&[i64]; 4] =
    [&[1, 3, 8, 40, 64, 100], &[3, 64, 128, 200, 512], &[2, 128, 512, 4096], &[1, 8192, 32_768, 65_536]];

fn counts(kernel: &KernelInfo, dims: &[i64]) -> Counts {
    let resident = EmulatorOptions::default().resident;
    let request = Request { kernel, dims, scalars: &[], resident, budget: u64::MAX };
    Counts::of(&request).unwrap_or_else(|e| panic!("{} at {dims:?}: {e}", kernel.name))
}

/// Compares what is counted of a kernel with a launch; whether that depends on data, if it is known.
fn counts_like_a_launch(example: &str, info: &KernelInfo) -> Option<bool> {
    let given = POOLS.iter().find_map(|pool| sizes::choose(info, pool, 5)).expect("sizes for each example");
    let dims = sizes::complete(info, &given).expect("all sizes");
    let device = Device::emulator(EmulatorOptions::default());
    let trial = Trial::new(info, &dims, 0, &device).unwrap_or_else(|e| panic!("{given:?}: {e}"));
    trial.launch(&device).unwrap_or_else(|e| panic!("{given:?}: {e}"));
    let launched = device.emulator_report().expect("the emulator ran").counters;
    let counts = counts(info, &dims);
    let name = format!("{} of {example} at {given:?}", info.name);
    assert!(counts.sampled.is_none() && u64::from(counts.blocks) == launched.ctas, "{name}: {counts:?}");
    let all =
        |c: &Counters| (c.ctas, c.global, c.shared, c.local, (c.fetched_bytes, c.bulk_loads, c.bulk_stores), c.work);
    assert_eq!(all(&counts.all), all(&launched), "{name}");
    let layouts = sizes::layouts(info, &dims).expect("layouts");
    assert_eq!(least(info, &layouts).iter().sum::<u64>(), trial.traffic, "{name}");
    counts.depends_on_data
}

#[test]
fn counts_are_those_of_a_launch() {
    let of_example = |(example, kernels): (&String, &'static Vec<KernelInfo>)| {
        kernels.iter().map(|info| (info.name.to_string(), counts_like_a_launch(example, info))).collect()
    };
    let seen = examples().par_iter().map(of_example).collect::<Vec<Vec<_>>>().concat();
    assert!(seen.len() > 50, "{seen:?}");
    let depends: Vec<_> = seen.iter().filter(|(_, depends)| *depends != Some(false)).collect();
    // One reads the score of each row's label, one has as many keys as memory says, two write where it says.
    let of_data = ["CrossEntropy", "Paged", "Histogram", "EmbeddingGradient"].map(|name| (name.to_owned(), Some(true)));
    assert_eq!(depends, of_data.iter().collect::<Vec<_>>());
}

fn example(file: &str, name: &str) -> &'static KernelInfo {
    crate::example(file).iter().find(|info| info.name == name).expect("the kernel")
}

/// Two operations for each of M · N · K products, whatever the instruction; each element of a row once.
#[test]
fn operations_are_those_of_the_algorithm() {
    for (file, name, dims, factor) in [
        ("gemm", "Gemm", vec![512, 128, 512], Factor::Half),
        ("gemm_variants", "Scaled", vec![512, 128, 512], Factor::Float8),
        ("gemm_variants", "Int8", vec![512, 128, 512], Factor::Int8),
        ("gemm_registers", "Warps", vec![512, 128, 512], Factor::Half),
    ] {
        let work = counts(example(file, name), &dims).all.work;
        let expected = 2 * dims.iter().product::<i64>() as u64;
        assert_eq!((work.of(factor), work.tensor.iter().sum()), (expected, expected), "{name}");
    }
    let work = counts(example("saxpy", "Saxpy"), &[1000]).all.work;
    assert_eq!((work.f32.operations, work.operations()), (2000, 2000));
    let work = counts(example("softmax", "Softmax"), &[3, 1024]).all.work;
    assert!(work.special >= 3 * 1024 && work.f32.operations >= 3 * 3 * 1024, "{work:?}");
}

/// A copy for the blocks of a cluster is one, which each of them receives.
#[test]
fn copies_for_a_cluster_are_one() {
    let [m, n, b] = [64, 96, 8];
    let all = counts(example("multicast_transpose", "ScaledTranspose"), &[m, n, b]).all;
    let once = (m * n * b) as u64;
    assert_eq!((all.bulk_loads.bytes, all.bulk_loads.whole_bytes, all.bulk_loads.shared_bytes), (once, once, 4 * once));
    assert_eq!(all.bulk_loads.copies, once / 4 / (32 * 32) * 4, "each of the four blocks copies a quarter of a tile");
}

/// A part of the blocks, where all are too much work: persistent clusters that take different numbers of tiles.
#[test]
fn clusters_of_a_product_stand_for_all() {
    let kernel = example("gemm", "Gemm");
    let dims = [256 * 5, 128, 256 * 5];
    let count = |budget| {
        let request = Request { kernel, dims: &dims, scalars: &[], resident: 12, budget };
        Counts::of(&request).unwrap_or_else(|e| panic!("{e}"))
    };
    let all = count(u64::MAX);
    // No cluster has three of the 25 tiles but the first one.
    let some = count(all.all.warp_instructions);
    let sample = some.sampled.expect("some of them");
    assert!(all.sampled.is_none() && sample.ran < sample.of && sample.operations.0 < sample.operations.1, "{sample:?}");
    assert_eq!((some.all.global, some.all.work), (all.all.global, all.all.work));
}
