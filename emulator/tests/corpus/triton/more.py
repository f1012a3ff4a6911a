"""Triton kernels beyond the common ones: sources of `../triton/*.ptx` that `generate.py` compiles together with those of `kernels`."""

import triton
import triton.language as tl


@triton.jit
def flash(q, k, v, o, lse, length, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    """Causal attention of one head a program in y, with the logarithm of the sum of exponentials."""
    start, head = tl.program_id(0), tl.program_id(1)
    base = head * length * D
    rows = start * BM + tl.arange(0, BM)
    dims = tl.arange(0, D)
    q_tile = tl.load(q + base + rows[:, None] * D + dims[None, :], mask=rows[:, None] < length, other=0.0)
    top = tl.full([BM], float("-inf"), tl.float32)
    total = tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, D], tl.float32)
    for at in range(0, (start + 1) * BM, BN):
        cols = at + tl.arange(0, BN)
        k_tile = tl.load(k + base + cols[None, :] * D + dims[:, None], mask=cols[None, :] < length, other=0.0)
        s = tl.dot(q_tile, k_tile) * (scale * 1.44269504)
        s = tl.where((cols[None, :] <= rows[:, None]) & (cols[None, :] < length), s, float("-inf"))
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        alpha = tl.exp2(top - new)
        total = total * alpha + tl.sum(p, 1)
        v_tile = tl.load(v + base + cols[:, None] * D + dims[None, :], mask=cols[:, None] < length, other=0.0)
        acc = tl.dot(p.to(v_tile.dtype), v_tile, acc * alpha[:, None])
        top = new
    tl.store(o + base + rows[:, None] * D + dims[None, :], (acc / total[:, None]).to(o.dtype.element_ty), mask=rows[:, None] < length)
    tl.store(lse + head * length + rows, (top + tl.log2(total)) * 0.69314718, mask=rows < length)


