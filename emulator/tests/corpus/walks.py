"""Cases of stencils, sparse products, copies, warp operations and wide integers; see `cases.py`."""

import numpy as np
from cases import Case, f32, product, rng, signed, u


def grids():
    h, w = 37, 45
    x = f32(h, w)
    binomial = np.array([1, 4, 6, 4, 1], np.float64)
    taps = np.outer(binomial, binomial)
    padded = np.pad(x.astype(np.float64), 2)
    views = [(taps[i, j], padded[i : i + h, j : j + w]) for i in range(5) for j in range(5)]
    want = sum(t * v for t, v in views) / 256
    size = sum(t * np.abs(v) for t, v in views) / 256
    Case("conv2d", "nvcc/grids.ptx", "conv2d", (3, 3), (16, 16)).scalar(h).scalar(w).buffer(x).buffer(None, want, 28 * u * size, "f32")
    nz, ny, nx = 5, 13, 40
    v = f32(nz, ny, nx)
    c0, c1 = np.float32(-6.5), np.float32(1.25)
    wide = np.pad(v.astype(np.float64), 1)
    mid = slice(1, -1)
    near = [wide[:-2, mid, mid], wide[2:, mid, mid], wide[mid, :-2, mid], wide[mid, 2:, mid], wide[mid, mid, :-2], wide[mid, mid, 2:]]
    want = c0 * wide[mid, mid, mid] + c1 * sum(near)
    size = np.abs(c0 * wide[mid, mid, mid]) + c1 * sum(map(np.abs, near))
    Case("stencil3d", "nvcc/grids.ptx", "stencil3d", (2, 2), (32, 8)).scalar(nx).scalar(ny).scalar(nz).scalar(c0, np.float32).scalar(
        c1, np.float32).buffer(v).buffer(None, want, 9 * u * size, "f32")
    rows, cols = 20, 70
    counts = rng.integers(0, 60, rows)
    start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    column = np.concatenate([np.sort(rng.choice(cols, n, False)) for n in counts]).astype(np.int32)
    value, dense = f32(len(column)), f32(cols)
    terms = value.astype(np.float64) * dense[column]
    of = np.repeat(np.arange(rows), counts)
    want = np.bincount(of, terms, rows)
    bound = 10 * u * np.bincount(of, np.abs(terms), rows)
    Case("spmv", "nvcc/grids.ptx", "spmv", 5, 128).scalar(rows).buffer(start).buffer(column).buffer(value).buffer(dense).buffer(
        None, want, bound, "f32")
    for name, dtype in (("f64", np.float64), ("u16", np.uint16), ("u8", np.uint8)):
        t = (rng.standard_normal((45, 70)) * 100).astype(np.int32).astype(dtype)
        Case("transpose_" + name, "nvcc/grids.ptx", "transpose_" + name, (3, 2), (32, 8)).scalar(45).scalar(70).buffer(t).buffer(None, t.T.copy())
    b = rng.integers(0, 256, 1003).astype(np.uint8)
    Case("copy_bytes", "nvcc/grids.ptx", "copy_bytes", 1, 32).scalar(1003).buffer(b).buffer(None, b)
    odd = np.dtype(dict(names=["c", "s", "t", "f"], formats=["i1", "<i2", "5u1", "<f4"], offsets=[0, 2, 4, 12], itemsize=16))
    records = np.zeros(40, odd)
    records["c"], records["s"] = rng.integers(-100, 100, 40), rng.integers(-9999, 9999, 40)
    records["t"], records["f"] = rng.integers(0, 256, (40, 5)), f32(40)
    result = records.copy()
    result["c"], result["s"], result["t"], result["f"] = records["c"] + 1, records["s"] * 2, records["t"][:, ::-1], -records["f"]
    # Bytes between the fields are copied too: all are zeros.
    Case("structs", "nvcc/grids.ptx", "structs", 2, 32).scalar(40).buffer(records.view(np.uint8)).buffer(
        np.zeros(640, np.uint8), result.view(np.uint8)).buffer(None, np.zeros(25, np.float32))
    outer, middle, inner = 3, 17, 50
    r = f32(outer, middle, inner)
    Case("reduce_middle", "nvcc/grids.ptx", "reduce_middle", 2, 32).scalar(outer, np.int64).scalar(middle, np.int64).scalar(
        inner, np.int64).buffer(r).buffer(None, r.max(1))


