//! The examples that hand values from stage to stage or combine threads, at awkward sizes: what they print is tested
//! here.

use tilewright::{Device, EmulatorOptions};
use tilewright_cli::trial::Trial;

/// Runs every kernel of an example with each list of sizes that its facts allow, some of them; the explanations.
fn check(example: &str, sizes: &[&[i64]]) -> Vec<String> {
    let mut explanations = Vec::new();
    for info in crate::example(example) {
        // Kernels of one example may differ in how many sizes they have.
        let is_of_it = |dims: &&&[i64]| dims.len() == info.dims.len();
        let own: Vec<&[i64]> = sizes.iter().filter(is_of_it).copied().collect();
        let holds = |dims: &&[i64]| info.facts.iter().all(|fact| fact.holds(dims) == Ok(true));
        let allowed: Vec<&[i64]> = own.iter().filter(|dims| holds(dims)).copied().collect();
        assert!(!own.is_empty() && allowed.len() >= own.len().min(4), "{}: {allowed:?} of {own:?}", info.name);
        for (seed, dims) in (1..).zip(allowed) {
            let device = Device::emulator(EmulatorOptions::default().seed(seed));
            let trial = Trial::new(info, dims, seed, &device).unwrap_or_else(|e| panic!("{example} {dims:?}: {e}"));
            let outcome = trial.run(&device);
            assert!(outcome.is_good(), "{example} at {dims:?}: {outcome:#?}");
        }
        explanations.push(info.explanation.to_string());
    }
    explanations
}

#[test]
fn softmax() {
    check("softmax", &[&[1, 4], &[7, 28], &[31, 32], &[2, 36], &[33, 132], &[1, 2048], &[2, 2052], &[1, 16384]]);
}

#[test]
fn rmsnorm() {
    let found = check("rmsnorm", &[&[1, 8], &[7, 24], &[31, 32], &[2, 40], &[33, 136], &[1, 4104], &[1, 32768]]);
    assert!(found[0].contains("vector of 8 bf16"), "{}", found[0]);
}

#[test]
fn persistent_softmax() {
    let found = check("persistent_softmax", &[&[1, 4], &[7, 32], &[31, 36], &[4, 2048], &[5, 16384]]);
    assert!(found[0].contains("take the tiles in turn"), "{}", found[0]);
}

#[test]
fn role_softmax() {
    let found = check("role_softmax", &[&[1, 4], &[7, 32], &[31, 36], &[9, 1000], &[5, 4096]]);
    assert!(found[0].contains("role math: warps 4..12, 200 registers for each thread"), "{}", found[0]);
}

#[test]
fn role_pointwise() {
    let found = check("role_pointwise", &[&[1, 4], &[7, 36], &[129, 260], &[300, 512]]);
    assert!(
        found[0].contains("written by threads of role math, read by the accelerator of role store"),
        "{}",
        found[0]
    );
}

#[test]
fn gemm() {
    // Sizes are M, K, N.
    let found =
        check("gemm", &[&[1, 8, 8], &[256, 64, 256], &[300, 200, 264], &[129, 64, 136], &[0, 8, 8], &[3, 0, 16]]);
    assert!(found[0].contains("product by wgmma, m64n256k16 of bf16, 1 group under way"), "{}", found[0]);
    assert!(found[1].contains("B is sb, across k: swizzle 128"), "{}", found[1]);
}

#[test]
fn gemm_variants() {
    // Sizes are M, K, N; of the last one B, M, K, N.
    let of_one: [&[i64]; 4] = [&[1, 16, 8], &[300, 208, 264], &[129, 128, 136], &[0, 16, 8]];
    let of_batch: [&[i64]; 4] = [&[1, 1, 8, 8], &[3, 130, 72, 264], &[2, 128, 64, 256], &[2, 5, 0, 16]];
    let found = check("gemm_variants", &[of_one, of_batch].concat());
    assert!(found[1].contains("m64n256k32 of e4m3") && found[2].contains("m64n256k32 of i8"), "{}", found[1]);
    // A factor of a row is read inside its tensor alone, so that its test stays.
    assert!(found[1].contains("predicate m < M\n") && found[3].contains("n < N, waived in the staged entry: such"));
}

