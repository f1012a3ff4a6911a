"""Cases of whole algorithms: scans that look back, transforms, graphs, hashing, factorisations, locks; see `cases.py`."""

import hashlib

import numpy as np
from cases import Case, f32, from_bf16, product, rng, to_bf16, u
from programs import philox_words


def walks():
    n = 700
    x = rng.integers(0, 1000, n).astype(np.uint32)
    Case("scan_lookback", "nvcc/algorithms.ptx", "scan_lookback", 6, 128).scalar(n).buffer(x).buffer(None, np.cumsum(x).astype(np.uint32)).buffer(
        np.zeros(6, np.uint64)).buffer(np.zeros(1, np.uint32), np.full(1, 6, np.uint32))
    # Higham, theorem 24.2: stages of butterflies whose weights (sincospif: 2 ulp) are off by μ, in the 2-norm.
    for inverse in (0, 1):
        points = f32(2, 256, 2)
        wide = points[..., 0].astype(np.float64) + 1j * points[..., 1]
        want = np.fft.ifft(wide) * 256 if inverse else np.fft.fft(wide)
        mu = 4 * np.sqrt(2) * u
        bound = 8 * (mu + 4 * u * (np.sqrt(2) + mu)) * np.linalg.norm(want, axis=1)[:, None, None] + np.zeros((2, 256, 2))
        Case(f"fft_{inverse}", "nvcc/algorithms.ptx", "fft", 2, 128, 2048).buffer(points).buffer(
            None, np.stack([want.real, want.imag], -1), bound * 1.01, "f32").scalar(inverse)
    nodes = 90
    edges = [np.unique(rng.integers(0, nodes, rng.integers(0, 9))) for _ in range(nodes)]
    start = np.concatenate([[0], np.cumsum([len(e) for e in edges])]).astype(np.int32)
    edge = np.concatenate(edges).astype(np.int32)
    queue = np.sort(rng.choice(nodes, 40, False)).astype(np.int32)
    depth = np.full(nodes, -1, np.int32)
    depth[queue] = 4
    after = depth.copy()
    found = {int(to) for node in queue for to in edges[node] if depth[to] < 0}
    after[list(found)] = 5
    Case("bfs_level", "nvcc/algorithms.ptx", "bfs_level", 2, 32).scalar(len(queue)).scalar(4).buffer(queue).buffer(start).buffer(edge).buffer(
        depth, after).buffer(np.zeros(nodes, np.int32)).buffer(np.zeros(1, np.int32), np.array([len(found)], np.int32))
    # Keys whose places are their own, so that the order of insertions does not show.
    slots, place, keys = 97, {}, []
    while len(keys) < 50:
        key = int(rng.integers(0, 1 << 31))
        slot = key * 2654435761 % 2**32 % slots
        if slot not in place:
            place[slot] = key
            keys.append(key)
    drawn = rng.choice(keys, 400).astype(np.uint32)
    table, count = np.full(slots, 0xFFFFFFFF, np.uint32), np.zeros(slots, np.uint32)
    for key in drawn:
        slot = int(key) * 2654435761 % 2**32 % slots
        table[slot] = key
        count[slot] += 1
    Case("hash_count", "nvcc/algorithms.ptx", "hash_count", 2, 64).scalar(len(drawn)).scalar(slots, np.uint32).buffer(drawn).buffer(
        np.full(slots, 0xFFFFFFFF, np.uint32), table).buffer(np.zeros(slots, np.uint32), count)
    a, b = rng.integers(97, 101, 110).astype(np.int8), rng.integers(97, 101, 95).astype(np.int8)
    line = list(range(len(b) + 1))
    for i, p in enumerate(a):
        above, line = line, [i + 1]
        for j, q in enumerate(b):
            line.append(min(above[j] + (p != q), above[j + 1] + 1, line[j] + 1))
    Case("edit_distance", "nvcc/algorithms.ptx", "edit_distance", 1, 64).scalar(len(a)).scalar(len(b)).buffer(a).buffer(b).buffer(
        None, np.array([line[-1]], np.int32))
    message = rng.integers(0, 256, (40, 32)).astype(np.uint8)
    digest = np.stack([np.frombuffer(hashlib.sha256(m.tobytes()).digest(), np.uint8) for m in message])
    Case("sha256", "nvcc/algorithms.ptx", "sha256", 2, 32).scalar(40).buffer(message).buffer(None, digest)


