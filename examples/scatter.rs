//! Terms that memory sends to their places: a histogram of any number of bins, the gradient of an embedding, and rows
//! that go into a cache.
//!
//! Where several terms belong to one element, atomic operations of memory add them up, in the order in which they come.
//! Of integers that changes nothing; a sum of floats says `unordered`. Where one term at most belongs to an element,
//! `only` promises that, and it is stored. A term whose place is outside of the tensor belongs to no element. An output
//! begins as zeros, which the launch puts there; what is `inout` begins as what it holds.

mod support;

use tilewright::{Device, Tensor, bf16, schedule};

schedule! {
    /// count\[b\] is how many elements of x lie in bin b, of `BINS` equal parts of \[0, 1)
    pub kernel Histogram(x: f32[N]) -> (count: u32[BINS])
    where N % 4 == 0, BINS <= 65536
    {
        bin[i] = floor(x[i] * (BINS as f32)) as i32;
        count[bin[i]] = sum(|i| 1);

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

    /// The keys of T new tokens go to the rows of a cache that `slot` tells; the other rows stay
    pub kernel CacheRows(inout cache: bf16[S, D], slot: i64[T], k: bf16[T, D]) {
        cache[slot[t], d] = only(|t| k[t, d]);

        launch threads(256);
        schedule cache {
            reorder t, d;
            merge t, d -> e;
            split e by 256 -> b, i;           // neighbouring lanes store neighbours of a row
            bind b: grid;
            bind i: thread;
        }
    }
}

fn main() -> tilewright::Result<()> {
    let device = Device::best()?;
    support::title(&device, Histogram::KERNEL);
    for (n, bins) in [(4, 1), (1000, 7), (4096, 300), (100_004, 256)] {
        let x = Tensor::from_slice(&device, &support::data(n, 17).into_iter().map(f32::abs).collect::<Vec<_>>(), [n])?;
        // Whatever is there: the launch begins with zeros.
        let mut count = Tensor::full(&device, 77, [bins])?;
        let reference = Histogram { x: &x, count: &mut count }.reference()?;
        let time = support::time(&device, || Histogram { x: &x, count: &mut count }.launch(&device))?;
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
    support::title(&device, CacheRows::KERNEL);
    for (t, slots, d) in [(1, 4, 8), (31, 64, 72), (100, 1000, 128)] {
        // Each token has a slot of its own, but for padding, which has none.
        let slot: Vec<i64> = (0..t as i64).map(|i| if i % 7 == 3 { -1 } else { i * 37 % slots as i64 }).collect();
        let k: Vec<bf16> = support::data(t * d, 20).into_iter().map(bf16::from_f32).collect();
        let (slot, k) = (Tensor::from_slice(&device, &slot, [t])?, Tensor::from_slice(&device, &k, [t, d])?);
        let mut cache = Tensor::full(&device, bf16::ONE, [slots, d])?;
        let reference = CacheRows { cache: &mut cache, slot: &slot, k: &k }.reference()?;
        let launch = CacheRows { cache: &mut cache, slot: &slot, k: &k };
        let time = support::time(&device, || launch.launch(&device))?;
        support::row(&format!("T = {t}, S = {slots}, D = {d}"), time, &reference.check("cache", &cache)?);
    }
    Ok(())
}