#[test]
fn attention() {
    check("attention", &[&[1, 1, 128], &[2, 130, 200], &[1, 64, 0], &[0, 5, 128]]);
}

#[test]
fn attention_variants() {
    // Sizes are G, S, or H, S, and M, N; of the one for many keys H, S, T.
    let found = check(
        "attention_variants",
        &[&[1, 1], &[2, 70], &[1, 129], &[0, 16], &[1, 1, 5], &[2, 3, 1000], &[1, 65, 64], &[1, 2, 0]],
    );
    assert!(found[2].contains("m_arrived"), "{}", found[2]);
}

#[test]
fn paged() {
    // Sizes are B, G, R, P, L, an odd L being none of them; or M, K, E, N, T, of which K is a multiple of 8.
    let of_pages: [&[i64]; 4] = [&[1, 1, 1, 3, 2], &[2, 1, 8, 5, 4], &[3, 2, 65, 4, 2], &[1, 1, 2, 4, 0]];
    let of_experts: [&[i64]; 4] =
        [&[130, 72, 3, 136, 3], &[1, 8, 1, 8, 1], &[300, 200, 2, 264, 3], &[128, 64, 4, 256, 1]];
    let found = check("paged", &[of_pages, of_experts].concat());
    assert!(found[0].contains("copy sk lies where page[o.b, 2 * jo] and the next say, 2 in all"), "{}", found[0]);
    assert!(found[1].contains("copy sw lies where expert[c.mt] says"), "{}", found[1]);
}

#[test]
fn attention_fp8() {
    // Sizes are H, S, T.
    let found = check("attention_fp8", &[&[1, 1, 128], &[2, 130, 208], &[1, 64, 0], &[0, 5, 128]]);
    assert!(found[0].contains("m64n128k32 of e4m3"), "{}", found[0]);
}

#[test]
fn cross_entropy() {
    // Sizes are N, V.
    check("cross_entropy", &[&[1, 1], &[70, 300], &[64, 128], &[3, 0]]);
}

#[test]
fn top_one() {
    // Sizes are N, V.
    check("top_one", &[&[1, 1], &[70, 300], &[64, 128], &[0, 5]]);
}

#[test]
fn online_norm() {
    check("online_norm", &[&[1, 4], &[2, 36], &[1, 2048], &[3, 2052], &[0, 8]]);
}

#[test]
fn convolution_mma() {
    // Sizes are B, H, W, C, K.
    check("convolution_mma", &[&[1, 1, 1, 8, 8], &[1, 2, 130, 72, 24], &[2, 2, 5, 16, 136], &[1, 0, 5, 8, 8]]);
}

#[test]
fn gemm_registers() {
    // Sizes are M, K, N.
    let found = check("gemm_registers", &[&[1, 16, 8], &[128, 64, 128], &[300, 208, 136], &[0, 16, 8], &[3, 0, 16]]);
    assert!(found[0].contains("A is wide, in registers"), "{}", found[0]);
    assert!(found[1].contains("product by mma_sync, m16n8k16 of bf16, at once"), "{}", found[1]);
    assert!(found[1].contains("loaded by ldmatrix, 4 matrices at a time, transposed"), "{}", found[1]);
}

#[test]
fn tuned_product() {
    let found = check("tuned_product", &[&[1, 8, 8], &[64, 72, 16], &[130, 136, 72], &[128, 64, 256]]);
    assert!(found[0].contains("of 3 · 3 combinations; chosen by h200 at "), "{}", found[0]);
}

#[test]
fn role_product() {
    let found = check("role_product", &[&[1, 4, 1], &[7, 36, 65], &[130, 32, 3], &[257, 100, 64], &[129, 132, 70]]);
    assert!(found[0].contains("goes to the 2 blocks along c.mc"), "{}", found[0]);
}

#[test]
fn role_norm() {
    let found = check("role_norm", &[&[1, 4], &[3, 8196], &[14, 1000], &[5, 32_768]]);
    assert!(found[0].contains("stage ss in registers per cluster at y.i, run by role math"), "{}", found[0]);
}

