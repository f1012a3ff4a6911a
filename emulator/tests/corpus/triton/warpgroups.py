"""Triton kernels for Hopper: sources of `../triton/*.ptx` with products by warpgroups and tensor copies."""

import triton
import triton.language as tl

from kernels import matmul
from more import flash


@triton.jit
def described(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, TURNED: tl.constexpr):
    """A product of tiles that tensor copies bring, B by rows of k or of n."""
    row, col = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for at in range(0, k, BK):
        ta = a.load([row, at])
        if TURNED:
            acc = tl.dot(ta, b.load([col, at]).T, acc)
        else:
            acc = tl.dot(ta, b.load([at, col]), acc)
    c.store([row, col], acc.to(c.dtype))


@triton.jit
def narrow(a, b, c, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """A product of 8-bit floats, one tile, B by rows of n."""
    rows, cols, ks = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for at in range(0, k, BK):
        acc = tl.dot(tl.load(a + rows[:, None] * k + (at + ks)[None, :]), tl.load(b + cols[None, :] * k + (at + ks)[:, None]), acc)
    tl.store(c + rows[:, None] * BN + cols[None, :], acc)


@triton.jit
def persistent(a, b, c, m, n, k, PROGRAMS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """The same, each program several tiles of C, with an activation."""
    across = tl.cdiv(n, BN)
    for tile in tl.range(tl.program_id(0), tl.cdiv(m, BM) * across, PROGRAMS, flatten=True):
        row, col = tile // across * BM, tile % across * BN
        acc = tl.zeros((BM, BN), tl.float32)
        for at in range(0, k, BK):
            acc = tl.dot(a.load([row, at]), b.load([col, at]).T, acc)
        c.store([row, col], tl.maximum(acc, 0.0).to(c.dtype))


@triton.jit
def grouped(a, b, c, sizes, n, k, GROUPS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Products of rows of A, group by group, each with its own B: sizes are the groups' numbers of rows."""
    program, first = tl.program_id(0), 0
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    begun = 0
    for group in range(GROUPS):
        size = tl.load(sizes + group)
        tiles = tl.cdiv(size, BM)
        if (program >= begun) & (program < begun + tiles):
            rows = (program - begun) * BM + tl.arange(0, BM)
            acc = tl.zeros((BM, BN), tl.float32)
            for at in range(0, k, BK):
                ta = tl.load(a + (first + rows)[:, None] * k + (at + ks)[None, :], mask=rows[:, None] < size, other=0.0)
                tb = tl.load(b + group * k * n + (at + ks)[:, None] * n + cols[None, :])
                acc = tl.dot(ta, tb, acc)
            tl.store(c + (first + rows)[:, None] * n + cols[None, :], acc, mask=rows[:, None] < size)
        begun += tiles
        first += size


def dot(name, ty, acc, out, bm=64, bn=64, bk=64, warps=4, stages=3, precision="ieee"):
    sizes = dict(m="i32", n="i32", k="i32", stride_a="i32", stride_b="i32", stride_c="i32")
    signature = dict(a=f"*{ty}", b=f"*{ty}", c=f"*{out}", **sizes)
    constants = dict(BM=bm, BN=bn, BK=bk, ACC=acc, PRECISION=precision)
    return name, (matmul, signature, constants, warps, stages)


def tile(ty, rows, cols):
    return f"tensordesc<{ty}[{rows}, {cols}]>"


SIZES = dict(m="i32", n="i32", k="i32")

KERNELS = dict([
    dot("hopper_bf16", "bf16", tl.float32, "fp32", bn=128),
    dot("hopper_f16_acc16", "fp16", tl.float16, "fp16"),
    dot("hopper_tf32", "fp32", tl.float32, "fp32", bk=32, precision="tf32"),
    ("hopper_fp8", (narrow, dict(a="*fp8e4nv", b="*fp8e5", c="*fp32", k="i32"), dict(BM=128, BN=32, BK=64), 8, 3)),
    dot("hopper_s8", "i8", tl.int32, "i32"),
    ("hopper_flash", (flash, dict(q="*fp16", k="*fp16", v="*fp16", o="*fp16", lse="*fp32", length="i32", scale="fp32"),
                      dict(BM=64, BN=64, D=64), 4, 2)),
    ("hopper_described", (described, dict(a=tile("bf16", 128, 64), b=tile("bf16", 64, 64), c=tile("bf16", 128, 64), **SIZES),
                          dict(BM=128, BN=64, BK=64, TURNED=False), 8, 3)),
    ("hopper_turned", (described, dict(a=tile("fp16", 64, 32), b=tile("fp16", 64, 32), c=tile("fp16", 64, 64), **SIZES),
                       dict(BM=64, BN=64, BK=32, TURNED=True), 4, 4)),
    ("hopper_persistent", (persistent, dict(a=tile("bf16", 64, 64), b=tile("bf16", 128, 64), c=tile("bf16", 64, 128), **SIZES),
                           dict(PROGRAMS=3, BM=64, BN=128, BK=64), 4, 3)),
    ("hopper_grouped", (grouped, dict(a="*bf16", b="*bf16", c="*fp32", sizes="*i32", n="i32", k="i32"),
                        dict(GROUPS=3, BM=64, BN=64, BK=32), 4, 3)),
])
