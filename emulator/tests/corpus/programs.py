"""Cases of the Triton kernels in `triton/more.py`; see `cases.py`."""

import pathlib

import numpy as np
from cases import Case, f32, from_bf16, product, rng, softmax_of, to_bf16, u, ulp
from walks import philox

H = 2.0**-11  # unit roundoff of f16


def attention(name="flash", ptx="triton/flash.ptx", shared=64 * 1024):
    length, heads, d = 100, 2, 64
    q, k, v = (rng.standard_normal((heads, length, d)).astype(np.float16) for _ in range(3))
    scale = np.float32(1 / 8)
    wide = [x.astype(np.float64) for x in (q, k, v)]
    s = wide[0] @ wide[1].transpose(0, 2, 1) * scale
    size = np.abs(wide[0]) @ np.abs(wide[1]).transpose(0, 2, 1) * scale
    s = np.where(np.tri(length, dtype=bool), s, -np.inf)
    top = s.max(2, keepdims=True)
    p = np.exp(s - top)
    total = p.sum(2, keepdims=True)
    want = p / total @ wide[2]
    # Scores are off by the sum of d products and by the rounding of scaled exponents, weights by that, by f16 and by ex2.approx; so is their sum.
    off = (d + 8) * u * size.max(2, keepdims=True) + 4 * u * np.abs(top)
    each = off + H + 2.0**-21 + (length + 10) * u
    bound = 2 * each * (p / total @ np.abs(wide[2])) + H * np.abs(want) + 2.0**-24
    lse = (top + np.log(total))[:, :, 0]
    Case(name, ptx, "flash", (2, heads), 128, shared).buffer(q).buffer(k).buffer(v).buffer(None, want, bound, "f16").buffer(
        None, lse, (off + 2.0**-20 + (length + 10) * u)[:, :, 0] + 4 * u * np.abs(lse), "f32").scalar(length).scalar(scale, np.float32).null(2)


def rows():
    n, p = 500, np.float32(0.3)
    x = f32(n)
    bits = np.array([philox_at(i, 7) for i in range(n)], np.uint32)
    signed = bits.view(np.int32).astype(np.int64)
    uniform = np.where(signed < 0, -signed - 1, signed).astype(np.float32) * np.float32(4.6566127342e-10)
    want = np.where(uniform > p, x.astype(np.float64) / (1 - p), 0)
    Case("dropout", "triton/dropout.ptx", "dropout", 2, 128).buffer(x).buffer(None, want, 4 * u * np.abs(want), "f32").scalar(n).scalar(
        p, np.float32).scalar(7).null(2)
    rows, cols = 6, 200
    x, dz, gain = f32(rows, cols), f32(rows, cols), f32(cols)
    a, b, g = (v.astype(np.float64) for v in (x, dz, gain))
    mean = x.mean(1, dtype=np.float64).astype(np.float32)
    scale = (1 / np.sqrt(a.var(1) + 1e-5)).astype(np.float32)
    normal = (a - mean[:, None]) * scale[:, None]
    weighted = g * b
    c1, c2 = (normal * weighted).mean(1, keepdims=True), weighted.mean(1, keepdims=True)
    dx = (weighted - (normal * c1 + c2)) * scale[:, None]
    sums = np.abs(normal * weighted).mean(1, keepdims=True) * np.abs(normal) + np.abs(weighted).mean(1, keepdims=True) + np.abs(weighted)
    bound = (cols + 10) * u * sums * scale[:, None]
    groups = lambda v: np.stack([v[0::2].sum(0), v[1::2].sum(0)])
    line = 1 + (pathlib.Path(__file__).parent / "triton/more.py").read_text().split("\n").index("    if tl.load(count) == 0:")
    Case("layer_norm_race", "triton/layer_norm_race.ptx", "layer_norm_backward", rows, 64, 1024, expect=dict(
        kind="Race", file="more.py", line=line)).buffer(dz).buffer(x).buffer(gain).buffer(mean).buffer(scale).buffer(None, dx, bound, "f32").buffer(
        np.zeros((2, cols), np.float32)).buffer(np.zeros((2, cols), np.float32)).buffer(np.zeros(4, np.int32)).scalar(cols).null(2)
    Case("layer_norm_backward", "triton/layer_norm_backward.ptx", "layer_norm_backward", rows, 32, 1024).buffer(dz).buffer(x).buffer(gain).buffer(
        mean).buffer(scale).buffer(None, dx, bound, "f32").buffer(None, groups(b * normal), 8 * u * groups(np.abs(b * normal)), "f32").buffer(
        None, groups(b), 3 * u * groups(np.abs(b)), "f32").buffer(np.zeros(4, np.int32), np.array([0, 0, 1, 1], np.int32)).scalar(cols).null(2)
    x = rng.standard_normal((4, 300)).astype(np.float16)
    label = rng.integers(0, 300, 4)
    wide = x.astype(np.float64)
    top = wide.max(1, keepdims=True)
    total = np.exp(wide - top).sum(1)
    loss = np.log(total) + top[:, 0] - wide[np.arange(4), label]
    Case("cross_entropy", "triton/cross_entropy.ptx", "cross_entropy", 4, 128, 64).buffer(x).buffer(label).buffer(
        None, loss, 2.0**-19 + 310 * u, "f32").scalar(300).null(2)
    x = f32(5, 200, scale=3)
    wide = x.astype(np.float64)
    # Means and squares of parts are joined in 8 steps, each with a few roundings of numbers no greater than the sums.
    mean_bound = 60 * u * np.abs(wide).mean(1)
    square = (wide**2).mean(1)
    Case("welford", "triton/welford.ptx", "welford", 5, 128, 128).buffer(x).buffer(None, wide.mean(1), mean_bound, "f32").buffer(
        None, wide.var(1), 120 * u * square, "f32").scalar(200).null(2)


