//! Attention in 8-bit floats: both products by tensor cores at twice the rate of 16-bit types.
//!
//! Three things differ from the example `attention`:
//!
//! - exponentials are at most 1. Multiplied by 256 they use the range of `e4m3`, whose largest number is 448;
//! - a lane has two neighbouring columns of a sum, and an instruction takes four neighbouring terms of an 8-bit factor
//!   from it. So the columns of the scores are first the even keys of a block, and then the odd ones: two columns of
//!   the one and two of the other are four neighbours. The accelerator copies keys in this order (`tile jy by 2`);
//! - values are stored with keys as their last axis: of 8-bit types, tensor cores read neighbouring terms.

mod support;

use tilewright::{Device, Tensor, e4m3, schedule};

schedule! {
    /// o = softmax(qk · (q · kᵀ) / √128) · v · of_v, head by head: scales of queries and keys together, and of values
    pub kernel Attention8(q: e4m3[H, S, 128], k: e4m3[H, T, 128], v: e4m3[H, 128, T], qk: f32, of_v: f32)
    -> (o: bf16[H, S, 128]) where T % 16 == 0 {
        s[h, i, j]  = dot(|d| q[h, i, d] * k[h, j, d]);
        x[h, i, j]  = qk * s[h, i, j];
        m[h, i]     = max(|j| x[h, i, j]);
        p[h, i, j]  = approx::exp2(fma(0.127_517_43, x[h, i, j], -0.127_517_43 * m[h, i])); // log₂ e / √128
        p8[h, i, j] = (256.0 * p[h, i, j]) as e4m3;
        l[h, i]     = online sum(|j| p[h, i, j]);
        a[h, i, e]  = online dot(|j| p8[h, i, j] * v[h, e, j]);
        o[h, i, e]  = (of_v / 256.0 * a[h, i, e] / l[h, i]) as bf16;

        launch roles { load: warpgroup regs(24), math: 2 warpgroup regs(240) };
        schedule o by math {
            split i by 128 -> it, i1;
            split i1 by 64 -> w, i2;
            bind h, it: grid;
            bind w: warpgroup;
            reorder h, it, w, i2, e;
            fragment (i2, e) by wgmma;
            vectorize e_p;
        }
        schedule m in registers at o.it by math {
            split i by 64 -> w, i1;
            bind w: warpgroup;
            split j by 128 -> jo, j1;
            split j1 by 2 -> jc, jb;                // jb: the even keys, and the odd ones
            reorder jo, w, jb, i1, jc;
            unroll jb;
            fragment (i1, jc) by wgmma;
            online m -> l, a over jo;
        }
        schedule a  in registers at m.jo by math { split i by 64 -> w, i1; bind w: warpgroup; mma (i1, e, j) by wgmma inflight(1); }
        schedule p8 in registers at m.jo by math { split i by 64 -> w, i1; bind w: warpgroup; split j by 2 -> jc, jb; fragment (i1, jc) by wgmma; }
        schedule p  in registers at m.jo by math { split i by 64 -> w, i1; bind w: warpgroup; split j by 2 -> jc, jb; fragment (i1, jc) by wgmma; }
        schedule x  in registers at m.jo by math { split i by 64 -> w, i1; bind w: warpgroup; split j by 2 -> jc, jb; fragment (i1, jc) by wgmma; }
        schedule s  in registers at m.jo by math {
            split i by 64 -> w, i1;
            bind w: warpgroup;
            split j by 2 -> jc, jb;
            reorder w, i1, jb, jc, d;
            merge jb, jc -> jn;                     // one instruction has both
            mma (i1, jn, d) by wgmma;
        }
        stage sq[h, i, d] = q in shared at o.it via tma by load { box i by 64 -> ix, ib; layout [ix, h, ib, d] swizzle 128; }
        stage sk[h, j, d] = k in shared at m.jo ring(2) via tma by load {
            box j by 128 -> jx, jy;
            tile jy by 2 -> jc, jb;
            layout [jx, jb, h, jc, d] swizzle 128;
        }
        stage sv[h, e, j] = v in shared at m.jo ring(2) via tma by load { layout [h, e, j] swizzle 128; }
    }
}

fn main() -> tilewright::Result<()> {
    let device = Device::best()?;
    support::title(&device, Attention8::KERNEL);
    let data = |count: usize, seed: u64| -> Vec<e4m3> {
        // Multiples of an eighth, some of which `e4m3` rounds.
        support::data(count, seed).into_iter().map(e4m3::from_f32).collect()
    };
    for (h, s, t) in [(1, 1, 112), (2, 200, 256)] {
        let q = Tensor::from_slice(&device, &data(h * s * 128, 5), [h, s, 128])?;
        let k = Tensor::from_slice(&device, &data(h * t * 128, 8), [h, t, 128])?;
        let v = Tensor::from_slice(&device, &data(h * t * 128, 3), [h, 128, t])?;
        let mut o = Tensor::zeros(&device, [h, s, 128])?;
        let time = support::time(&device, || {
            Attention8 { q: &q, k: &k, v: &v, qk: 0.25, of_v: 2.0, o: &mut o }.launch(&device)
        })?;
        let reference = Attention8 { q: &q, k: &k, v: &v, qk: 0.25, of_v: 2.0, o: &mut o }.reference()?;
        support::row(&format!("H = {h}, S = {s}, T = {t}"), time, &reference.check("o", &o)?);
    }
    Ok(())
}
