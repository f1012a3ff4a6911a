"""The work of rows.json by Triton. Each function takes tensors of PyTorch and returns a launch."""

import torch
import triton
import triton.language as tl


@triton.jit
def _softmax(x, y, n, block: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    at = tl.arange(0, block)
    inside = at < n
    value = tl.load(x + row + at, mask=inside, other=-float("inf"))
    power = tl.exp(value - tl.max(value, 0))
    tl.store(y + row + at, power / tl.sum(power, 0), mask=inside)


def softmax(x, y):
    m, n = x.shape
    block = triton.next_power_of_2(n)
    return lambda: _softmax[(m,)](x, y, n, block=block, num_warps=min(max(block // 512, 4), 16))


@triton.jit
def _rms_norm(x, w, y, n, eps, block: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    at = tl.arange(0, block)
    inside = at < n
    value = tl.load(x + row + at, mask=inside, other=0.0).to(tl.float32)
    weight = tl.load(w + at, mask=inside, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, 0) / n + eps)
    tl.store(y + row + at, (value * scale * weight).to(y.dtype.element_ty), mask=inside)


def rms_norm(x, w, y, eps):
    m, n = x.shape
    block = triton.next_power_of_2(n)
    return lambda: _rms_norm[(m,)](x, w, y, n, eps, block=block, num_warps=min(max(block // 1024, 4), 16))


@triton.jit
def _layer_norm(x, w, b, y, n, eps, block: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    at = tl.arange(0, block)
    inside = at < n
    value = tl.load(x + row + at, mask=inside, other=0.0)
    away = tl.where(inside, value - tl.sum(value, 0) / n, 0.0)
    scale = tl.rsqrt(tl.sum(away * away, 0) / n + eps)
    weight = tl.load(w + at, mask=inside, other=0.0)
    bias = tl.load(b + at, mask=inside, other=0.0)
    tl.store(y + row + at, away * scale * weight + bias, mask=inside)


def layer_norm(x, w, b, y, eps):
    m, n = x.shape
    block = triton.next_power_of_2(n)
    return lambda: _layer_norm[(m,)](x, w, b, y, n, eps, block=block, num_warps=min(max(block // 512, 4), 16))


@triton.jit
def _column_parts(x, parts, m, n, rows: tl.constexpr, columns: tl.constexpr, step: tl.constexpr):
    j = tl.program_id(0) * columns + tl.arange(0, columns)
    first = tl.program_id(1) * rows
    total = tl.zeros([columns], dtype=tl.float32)
    for r in range(0, rows, step):
        i = first + r + tl.arange(0, step)
        inside = (i[:, None] < m) & (j[None, :] < n)
        total += tl.sum(tl.load(x + i[:, None].to(tl.int64) * n + j[None, :], mask=inside, other=0.0), 0)
    tl.store(parts + tl.program_id(1) * n + j, total, mask=j < n)


def column_sum(x, y):
    (m, n), rows, columns = x.shape, 512, 128
    grid = (triton.cdiv(n, columns), triton.cdiv(m, rows))
    parts = torch.empty(grid[1], n, device=x.device)

    def launch():
        _column_parts[grid](x, parts, m, n, rows=rows, columns=columns, step=32, num_warps=8)
        torch.sum(parts, 0, out=y)

    return launch


@triton.jit
def _moments(x, sums, squares, m, n, rows: tl.constexpr, columns: tl.constexpr, step: tl.constexpr):
    j = tl.program_id(0) * columns + tl.arange(0, columns)
    first = tl.program_id(1) * rows
    total = tl.zeros([columns], dtype=tl.float32)
    square = tl.zeros([columns], dtype=tl.float32)
    for r in range(0, rows, step):
        i = first + r + tl.arange(0, step)
        inside = (i[:, None] < m) & (j[None, :] < n)
        part = tl.load(x + i[:, None].to(tl.int64) * n + j[None, :], mask=inside, other=0.0)
        total += tl.sum(part, 0)
        square += tl.sum(part * part, 0)
    tl.store(sums + tl.program_id(1) * n + j, total, mask=j < n)
    tl.store(squares + tl.program_id(1) * n + j, square, mask=j < n)


@triton.jit
def _statistics(sums, squares, mean, variance, m, n, parts, columns: tl.constexpr):
    j = tl.program_id(0) * columns + tl.arange(0, columns)
    total = tl.zeros([columns], dtype=tl.float32)
    square = tl.zeros([columns], dtype=tl.float32)
    for part in range(parts):
        total += tl.load(sums + part * n + j, mask=j < n, other=0.0)
        square += tl.load(squares + part * n + j, mask=j < n, other=0.0)
    average = total / m
    tl.store(mean + j, average, mask=j < n)
    tl.store(variance + j, square / m - average * average, mask=j < n)


def batch_statistics(x, mean, variance):
    (m, n), rows, columns = x.shape, 512, 128
    grid = (triton.cdiv(n, columns), triton.cdiv(m, rows))
    sums, squares = (torch.empty(grid[1], n, device=x.device) for _ in range(2))

    def launch():
        _moments[grid](x, sums, squares, m, n, rows=rows, columns=columns, step=32, num_warps=8)
        _statistics[(grid[0],)](sums, squares, mean, variance, m, n, grid[1], columns=columns)

    return launch


@triton.jit
def _parts(x, parts, n, each: tl.constexpr, block: tl.constexpr):
    first = tl.program_id(0).to(tl.int64) * each
    total = tl.zeros([block], dtype=tl.float32)
    for r in range(0, each, block):
        at = first + r + tl.arange(0, block)
        total += tl.load(x + at, mask=at < n, other=0.0)
    tl.store(parts + tl.program_id(0), tl.sum(total, 0))


def full_sum(x, y):
    n, each = x.numel(), 32768
    grid = (triton.cdiv(n, each),)
    parts = torch.empty(grid[0], device=x.device)

    def launch():
        _parts[grid](x, parts, n, each=each, block=4096, num_warps=8)
        torch.sum(parts, 0, out=y)

    return launch


@triton.jit
def _window(x, weights, y, h, w, oh, ow, above: tl.constexpr, size: tl.constexpr, bi: tl.constexpr, bj: tl.constexpr):
    i = tl.program_id(1) * bi + tl.arange(0, bi)
    j = tl.program_id(0) * bj + tl.arange(0, bj)
    total = tl.zeros([bi, bj], dtype=tl.float32)
    for r in tl.static_range(size):
        for s in tl.static_range(size):
            p, q = i + r - above, j + s - above
            rows, columns = (p >= 0) & (p < h), (q >= 0) & (q < w)
            inside = rows[:, None] & columns[None, :]
            value = tl.load(x + p[:, None].to(tl.int64) * w + q[None, :], mask=inside, other=0.0)
            total += value * tl.load(weights + r * size + s)
    inside = (i[:, None] < oh) & (j[None, :] < ow)
    tl.store(y + i[:, None].to(tl.int64) * ow + j[None, :], total, mask=inside)


def window(x, weights, y, above):
    """y[i, j] = sum of weights[r, s] times x[i + r - above, j + s - above], zero outside."""
    (h, w), (oh, ow), size, bi, bj = x.shape, y.shape, weights.shape[0], 8, 128
    grid = (triton.cdiv(ow, bj), triton.cdiv(oh, bi))
    return lambda: _window[grid](x, weights, y, h, w, oh, ow, above=above, size=size, bi=bi, bj=bj, num_warps=4)


@triton.jit
def _place(tile, m, n, bm: tl.constexpr, bn: tl.constexpr, group: tl.constexpr):
    # Tiles in groups of rows, so that neighbours share what the L2 cache has.
    rows, columns = tl.cdiv(m, bm), tl.cdiv(n, bn)
    first = tile // (group * columns) * group
    height = min(rows - first, group)
    return first + tile % (group * columns) % height, tile % (group * columns) // height


@triton.jit
def _product(a, b, c, m, n, k, bm: tl.constexpr, bn: tl.constexpr, bk: tl.constexpr, group: tl.constexpr):
    i, j = _place(tl.program_id(0), m, n, bm, bn, group)
    r, s, t = i * bm + tl.arange(0, bm), j * bn + tl.arange(0, bn), tl.arange(0, bk)
    left = a + (r % m)[:, None].to(tl.int64) * k + t[None, :]
    right = b + (s % n)[None, :].to(tl.int64) * k + t[:, None]
    total = tl.zeros([bm, bn], dtype=tl.float32)
    for at in range(0, k, bk):
        inside = t < k - at
        total = tl.dot(tl.load(left, mask=inside[None, :], other=0.0), tl.load(right, mask=inside[:, None], other=0.0), total)
        left += bk
        right += bk
    inside = (r[:, None] < m) & (s[None, :] < n)
    tl.store(c + r[:, None].to(tl.int64) * n + s[None, :], total.to(c.dtype.element_ty), mask=inside)


def product(a, b, c):
    """c = a times the transpose of b."""
    (m, k), n, bm, bn = a.shape, b.shape[0], 128, 256
    grid = (triton.cdiv(m, bm) * triton.cdiv(n, bn),)
    return lambda: _product[grid](a, b, c, m, n, k, bm=bm, bn=bn, bk=64, group=8, num_warps=8, num_stages=3)


@triton.jit
def _persistent_product(a, b, c, m, n, k, programs, bm: tl.constexpr, bn: tl.constexpr, bk: tl.constexpr, group: tl.constexpr):
    # Each program takes several tiles; copies and the last store are the accelerator's.
    for tile in tl.range(tl.program_id(0), tl.cdiv(m, bm) * tl.cdiv(n, bn), programs, flatten=True):
        i, j = _place(tile, m, n, bm, bn, group)
        total = tl.zeros([bm, bn], dtype=tl.float32)
        for step in range(tl.cdiv(k, bk)):
            left, right = a.load([i * bm, step * bk]), b.load([j * bn, step * bk])
            total = tl.dot(left, right.T, total)
        c.store([i * bm, j * bn], total.to(c.dtype))


def persistent_product(a, b, c, bm, bn):
    """c = a times the transpose of b, with tensor descriptors; ImportError if Triton has none."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    (m, k), n, bk = a.shape, b.shape[0], 64
    tensors = [TensorDescriptor.from_tensor(x, box) for x, box in ((a, [bm, bk]), (b, [bn, bk]), (c, [bm, bn]))]
    programs = min(torch.cuda.get_device_properties(a.device).multi_processor_count, triton.cdiv(m, bm) * triton.cdiv(n, bn))
    options = {"bm": bm, "bn": bn, "bk": bk, "group": 8, "num_stages": 3 if bn > 128 else 4, "num_warps": max(bm * bn // 4096, 4)}
    return lambda: _persistent_product[(programs,)](*tensors, m, n, k, programs, **options)


@triton.jit
def _attention(q, k, v, o, s, t, scale, shared, bm: tl.constexpr, bn: tl.constexpr, d: tl.constexpr, causal: tl.constexpr):
    # Queries in reverse, so that those with the most keys begin first.
    block, head = tl.num_programs(0) - 1 - tl.program_id(0), tl.program_id(1).to(tl.int64)
    i, e = block * bm + tl.arange(0, bm), tl.arange(0, d)
    inside = i[:, None] < s
    queries = tl.load(q + head * s * d + i[:, None] * d + e[None, :], mask=inside, other=0.0)
    keys, values = k + head // shared * t * d, v + head // shared * t * d
    most = tl.full([bm], float("-inf"), tl.float32)
    total, sums = tl.zeros([bm], tl.float32), tl.zeros([bm, d], tl.float32)
    end = tl.minimum(t, (block + 1) * bm) if causal else t
    for first in range(0, end, bn):
        j = first + tl.arange(0, bn)
        exists = j < t
        key = tl.load(keys + j[None, :] * d + e[:, None], mask=exists[None, :], other=0.0)
        scores = tl.dot(queries, key) * scale
        kept = exists[None, :] & (j[None, :] <= i[:, None]) if causal else exists[None, :]
        scores = tl.where(kept, scores, float("-inf"))
        above = tl.maximum(most, tl.max(scores, 1))
        p, correction = tl.exp2(scores - above[:, None]), tl.exp2(most - above)
        total = total * correction + tl.sum(p, 1)
        value = tl.load(values + j[:, None] * d + e[None, :], mask=exists[:, None], other=0.0)
        sums = tl.dot(p.to(value.dtype), value, sums * correction[:, None])
        most = above
    tl.store(o + head * s * d + i[:, None] * d + e[None, :], (sums / total[:, None]).to(o.dtype.element_ty), mask=inside)


def attention(q, k, v, o, causal):
    """o = softmax(q times the transpose of k, divided by the root of d) times v, for each head; heads may share keys."""
    (heads, s, d), t = q.shape, k.shape[1]
    scale, shared, bm, bn = 1.4426950408889634 / d**0.5, heads // k.shape[0], 128, 64
    grid = (triton.cdiv(s, bm), heads)
    options = {"bm": bm, "bn": bn, "d": d, "causal": causal, "num_warps": 8, "num_stages": 3}
    return lambda: _attention[grid](q, k, v, o, s, t, scale, shared, **options)
