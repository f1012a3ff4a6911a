"""Cases of sorting, scanning, cooperative groups and atomic operations; see `cases.py`."""

import numpy as np
from cases import Case, f32, from_bf16, rng, to_bf16, u


def bits_f16(x):
    return np.asarray(x, np.float16)


def sorts():
    x = f32(3, 256)
    Case("bitonic", "nvcc/sort.ptx", "bitonic", 3, 96, 1024).scalar(256).buffer(x).buffer(None, np.sort(x, 1))
    s = rng.integers(-2**40, 2**40, 200)
    Case("shuffle_scan", "nvcc/sort.ptx", "shuffle_scan", 1, 256).scalar(200).buffer(s).buffer(None, np.cumsum(s))
    keys = rng.integers(0, 2**32, 3 * 128, dtype=np.uint32)
    digits = keys >> 8 & 15
    order = np.argsort(digits, kind="stable")
    counts = np.stack([np.bincount(part, minlength=16) for part in digits.reshape(3, 128)])
    starts = np.concatenate([[0], np.cumsum(counts.sum(0))[:-1]])
    offsets = (starts + np.cumsum(counts, 0) - counts).astype(np.uint32)
    Case("radix_pass", "nvcc/sort.ptx", "radix_pass", 3, 128).scalar(8).buffer(keys).buffer(offsets).buffer(None, keys[order])
    k = rng.integers(-2**31, 2**31, (2, 512)).astype(np.int32)
    k[1] %= 50
    v = np.arange(1024, dtype=np.int16).reshape(2, 512)
    at = np.argsort(k, 1, kind="stable")
    Case("cub_sort", "nvcc/sort.ptx", "cub_sort", 2, 128).buffer(k).buffer(v).buffer(None, np.take_along_axis(k, at, 1)).buffer(
        None, np.take_along_axis(v, at, 1))
    n = 90
    y = f32(96, scale=5)
    shown = np.where(np.arange(96) < n, y, np.float32(-1e30))
    positive = (shown > 0).astype(np.int32)
    before = (np.cumsum(positive) - positive) * 1000 + positive.sum()
    # A float beyond the range of an integer becomes the nearest one, whose lower bits are ones.
    whole = np.minimum(np.trunc(np.abs(shown.astype(np.float64))), 2**31 - 1).astype(np.int64) & 15
    bins = np.bincount(whole, minlength=16) + np.bincount(np.arange(96) & 15, minlength=16)
    warps = np.where(np.arange(96) < n, y.astype(np.float64), 0).reshape(3, 32)
    Case("cub_collectives", "nvcc/sort.ptx", "cub_collectives", 1, 96).scalar(n).buffer(y).buffer(None, np.array([y[:n].max()])).buffer(
        None, before.astype(np.int32)).buffer(None, bins.astype(np.uint32)).buffer(
        None, warps.sum(1), 6 * 2.0**-53 * np.abs(warps).sum(1))
    segment = np.sort(rng.integers(0, 12, 250)).astype(np.int32)
    z = f32(250)
    sums, sizes = np.zeros(12), np.zeros(12)
    np.add.at(sums, segment, z.astype(np.float64))
    np.add.at(sizes, segment, np.abs(z.astype(np.float64)))
    Case("segmented_sum", "nvcc/sort.ptx", "segmented_sum", 2, 128).scalar(250).buffer(segment).buffer(z).buffer(
        np.zeros(12, np.float32), sums, 64 * u * sizes, "f32")


