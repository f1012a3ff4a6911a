"""Cases of halves, doubles, 8-bit floats, special functions and products; see `cases.py`."""

import math

import numpy as np
from cases import Case, f32, from_bf16, product, rng, to_bf16, u, ulp

H = 2.0**-11  # unit roundoff of f16
B = 2.0**-8  # of bf16


def half_steps(x, unit, least):
    """A unit in the last place of a narrow format at |x|."""
    _, exponent = np.frexp(np.abs(np.asarray(x, np.float64)))
    return np.maximum(np.ldexp(2 * unit, exponent - 1), least)


def f16(x):
    return np.asarray(x, np.float64).astype(np.float16).astype(np.float64)


def halves():
    n = 40
    x, y = (rng.standard_normal((n, 2)).astype(np.float16) for _ in range(2))
    y[:4] = x[:4]
    y[4, 0], x[5, 1] = np.nan, np.nan
    a, b = x.astype(np.float64), y.astype(np.float64)
    unordered = np.isnan(a) | np.isnan(b)
    clip = lambda v: np.where(np.isnan(v), 0, np.clip(v, 0, 1))
    low = np.stack([a[:, 0], b[:, 0]], 1)
    high = np.abs(np.stack([a[:, 1], b[:, 1]], 1))
    geu = lambda p, q: ~(p < q)
    ltu = lambda p, q: ~(p >= q)
    pick = np.stack([np.where(geu(a[:, 0], b[:, 0]), a[:, 1], b[:, 1]), np.where(ltu(a[:, 1], b[:, 1]), a[:, 0], b[:, 0])], 1)
    all_ge = (a >= b).all(1, keepdims=True)
    columns = [
        clip(a + b), clip(a * b + a), np.where(unordered, np.nan, np.minimum(a, b)), np.fmax(a, -b), (a > b).astype(float),
        np.where(unordered, np.nan, np.maximum(a * b + b, 0)), low, high, a / b, np.rint(a), pick, np.where(all_ge, np.ceil(a), np.floor(b)),
    ]
    want = np.stack(columns, 1)
    bound = np.zeros_like(want)
    # Division by a reciprocal and a correction: within a step.
    bound[:, 8] = half_steps(want[:, 8], H, 2.0**-24)
    finite = np.isfinite(want)
    keep = finite.reshape(n, -1).all(1)
    x, y, want, bound = x[keep], y[keep], want[keep], bound[keep]
    n = len(x)
    Case("half2_arithmetic", "nvcc/numbers.ptx", "half2_arithmetic", 2, 32).scalar(n).buffer(x).buffer(y).buffer(
        None, f16(want), bound, "f16")
    n = 40
    x = (rng.standard_normal(n) * 2).astype(np.float16)
    y = to_bf16(rng.standard_normal(n) * 2)
    a, b = x.astype(np.float64), from_bf16(y)
    p, q = np.abs(a), np.abs(b)
    i = np.arange(n)
    # One rounding to the narrow format after an approximation in f32, which moves it by a step at most.
    of_half = [np.exp(a), np.log(p), np.sqrt(p), 1 / np.sqrt(p), np.sin(a), np.tanh(a), 1 / p]
    of_bf16 = [np.exp2(b), np.log2(q), np.cos(b)]
    columns = of_half + of_bf16 + [
        b * b + q, np.maximum(b, q), single((np.rint(a) + np.trunc(p) * 100 + np.ceil(a)) % 2**32), np.floor(b) + np.rint(q),
        f16(np.trunc(1000 * a)) + toward_zero_bf16(i * 1001.0), f16(1 / (i + 1)) + from_bf16(to_bf16(1 / (i + 3))),
    ]
    want = np.stack(columns, 1)
    bound = np.zeros_like(want)
    # tanh.approx has 2^-11 relative; the sine of large steps has an absolute bound of 2^-20.5 before rounding.
    for at in range(7):
        bound[:, at] = half_steps(want[:, at], H, 2.0**-24) * (2 if at == 5 else 1)
    for at in range(7, 10):
        bound[:, at] = half_steps(want[:, at], B, 2.0**-133)
    bound[:, 10] = half_steps(want[:, 10], B, 2.0**-133) / 2
    Case("half_functions", "nvcc/numbers.ptx", "half_functions", 2, 32).scalar(n).buffer(x).buffer(y).buffer(None, want, bound, "f32")


def single(x):
    return np.asarray(x, np.float32).astype(np.float64)