def solvers():
    h, w = 20, 45
    x = rng.standard_normal((h, w))
    z = x.copy()
    z[1:-1, 1:-1] = 0.25 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])
    Case("jacobi", "nvcc/solvers.ptx", "jacobi", (2, 3), (32, 8)).scalar(h).scalar(w).buffer(x).buffer(None, z).buffer(
        np.zeros(1), np.array([np.abs(z - x).max()]))
    # Factors of small integers: every root, quotient and difference is exact.
    n = 12
    low = np.tril(rng.integers(-4, 5, (3, n, n))).astype(np.float64)
    for matrix in low:
        np.fill_diagonal(matrix, 2.0 ** rng.integers(0, 3, n))
    full = low @ low.transpose(0, 2, 1)
    full[1, 5, 5] -= low[1, 5, 5] ** 2
    want, failed = low.copy(), np.array([0, 6, 0], np.int32)
    want[1] = 0
    Case("cholesky", "nvcc/solvers.ptx", "cholesky", 3, 64, n * n * 8).scalar(n).buffer(full).buffer(np.zeros((3, n, n)), want).buffer(
        np.zeros(3, np.int32), failed)
    n = 100
    body = f32(n, 4)
    body[:, 3] = np.abs(body[:, 3])
    wide = body.astype(np.float64)
    d = wide[None, :, :3] - wide[:, None, :3]
    terms = d * (wide[:, 3] * ((d**2).sum(-1) + np.float64(np.float32(0.01))) ** -1.5)[..., None]
    # Terms: differences, squares and their sum 4 u, half of it and 2^-22.9 in the root, three times that, and 5 products; then 128 additions.
    Case("bodies", "nvcc/solvers.ptx", "bodies", 2, 64).scalar(n).buffer(body).buffer(None, terms.sum(1), 150 * u * np.abs(terms).sum(1), "f32")
    Case("ticket_lock", "nvcc/solvers.ptx", "ticket_lock", 4, 64).buffer(np.zeros(1, np.uint32), np.full(1, 24, np.uint32)).buffer(
        np.zeros(1, np.uint32), np.full(1, 24, np.uint32)).buffer(np.zeros(3, np.int32), np.array([72, -72, 0], np.int32)).scalar(3)
    v = f32(3, 100)
    v[0] = np.abs(v[0])
    v[2] = -np.abs(v[2])
    Case("extremes", "nvcc/solvers.ptx", "extremes", 3, 64).scalar(100).buffer(v).buffer(np.full(1, np.inf, np.float32), v.min().reshape(1)).buffer(
        None, np.stack([v.min(1), v.max(1)], 1))
    Case("clocks", "nvcc/solvers.ptx", "clocks", 1, 32).buffer(None, np.full(32, 31, np.uint32))
    base, exponent = rng.integers(0, 2**63, 20).astype(np.uint64), rng.integers(0, 2**63, 20).astype(np.uint64)
    modulus = (rng.integers(2**40, 2**63, 20) * 2 + 1).astype(np.uint64)
    power = [pow(int(b), int(e), int(m)) for b, e, m in zip(base, exponent, modulus)]
    Case("powers", "nvcc/solvers.ptx", "powers", 1, 32).scalar(20).buffer(base).buffer(exponent).buffer(modulus).buffer(None, np.array(power, np.uint64))
    s = rng.integers(-30000, 30000, 100).astype(np.int16)
    windows = [np.sort(s[max(i - 7, 0) : i + 8]) for i in range(100)]
    Case("median", "nvcc/solvers.ptx", "median", 2, 64).scalar(100).scalar(7).buffer(s).buffer(
        None, np.array([window[len(window) // 2] for window in windows], np.int16))


def kinds():
    k, n, heights = 40, 50, [33, 5, 64]
    a = [rng.standard_normal((m, k)).astype(np.float16) for m in heights]
    b = [rng.standard_normal((k, n)).astype(np.float16) for _ in heights]
    results = [product(x, y) for x, y in zip(a, b)]
    starts = [np.concatenate([[0], np.cumsum([t.size for t in list_])[:-1]]) for list_ in (a, b, [r for r, _ in results])]
    flat = lambda list_: np.concatenate([t.ravel() for t in list_])
    Case("grouped", "triton/grouped.ptx", "grouped", 3, 64, 8192).buffer(flat(a)).buffer(flat(b)).buffer(
        None, flat([r for r, _ in results]), flat([bound for _, bound in results]), "f32").buffer(
        np.stack(starts, 1).astype(np.int64)).buffer(np.array(heights, np.int32)).scalar(3).scalar(k).scalar(n).null(2)
    # Box and Muller: the logarithm by lg2.approx, off by 2^-22 at least; root; cosine within 2 ulp of an argument off by 2 u.
    count = 300
    words = np.array([philox_words(i, 5)[:2] for i in range(count)], np.uint32).view(np.int32).astype(np.int64)
    first, second = (np.where(words < 0, -words - 1, words).astype(np.float32) * np.float32(4.6566127342e-10)).T.astype(np.float64)
    square = -2 * np.log(np.maximum(first, np.float64(np.float32(1e-7))))
    off = 2 * np.log(2) * 2.0**-22 + 2.0**-21 * square
    root = np.sqrt(square)
    off = off / (root + np.sqrt(np.maximum(square - off, 0))) + 2.0**-22 * root
    angle = np.float64(np.float32(6.283185307179586)) * second
    Case("normals", "triton/normals.ptx", "normals", 2, 64).buffer(
        None, root * np.cos(angle), (off + root * (2 * u * angle + 4 * u)) * 1.01, "f32").scalar(5).scalar(count).null(2)
    # Integers, whose sums are exact in any order.
    n = 600
    x, index = rng.integers(-50, 50, n).astype(np.float32), rng.integers(0, 40, n).astype(np.int32)
    total, least, bits = np.zeros(40, np.float32), np.full(40, np.inf, np.float32), np.zeros(40, np.int32)
    np.add.at(total, index, x)
    np.minimum.at(least, index, x)
    np.bitwise_or.at(bits, index, (1 << (np.arange(n) % 31)).astype(np.int32))
    Case("atomics", "triton/atomics.ptx", "atomics", 3, 128, 2048).buffer(x).buffer(index).buffer(np.zeros(40, np.float32), total).buffer(
        np.full(40, np.inf, np.float32), least).buffer(np.zeros(40, np.int32), bits).buffer(
        np.zeros(n, np.int32), (np.arange(n) * 3).astype(np.int32)).scalar(n).null(2)
    k, n = 128, 64
    packed = rng.integers(-128, 128, (k // 2, n)).astype(np.int8)
    scale, x = f32(n), rng.integers(-8, 9, (16, k)).astype(np.float16)
    weight = np.empty((k, n))
    weight[0::2], weight[1::2] = (packed.astype(np.int16) << 4).astype(np.int8) >> 4, packed >> 4
    want = x.astype(np.float64) @ weight * scale
    Case("rows_of_four_bits", "triton/rows_of_four_bits.ptx", "rows_of_four_bits", 2, 32, 4096).buffer(packed).buffer(scale).buffer(x).buffer(
        None, want, u * np.abs(want), "f32").scalar(k).scalar(n).null(2)
    rows, cols, block = 2, 200, 256
    key, v = np.full((rows, block), -1, np.int32), np.zeros((rows, block), np.float32)
    key[:, :cols], v[:, :cols] = rng.integers(-6, 3, (rows, cols)), rng.integers(-90, 90, (rows, cols))
    filled = v.copy()
    for row in range(rows):
        for at in range(1, block):
            if key[row, at] < 0:
                filled[row, at] = filled[row, at - 1]
    from_end = np.cumsum(v[:, ::-1], 1)[:, ::-1]
    turned = filled[:, (np.arange(block) * 7 + 3) % block]
    Case("forward_fill", "triton/forward_fill.ptx", "forward_fill", rows, 128, 2048).buffer(key[:, :cols].copy()).buffer(v[:, :cols].copy()).buffer(
        None, np.stack([filled, from_end, turned], 1)).buffer(None, v.argmin(1).astype(np.int32)).scalar(cols).null(2)
    length, heads, d = 3, 2, 64
    x = to_bf16(rng.standard_normal((length, heads, d)))
    angle = rng.uniform(-3, 3, (length, d // 2))
    c, s = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
    wide = from_bf16(x).astype(np.float64)
    p, q, cw, sw = wide[..., : d // 2], wide[..., d // 2 :], c[:, None].astype(np.float64), s[:, None].astype(np.float64)
    both = np.stack([p * cw - q * sw, p * sw + q * cw], -1).reshape(length, heads, d)
    size = np.stack([np.abs(p * cw) + np.abs(q * sw), np.abs(p * sw) + np.abs(q * cw)], -1).reshape(length, heads, d)
    factor = ((both**2).mean(-1, keepdims=True) + 1e-6) ** -0.5
    # The last rounding is to 8 bits; the mean of squares is off by 70 u of itself at most, and by twice what its terms are.
    bound = 2.0**-8 * np.abs(both * factor) + 200 * u * (np.abs(both * factor) + size * factor)
    Case("rotary", "triton/rotary.ptx", "rotary", (length, heads), 32).buffer(x).buffer(c).buffer(s).buffer(
        None, both * factor, bound, "bf16").scalar(length).scalar(heads).null(2)


FAMILIES = (walks, solvers, kinds)