def philox_at(index, seed):
    """The first word of Triton's Philox."""
    return philox_words(index, seed)[0]


def philox_words(index, seed):
    """Triton's Philox: counter (index, 0, 0, 0), key (seed, 0), 10 rounds."""
    c, k = [index, 0, 0, 0], [seed, 0]
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [p1 >> 32 ^ c[1] ^ k[0], p1 & 0xFFFFFFFF, p0 >> 32 ^ c[3] ^ k[1], p0 & 0xFFFFFFFF]
        k = [k[0] + 0x9E3779B9 & 0xFFFFFFFF, k[1] + 0xBB67AE85 & 0xFFFFFFFF]
    return c


def others():
    m, n, k = 48, 40, 96
    a, b = to_bf16(rng.standard_normal((m, k))), to_bf16(rng.standard_normal((k, n)))
    Case("split_k", "triton/split_k.ptx", "split_k", (2, 2, 2), 64, 16 * 1024).buffer(a).buffer(b).buffer(
        np.zeros((m, n), np.float32), *product(from_bf16(a), from_bf16(b)), "f32").scalar(m).scalar(n).scalar(k).null(2)
    x = np.concatenate([f32(200), f32(50, scale=1e4), f32(50, scale=1e-5)])
    x[:4] = [0, -0.0, 57344.0, 1.0]
    x = np.clip(x, -57344, 57344)
    mantissa, exponent = np.frexp(x.astype(np.float64))
    step = np.ldexp(1.0, np.maximum(exponent - 3, -16))
    Case("fp8_round_trip", "triton/fp8_round_trip.ptx", "fp8_round_trip", 2, 128).buffer(x).buffer(
        None, (np.rint(x / step) * step).astype(np.float32)).scalar(300).null(2)
    x = rng.integers(-128, 128, (20, 300)).astype(np.int8)
    index = rng.integers(0, 20, 9).astype(np.int32)
    Case("gather_rows", "triton/gather_rows.ptx", "gather_rows", 9, 64).buffer(x).buffer(index).buffer(None, x[index]).scalar(300).null(2)
    a, b = rng.uniform(-1, 1, (2, 256)).astype(np.float32), f32(2, 256)
    z, size = np.zeros((2, 256)), np.zeros((2, 256))
    last, most = np.zeros(2), np.zeros(2)
    for i in range(256):
        last, most = a[:, i].astype(np.float64) * last + b[:, i], np.abs(a[:, i]) * most + np.abs(b[:, i])
        z[:, i], size[:, i] = last, most
    # Products of up to 256 factors and sums of as many terms.
    Case("linear_scan", "triton/linear_scan.ptx", "linear_scan", 2, 128, 256).buffer(a).buffer(b).buffer(None, z, 520 * u * size, "f32").null(2)
    x = f32(4, 100)
    kth = np.sort(x, 1)[:, -7][:, None]
    Case("top_mask", "triton/top_mask.ptx", "top_mask", 4, 64, 64).buffer(x).buffer(None, np.where(x >= kth, x, 0)).scalar(100).scalar(7).null(2)
    n = 200
    x, y = (rng.integers(-2**63, 2**63, n) >> rng.integers(0, 60, n) for _ in range(2))
    y[y == 0] = 1
    q, r, h = [], [], []
    for p, d in zip(map(int, x), map(int, y)):
        whole = abs(p) // abs(d) * (1 if (p < 0) == (d < 0) else -1)
        q.append(whole)
        r.append(p - whole * d)
        h.append((p % 2**64) * (d % 2**64) >> 64)
    bits = lambda values: np.array([v % 2**64 for v in values], np.uint64).view(np.int64)
    Case("triton_wide_integers", "triton/wide_integers.ptx", "wide_integers", 2, 128).buffer(x).buffer(y).buffer(None, bits(q)).buffer(
        None, bits(r)).buffer(None, bits(h)).scalar(n).null(2)


FAMILIES = (attention, rows, others)
