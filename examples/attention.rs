//! Attention in one pass on the tensor cores of Hopper: one warpgroup fetches blocks of keys and values, and two
//! multiply. Scores and their exponentials stay in registers; sums are corrected where a block has a larger score.
//!
//! The equations are plain: scores, their maximum, exponentials, two sums, a quotient. `online m -> l, a over jo` in
//! the schedule of the maximum makes one pass of three; `online sum` and `online dot` admit what that rounds.

mod support;

use tilewright::{Device, Tensor, bf16, schedule};

schedule! {
    /// o = softmax(q · kᵀ / √128) · v, head by head
    pub kernel Attention(q: bf16[H, S, 128], k: bf16[H, T, 128], v: bf16[H, T, 128]) -> (o: bf16[H, S, 128]) {
        s[h, i, j]  = dot(|d| q[h, i, d] * k[h, j, d]);
        m[h, i]     = max(|j| s[h, i, j]);
        p[h, i, j]  = approx::exp2(fma(0.127_517_43, s[h, i, j], -0.127_517_43 * m[h, i])); // log₂ e / √128
        pb[h, i, j] = p[h, i, j] as bf16;
        l[h, i]     = online sum(|j| p[h, i, j]);
        a[h, i, e]  = online dot(|j| pb[h, i, j] * v[h, j, e]);
        o[h, i, e]  = (a[h, i, e] / l[h, i]) as bf16;

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
            reorder jo, w, i1, j1;
            fragment (i1, j1) by wgmma;             // lanes of a row combine what they have
            online m -> l, a over jo;
        }
        schedule a  in registers at m.jo by math { split i by 64 -> w, i1; bind w: warpgroup; mma (i1, e, j) by wgmma inflight(1); }
        schedule pb in registers at m.jo by math { split i by 64 -> w, i1; bind w: warpgroup; fragment (i1, j) by wgmma; }
        schedule p  in registers at m.jo by math { split i by 64 -> w, i1; bind w: warpgroup; fragment (i1, j) by wgmma; }
        schedule s  in registers at m.jo by math { split i by 64 -> w, i1; bind w: warpgroup; mma (i1, j, d) by wgmma; }
        stage sq[h, i, d] = q in shared at o.it via tma by load {
            box d by 64 -> dx, db;
            layout [dx, h, i, db] swizzle 128;
        }
        stage sk[h, j, d] = k in shared at m.jo ring(2) via tma by load {
            box d by 64 -> dx, db;
            layout [dx, h, j, db] swizzle 128;
        }
        stage sv[h, j, e] = v in shared at m.jo ring(2) via tma by load {
            box e by 64 -> ex, eb;
            layout [ex, h, j, eb] swizzle 128;
        }
    }
}

fn main() -> tilewright::Result<()> {
    let device = Device::best()?;
    support::title(&device, Attention::KERNEL);
    let data =
        |count: usize, seed: u64| -> Vec<bf16> { support::data(count, seed).into_iter().map(bf16::from_f32).collect() };
    for (h, s, t) in [(1, 1, 100), (2, 200, 256)] {
        let q = Tensor::from_slice(&device, &data(h * s * 128, 5), [h, s, 128])?;
        let k = Tensor::from_slice(&device, &data(h * t * 128, 8), [h, t, 128])?;
        let v = Tensor::from_slice(&device, &data(h * t * 128, 3), [h, t, 128])?;
        let mut o = Tensor::zeros(&device, [h, s, 128])?;
        let time = support::time(&device, || Attention { q: &q, k: &k, v: &v, o: &mut o }.launch(&device))?;
        let check = Attention { q: &q, k: &k, v: &v, o: &mut o }.reference()?.check("o", &o)?;
        support::row(&format!("H = {h}, S = {s}, T = {t}"), time, &check);
    }
    Ok(())
}
