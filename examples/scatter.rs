//! Terms that memory sends to their places: a histogram of any number of bins, and the gradient of an embedding.
//!
//! Where several terms belong to one element, atomic operations of memory add them up, in the order in which they come.
//! Of integers that changes nothing; a sum of floats says `unordered`. A term whose place is outside of the tensor
//! belongs to no element.

mod support;

use tilewright::{Device, Tensor, bf16, schedule};

schedule! {
    /// count\[b\] grows by how many elements of x lie in bin b, of `BINS` equal parts of \[0, 1)
    pub kernel Histogram(inout count: u32[BINS], x: f32[N])
    where N % 4 == 0, BINS <= 65536
    {
        bin[i] = floor(x[i] * (BINS as f32)) as i32;
        count[bin[i]] += sum(|i| 1);

        launch threads(256);
        schedule count {
            split i by 4 -> iv, v;            // 16 bytes of x; each lane has a bin of its own
            split iv by 256 -> b, t;
            bind b: grid;
            bind t: thread;
            vectorize v;
        }
    }

    /// The gradient of `table[ids[t], d]`, added to that of earlier batches
    pub kernel EmbeddingGradient(inout dtable: f32[V, D], ids: i64[T], dy: bf16[T, D])
    where D % 2 == 0
    {
        dtable[ids[t], d] += unordered sum(|t| dy[t, d] as f32);

        launch threads(256);
        schedule dtable {
            split d by 2 -> dp, v;
            split dp by 32 -> db, l;          // neighbouring lanes add to neighbouring elements
            split t by 8 -> tb, w;
            reorder tb, db, w, l, v;
            bind tb, db: grid;
            bind w: warp;                     // a row a warp
            bind l: thread;
            vectorize v;
        }
    }
}

fn main() -> tilewright::Result<()> {
    let device = Device::best()?;
    support::title(&device, Histogram::KERNEL);
    for (n, bins) in [(4, 1), (1000, 7), (4096, 300), (100_004, 256)] {
        let x = Tensor::from_slice(&device, &support::data(n, 17).into_iter().map(f32::abs).collect::<Vec<_>>(), [n])?;
        let mut count = Tensor::zeros(&device, [bins])?;
        let reference = Histogram { count: &mut count, x: &x }.reference()?;
        let time = support::time(&device, || Histogram { count: &mut count, x: &x }.launch(&device))?;
        support::row(&format!("N = {n}, BINS = {bins}"), time, &reference.check("count", &count)?);
    }
    support::title(&device, EmbeddingGradient::KERNEL);
    for (t, v, d) in [(1, 1, 2), (31, 7, 66), (100, 5, 128), (300, 1000, 130)] {
        // Some tokens are no word of the table: they say so by −1.
        let ids: Vec<i64> = (0..t as i64).map(|i| i * i * 7 % (v as i64 + 1) - 1).collect();
        let dy: Vec<bf16> = support::data(t * d, 18).into_iter().map(bf16::from_f32).collect();
        let ids = Tensor::from_slice(&device, &ids, [t])?;
        let dy = Tensor::from_slice(&device, &dy, [t, d])?;
        let mut dtable = Tensor::from_slice(&device, &support::data(v * d, 19), [v, d])?;
        let reference = EmbeddingGradient { dtable: &mut dtable, ids: &ids, dy: &dy }.reference()?;
        let launch = EmbeddingGradient { dtable: &mut dtable, ids: &ids, dy: &dy };
        let time = support::time(&device, || launch.launch(&device))?;
        support::row(&format!("T = {t}, V = {v}, D = {d}"), time, &reference.check("dtable", &dtable)?);
    }
    Ok(())
}