def toward_zero_bf16(x):
    mantissa, exponent = np.frexp(np.asarray(x, np.float64))
    return np.ldexp(np.trunc(np.ldexp(mantissa, 8)), exponent - 8)


def functions():
    n = 40
    x, y = rng.standard_normal(n) * 3, rng.standard_normal(n) * 1.5
    y[np.abs(y) < 0.2] = 0.7
    p = np.abs(x)
    v = np.vectorize
    product_up = x * y
    columns = [
        (p**y, 2), (v(math.gamma)(p + 0.5), 10), (v(math.erf)(y), 2), (np.arctan2(x, y), 2), (np.sinh(y), 2), (np.cbrt(x), 1),
        (np.fmod(x * 100, y), 0), (np.hypot(x, y), 2), (np.log1p(p), 2), (np.expm1(y), 1), (None, 0), (1 / np.sqrt(p), 1),
        (v(math.remainder)(x * 10, y), 0), (np.ldexp(x, 5) + np.floor(np.log2(p)), 1), (x + y + product_up, 4), (x / y - np.sqrt(p), 4),
        (0.5 * v(math.erfc)(-y / math.sqrt(2)), 5), (np.trunc(x * 1e6) + np.trunc(p * 1e3), 0), (np.sin(x * 1e5), 2), (v(math.lgamma)(p + 1), 14),
    ]
    # The first Bessel function by its integral, whose trapezoidal sum converges at once.
    t = (np.arange(200) + 0.5) * np.pi / 200
    columns[10] = (np.cos(p[:, None] * np.sin(t)).mean(1), 0)
    want = np.stack([c[0] for c in columns], 1)
    # The table of the programming guide, a unit more for NumPy's own, and the roundings of the sums.
    bound = np.spacing(np.abs(want)) * (np.array([c[1] for c in columns]) + 1)
    bound[:, [6, 12, 17]] = 0
    bound[:, 10] = 1e-14
    bound[:, 14] = 3 * np.spacing(np.abs(x) + np.abs(y) + np.abs(x * y))
    bound[:, 15] = 3 * np.spacing(np.abs(x / y) + np.sqrt(p))
    bound[:, 16] = 12 * np.spacing(want[:, 16])
    # lgamma is relative to the terms that cancel near its zeros at 1 and 2; Python's has errors too.
    bound[:, 19] = np.maximum(bound[:, 19], 8 * 2.0**-53)
    Case("double_functions", "nvcc/numbers.ptx", "double_functions", 2, 32).scalar(n).buffer(x).buffer(y).buffer(None, want, bound)

    x, y = f32(n, scale=3), f32(n, scale=1.5)
    y[np.abs(y) < 0.2] = 0.7
    a, b = x.astype(np.float64), y.astype(np.float64)
    p = np.abs(a)
    i = np.arange(n)
    mantissa, exponent = np.frexp(a)
    fraction, whole = np.modf(a)
    first = np.minimum(i, n - 3)
    norm = np.sqrt(a[first] ** 2 + a[first + 1] ** 2 + a[first + 2] ** 2)
    erfcinv = np.array([inverse_erfc(float(np.float32(np.float32(0.3) + np.float32(0.1) * np.float32(k & 7)))) for k in i])
    bessel = np.exp(b[:, None] * np.cos((np.arange(100) + 0.5) * np.pi / 100)).mean(1)
    columns = [
        (np.arccos(single(y * np.float32(0.1))), 2), (np.arcsinh(a), 3), (np.arctan2(a, b), 3), (np.fmod(single(x * np.float32(100)), b), 0),
        (np.sin(single(x * np.float32(1e6))), 2), (np.tan(b), 4), (np.vectorize(math.lgamma)(single(np.abs(x) + np.float32(1))), 6),
        (erfcinv, 4), (np.log10(p), 2), (10.0**b, 4), (np.vectorize(math.remainder)(single(x * np.float32(10)), b), 0),
        (np.nextafter(x, y).astype(np.float64), 0), (np.ldexp(a, i % 9 - 4), 0), (a + b, 1), (a * b, 1), (a * b + a, 1), (1 / b + np.sqrt(p), 2),
        (a / b, 1), (np.sin(b), 0), (np.exp(b) + np.log(p), 0), (p**b, 0), (np.clip(b, 0, 1) + 1 / np.sqrt(p), 2), (bessel, 6), (mantissa, 0),
        (exponent + np.where(b < 0, 0.5, 0), 0), (fraction + 2 * whole, 1), (norm, 3), (np.maximum(a - b, 0) + np.tan(single(y * np.float32(0.1))), 0),
    ]
    want = np.stack([c[0] for c in columns], 1)
    # What rests on ex2.approx has 2 more units than in the guide.
    bound = ulp(want) * np.array([c[1] for c in columns]) * 1.01
    # Approximate functions: sin.approx 2^-20.5 absolute up to 2 pi (PTX manual); exp 2 + |1.173 x| ulp, log 2^-21.41 or 3 ulp (guide); pow by
    # exp2 and log2.
    bound[:, 18] = 2.0**-20.5
    bound[:, 19] = ulp(np.exp(b)) * (3 + np.floor(np.abs(1.173 * b))) + np.maximum(2.0**-21.41, 4 * ulp(np.log(p))) + ulp(want[:, 19])
    bound[:, 20] = np.abs(want[:, 20]) * (np.abs(b) * 2.0**-20 + 2.0**-20)
    bound[:, 6] = np.maximum(bound[:, 6], 16 * u)
    # The bisection stops at its own rounding.
    bound[:, 7] += 2.0**-50
    # fmaf(a, b, -a * b) is what the product's rounding lost; tan of at most 0.6 by the quotient of the approximate sine and cosine.
    bound[:, 27] = np.abs(a * b) * u + 2.0**-19 + 2 * ulp(want[:, 27])
    bound[:, 16] = ulp(1 / b) + ulp(np.sqrt(p)) + ulp(want[:, 16])
    Case("float_functions", "nvcc/numbers.ptx", "float_functions", 2, 32).scalar(n).buffer(x).buffer(y).buffer(None, want, bound, "f32")