def atomics():
    x = f32(300)
    flags = np.zeros(8, np.uint8)
    for i in range(300):
        flags[i % 8] |= 1 << (i // 8 % 8)
    # A product of small integers is exact in any order.
    product = float(np.prod([1.0 + i % 3 for i in range(20)]))
    Case("cas_loops", "nvcc/atomics.ptx", "cas_loops", 3, 128).scalar(300).buffer(x).buffer(
        np.array([-np.inf], np.float32), np.array([x.max()])).buffer(np.ones(1), np.array([product])).buffer(np.zeros(8, np.uint8), flags)
    n = 96
    i = np.arange(n)
    # Sums that f16 and bf16 hold exactly on every way.
    h2 = np.array([n, n // 2], np.float16)
    b2 = to_bf16(np.array([n, 2 * n], np.float64))
    f = np.array([6, 6, 6, 6, n, n], np.float32)
    Case("half_sums", "nvcc/atomics.ptx", "half_sums", 1, n).buffer(np.zeros(2, np.float16), h2).buffer(np.zeros(2, np.uint16), b2).buffer(
        np.zeros(2, np.float16), np.full(2, n / 4, np.float16)).buffer(np.zeros(2, np.uint16), to_bf16(np.full(2, n / 2.0))).buffer(
        np.zeros(6, np.float32), f).buffer(np.zeros(1), np.array([float(i.sum())]))
    hx = rng.integers(-8, 8, 64).astype(np.float16)
    by = to_bf16(rng.integers(-2, 3, 64).astype(np.float64))
    groups = lambda v: v.astype(np.float64).reshape(16, 4).sum(0)
    Case("shared_halves", "nvcc/atomics.ptx", "shared_halves", 1, 64).buffer(hx).buffer(by).buffer(None, groups(hx).astype(np.float16)).buffer(
        None, to_bf16(groups(from_bf16(by)))).buffer(None, (groups(hx) + 64).astype(np.float32))
    threads, blocks = 32, 4
    one = lambda n: 15 * n
    # Eight bits and the one above them; 511 is no less.
    words = np.array([one(threads * blocks)] * 2 + [one(threads)] * 4 + [one(threads)] * 4, np.int32)
    wides = np.array([511] * 6, np.uint64)
    Case("scopes", "nvcc/atomics.ptx", "scopes", blocks, threads).buffer(np.zeros(10, np.int32), words).buffer(np.zeros(6, np.uint64), wides)
    x = rng.integers(0, 100, 64).astype(np.int32)
    Case("handover", "nvcc/atomics.ptx", "handover", 3, 64).buffer(x).buffer(None, x * 3).buffer(np.zeros(1, np.int32)).buffer(
        np.zeros(2, np.uint32), np.array([4, 4], np.uint32)).buffer(np.zeros(1, np.int32), np.array([2 * 3 * x.sum()], np.int32))


def groups():
    x = rng.integers(0, 100, 128).astype(np.int32)
    y = f32(128)
    w = rng.standard_normal(128)
    tile, small = x.reshape(4, 32), x.reshape(32, 4)
    lanes = np.arange(32)
    zi = np.concatenate([
        np.repeat(tile.sum(1), 32), np.repeat(small.min(1), 4), np.cumsum(tile, 1).reshape(-1), (np.cumsum(small, 1) - small).reshape(-1)])
    product = np.prod(y.astype(np.float64).reshape(32, 4), 1)
    zf = np.concatenate([np.repeat(y.reshape(4, 32).max(1), 32).astype(np.float64), np.repeat(product, 4)])
    bound = np.concatenate([np.zeros(128), np.repeat(4 * u * np.abs(product), 4)])
    zd = np.repeat(w.reshape(4, 32).sum(1), 32)
    zu = np.full(512, 7, np.uint32)
    zu[:128] = np.repeat(np.bitwise_xor.reduce(tile, 1), 32)
    for warp in range(4):
        odd = np.flatnonzero(tile[warp] & 1)
        if len(odd):
            zu[128 + 32 * warp + odd[0]] = tile[warp][odd].sum()
        third = tile[warp] % 3 == 0
        for lane in lanes:
            same = third == third[lane]
            zu[256 + 32 * warp + lane] = same.sum() * 100 + same[:lane].sum()
            zu[384 + 32 * warp + lane] = (tile[warp] & 3 == tile[warp][lane] & 3).sum()
    Case("cg_reductions", "nvcc/groups.ptx", "reductions", 1, 128).buffer(x).buffer(y).buffer(w).buffer(None, zi.astype(np.int32)).buffer(
        None, zf, bound, "f32").buffer(None, zd, 6 * 2.0**-53 * np.repeat(np.abs(w.reshape(4, 32)).sum(1), 32)).buffer(np.full(512, 7, np.uint32), zu)
    halves = x.reshape(2, 64)
    wide = np.concatenate([
        np.repeat(halves.sum(1) + 100000 * np.arange(2), 64), np.repeat(halves[:, 5] + 1, 64)])
    Case("cg_wide_tiles", "nvcc/groups.ptx", "wide_tiles", 1, 128).buffer(x).buffer(None, wide.astype(np.int32))
    n = 600
    c = f32(n)
    back = np.concatenate([c[at : at + 256][::-1] for at in range(0, n, 256)])
    Case("cg_copy", "nvcc/groups.ptx", "group_copy", 1, 96, 1024).scalar(n).buffer(c).buffer(None, back)
    t = rng.integers(-1000, 1000, (5, 64)).astype(np.int32)
    weighted = (t[:, ::-1] * np.arange(1, 6)[:, None]).sum(0).astype(np.int32)
    Case("block_pipeline", "nvcc/groups.ptx", "block_pipeline", 1, 64).scalar(5).buffer(t).buffer(None, weighted)
    p = rng.integers(-1000, 1000, (7, 96)).astype(np.int32)
    mixed = (p[:, ::-1] ^ np.arange(7, dtype=np.int32)[:, None]).sum(0).astype(np.int32)
    Case("partitioned_pipeline", "nvcc/groups.ptx", "partitioned", 1, 128).scalar(7).buffer(p).buffer(None, mixed)
    b = f32(2, 128)
    Case("barrier_copies", "nvcc/groups.ptx", "barrier_copies", 1, 64).buffer(b).buffer(None, b[:, ::-1].copy()).buffer(
        None, (1 + np.arange(64) // 16).astype(np.int32))
    Case("semaphores", "nvcc/groups.ptx", "semaphores", 1, 128).buffer(np.zeros(1, np.int32), np.zeros(1, np.int32)).buffer(
        np.zeros(1, np.int32), np.array([2], np.int32), 1).buffer(np.zeros(1, np.int32), np.array([0 + 32 + 64 + 96], np.int32))


FAMILIES = (sorts, atomics, groups)
