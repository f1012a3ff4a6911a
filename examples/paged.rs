//! Copies whose place memory tells: keys and values in pages that a table lists, and the matrix of an expert for each
//! tile of rows. The accelerator takes the coordinate that was read; a place outside of the tensor gives zeros.

mod support;

use tilewright::{Device, Tensor, bf16, schedule};

schedule! {
    /// o = softmax(q · kᵀ / √128) · v for one token of each sequence, whose R queries share a head of keys; those lie
    /// in pages of 64, of which `page` lists the sequence's, and `len` says how many of them count
    pub kernel Paged(
        q: bf16[B, G, R, 128], k: bf16[P, 64, G, 128], v: bf16[P, 64, G, 128], page: i32[B, L], len: i32[B]
    ) -> (o: bf16[B, G, R, 128])
    where L % 2 == 0
    {
        s[b, g, i, j in 0..64 * L] = dot(|d| q[b, g, i, d] * (k[page[b, j / 64], j % 64, g, d] or 0.0));
        m[b, g, i]     = max(|j in 0..min(len[b], 64 * L)| s[b, g, i, j]);
        p[b, g, i, j in 0..64 * L]  = approx::exp2(fma(0.127_517_43, s[b, g, i, j], -0.127_517_43 * m[b, g, i])); // log₂ e / √128
        pb[b, g, i, j in 0..64 * L] = p[b, g, i, j] as bf16;
        l[b, g, i]     = online sum(|j in 0..min(len[b], 64 * L)| p[b, g, i, j]);
        a[b, g, i, e]  = online dot(|j in 0..min(len[b], 64 * L)| pb[b, g, i, j] * (v[page[b, j / 64], j % 64, g, e] or 0.0));
        o[b, g, i, e]  = (a[b, g, i, e] / l[b, g, i]) as bf16;

        launch roles { math: warpgroup, load: warp };
        schedule o by math {
            split i by 64 -> it, i1;
            reorder b, g, it, i1, e;
            bind b, g, it: grid;
            fragment (i1, e) by wgmma;
            vectorize e_p;
        }
        schedule m in registers at o.it by math {
            split j by 128 -> jo, j1;               // two pages
            reorder jo, i, j1;
            fragment (i, j1) by wgmma;
            online m -> l, a over jo;
        }
        schedule a  in registers at m.jo by math { mma (i, e, j) by wgmma inflight(1); }
        schedule pb in registers at m.jo by math { fragment (i, j) by wgmma; }
        schedule p  in registers at m.jo by math { fragment (i, j) by wgmma; }
        schedule s  in registers at m.jo by math { mma (i, j, d) by wgmma; }
        stage sq[b, g, i, d] = q in shared at o.it via tma by load {
            box d by 64 -> dx, db;
            layout [dx, b, g, i, db] swizzle 128;
        }
        stage sk[n, j, g, d] = k in shared at m.jo ring(2) via tma by load {
            box d by 64 -> dx, db;
            layout [dx, n, j, g, db] swizzle 128;
        }
        stage sv[n, j, g, e] = v in shared at m.jo ring(2) via tma by load {
            box e by 64 -> ex, eb;
            layout [ex, n, j, g, eb] swizzle 128;
        }
    }
}

schedule! {
    /// c = a · wᵀ, with the matrix of one of E experts for each tile of 128 rows: `expert` says which, and −1 that the
    /// rows are nobody's
    pub kernel Experts(a: bf16[M, K], w: bf16[E, N, K], expert: i32[T]) -> (c: bf16[M, N])
    where 128 * T >= M, K % 8 == 0, N % 8 == 0
    {
        acc[m, n] = dot(|k| a[m, k] * (w[expert[m / 128], n, k] or 0.0));
        c[m, n] = acc[m, n] as bf16;
        launch persistent, roles { load: warpgroup regs(40), math: 2 warpgroup regs(232) };
        schedule c by math {
            split m by 128, 64 -> mt, mw, m3;
            split n by 256, 64 -> nt, ns, n2;
            reorder mt, nt, ns, mw, m3, n2;
            bind mt, nt: grid;
            unroll ns;
            bind mw: warpgroup;
            fragment (m3, n2) by wgmma;
            vectorize n2_p;
        }
        stage cs[m, n] = c in shared at c.ns ring(2) via tma by math { layout [m, n] swizzle 128; }
        schedule acc in registers at c.nt by math {
            split k by 64 -> ko, ki;
            split m by 64 -> mw, m3;
            reorder ko, mw, m3, n, ki;
            bind mw: warpgroup;
            mma (m3, n, ki) by wgmma inflight(1);
        }
        stage sa[m, k] = a in shared at acc.ko ring(4) via tma by load { layout [m, k] swizzle 128; }
        stage sw[e, n, k] = w in shared at acc.ko ring(4) via tma by load { layout [e, n, k] swizzle 128; }
    }
}

fn main() -> tilewright::Result<()> {
    let device = Device::best()?;
    let data =
        |count: usize, seed: u64| -> Vec<bf16> { support::data(count, seed).into_iter().map(bf16::from_f32).collect() };
    support::title(&device, Paged::KERNEL);
    // Sequences of 70, 300 and 1 tokens; what lies in a page of nobody, and behind the last token of a page, is not
    // read.
    let (b, g, r, pages) = (3, 2, 8, 8);
    let table = [[5, 0, -1, -1, -1, -1], [1, 7, 2, 6, 3, -1], [4, -1, -1, -1, -1, -1]].concat();
    let q = Tensor::from_slice(&device, &data(b * g * r * 128, 5), [b, g, r, 128])?;
    let k = Tensor::from_slice(&device, &data(pages * 64 * g * 128, 8), [pages, 64, g, 128])?;
    let v = Tensor::from_slice(&device, &data(pages * 64 * g * 128, 3), [pages, 64, g, 128])?;
    let page = Tensor::from_slice(&device, &table, [b, 6])?;
    let len = Tensor::from_slice(&device, &[70, 300, 1], [b])?;
    let mut o = Tensor::zeros(&device, [b, g, r, 128])?;
    let run = |o: &mut _| Paged { q: &q, k: &k, v: &v, page: &page, len: &len, o }.launch(&device);
    let time = support::time(&device, || run(&mut o))?;
    let reference = Paged { q: &q, k: &k, v: &v, page: &page, len: &len, o: &mut o }.reference()?;
    support::row(&format!("B = {b}, G = {g}, R = {r}, P = {pages}"), time, &reference.check("o", &o)?);

    support::title(&device, Experts::KERNEL);
    let (m, n, k, experts) = (300, 136, 80, 4);
    let a = Tensor::from_slice(&device, &data(m * k, 1), [m, k])?;
    let w = Tensor::from_slice(&device, &data(experts * n * k, 2), [experts, n, k])?;
    let expert = Tensor::from_slice(&device, &[2, -1, 0], [3])?;
    let mut c = Tensor::zeros(&device, [m, n])?;
    let time = support::time(&device, || Experts { a: &a, w: &w, expert: &expert, c: &mut c }.launch(&device))?;
    let check = Experts { a: &a, w: &w, expert: &expert, c: &mut c }.reference()?.check("c", &c)?;
    support::row(&format!("M = {m}, N = {n}, K = {k}, E = {experts}"), time, &check);
    Ok(())
}