def inverse_erfc(y):
    low, high = -6.0, 6.0
    for _ in range(200):
        middle = (low + high) / 2
        if math.erfc(middle) > y:
            low = middle
        else:
            high = middle
    return low


def to_fp8(x, mantissa_bits, bias, largest, infinity):
    """Nearest 8-bit float, ties to even, as bits and value; beyond the range the largest one or infinity."""
    bits, values = [], []
    for value in np.asarray(x, np.float64):
        sign, magnitude = (128 if math.copysign(1, value) < 0 else 0), min(abs(value), 1e6)
        exponent = max(math.frexp(magnitude)[1] - 1, 1 - bias) if magnitude else 1 - bias
        step = 2.0 ** (exponent - mantissa_bits)
        rounded = round(magnitude / step) * step
        code = None
        if rounded > largest:
            code, rounded = infinity if infinity else (None, largest)
        if code is None:
            e = max(math.frexp(rounded)[1] - 1, 1 - bias) if rounded else 1 - bias
            units = int(rounded / 2.0 ** (e - mantissa_bits))
            code = units if units < 1 << mantissa_bits else (e + bias << mantissa_bits) + units - (1 << mantissa_bits)
        bits.append(sign | code)
        values.append(-rounded if sign else rounded)
    return np.array(bits, np.uint8), np.array(values)


def eight_bits():
    n = 80
    x = np.concatenate([f32(50), f32(20, scale=300), f32(10, scale=0.01)])
    x[:6] = [0, -0.0, 448, 500, 1e6, -1e-9]
    e4, v4 = to_fp8(x, 3, 7, 448.0, None)
    e5, v5 = to_fp8(x, 2, 15, 57344.0, None)
    open5, _ = to_fp8(x, 2, 15, 57344.0, (0x7C, np.inf))
    with np.errstate(over="ignore"):
        h4, _ = to_fp8(x.astype(np.float16), 3, 7, 448.0, None)
    negated, _ = to_fp8(-x, 3, 7, 448.0, None)
    pairs = e4.astype(np.uint16) | negated.astype(np.uint16) << 8
    Case("eight_bits", "nvcc/numbers.ptx", "eight_bits", 3, 32).scalar(n).buffer(x).buffer(None, np.stack([e4, e5, open5, h4], 1)).buffer(
        None, np.stack([v4, v5], 1).astype(np.float32)).buffer(None, pairs)