#[test]
fn cluster_norm() {
    let sizes: &[&[i64]] = &[&[1, 64], &[7, 192], &[2, 32_832], &[3, 65_472], &[1, 262_144]];
    let found = check("cluster_norm", sizes);
    assert!(found[0].contains("in clusters of 8"), "{}", found[0]);
}

#[test]
fn multicast_transpose() {
    let found = check("multicast_transpose", &[&[1, 4, 1], &[7, 8, 3], &[31, 32, 5], &[33, 68, 4], &[100, 36, 9]]);
    assert!(found[0].contains("goes to the 4 blocks along y.bc"), "{}", found[0]);
}

#[test]
fn layernorm() {
    check("layernorm", &[&[1, 4], &[7, 28], &[31, 32], &[2, 36], &[33, 132], &[2, 1028], &[1, 8192]]);
}

#[test]
fn scatter() {
    // Sizes are N, BINS; and V, D, T; and S, D, T.
    let of_bins: [&[i64]; 5] = [&[4, 1], &[1000, 300], &[2052, 7], &[0, 5], &[8, 0]];
    let of_rows: [&[i64]; 8] = [
        &[1, 2, 1],
        &[9, 66, 31],
        &[1000, 130, 65],
        &[3, 8, 0],
        &[0, 8, 3],
        &[40, 16, 33],
        &[7, 72, 40],
        &[300, 264, 3],
    ];
    let found = check("scatter", &[&of_bins[..], &of_rows[..]].concat());
    assert!(found[..2].iter().all(|text| text.contains("one by one, by atomic operations")), "{}", found[0]);
    assert!(found[0].contains("a launch fills count with 0 before"), "{}", found[0]);
    assert!(!found[1].contains("a launch fills") && !found[2].contains("a launch fills"), "{}", found[1]);
    assert!(found[2].contains("terms go to cache one by one, each to its place"), "{}", found[2]);
}

#[test]
fn column_sum() {
    let sizes: &[&[i64]] =
        &[&[1, 1], &[7, 31], &[9, 33], &[31, 7], &[33, 65], &[1, 4], &[7, 32], &[31, 132], &[1027, 36]];
    check("column_sum", sizes);
}

#[test]
fn batch_stats() {
    let sizes: &[&[i64]] = &[&[1, 4], &[7, 28], &[31, 32], &[257, 36], &[300, 132], &[1030, 4], &[5, 0]];
    let found = check("batch_stats", sizes);
    assert!(found[0].contains("after it, what stands in mean.jb is for that block alone"), "{}", found[0]);
}

#[test]
fn full_sum() {
    let found = check("full_sum", &[&[4], &[28], &[32], &[8192], &[8196], &[40_004]]);
    assert!(found[0].contains("blocks that differ in kb share results"), "{}", found[0]);
}

#[test]
fn blur() {
    let found = check("blur", &[&[3, 3], &[7, 33], &[32, 66], &[33, 67], &[31, 3], &[63, 130]]);
    assert!(found[0].contains("region 32 x 64, 8192 bytes"), "{}", found[0]);
}

#[test]
fn convolution() {
    // Fewer tiles than a ring has buffers, as many, more, and a second block.
    let found = check("convolution", &[&[5, 8], &[7, 32], &[13, 12], &[24, 68], &[33, 64], &[31, 132], &[140, 20]]);
    assert!(found[0].contains("fetched by cp.async, 4 bytes at a time, 2 iterations ahead"), "{}", found[0]);
    assert!(found[0].contains("region 12 x 68, 3264 bytes"), "{}", found[0]);
    assert!(found[1].contains("boxes 12 of i × 72 of j"), "{}", found[1]);
}

#[test]
fn fused_split() {
    let found = check("fused_split", &[&[]]);
    for (explanation, region) in found.iter().zip(["1 x 4", "2 x 4", "3"]) {
        assert!(explanation.contains(&format!("region {region}, ")), "{explanation}");
    }
}