M64 = (1 << 64) - 1


def philox(index, seed):
    c, k = [index, 0, 0, 0], [seed, 0xDEADBEEF]
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [p1 >> 32 ^ c[1] ^ k[0], p1 & 0xFFFFFFFF, p0 >> 32 ^ c[3] ^ k[1], p0 & 0xFFFFFFFF]
        k = [k[0] + 0x9E3779B9 & 0xFFFFFFFF, k[1] + 0xBB67AE85 & 0xFFFFFFFF]
    return c


def simd(a, b):
    """The results of kernel `simd_words`, by Python's integers."""
    M = 0xFFFFFFFF
    parts = lambda v, n: [v >> n * i & (1 << n) - 1 for i in range(32 // n)]
    signeds = lambda v, n: [signed(p, n) for p in parts(v, n)]
    pack = lambda values, n: sum((v & (1 << n) - 1) << n * i for i, v in enumerate(values))
    each = lambda f, n, signs: pack([f(x, y) for x, y in zip((signeds if signs else parts)(a, n), (signeds if signs else parts)(b, n))], n)
    clip = lambda v, lo, hi: max(lo, min(v, hi))
    sa, sb = signed(a, 32), signed(b, 32)
    pairs = list(zip(signeds(a, 16), signeds(b, 16)))
    larger = pack([max(p) for p in pairs], 16)
    return [
        each(lambda x, y: x + y, 8, False), each(lambda x, y: x - y, 16, False), each(lambda x, y: x + y + 1 >> 1, 8, False),
        each(max, 16, True), each(min, 8, False), each(lambda x, y: abs(x - y), 8, False),
        sum(abs(x - y) for x, y in zip(parts(a, 8), parts(b, 8))), each(lambda x, y: 0xFFFF if x > y else 0, 16, False),
        each(lambda x, y: clip(x + y, -32768, 32767), 16, True), each(lambda x, y: max(x - y, 0), 8, False),
        pack([-x for x in signeds(a, 8)], 8), pack([min(abs(x), 127) for x in signeds(b, 8)], 8),
        each(lambda x, y: 1 if x == y else 0, 8, False), max(signed(sa + sb & M, 32), 5) + min(a, b, 1 << 30) & M,
        larger + (pairs[1][0] >= pairs[1][1]) + 2 * (pairs[0][0] >= pairs[0][1]) & M,
        (sa + sb >> 1) + (a + b >> 1) + (a + b + 1 >> 1) + (sa + sb + 1 >> 1) & M,
    ]


def warps():
    x = rng.integers(0, 100, 64).astype(np.int32)
    z = np.zeros((64, 8), np.int64)
    zd, zl = np.zeros(64), np.zeros(64, np.uint64)
    for warp in range(2):
        v = x[32 * warp : 32 * warp + 32].astype(np.int64)
        for lane in range(32):
            t = 32 * warp + lane
            z[t, :3] = v.sum(), v.min(), v.max()
            z[t, 3] = np.bitwise_and.reduce(v) | np.bitwise_or.reduce(v) << 1 | np.bitwise_xor.reduce(v) << 2
            z[t, 4] = 0xFFFFFFFF + 1
            z[t, 5] = sum(1 << j for j in range(32) if v[j] & 3 == v[lane] & 3)
            if lane < 16:
                z[t, 6] = v[:16].sum()
                z[t, 7] = v[lane ^ 3] + 1
            else:
                z[t, 6] = 2 * (v[16:] > 90).any() + 1
                z[t, 7] = sum(1 << j for j in range(16, 32) if v[j] & 1)
            zd[t] = v[lane + 3 if lane + 3 < 32 else lane] * 0.5 + v[lane // 16 * 16 + (40 + lane) % 16] * 2.0
            zl[t] = int(v[lane - 1 if lane % 4 else lane]) << 33
    Case("warp_ops", "nvcc/warps.ptx", "warp_ops", 1, 64).buffer(x).buffer(None, (z & 0xFFFFFFFF).astype(np.uint32)).buffer(None, zd).buffer(None, zl)
    n = 60
    a = rng.integers(-2**63, 2**63, n) >> rng.integers(0, 60, n)
    b = rng.integers(-2**63, 2**63, n) >> rng.integers(0, 60, n)
    b[b == 0] = 1
    a[0], b[0] = -2**63, 3
    q, uq = [], []
    for p, d in zip(map(int, a), map(int, b)):
        quotient = abs(p) // abs(d) * (1 if (p < 0) == (d < 0) else -1)
        c, e = p & M64, d & M64
        q += [quotient, p - quotient * d, p * d >> 64, (64 - c.bit_length()) + 100 * (e & -e).bit_length() + 10000 * bin(c ^ e).count("1")]
        usad = abs((c & 0xFFFFFFFF) - (e & 0xFFFFFFFF)) + 5 & 0xFFFFFFFF
        uq += [c // e, c % e, c * e >> 64, int(format(c, "064b")[::-1], 2) ^ usad]
    Case("wide_integers", "nvcc/warps.ptx", "wide_integers", 2, 32).scalar(n).buffer(a).buffer(b).buffer(
        None, np.array([signed(v, 64) for v in q], np.int64)).buffer(None, np.array(uq, np.uint64))
    ua, ub = (rng.integers(0, 2**64, 40, dtype=np.uint64) for _ in range(2))
    out = []
    for p, d in zip(map(int, ua), map(int, ub)):
        M = (1 << 128) - 1
        v = p * d + p & M
        w = -3 * d
        s = ((v << 7 | v >> 121) - w) & M
        whole, rest = v // (d | 1), v % (d << 9 & M | 1)
        for value in (v, s, whole, rest):
            out += [value & M64, value >> 64]
    Case("int128", "nvcc/warps.ptx", "int128", 2, 32).scalar(40).buffer(ua).buffer(ub).buffer(None, np.array(out, np.uint64))
    raw = rng.integers(0, 256, 1024).astype(np.uint8)
    i = np.arange(32)
    c4, c2 = raw.view(np.int8).reshape(-1, 4)[i].astype(np.int64), raw[256:].reshape(-1, 2)[i].astype(np.int64)
    s4 = raw[512:].view(np.int16).reshape(-1, 4)[i].astype(np.int64)
    d2, e2 = raw.view(np.int32).reshape(-1, 2)[i].astype(np.int64), raw.view(np.uint16).reshape(-1, 2)[i].astype(np.int64)
    z = np.full(8192, 9, np.uint8)
    put = lambda at, dtype, columns: np.stack(columns, 1).astype(dtype).view(np.uint8).reshape(-1)
    z[:512] = put(0, np.int32, [c4[:, 0] + c4[:, 3], c2[:, 0] * c2[:, 1], s4[:, 0] - s4[:, 3] + s4[:, 1],
                                ((d2[:, 0] ^ d2[:, 1] + e2[:, 0]) + 2**31 & 0xFFFFFFFF) - 2**31])
    z[1024 : 1024 + 256] = put(0, np.int32, [c4[:, 1], s4[:, 2]])
    z[2048 : 2048 + 128] = put(0, np.int16, [c2[:, 1], (e2[:, 1] + 2**15) % 2**16 - 2**15])
    z[4096 : 4096 + 32] = c2[:, 0]
    f4, f2 = f32(32, 4), rng.standard_normal((32, 2))
    Case("accesses", "nvcc/warps.ptx", "accesses", 1, 32).buffer(raw).buffer(np.full(8192, 9, np.uint8), z).buffer(
        None, (i * 3 + 1).astype(np.int32)).buffer(f4, f4[:, ::-1].copy()).buffer(f2).buffer(None, np.stack([f2[:, 1], -f2[:, 0]], 1))
    n, keep = 300, np.float32(0.75)
    bits = np.array([philox(j, 42) for j in range(75)], np.uint32).reshape(-1)
    y = f32(n)
    want = np.where((bits >> 8) * 2.0**-24 < keep, y.astype(np.float64) / keep, 0)
    Case("philox_dropout", "nvcc/warps.ptx", "philox", 3, 32).scalar(42, np.uint32).scalar(n).scalar(keep, np.float32).buffer(y).buffer(
        None, want, u * np.abs(want) * 1.01, "f32").buffer(None, bits)
    p, d = (rng.integers(0, 2**32, 50, dtype=np.uint32) for _ in range(2))
    d[:5], p[5:8] = p[:5], 0x80808080
    Case("simd_words", "nvcc/warps.ptx", "simd_words", 2, 32).scalar(50).buffer(p).buffer(d).buffer(
        None, np.array([simd(int(v), int(w)) for v, w in zip(p, d)], np.int64).astype(np.uint32))


FAMILIES = (grids, warps)