def sums():
    n = 30
    x, y = (rng.standard_normal(n) + 1j * rng.standard_normal(n) for _ in range(2))
    z = np.stack([x * y, x / y, np.abs(x) + 0j], 1)
    size = np.stack([np.abs(x) * np.abs(y), np.abs(x / y), np.abs(x)], 1)
    bound = np.repeat(8 * 2.0**-53 * size, 2, axis=1)
    flat = lambda v: np.stack([v.real, v.imag], -1).reshape(len(v), -1)
    fma = x * y + np.conj(x)
    Case("complex_numbers", "nvcc/numbers.ptx", "complex_numbers", 1, 32).scalar(n).buffer(flat(x)).buffer(flat(y)).buffer(None, flat(z), bound).buffer(
        None, flat(fma), np.repeat(2 * u * (np.abs(x) * np.abs(y) + np.abs(x)), 2).reshape(n, 2), "f32")
    k = f32(8, 500, scale=100)
    exact = np.array([math.fsum(map(float, row)) for row in k])
    # Kahan's sum: 2u of the sum, and terms of second order.
    Case("compensated", "nvcc/numbers.ptx", "compensated", 1, 8).scalar(500).buffer(k).buffer(
        None, exact, 2 * u * np.abs(exact) + 500 * 4 * u * u * np.abs(k).sum(1) + ulp(exact), "f32")


def products():
    m, n, k = 70, 72, 128
    a, b = rng.standard_normal((m, k)).astype(np.float16), rng.standard_normal((k, n)).astype(np.float16)
    Case("gemm_stages", "nvcc/products.ptx", "gemm_stages", (2, 2), 128).scalar(m).scalar(n).scalar(k).buffer(a).buffer(b).buffer(
        None, *product(a, b), "f32")
    p, q = to_bf16(rng.standard_normal((32, 16))), to_bf16(rng.standard_normal((16, 8)))
    want, bound = product(from_bf16(p), from_bf16(q))
    # Multiples of 1/32 below 8 are tf32 numbers.
    t, s = (rng.integers(-255, 256, shape).astype(np.float32) / 32 for shape in ((16, 8), (8, 16)))
    d, e, c = rng.standard_normal((8, 4)), rng.standard_normal((4, 8)), rng.standard_normal((8, 8))
    h, g = rng.standard_normal((8, 16)).astype(np.float16), rng.standard_normal((16, 32)).astype(np.float16)
    columns = lambda v: np.ascontiguousarray(v.T)
    Case("wmma_types", "nvcc/products.ptx", "wmma_types", 1, 32).buffer(columns(p)).buffer(q).buffer(None, want + 0.5, bound + u * (np.abs(want) + 1), "f32").buffer(
        t).buffer(columns(s)).buffer(None, *product(t, s), "f32").buffer(d).buffer(e).buffer(
        c, 2 * (d @ e + c), 12 * 2.0**-53 * (np.abs(d) @ np.abs(e) + np.abs(c))).buffer(h).buffer(columns(g)).buffer(None, *product(h, g, 2), "f16")
    words = rng.integers(0, 2**32, (2, 32), dtype=np.uint32)
    nibbles = ((words[:, :, None] >> np.arange(0, 32, 4, dtype=np.uint32)) & 15).astype(np.int32).reshape(2, 8, 32)
    nibbles -= 16 * (nibbles > 7)
    bits = ((words[:, :, None] >> np.arange(32, dtype=np.uint32)) & 1).astype(np.int32).reshape(2, 8, 128)
    Case("small_integers", "nvcc/products.ptx", "small_integers", 1, 32).buffer(words[0]).buffer(words[1]).buffer(
        None, nibbles[0] @ nibbles[1].T).buffer(None, bits[0] @ bits[1].T + 1)
    m, n, k = 70, 68, 40
    a, b, c = f32(m, k), f32(k, n), f32(m, n)
    alpha, beta = np.float32(1.5), np.float32(-0.5)
    want, bound = product(a, b)
    Case("sgemm", "nvcc/products.ptx", "sgemm", (2, 2), 256).scalar(m).scalar(n).scalar(k).scalar(alpha, np.float32).scalar(
        beta, np.float32).buffer(a).buffer(b).buffer(
        c, alpha * want + beta * c.astype(np.float64), alpha * bound + 3 * u * (np.abs(alpha * want) + np.abs(beta * c)), "f32")
    x, y = rng.integers(-128, 128, (10, 200)).astype(np.int8), rng.integers(-128, 128, 200).astype(np.int8)
    scale = f32(10)
    want = (x.astype(np.int64) @ y.astype(np.int64)).astype(np.float32).astype(np.float64) * scale
    Case("int8_dot", "nvcc/products.ptx", "int8_dot", 3, (32, 4)).scalar(10).scalar(200).buffer(x).buffer(y).buffer(scale).buffer(
        None, want, u * np.abs(want) * 1.01, "f32")


FAMILIES = (halves, functions, eight_bits, sums, products)
