"""Triton kernels of the corpus. `KERNELS` says how each is compiled: signature, constants, warps, stages."""

import triton
import triton.language as tl


@triton.jit
def add(x, y, z, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(z + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@triton.jit
def softmax(x, z, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * cols + i, mask=i < cols, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(z + row * cols + i, e / tl.sum(e, axis=0), mask=i < cols)


@triton.jit
def layer_norm(x, gain, bias, z, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * cols + i, mask=i < cols, other=0.0).to(tl.float32)
    mean = tl.sum(v, axis=0) / cols
    centred = tl.where(i < cols, v - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / cols + eps)
    out = centred * scale * tl.load(gain + i, mask=i < cols) + tl.load(bias + i, mask=i < cols)
    tl.store(z + row * cols + i, out.to(tl.bfloat16), mask=i < cols)


@triton.jit
def matmul(a, b, c, m, n, k, stride_a, stride_b, stride_c, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
           ACC: tl.constexpr, PRECISION: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=ACC)
    for k0 in range(0, k, BK):
        ta = tl.load(a + rows[:, None] * stride_a + (k0 + ks)[None, :],
                     mask=(rows[:, None] < m) & ((k0 + ks)[None, :] < k), other=0)
        tb = tl.load(b + (k0 + ks)[:, None] * stride_b + cols[None, :],
                     mask=((k0 + ks)[:, None] < k) & (cols[None, :] < n), other=0)
        acc = tl.dot(ta, tb, acc, input_precision=PRECISION, out_dtype=ACC)
    tl.store(c + rows[:, None] * stride_c + cols[None, :], acc, mask=(rows[:, None] < m) & (cols[None, :] < n))


@triton.jit
def attention(q, k, v, o, length, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    tq = tl.load(q + rows[:, None] * D + d[None, :])
    most = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for start in range(0, length, BN):
        cols = start + tl.arange(0, BN)
        s = tl.dot(tq, tl.load(k + cols[None, :] * D + d[:, None])) * scale
        now = tl.maximum(most, tl.max(s, axis=1))
        p = tl.exp2(s - now[:, None])
        fade = tl.exp2(most - now)
        total = total * fade + tl.sum(p, axis=1)
        acc = tl.dot(p.to(tl.float16), tl.load(v + cols[:, None] * D + d[None, :]), acc * fade[:, None])
        most = now
    tl.store(o + rows[:, None] * D + d[None, :], (acc / total[:, None]).to(tl.float16))


@triton.jit
def transpose(x, z, rows, cols, B: tl.constexpr):
    r = tl.program_id(0) * B + tl.arange(0, B)
    c = tl.program_id(1) * B + tl.arange(0, B)
    v = tl.load(x + r[:, None] * cols + c[None, :], mask=(r[:, None] < rows) & (c[None, :] < cols))
    tl.store(z + c[:, None] * rows + r[None, :], tl.trans(v), mask=(c[:, None] < cols) & (r[None, :] < rows))


@triton.jit
def cumsum(x, z, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(z + i, tl.cumsum(tl.load(x + i), axis=0))


@triton.jit
def histogram(x, bins, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(bins + tl.load(x + i, mask=i < n, other=0), 1, mask=i < n)


@triton.jit
def gelu(x, z, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n).to(tl.float32)
    tl.store(z + i, (0.5 * v * (1 + tl.erf(v * 0.7071067811865476))).to(tl.float16), mask=i < n)


@triton.jit
def argmax(x, z, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * cols + i, mask=i < cols, other=-float("inf"))
    tl.store(z + row, tl.argmax(v, axis=0))


@triton.jit
def sort(x, z, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(z + i, tl.sort(tl.load(x + i)))


@triton.jit
def spin_lock(lock, value, x):
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    sum = tl.load(value) + tl.load(x + tl.program_id(0))
    tl.debug_barrier()
    tl.store(value, sum)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


def dot(name, ty, acc, out, precision="ieee", bm=64, bn=64, bk=32, warps=4, stages=3):
    """A `matmul` of elements `ty` with accumulators `acc`."""
    sizes = dict(m="i32", n="i32", k="i32", stride_a="i32", stride_b="i32", stride_c="i32")
    signature = dict(a=f"*{ty}", b=f"*{ty}", c=f"*{out}", **sizes)
    constants = dict(BM=bm, BN=bn, BK=bk, ACC=acc, PRECISION=precision)
    return name, (matmul, signature, constants, warps, stages)


# Name of the file: kernel, signature, constants, warps, stages.
KERNELS = dict([
    ("add", (add, dict(x="*fp32", y="*fp32", z="*fp32", n="i32"), dict(BLOCK=1024), 4, 3)),
    ("add_bf16", (add, dict(x="*bf16", y="*bf16", z="*bf16", n="i32"), dict(BLOCK=512), 4, 3)),
    ("softmax", (softmax, dict(x="*fp32", z="*fp32", cols="i32"), dict(BLOCK=256), 4, 3)),
    ("layer_norm", (layer_norm, dict(x="*bf16", gain="*fp32", bias="*fp32", z="*bf16", cols="i32", eps="fp32"),
                    dict(BLOCK=256), 2, 3)),
    dot("matmul_f16", "fp16", tl.float32, "fp32"),
    dot("matmul_f16_acc16", "fp16", tl.float16, "fp16", bm=32, bn=32),
    dot("matmul_bf16", "bf16", tl.float32, "fp32", warps=2),
    dot("matmul_tf32", "fp32", tl.float32, "fp32", precision="tf32", bm=32),
    dot("matmul_f32", "fp32", tl.float32, "fp32", bm=32, bn=32, bk=16),
    dot("matmul_s8", "i8", tl.int32, "i32", bm=32),
    dot("matmul_f64", "fp64", tl.float64, "fp64", bm=16, bn=16, bk=16, warps=1),
    ("attention", (attention, dict(q="*fp16", k="*fp16", v="*fp16", o="*fp16", length="i32", scale="fp32"),
                   dict(BM=32, BN=32, D=32), 2, 2)),
    ("transpose", (transpose, dict(x="*fp32", z="*fp32", rows="i32", cols="i32"), dict(B=32), 2, 3)),
    ("cumsum", (cumsum, dict(x="*i32", z="*i32"), dict(BLOCK=512), 4, 3)),
    ("histogram", (histogram, dict(x="*i32", bins="*i32", n="i32"), dict(BLOCK=256), 4, 3)),
    ("gelu", (gelu, dict(x="*fp16", z="*fp16", n="i32"), dict(BLOCK=256), 4, 3)),
    ("argmax", (argmax, dict(x="*fp32", z="*i32", cols="i32"), dict(BLOCK=256), 4, 3)),
    ("sort", (sort, dict(x="*i32", z="*i32"), dict(BLOCK=128), 2, 3)),
    ("spin_lock", (spin_lock, dict(lock="*i32", value="*fp32", x="*fp32"), dict(), 1, 3)),
])
