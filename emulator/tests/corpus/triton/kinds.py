"""Triton kernels of further kinds: sources of `../triton/*.ptx` that `generate.py` compiles together with the others."""

import triton
import triton.language as tl


@triton.jit
def grouped(a, b, c, offsets, sizes, groups, k, n, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PROGRAMS: tl.constexpr):
    """Products of several matrices of different heights, given by tables of offsets; a fixed number of programs goes through all tiles."""
    tile = tl.program_id(0)
    done = 0
    for g in range(groups):
        rows = tl.load(sizes + g)
        here = tl.cdiv(rows, BM) * tl.cdiv(n, BN)
        while tile >= done and tile < done + here:
            at = tile - done
            a_base = a + tl.load(offsets + 3 * g)
            b_base = b + tl.load(offsets + 3 * g + 1)
            c_base = c + tl.load(offsets + 3 * g + 2)
            i = at // tl.cdiv(n, BN) * BM + tl.arange(0, BM)
            j = at % tl.cdiv(n, BN) * BN + tl.arange(0, BN)
            acc = tl.zeros([BM, BN], tl.float32)
            for first in range(0, k, BK):
                l = first + tl.arange(0, BK)
                x = tl.load(a_base + i[:, None] * k + l[None, :], mask=(i[:, None] < rows) & (l[None, :] < k), other=0.0)
                y = tl.load(b_base + l[:, None] * n + j[None, :], mask=(l[:, None] < k) & (j[None, :] < n), other=0.0)
                acc = tl.dot(x, y, acc)
            tl.store(c_base + i[:, None] * n + j[None, :], acc, mask=(i[:, None] < rows) & (j[None, :] < n))
            tile += PROGRAMS
        done += here


@triton.jit
def normals(z, seed, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(z + at, tl.randn(seed, at), mask=at < n)


@triton.jit
def atomics(x, index, total, least, bits, swapped, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    value = tl.load(x + at, mask=mask, other=0.0)
    to = tl.load(index + at, mask=mask, other=0)
    tl.atomic_add(total + to, value, mask=mask)
    tl.atomic_min(least + to, value, mask=mask)
    tl.atomic_or(bits + to, 1 << (at % 31), mask=mask, sem="relaxed")
    tl.atomic_xchg(swapped + at, at.to(tl.int32) * 3, mask=mask, scope="cta")


@triton.jit
def rows_of_four_bits(packed, scale, x, z, k, n, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """x · w where w is kept as two numbers of 4 bits to a byte, with a scale for every column."""
    i = tl.arange(0, BM)
    j = tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros([BM, BN], tl.float32)
    for first in range(0, k // 2, BK):
        l = first + tl.arange(0, BK)
        byte = tl.load(packed + l[:, None] * n + j[None, :])
        low = ((byte << 4).to(tl.int8) >> 4).to(tl.float16)
        high = (byte >> 4).to(tl.float16)
        even = tl.load(x + i[:, None] * k + 2 * l[None, :])
        odd = tl.load(x + i[:, None] * k + 2 * l[None, :] + 1)
        acc = tl.dot(even, low, acc)
        acc = tl.dot(odd, high, acc)
    tl.store(z + i[:, None] * n + j[None, :], acc * tl.load(scale + j)[None, :])


@triton.jit
def latest_join(key0, value0, key1, value1):
    later = key1 >= 0
    return tl.where(later, key1, key0), tl.where(later, value1, value0)


@triton.jit
def forward_fill(key, x, z, where, cols, BLOCK: tl.constexpr):
    """Of every element the last one before it whose key is not negative; sums from the end; a permutation by `gather`."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    k = tl.load(key + row * cols + at, mask=at < cols, other=-1)
    v = tl.load(x + row * cols + at, mask=at < cols, other=0.0)
    _, filled = tl.associative_scan((k, v), 0, latest_join)
    from_end = tl.cumsum(v, 0, reverse=True)
    turned = tl.gather(filled, (at * 7 + 3) % BLOCK, 0)
    tl.store(z + row * 3 * BLOCK + at, filled)
    tl.store(z + row * 3 * BLOCK + BLOCK + at, from_end)
    tl.store(z + row * 3 * BLOCK + 2 * BLOCK + at, turned)
    low, place = tl.min(v, 0, return_indices=True)
    tl.store(where + row, place)


@triton.jit
def rotary(x, cosine, sine, z, length, heads, D: tl.constexpr):
    """Rotary embedding of bf16 rows, both halves interleaved, and the root mean square of the result."""
    row, head = tl.program_id(0), tl.program_id(1)
    half = tl.arange(0, D // 2)
    base = (row * heads + head) * D
    a = tl.load(x + base + half).to(tl.float32)
    b = tl.load(x + base + D // 2 + half).to(tl.float32)
    c, s = tl.load(cosine + row * (D // 2) + half), tl.load(sine + row * (D // 2) + half)
    both = tl.interleave(a * c - b * s, a * s + b * c)
    mean = tl.sum(both * both, 0) / D
    tl.store(z + base + tl.arange(0, D), (both * tl.rsqrt(mean + 1e-6)).to(tl.bfloat16))


# Name of the file: kernel, signature, constants, warps, stages.
KERNELS = {
    "grouped": (grouped, dict(a="*fp16", b="*fp16", c="*fp32", offsets="*i64", sizes="*i32", groups="i32", k="i32", n="i32"),
                dict(BM=32, BN=32, BK=32, PROGRAMS=3), 2, 3),
    "normals": (normals, dict(z="*fp32", seed="i32", n="i32"), dict(BLOCK=256), 2, 3),
    "atomics": (atomics, dict(x="*fp32", index="*i32", total="*fp32", least="*fp32", bits="*i32", swapped="*i32", n="i32"),
                dict(BLOCK=256), 4, 3),
    "rows_of_four_bits": (rows_of_four_bits, dict(packed="*i8", scale="*fp32", x="*fp16", z="*fp32", k="i32", n="i32"),
                          dict(BM=16, BN=32, BK=32), 1, 2),
    "forward_fill": (forward_fill, dict(key="*i32", x="*fp32", z="*fp32", where="*i32", cols="i32"), dict(BLOCK=256), 4, 3),
    "rotary": (rotary, dict(x="*bf16", cosine="*fp32", sine="*fp32", z="*bf16", length="i32", heads="i32"), dict(D=64), 1, 3),
}
