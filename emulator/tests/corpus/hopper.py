"""Cases of the Triton kernels in `triton/warpgroups.py` and of `nvcc/warpgroups.cu`; see `cases.py`.

Hopper's tensor cores add 16 products (8 of tf32) and the sum so far in multiples of 2^-25 of the greatest, cut off, and 32 products of 8-bit
floats in multiples of 2^-13: see `src/matrix/model.rs`. The first is within the roundings that `product` counts.
"""

import numpy as np
from cases import Case, from_bf16, product, rng, to_bf16, u
from programs import attention

H = 2.0**-11  # unit roundoff of f16
B = 2.0**-8  # of bf16


def half(*shape):
    return rng.standard_normal(shape).astype(np.float16)


def bf16(*shape):
    return to_bf16(rng.standard_normal(shape))


def small(bits, fraction):
    """8-bit floats of moderate exponents as bits, and their values."""
    exponent = bits >> fraction & (0x7F >> fraction)
    bias = 7 if fraction == 3 else 15
    exponent = exponent % 6 + bias - 3
    bits = bits & (0x80 | (1 << fraction) - 1) | exponent << fraction
    sign = np.where(bits & 0x80, -1.0, 1.0)
    return bits.astype(np.uint8), sign * (1 + (bits & (1 << fraction) - 1) / 2.0**fraction) * 2.0 ** (exponent - bias)


def pointers():
    """Tiles that threads copy."""

    def matmul(name, a, b, want, bound, kind, bm, bn, shared):
        (m, k), n = a.shape, b.shape[1]
        case = Case("triton_" + name, f"triton/{name}.ptx", "matmul", (-(-m // bm), -(-n // bn)), 128, shared)
        case.buffer(a).buffer(b).buffer(None, want, bound, kind).scalar(m).scalar(n).scalar(k).scalar(k).scalar(n).scalar(n).null(2)

    a, b = bf16(80, 208), bf16(208, 80)
    matmul("hopper_bf16", a, b, *product(from_bf16(a), from_bf16(b)), "f32", 64, 128, 73728)
    a, b = half(64, 96), half(96, 80)
    matmul("hopper_f16_acc16", a, b, *product(a, b, 8), "f16", 64, 64, 49152)
    a, b = (rng.integers(-255, 256, s).astype(np.float32) / 32 for s in ((80, 64), (64, 64)))
    matmul("hopper_tf32", a, b, *product(a, b), "f32", 64, 64, 49152)
    a, b = rng.integers(-128, 128, (80, 128)).astype(np.int8), rng.integers(-128, 128, (128, 64)).astype(np.int8)
    matmul("hopper_s8", a, b, a.astype(np.int32) @ b.astype(np.int32), 0, "int32", 64, 64, 16384)
    k = 192
    (a, wide_a), (b, wide_b) = small(rng.integers(0, 256, (128, k)), 3), small(rng.integers(0, 256, (32, k)), 2)
    want, bound = product(wide_a, wide_b.T)
    # Six blocks of 32 products and a sum, each cut off by less than 2^-13 of the greatest, which is no more than all together.
    most = np.abs(wide_a).max() * np.abs(wide_b).max() + np.abs(wide_a) @ np.abs(wide_b.T)
    Case("triton_hopper_fp8", "triton/hopper_fp8.ptx", "narrow", 1, 256, 30720).buffer(a).buffer(b).buffer(
        None, want, bound + k / 32 * 33 * 2.0**-13 * most, "f32").scalar(k).null(2)


def tiles():
    """Tiles that tensor copies bring."""
    m, n, k = 136, 72, 464
    sizes = lambda case: case.scalar(m).scalar(n).scalar(k).null(2)
    a, b = bf16(m, k), bf16(k, n)
    want, bound = product(from_bf16(a), from_bf16(b))
    sizes(Case("triton_hopper_described", "triton/hopper_described.ptx", "described", (2, 2), 256, 73752).tensor(
        "bf16", (128, 64), a).tensor("bf16", (64, 64), b).tensor("bf16", (128, 64), None, want, bound + B * np.abs(want), shape=(m, n)))
    a, b = half(m, k), half(n, k)
    want, bound = product(a, b.T)
    sizes(Case("triton_hopper_turned", "triton/hopper_turned.ptx", "described", (3, 2), 128, 32800).tensor(
        "f16", (64, 32), a).tensor("f16", (64, 32), b).tensor("f16", (64, 64), None, want, bound + H * np.abs(want), shape=(m, n)))
    m, n, k = 72, 264, 208
    a, b = bf16(m, k), bf16(n, k)
    want, bound = product(from_bf16(a), from_bf16(b).T)
    bound += B * np.abs(want)
    sizes(Case("triton_hopper_persistent", "triton/hopper_persistent.ptx", "persistent", 3, 128, 90136).tensor(
        "bf16", (64, 64), a).tensor("bf16", (128, 64), b).tensor("bf16", (64, 64), None, np.maximum(want, 0), bound, shape=(m, n)))


def groups():
    sizes, n, k = np.array([70, 1, 64], np.int32), 64, 96
    a, b = bf16(sizes.sum(), k), bf16(3, k, n)
    of = np.repeat(np.arange(3), sizes)
    want, bound = np.zeros((len(of), n)), np.zeros((len(of), n))
    for group in range(3):
        want[of == group], bound[of == group] = product(from_bf16(a[of == group]), from_bf16(b[group]))
    Case("triton_hopper_grouped", "triton/hopper_grouped.ptx", "grouped", (4, 1), 128, 24576).buffer(a).buffer(b).buffer(
        None, want, bound, "f32").buffer(sizes).scalar(n).scalar(k).null(2)


def heads():
    attention("hopper_flash", "triton/hopper_flash.ptx", 40960)


def pipelines():
    """What CUTLASS's headers emit: a warpgroup copies, two multiply."""
    m, n, k = 136, 72, 656
    def case(name, a, b, kind, columns, want, bound, out):
        k = 128 // a.itemsize
        grid = (-(-m // 128), -(-n // columns))
        shared = 3 * (128 + columns) * 128 + 1024
        Case("cutlass_" + name, "nvcc/warpgroups.ptx", name, grid, 384, shared).map(kind, (128, k), a).map(kind, (columns, k), b).buffer(
            None, want, bound, out).scalar(m).scalar(n).scalar(a.shape[1])

    a, b = bf16(m, k), bf16(n, k)
    case("bf16_product", a, b, "bf16", 128, *product(from_bf16(a), from_bf16(b).T), "f32")
    a, b = half(m, k), half(n, k)
    want, bound = product(a, b.T)
    case("f16_product", a, b, "f16", 96, np.maximum(want, 0), bound, "f32")
    a, b = rng.integers(-128, 128, (m, k)).astype(np.int8), rng.integers(-128, 128, (n, k)).astype(np.int8)
    case("s8_product", a, b, "int8", 64, a.astype(np.int32) @ b.astype(np.int32).T, 0, "int32")


FAMILIES = (pointers, tiles, groups, heads, pipelines)