@triton.jit
def dropout(x, z, n, p, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    uniform = tl.rand(seed, at)
    value = tl.load(x + at, mask=at < n, other=0.0)
    tl.store(z + at, tl.where(uniform > p, value / (1 - p), 0.0), mask=at < n)


@triton.jit
def layer_norm_backward(dz, x, gain, mean, scale, dx, dgain, dbias, lock, cols, GROUPS: tl.constexpr, BLOCK: tl.constexpr):
    """Gradients of a layer norm; the gradients of gain and bias are summed under a lock, by groups of rows."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < cols
    x_row = tl.load(x + row * cols + at, mask=mask, other=0.0)
    dz_row = tl.load(dz + row * cols + at, mask=mask, other=0.0)
    g = tl.load(gain + at, mask=mask, other=0.0)
    m, s = tl.load(mean + row), tl.load(scale + row)
    normal = tl.where(mask, (x_row - m) * s, 0.0)
    weighted = tl.where(mask, g * dz_row, 0.0)
    c1 = tl.sum(normal * weighted, 0) / cols
    c2 = tl.sum(weighted, 0) / cols
    tl.store(dx + row * cols + at, (weighted - (normal * c1 + c2)) * s, mask=mask)
    group = row % GROUPS
    lock += group
    count = lock + GROUPS
    dgain += group * cols + at
    dbias += group * cols + at
    part_gain, part_bias = dz_row * normal, dz_row
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    if tl.load(count) == 0:
        tl.atomic_xchg(count, 1)
    else:
        part_gain += tl.load(dgain, mask=mask)
        part_bias += tl.load(dbias, mask=mask)
    tl.store(dgain, part_gain, mask=mask)
    tl.store(dbias, part_bias, mask=mask)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def split_k(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr):
    """A product whose k is shared between programs, summed by atomic additions."""
    rows, cols, inner = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.program_id(2) * BK + tl.arange(0, BK)
    acc = tl.zeros([BM, BN], tl.float32)
    for _ in range(0, tl.cdiv(k, BK * SPLIT)):
        a_tile = tl.load(a + rows[:, None] * k + inner[None, :], mask=(rows[:, None] < m) & (inner[None, :] < k), other=0.0)
        b_tile = tl.load(b + inner[:, None] * n + cols[None, :], mask=(inner[:, None] < k) & (cols[None, :] < n), other=0.0)
        acc += tl.dot(a_tile, b_tile)
        inner += BK * SPLIT
    tl.atomic_add(c + rows[:, None] * n + cols[None, :], acc, mask=(rows[:, None] < m) & (cols[None, :] < n))


@triton.jit
def fp8_round_trip(x, z, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n, other=0.0)
    tl.store(z + at, value.to(tl.float8e5).to(tl.float32), mask=at < n)


@triton.jit
def cross_entropy(logits, label, loss, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(logits + row * cols + at, mask=at < cols, other=-float("inf")).to(tl.float32)
    top = tl.max(x, 0)
    total = tl.log(tl.sum(tl.exp(x - top), 0)) + top
    tl.store(loss + row, total - tl.load(logits + row * cols + tl.load(label + row)).to(tl.float32))


@triton.jit
def welford_join(mean_a, m2_a, weight_a, mean_b, m2_b, weight_b):
    delta = mean_b - mean_a
    weight = weight_a + weight_b
    share = tl.where(weight == 0.0, 0.0, weight_b / weight)
    return mean_a + delta * share, m2_a + m2_b + delta * delta * weight_a * share, weight


@triton.jit
def welford(x, mean, var, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < cols
    value = tl.load(x + row * cols + at, mask=mask, other=0.0)
    m, m2, weight = tl.reduce((value, tl.zeros_like(value), tl.where(mask, 1.0, 0.0)), 0, welford_join)
    tl.store(mean + row, m)
    tl.store(var + row, m2 / weight)


@triton.jit
def gather_rows(x, index, z, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    source = tl.load(index + row).to(tl.int64)
    for start in range(0, cols, BLOCK):
        at = start + tl.arange(0, BLOCK)
        tl.store(z + row * cols + at, tl.load(x + source * cols + at, mask=at < cols), mask=at < cols)


@triton.jit
def linear_scan_join(a0, b0, a1, b1):
    return a0 * a1, b0 * a1 + b1


@triton.jit
def linear_scan(a, b, z, BLOCK: tl.constexpr):
    """z[i] = a[i]·z[i - 1] + b[i] by an associative scan."""
    at = tl.arange(0, BLOCK)
    base = tl.program_id(0) * BLOCK
    _, y = tl.associative_scan((tl.load(a + base + at), tl.load(b + base + at)), 0, linear_scan_join)
    tl.store(z + base + at, y)


@triton.jit
def top_mask(x, z, cols, k, BLOCK: tl.constexpr):
    """Keeps what is at least the k-th largest of a row: bit by bit of the ordered representation."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * cols + at, mask=at < cols, other=-float("inf"))
    bits = value.to(tl.int32, bitcast=True)
    key = tl.where(bits < 0, ~bits, bits | -2147483648).to(tl.uint32, bitcast=True)
    threshold = tl.zeros([1], tl.uint32)
    for bit in tl.static_range(31, -1, -1):
        candidate = threshold | (1 << bit)
        count = tl.sum((key >= candidate).to(tl.int32), 0)
        threshold = tl.where(count >= k, candidate, threshold)
    tl.store(z + row * cols + at, tl.where(key >= threshold, value, 0.0), mask=at < cols)


@triton.jit
def wide_integers(x, y, q, r, h, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b = tl.load(x + at, mask=at < n, other=0), tl.load(y + at, mask=at < n, other=1)
    tl.store(q + at, a // b, mask=at < n)
    tl.store(r + at, a % b, mask=at < n)
    tl.store(h + at, tl.umulhi(a.to(tl.uint64), b.to(tl.uint64)).to(tl.int64), mask=at < n)


KERNELS = dict([
    ("flash", (flash, dict(q="*fp16", k="*fp16", v="*fp16", o="*fp16", lse="*fp32", length="i32", scale="fp32"),
               dict(BM=64, BN=32, D=64), 4, 2)),
    ("dropout", (dropout, dict(x="*fp32", z="*fp32", n="i32", p="fp32", seed="i32"), dict(BLOCK=256), 4, 3)),
    ("layer_norm_backward", (layer_norm_backward, dict(dz="*fp32", x="*fp32", gain="*fp32", mean="*fp32", scale="*fp32", dx="*fp32",
                                                       dgain="*fp32", dbias="*fp32", lock="*i32", cols="i32"), dict(GROUPS=2, BLOCK=256), 1, 3)),
    # With two warps, one may read `count` after the other has exchanged it: nothing orders a load by all and an atomic operation by one of them.
    ("layer_norm_race", (layer_norm_backward, dict(dz="*fp32", x="*fp32", gain="*fp32", mean="*fp32", scale="*fp32", dx="*fp32",
                                                   dgain="*fp32", dbias="*fp32", lock="*i32", cols="i32"), dict(GROUPS=2, BLOCK=256), 2, 3)),
    ("split_k", (split_k, dict(a="*bf16", b="*bf16", c="*fp32", m="i32", n="i32", k="i32"), dict(BM=32, BN=32, BK=32, SPLIT=2), 2, 3)),
    ("fp8_round_trip", (fp8_round_trip, dict(x="*fp32", z="*fp32", n="i32"), dict(BLOCK=256), 4, 3)),
    ("cross_entropy", (cross_entropy, dict(logits="*fp16", label="*i64", loss="*fp32", cols="i32"), dict(BLOCK=512), 4, 3)),
    ("welford", (welford, dict(x="*fp32", mean="*fp32", var="*fp32", cols="i32"), dict(BLOCK=256), 4, 3)),
    ("gather_rows", (gather_rows, dict(x="*i8", index="*i32", z="*i8", cols="i32"), dict(BLOCK=128), 2, 3)),
    ("linear_scan", (linear_scan, dict(a="*fp32", b="*fp32", z="*fp32"), dict(BLOCK=256), 4, 3)),
    ("top_mask", (top_mask, dict(x="*fp32", z="*fp32", cols="i32", k="i32"), dict(BLOCK=128), 2, 3)),
    ("wide_integers", (wide_integers, dict(x="*i64", y="*i64", q="*i64", r="*i64", h="*i64", n="i32"), dict(BLOCK=128), 4, 3)),
])
