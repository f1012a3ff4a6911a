"""What the kernels of the corpus compute, by NumPy, with bounds that follow from the operations.

u = 2^-24 is the unit roundoff of f32. A sum of n terms in any order is off by at most (n - 1)·u·Σ|terms| to first order (Higham, "Accuracy and
stability of numerical algorithms", chapter 4); approximate instructions have the errors that the PTX manual gives (9.7.3), library functions those
of the CUDA programming guide's table of maximal ulp errors. First-order bounds get 1 % for the rest.
"""

import json

import numpy as np

u = 2.0**-24
rng = np.random.default_rng(20251121)
CASES = []


class Case:
    def __init__(self, name, ptx, entry, grid, block, shared=0, expect=None, races=None):
        triple = lambda v: (list(v) if isinstance(v, tuple) else [v]) + [1] * (3 - (len(v) if isinstance(v, tuple) else 1))
        self.json = dict(name=name, ptx=ptx, entry=entry, grid=triple(grid), block=triple(block), shared=shared, args=[])
        if expect:
            self.json["finding"] = expect
        if races:  # instructions that race, and give what is wanted all the same
            self.json["races"] = races
        self.arrays = []
        CASES.append(self)

    def scalar(self, value, dtype=np.int32):
        self.json["args"].append(dict(value=np.array([value], dtype).tobytes().hex()))
        return self

    def raw(self, data):
        self.json["args"].append(dict(value=bytes(data).hex()))
        return self

    def null(self, count=1):
        for _ in range(count):
            self.scalar(0, np.uint64)
        return self

    def prints(self, text):
        self.json["prints"] = text
        return self

    def buffer(self, initial=None, want=None, bound=0.0, kind=None):
        """A buffer: its contents before (none: uninitialised), and after within a bound."""
        arg = {}
        if kind in ("f16", "bf16", "f32") and want is not None:
            # Kept in f32: what that loses is added to the bound.
            exact = np.asarray(want, np.float64)
            want = exact.astype(np.float32)
            lost = np.abs(want - exact)
            if lost.any():
                bound = bound + lost
        for key, array in (("initial", initial), ("want", want)):
            if array is not None:
                arg[key] = len(self.arrays)
                self.arrays.append(np.ascontiguousarray(array))
        if want is not None:
            arg["kind"] = kind or np.asarray(want).dtype.name
            if np.ndim(bound) == 0:
                arg["bound"] = float(bound)
            else:
                arg["bounds"] = len(self.arrays)
                self.arrays.append(np.ascontiguousarray(np.broadcast_to(bound, np.shape(want)), np.float32))
        self.json["args"].append(arg)
        return self


    def map(self, kind, box, initial=None, want=None, bound=0.0, shape=None):
        """A map of a matrix in boxes of at most 128 bytes of a row, permuted by as many."""
        shape = np.shape(initial) if initial is not None else shape
        self.buffer(initial, want, bound, kind)
        self.json["args"][-1]["map"] = dict(kind=kind, rows=shape[0], columns=shape[1], box=list(box))
        return self

    def tensor(self, kind, box, initial=None, want=None, bound=0.0, shape=None):
        """The same with the matrix's sizes and strides, as Triton passes them."""
        self.map(kind, box, initial, want, bound, shape)
        shape = np.shape(initial) if initial is not None else shape
        for value in shape:
            self.scalar(value)
        for value in (shape[1], 1):
            self.scalar(value, np.int64)
        return self


def f32(*shape, scale=1.0):
    return (rng.standard_normal(shape) * scale).astype(np.float32)


def to_bf16(x):
    """Nearest bf16, ties to even, as bits; exact for f64 input of moderate size."""
    x = np.asarray(x, np.float64)
    mantissa, exponent = np.frexp(x)
    rounded = np.ldexp(np.rint(np.ldexp(mantissa, 8)), exponent - 8).astype(np.float32)
    return (rounded.view(np.uint32) >> 16).astype(np.uint16)


def from_bf16(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def ulp(x):
    """A unit in the last place of f32 at |x|."""
    _, exponent = np.frexp(np.abs(np.asarray(x, np.float64)))
    return np.ldexp(1.0, np.maximum(exponent - 24, -149))


def basic():
    n, a = 1000, np.float32(2.5)
    x, y = f32(n), f32(n)
    exact = a.astype(np.float64) * x + y
    # A product and a sum, or one fused operation.
    bound = u * (np.abs(a * x) + np.abs(exact)) * 1.01
    Case("saxpy", "nvcc/basic.ptx", "saxpy", 3, 128).scalar(n).scalar(a, np.float32).buffer(x).buffer(y, exact, bound, "f32")
    Case("saxpy_vectors", "nvcc/basic.ptx", "saxpy4", 2, 128).scalar(n // 4).scalar(a, np.float32).buffer(x).buffer(y, exact, bound, "f32")
    h = [rng.standard_normal(512).astype(np.float16) for _ in range(3)]
    wide = [v.astype(np.float64) for v in h]
    Case("half_fma", "nvcc/basic.ptx", "half_fma", 2, 128).scalar(256).buffer(h[0]).buffer(h[1]).buffer(h[2]).buffer(
        None, (wide[0] * wide[1] + wide[2]).astype(np.float16), 0, "f16")
    b = to_bf16(rng.standard_normal(300))
    scaled = from_bf16(b) * np.float32(1.7)
    Case("bf16_scale", "nvcc/basic.ptx", "bf16_scale", 3, 128).scalar(300).scalar(1.7, np.float32).buffer(b).buffer(
        None, from_bf16(to_bf16(scaled.astype(np.float32))), 0, "bf16")
    p, q = to_bf16(rng.standard_normal(256)), to_bf16(rng.standard_normal(256))
    Case("bf16_fma", "nvcc/basic.ptx", "bf16_fma2", 1, 128).scalar(128).buffer(p).buffer(q).buffer(
        None, from_bf16(to_bf16(from_bf16(p) * from_bf16(q) + from_bf16(p))), 0, "bf16")
    rows, cols = 6, 50
    data, index = rng.standard_normal(2000), rng.integers(0, 12, rows).astype(np.int32)
    layout = np.array([rows, cols], np.int32).tobytes() + np.array([150, 3], np.int64).tobytes() + bytes([9, 0, 0, 0, 0, 1, 0, 0])
    want = -np.stack([data[i * 150 + np.arange(cols) * 3] for i in index])
    Case("gather", "nvcc/basic.ptx", "gather", (2, rows), 32).raw(layout).buffer(index).buffer(data).buffer(None, want)


def reductions():
    n = 2000
    x = f32(n)
    parts = np.zeros(4)
    sizes = np.zeros(4)
    for block in range(4):
        mine = np.concatenate([x[i : i + 256] for i in range(block * 256, n, 1024)]).astype(np.float64)
        parts[block], sizes[block] = mine.sum(), np.abs(mine).sum()
    Case("block_sum", "nvcc/reduce.ptx", "block_sum", 4, 256).scalar(n).buffer(x).buffer(None, parts, n * u * sizes, "f32")
    total, size = x.astype(np.float64).sum(), np.abs(x.astype(np.float64)).sum()
    k = rng.integers(-1000, 1000, 900).astype(np.int32)
    Case("warp_reduce", "nvcc/reduce.ptx", "warp_reduce", 4, 256, 32).scalar(900).buffer(k).buffer(np.zeros(1, np.int32), np.array([k.sum()], np.int32))
    s = rng.integers(-100, 100, (3, 512)).astype(np.int32)
    Case("scan", "nvcc/reduce.ptx", "scan", 3, 512).buffer(s).buffer(None, np.cumsum(s, 1, dtype=np.int32))
    Case("ticket_sum", "nvcc/reduce.ptx", "ticket_sum", 5, 128).scalar(n).buffer(x).buffer(np.zeros(5, np.float32)).buffer(
        None, np.array([total]), n * u * size, "f32")
    a, b = rng.standard_normal(300), rng.standard_normal(300)
    Case("double_dot", "nvcc/reduce.ptx", "double_dot", 1, 64).scalar(300).buffer(a).buffer(b).buffer(
        np.zeros(1), np.array([np.sum(a.astype(np.longdouble) * b)], np.float64), 300 * 2.0**-53 * np.abs(a * b).sum())


def softmax_of(x, base=np.exp):
    e = base(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def softmax_bound(x):
    """exp(d) by ex2.approx(d·log2 e): the argument is off by 2u|d|·log2 e, the function by 2^-22 and 2 ulp."""
    d = np.abs(x - x.max(1, keepdims=True))
    each = 3 * u * d + 2.0**-21
    return softmax_of(x) * (each + each.max(1, keepdims=True) + (x.shape[1] + 8) * u) * 1.01


def layer_norm_of(x, gain, bias, eps):
    x = x.astype(np.float64)
    n = x.shape[1]
    mean = x.mean(1, keepdims=True)
    square = (x * x).mean(1, keepdims=True)
    variance = square - mean**2
    scale = 1 / np.sqrt(variance + eps)
    z = (x - mean) * scale * gain + bias
    off_mean = (n + 2) * u * np.abs(x).mean(1, keepdims=True)
    off_variance = (n + 2) * u * square + 2 * np.abs(mean) * off_mean + 4 * u * square
    off_scale = off_variance / (2 * (variance + eps)) + 2.0**-21
    off = np.abs((x - mean) * scale * gain) * (off_scale + 6 * u) + off_mean * scale * np.abs(gain) + 2 * u * (np.abs(bias) + np.abs(z))
    return z, off * 1.01


def rows():
    x = f32(5, 200, scale=2)
    wide = x.astype(np.float64)
    Case("softmax", "nvcc/rows.ptx", "softmax", 5, 128).scalar(200).buffer(x).buffer(None, softmax_of(wide), softmax_bound(wide), "f32")
    gain, bias = f32(200), f32(200)
    z, bound = layer_norm_of(x, gain, bias, 1e-5)
    Case("layer_norm", "nvcc/rows.ptx", "layer_norm", 5, 64).scalar(200).scalar(1e-5, np.float32).buffer(x).buffer(gain).buffer(bias).buffer(
        None, z, bound, "f32")
    t = f32(45, 70)
    Case("transpose", "nvcc/rows.ptx", "transpose", (3, 2), (32, 8)).scalar(45).scalar(70).buffer(t).buffer(None, t.T.copy())
    a, b = f32(37, 50), f32(50, 29)
    Case("matmul", "nvcc/rows.ptx", "matmul", (2, 3), (16, 16)).scalar(37).scalar(29).scalar(50).buffer(a).buffer(b).buffer(None, *product(a, b), "f32")


def product(a, b, roundings=0):
    """A product and its bound: k + 1 roundings of f32, and more of 2^-11 where partial sums are halves."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    size = np.abs(a) @ np.abs(b)
    return a @ b, ((a.shape[1] + 1) * 2 * u + roundings * 2.0**-11) * size * 1.01


def histograms():
    x = (rng.standard_normal(3000) * 30 + 128).clip(0, 255).astype(np.uint8)
    Case("histogram", "nvcc/histogram.ptx", "histogram", 3, 128).scalar(3000).buffer(x).buffer(
        np.zeros(256, np.uint32), np.bincount(x, minlength=256).astype(np.uint32))
    keys = rng.integers(0, 5, 300).astype(np.int32)
    keys[64:96] = 3
    bins = np.zeros(17, np.uint32)
    bins[:16] = np.bincount(keys, minlength=16)
    for warp in range(0, 300, 32):
        part = keys[warp : warp + 32]
        bins[16] += len(part) if (part == part[0]).all() else 0
    Case("aggregate", "nvcc/histogram.ptx", "aggregate", 2, 160).scalar(300).buffer(keys).buffer(np.zeros(17, np.uint32), bins)
    t = np.arange(96)
    word = np.array([-1, 0, 0, 5, 5, 0], np.int32)
    want = word.copy()
    want[0] = -1 & ~0xFF
    want[1] = -1
    want[2] = np.bitwise_xor.reduce(t)
    want[3:6] = [-95, 285, -t.sum()]
    uword = np.array([9999, 0, 0, 0, 0, 1, 0, 0], np.uint32)
    inc = dec = 0
    for _ in t:
        inc = 0 if inc >= 6 else inc + 1
        dec = 6 if dec == 0 or dec > 6 else dec - 1
    after = np.array([905, (t ^ 5).max(), inc, dec, (2 * t + 1).sum(), 77, 96, 96], np.uint32)
    wide = np.array([0, 1, 500], np.uint64)
    Case("every_atomic", "nvcc/histogram.ptx", "every_atomic", 3, 32, races="atom.cta.").buffer(word, want).buffer(uword, after).buffer(
        wide, np.array([0x100000001 * int(t.sum()), 1 << 63, 500 - 96], np.uint64)).buffer(
        np.zeros(1, np.float32), np.array([48], np.float32)).buffer(np.zeros(1), np.array([24.0]))


def signed(v, bits=32):
    v &= (1 << bits) - 1
    return v - (1 << bits) if v >> (bits - 1) else v


def bits_of(a, b):
    """The 32 results of kernel `bits`, by Python's integers."""
    M = 0xFFFFFFFF
    sa, sb = signed(a), signed(b)
    w = a << 32 | b
    reverse = lambda v, n: int(format(v, f"0{n}b")[::-1], 2)
    s8 = lambda v, i: signed(v >> 8 * i, 8)
    u8 = lambda v, i: v >> 8 * i & 255

    def permute(x, y, sel):
        both = (y << 32 | x).to_bytes(8, "little")
        return sum((both[sel >> 4 * i & 7]) << 8 * i for i in range(4))

    shift = b & 31
    amount = min(b & 63, 32)
    out = [0] * 32
    out[0] = bin(a).count("1")
    out[1] = 32 - a.bit_length()
    out[2] = reverse(a, 32)
    out[3] = (a & -a).bit_length()
    out[4] = permute(a, b, b & 0x7777)
    out[5] = ((b << 32 | a) << shift >> 32) & M
    out[6] = ((b << 32 | a) >> amount) & M
    out[7] = a * b >> 32
    out[8] = sa * sb >> 32 & M
    out[9] = (a & 0xFFFFFF) * (b & 0xFFFFFF) & M
    out[10] = signed(a, 24) * signed(b, 24) & M
    out[11] = abs(a - b) + 7 & M
    out[12] = abs(sa - sb) + 7 & M
    out[13] = sum(s8(a, i) * s8(b, i) for i in range(4)) + 11 & M
    out[14] = sum(u8(a, i) * u8(b, i) for i in range(4)) + 11 & M
    out[15] = sum(signed(a >> 16 * i, 16) * s8(b, i) for i in range(2)) + 5 & M
    out[16] = bin(w).count("1")
    out[17] = 64 - w.bit_length()
    out[18] = reverse(w, 64) >> 17 & M
    out[19] = ((w * ((w + 12345) & (1 << 64) - 1) >> 64) ^ (w * 77)) & M
    out[20] = a >> 5 & 0x7FF
    start, count = b & 31, b >> 27
    field = [sa >> min(start + i, 31) & 1 for i in range(count)]
    top = sa >> min(start + max(count, 1) - 1, 31) & 1
    out[21] = (sum(bit << i for i, bit in enumerate(field)) | (M << count & M if top else 0)) & M if count else 0
    start, mask = a & 31, 0
    mask = (0x1FF << start) & M
    out[22] = (b & ~mask) | (a << start & mask)
    out[23] = 31 - (a.bit_length() - 1) if a else M
    magnitude = a ^ M if sa < 0 else a
    out[24] = magnitude.bit_length() - 1 if magnitude else M
    out[25] = a ^ b ^ (a >> 3)
    out[26] = (a + b & M) ^ (a + b >> 32)
    out[27] = (a & 0xFFFFFF) * (b & 0xFFFFFF) + b & M
    both = (b << 32 | a).to_bytes(8, "little")
    out[28] = sum(both[(a & 3) + i] << 8 * i for i in range(4))
    out[29] = a // b if b else 0
    out[30] = (abs(sa) % abs(sb)) * (-1 if sa < 0 else 1) & M if b else 0
    add = sum((u8(a, i) + u8(b, i) & 255) << 8 * i for i in range(4))
    most = sum((max(signed(a >> 16 * i, 16), signed(b >> 16 * i, 16)) & 0xFFFF) << 16 * i for i in range(2))
    out[31] = add ^ most ^ sum(abs(u8(a, i) - u8(b, i)) << 8 * i for i in range(4))
    return out


def integers():
    edge = [0, 1, 2, 31, 32, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFF00FF00, 0x12345678]
    x = np.array([e for e in edge for _ in range(4)] + list(rng.integers(0, 2**32, 24)), np.uint32)
    y = np.array([edge[(3 * i) % 10] for i in range(40)] + list(rng.integers(0, 2**32, 24)), np.uint32)
    want = np.array([bits_of(int(a), int(b)) for a, b in zip(x, y)], np.uint32)
    Case("bits", "nvcc/bits.ptx", "bits", 2, 32).scalar(64).buffer(x).buffer(y).buffer(None, want)
    v = rng.integers(-5, 100, 64).astype(np.int32)
    out = np.zeros((64, 8), np.uint32)
    for t in range(64):
        mine = v[t // 32 * 32 :][:32]
        lane = t % 32
        mask = lambda test: int(sum(1 << i for i in range(32) if test[i]))
        unsigned = mine.view(np.uint32)
        out[t, 0] = mask(mine & 1)
        out[t, 1] = int((mine > 1000).any()) | int((mine >= 0).all()) << 1 | int((mine == v[0]).all()) << 2
        out[t, 2] = np.uint32(mine.sum() & 0xFFFFFFFF)
        out[t, 3] = np.uint32(int(mine.min()) & 0xFFFFFFFF) ^ unsigned.max()
        out[t, 4] = np.bitwise_xor.reduce(unsigned) ^ np.bitwise_and.reduce(unsigned | 3) ^ np.bitwise_or.reduce(unsigned)
        out[t, 5] = (v & 1).sum()
        out[t, 6] = int((v >= 0).all()) | int((v > 90).any()) << 1
        if t & 1:
            last = int(mine[3]) + 16
        else:
            last = int(mine[lane // 16 * 16 + (lane + 2) % 16])
        out[t, 7] = (last + (((1 << lane) - 1) ^ (0xFFFFFFFF << lane & 0xFFFFFFFF))) & 0xFFFFFFFF
    Case("warp_votes", "nvcc/bits.ptx", "warp_votes", 1, 64).buffer(v).buffer(None, out)


def control():
    x = np.concatenate([np.arange(-20, 80), rng.integers(-10000, 10000, 100)]).astype(np.int32)

    def switch(v):
        quotient = lambda a, b: int(np.trunc(a / b))
        table = {0: v * 3, 1: v - 100, 2: v ^ 0x55, 3: quotient(v, 7), 4: -v, 5: v - 13 * quotient(v, 13), 6: v << 3,
                 7: bin(v & 0xFFFFFFFF).count("1"), 8: v * v, 11: ~v}
        return table.get(v & 15, 1)

    Case("switches", "nvcc/control.ptx", "switches", 2, 128).scalar(200).buffer(x).buffer(
        None, np.array([switch(int(v)) for v in x], np.int32))
    branch = np.array([[100, int(v) + 1000, -int(v), int(v) + 1000][int(v) & 3] for v in x], np.int32)
    Case("branch_table", "nvcc/control.ptx", "branch_table", 2, 128).scalar(200).buffer(x).buffer(None, branch)
    n = 80
    v = rng.integers(1, 40, n).astype(np.int32)
    steps = []
    for value in v:
        count, value = 0, int(value)
        while value != 1:
            value = 3 * value + 1 if value & 1 else value // 2
            count += 1
        steps.append(count)
    i = np.arange(n)
    pairs = np.stack([1.5 * i + 0.5 * v, 2.25 * i + 1.0, ((i + 6 - i) * 10000.0 + (2 + 5) * 100 + 3 + 4)], 1).astype(np.float32)
    fibonacci = [0, 1]
    while len(fibonacci) < 12:
        fibonacci.append(fibonacci[-1] + fibonacci[-2])
    deep = lambda k: k if k == 0 else k + 1 + deep(k - 1)
    recursive = np.array([[fibonacci[k % 11], deep(k % 7)] for k in i], np.int32)
    Case("calls", "nvcc/control.ptx", "calls", 3, 32).scalar(n).buffer(v).buffer(None, np.array(steps, np.int32)).buffer(
        None, pairs).buffer(None, recursive)
    f = np.abs(f32(64)) + np.float32(0.5)
    which = rng.integers(0, 8, 64).astype(np.int32)
    wide = f.astype(np.float64)
    first = np.where(which & 1, 1 / wide, np.where(which >> 1 & 1, wide * wide, wide * 2))
    area = np.where(which & 4, wide * wide, wide * wide * np.float32(0.785))
    corners = np.where(which & 4, 4, 0)
    Case("indirect_calls", "nvcc/control.ptx", "indirect_calls", 1, 64).scalar(64).buffer(f).buffer(which).buffer(
        None, first + area + corners, 5 * u * (first + area + corners), "f32")
    a = rng.integers(0, 1000, 64).astype(np.int32)
    weights, order = [1, -2, 3, -4, 5, -6, 7, -8], [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3]
    names, table = [b"even", b"odd!"], [10, 20, 30, 40]
    sums = []
    for value in map(int, a):
        local = [weights[k & 7] * (k + value) for k in range(16)]
        total = 0
        for k in range(16):
            at = order[(k + value) & 15]
            total += local[at]
            local[at * 7 & 15] += 1
        sums.append(total + table[value & 3] + table[1 + (value & 1)] + names[value & 1][value & 3])
    # Integers far below 2^24: exact.
    Case("arrays", "nvcc/control.ptx", "arrays", 2, 32).scalar(64).buffer(a).buffer(None, np.array(sums, np.float32))
    d = rng.integers(-50, 150, 100).astype(np.int32)
    helper = lambda v: v - 7 if v > 100 else v * 2
    sums = np.array([sum(helper(int(v) + k) for k in (1, 2, 3, 4)) for v in d] + [0] * 28, np.int32)
    Case("debug_build", "nvcc/debug.ptx", "debug_build", 2, 64).scalar(100).buffer(d).buffer(
        None, (sums * 1000 + 4 + sums.reshape(-1, 2)[:, ::-1].reshape(-1))[:100].astype(np.int32))


def tensor():
    m, n, k = 32, 32, 48
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((m, k), (n, k)))
    want, bound = product(a, b.T)
    Case("wmma_f16", "nvcc/tensor.ptx", "wmma_f16", (2, 2), 32).scalar(m).scalar(n).scalar(k).buffer(a).buffer(b).buffer(
        None, want / 2, bound / 2, "f32")
    p, q = rng.integers(-128, 128, (32, 32)).astype(np.int8), rng.integers(-128, 128, (32, 32)).astype(np.int8)
    Case("wmma_s8", "nvcc/tensor.ptx", "wmma_s8", (2, 2), 32).scalar(32).scalar(32).buffer(p).buffer(q).buffer(
        None, p.astype(np.int32) @ q.astype(np.int32))
    m, n, k = 70, 60, 96
    a, b = to_bf16(rng.standard_normal((m, k))), to_bf16(rng.standard_normal((n, k)))
    want, bound = product(from_bf16(a), from_bf16(b).T)
    Case("gemm_bf16", "nvcc/tensor.ptx", "gemm_bf16", (1, 2), 128).scalar(m).scalar(n).scalar(k).buffer(a).buffer(b).buffer(None, want, bound, "f32")
    a, b = rng.standard_normal((16, 16)).astype(np.float16), rng.standard_normal((16, 8)).astype(np.float16)
    Case("mma_trans", "nvcc/tensor.ptx", "mma_trans", 1, 32).buffer(a).buffer(b).buffer(None, *product(a, b, 1), "f16")
    a, b = rng.standard_normal((8, 4)), rng.standard_normal((4, 8))
    # Multiples of 1/32 below 8 are tf32 numbers.
    ta, tb = (rng.integers(-255, 256, s).astype(np.float32) / 32 for s in ((16, 8), (8, 8)))
    ua, ub = rng.integers(0, 256, (16, 32)).astype(np.uint8), rng.integers(0, 256, (8, 32)).astype(np.uint8)
    Case("mma_types", "nvcc/tensor.ptx", "mma_types", 1, 32).buffer(a).buffer(b).buffer(
        None, a @ b, 5 * 2.0**-53 * (np.abs(a) @ np.abs(b))).buffer(ta).buffer(tb).buffer(None, *product(ta, tb), "f32").buffer(ua).buffer(ub).buffer(
        None, ua.astype(np.int32) @ ub.T.astype(np.int32))


def asynchronous():
    x = rng.integers(0, 1000, (3, 128)).astype(np.int32)
    Case("barrier_reverse", "nvcc/async.ptx", "barrier_reverse", 1, 128).buffer(x).buffer(
        None, (x + np.arange(3, dtype=np.int32)[:, None])[:, ::-1].copy())
    f = f32(256)
    Case("mbarrier_copy", "nvcc/async.ptx", "mbarrier_copy", 1, 64).buffer(f).buffer(None, f[::-1].copy())
    t = f32(5, 64, 4)
    wide = t.astype(np.float64)
    Case("pipeline_sum", "nvcc/async.ptx", "pipeline_sum", 1, 64).scalar(5).buffer(t).buffer(None, wide.sum(0), 6 * u * np.abs(wide).sum(0), "f32")
    r = rng.integers(0, 1000, (4, 64)).astype(np.int32)
    Case("named_barriers", "nvcc/async.ptx", "named_barriers", 1, 128).scalar(4).buffer(r).buffer(None, r[:, ::-1] * 2)
    c = rng.integers(0, 1000, 12).astype(np.int32)
    Case("chain", "nvcc/async.ptx", "chain", 12, 32).buffer(c).buffer(None, np.cumsum(c, dtype=np.int32)).buffer(np.zeros(12, np.int32))
    Case("grid_barrier", "nvcc/async.ptx", "grid_barrier", 8, 32).buffer(np.zeros(1, np.int32), np.array([8], np.int32)).buffer(c[:8]).buffer(
        None, c[:8] * 2).buffer(None, np.roll(c[:8] * 2, -1))
    h = f32(160)
    wide = h.astype(np.float64)
    i = np.arange(32)
    v = sum(wide[i + 32 * j] for j in range(5))
    size = sum(np.abs(wide[i + 32 * j]) for j in range(5))
    spaces = 1 | 2 | 4
    want = np.concatenate([v + wide[2 * i] - wide[2 * i + 1] + wide[i], v[::-1] + spaces + v])
    bound = np.concatenate([8 * u * (size + 3 * np.abs(wide).max()), 8 * u * (size + size[::-1] + 7)])
    Case("hints", "nvcc/async.ptx", "hints", 1, 32).buffer(h).buffer(None, want, bound, "f32").buffer(None, np.full(32, 3, np.int64))
    g = rng.integers(0, 100, 32).astype(np.int32)
    z = np.full(96, -1, np.int32)
    z[:4] = g.reshape(4, 8).sum(1)
    odd = np.flatnonzero(g & 1)
    # `v` is a partial sum by then: lanes whose sum is odd are a group.
    partial = g.copy().reshape(4, 8)
    for d in (4, 2, 1):
        shifted = partial.copy()
        shifted[:, : 8 - d] = partial[:, d:]
        partial = partial + shifted
    odd = np.flatnonzero(partial.reshape(-1) & 1)
    z[64 + odd] = len(odd) * 100 + np.arange(len(odd))
    Case("groups", "nvcc/async.ptx", "groups", 1, 32).buffer(g).buffer(np.full(96, -1, np.int32), z)


def mathematics():
    n = 64
    x, y = f32(n, scale=5), f32(n, scale=2)
    y[np.abs(y) < 0.1] = 0.5
    a, b = x.astype(np.float64), y.astype(np.float64)
    erf = np.vectorize(__import__("math").erf)
    out, ulps = np.zeros((n, 24)), np.zeros((n, 24))
    # exp, pow, tanh and erf rest on ex2.approx, whose bound of 2^-22 is 4 ulp at most.
    columns = [
        (a / b, 0.5), (a / b, 2), (np.sqrt(np.abs(a)), 0.5), (1 / np.sqrt(np.abs(a)), 2), (1 / b, 0.5), (a * b + a, 1),
        (a + b, 1), (a * b, 1), (np.exp(b), 6), (np.log(np.abs(a)), 2), (np.sin(b), 2), (np.abs(a) ** 0.3, 12),
        (np.tanh(b), 6), (erf(b), 6), (np.minimum(a, b), 0), (np.copysign(a, b), 0),
        (np.floor(a) + np.ceil(b) + np.trunc(a) + np.rint(b), 0),
        (np.trunc(a) + np.rint(np.abs(b)) + np.trunc((x * np.float32(1000)).astype(np.float64)), 1.5),
        (np.exp2(b), 4), (np.tanh(b), 2.0**13), (np.ones(n), 0), (np.where(b >= 0, a, b), 0), (np.where(a > b, 1.0, 0.0), 0),
        (np.clip(a * b + 0.25, 0, 1), 0.5),
    ]
    for at, (value, error) in enumerate(columns):
        # Half an ulp more for values that lie near a power of two, where the ulp of the result may be the next one.
        out[:, at], ulps[:, at] = value, error * ulp(value) * 1.01
    # log near 1 has an absolute bound (CUDA programming guide); sin and pow get the rounding of their reduced argument.
    ulps[:, 9] = np.maximum(ulps[:, 9], 2.0**-21.41 * (np.abs(out[:, 9]) < 1))
    ulps[:, 11] += np.abs(out[:, 11]) * 4 * u
    Case("functions", "nvcc/math.ptx", "functions", 2, 32).scalar(n).buffer(x).buffer(y).buffer(None, out, ulps, "f32")
    x, y = rng.standard_normal(40) * 3, rng.standard_normal(40)
    y[np.abs(y) < 0.1] = 0.5
    values = [x / y, np.sqrt(np.abs(x)), x + y, x * y + 1, np.exp(y), np.sin(x), np.log(np.abs(x)), x.astype(np.float32) + np.trunc(y),
              np.maximum(x, y) + np.minimum(x, 0.5), np.rint(x) + 1 / y]
    out = np.stack(values, 1)
    double = np.spacing(np.abs(out))
    # Rounded once here and once by NumPy; a cancelling sum keeps the errors of its terms.
    scale = np.array([1, 1, 2, 4, 2, 3, 2, 1, 1, 2.0])
    bound = double * scale
    bound[:, 3] = np.spacing(np.abs(x * y) + 1) * 2
    bound[:, 9] = np.spacing(np.abs(1 / y)) + double[:, 9]
    case = Case("doubles", "nvcc/math.ptx", "doubles", 2, 32).scalar(40).buffer(x).buffer(y)
    case.buffer(None, out, np.maximum(bound, 0).astype(np.float64) * 1.01)
    hx, hy = (rng.standard_normal(64) * 3).astype(np.float16), rng.standard_normal(64).astype(np.float16)
    a, b = hx.astype(np.float64), hy.astype(np.float64)
    down = np.trunc((a.astype(np.float32) * np.float32(3.3)).astype(np.float64) / 2.0 ** (np.frexp(np.abs(a * 3.3))[1] - 11))
    down = down * 2.0 ** (np.frexp(np.abs(a * 3.3))[1] - 11)
    h = np.stack([a + b, a * b, a - b, np.maximum(a, b), np.maximum(a * b + a, 0), np.abs(a), -b, np.where(a < b, a, b), down,
                  np.floor(b) + 1], 1).astype(np.float16)
    bx, by = to_bf16(rng.standard_normal(64) * 3), to_bf16(rng.standard_normal(64))
    c, d = from_bf16(bx), from_bf16(by)
    # Sums and products are contracted by no one: one rounding each.
    bz = np.stack([c + d, c * d, np.minimum(c, d), c * d + c, np.where(c > d, np.abs(c), -d)], 1)
    Case("halves", "nvcc/math.ptx", "halves", 2, 32).scalar(64).buffer(hx).buffer(hy).buffer(None, h, 0, "f16").buffer(bx).buffer(by).buffer(
        None, from_bf16(to_bf16(bz)), 0, "bf16")
    Case("half_atomics", "nvcc/math.ptx", "half_atomics", 1, 32).buffer(np.zeros(2, np.float16), np.array([32, 16], np.float16), 0, "f16").buffer(
        np.zeros(1, np.float16), np.array([8], np.float16), 0, "f16").buffer(
        np.zeros(2, np.uint16), np.array([16, 16], np.uint16))


def faults():
    x = np.arange(64, dtype=np.int32)
    f = f32(32, 4)
    finding = lambda kind, line, file="faults.cu": dict(kind=kind, file=file, line=line)
    Case("missing_barrier", "nvcc/faults.ptx", "missing_barrier", 1, 64, expect=finding("Race", 6)).buffer(x).buffer(None)
    Case("out_of_bounds", "nvcc/faults.ptx", "out_of_bounds", 1, 64, expect=finding("OutOfBounds", 9)).scalar(64).buffer(x).buffer(x)
    Case("asserts", "nvcc/faults.ptx", "asserts", 1, 32, expect=finding("Trap", 15)).scalar(32)
    Case("traps", "nvcc/faults.ptx", "traps", 1, 32, expect=finding("Trap", 19)).scalar(7)
    Case("async_unwaited", "nvcc/faults.ptx", "async_unwaited", 1, 32, expect=finding("InFlight", 27)).buffer(f).buffer(None)


def triton():
    """Kernels of Triton end in two pointers to scratch memory, which these do not use."""
    n = 1500
    x, y = f32(n), f32(n)
    Case("triton_add", "triton/add.ptx", "add", 2, 128).buffer(x).buffer(y).buffer(None, x + y).scalar(n).null(2)
    p, q = to_bf16(rng.standard_normal(700)), to_bf16(rng.standard_normal(700))
    Case("triton_add_bf16", "triton/add_bf16.ptx", "add", 2, 128).buffer(p).buffer(q).buffer(
        None, from_bf16(to_bf16(from_bf16(p) + from_bf16(q))), 0, "bf16").scalar(700).null(2)
    s = f32(4, 200, scale=2)
    wide = s.astype(np.float64)
    Case("triton_softmax", "triton/softmax.ptx", "softmax", 4, 128, 16).buffer(s).buffer(None, softmax_of(wide), softmax_bound(wide), "f32").scalar(200).null(2)
    b = to_bf16(rng.standard_normal((4, 200)))
    gain, bias = f32(200), f32(200)
    z, bound = layer_norm_of(from_bf16(b), gain, bias, 1e-5)
    Case("triton_layer_norm", "triton/layer_norm.ptx", "layer_norm", 4, 64, 512).buffer(b).buffer(gain).buffer(bias).buffer(
        None, z, bound + 2.0**-8 * np.abs(z), "bf16").scalar(200).scalar(1e-5, np.float32).null(2)
    sizes = lambda case, m, n, k: case.scalar(m).scalar(n).scalar(k).scalar(k).scalar(n).scalar(n).null(2)
    half = lambda *s: rng.standard_normal(s).astype(np.float16)

    def matmul(name, a, b, want, bound, kind, bm, bn, warps, shared):
        m, k = a.shape
        n = b.shape[1]
        case = Case("triton_" + name, f"triton/{name}.ptx", "matmul", (-(-m // bm), -(-n // bn)), 32 * warps, shared)
        sizes(case.buffer(a).buffer(b).buffer(None, want, bound, kind), m, n, k)

    a, b = half(80, 64), half(64, 48)
    matmul("matmul_f16", a, b, *product(a, b), "f32", 64, 64, 4, 24576)
    a, b = half(32, 64), half(64, 32)
    matmul("matmul_f16_acc16", a, b, *product(a, b, 5), "f16", 32, 32, 4, 12288)
    a, b = to_bf16(rng.standard_normal((64, 64))), to_bf16(rng.standard_normal((64, 64)))
    matmul("matmul_bf16", a, b, *product(from_bf16(a), from_bf16(b)), "f32", 64, 64, 2, 24576)
    a, b = (rng.integers(-255, 256, s).astype(np.float32) / 32 for s in ((32, 48), (48, 64)))
    matmul("matmul_tf32", a, b, *product(a, b), "f32", 32, 64, 4, 36864)
    a, b = f32(32, 48), f32(48, 32)
    matmul("matmul_f32", a, b, *product(a, b), "f32", 32, 32, 4, 12288)
    a, b = rng.integers(-128, 128, (48, 64)).astype(np.int8), rng.integers(-128, 128, (64, 64)).astype(np.int8)
    matmul("matmul_s8", a, b, a.astype(np.int32) @ b.astype(np.int32), 0, "int32", 32, 64, 4, 9216)
    a, b = rng.standard_normal((16, 32)), rng.standard_normal((32, 16))
    matmul("matmul_f64", a, b, a @ b, 33 * 2.0**-52 * (np.abs(a) @ np.abs(b)), "float64", 16, 16, 1, 12288)
    length, d = 64, 32
    q, k, v = half(64, d), half(length, d), half(length, d)
    scale = np.float32(0.25)
    wide = [t.astype(np.float64) for t in (q, k, v)]
    score = wide[0] @ wide[1].T * scale
    p = np.exp2(score - score.max(1, keepdims=True))
    o = p @ wide[2] / p.sum(1, keepdims=True)
    # Scores: d + 2 roundings; probabilities: that error times ln 2, ex2, the rounding to f16; sums; the rounding of the result.
    off = (d + 4) * 2 * u * (np.abs(wide[0]) @ np.abs(wide[1].T)) * scale
    each = off + off.max(1, keepdims=True) + 2.0**-21
    weight = p / p.sum(1, keepdims=True)
    bound = ((weight * (2.0**-11 + 2 * each + 2 * each.max(1, keepdims=True))) @ np.abs(wide[2])) + 2 * length * 2 * u * (weight @ np.abs(wide[2]))
    # Probabilities below the least normal half lose more: 2^-25 each.
    bound += 2.0**-25 * np.abs(wide[2]).sum(0) / p.sum(1, keepdims=True) + 2.0**-11 * np.abs(o) + 2.0**-24
    Case("triton_attention", "triton/attention.ptx", "attention", 2, 64, 16384).buffer(q).buffer(k).buffer(v).buffer(None, o, bound * 1.01, "f16").scalar(
        length).scalar(scale, np.float32).null(2)
    t = f32(40, 50)
    Case("triton_transpose", "triton/transpose.ptx", "transpose", (2, 2), 64, 8192).buffer(t).buffer(None, t.T.copy()).scalar(40).scalar(50).null(2)
    c = rng.integers(-100, 100, (2, 512)).astype(np.int32)
    Case("triton_cumsum", "triton/cumsum.ptx", "cumsum", 2, 128, 64).buffer(c).buffer(None, np.cumsum(c, 1, dtype=np.int32)).null(2)
    h = rng.integers(0, 20, 600).astype(np.int32)
    Case("triton_histogram", "triton/histogram.ptx", "histogram", 3, 128, 2048).buffer(h).buffer(
        np.zeros(20, np.int32), np.bincount(h, minlength=20).astype(np.int32)).scalar(600).null(2)
    g = half(400)
    wide = g.astype(np.float64)
    erf = np.vectorize(__import__("math").erf)
    gelu = 0.5 * wide * (1 + erf(wide * 0.7071067811865476))
    Case("triton_gelu", "triton/gelu.ptx", "gelu", 2, 128).buffer(g).buffer(
        None, gelu, 2.0**-11 * np.abs(gelu) + 2.0**-25 + 6 * u * np.abs(wide), "f16").scalar(400).null(2)
    m = f32(3, 200)
    Case("triton_argmax", "triton/argmax.ptx", "argmax", 3, 128, 64).buffer(m).buffer(None, m.argmax(1).astype(np.int32)).scalar(200).null(2)
    s = rng.integers(-1000, 1000, 128).astype(np.int32)
    Case("triton_sort", "triton/sort.ptx", "sort", 1, 64, 512).buffer(s).buffer(None, np.sort(s)).null(2)
    x = rng.integers(0, 100, 20).astype(np.float32)
    Case("triton_spin_lock", "triton/spin_lock.ptx", "spin_lock", 20, 32, 16).buffer(np.zeros(1, np.int32), np.zeros(1, np.int32)).buffer(
        np.zeros(1, np.float32), np.array([x.sum()], np.float32)).buffer(x).null(2)


def write(folder):
    import algorithms
    import collective
    import hopper
    import language
    import numeric
    import programs
    import walks

    subjects = (collective, walks, numeric, language, programs, algorithms, hopper)

    own = (basic, reductions, rows, histograms, integers, control, tensor, asynchronous, mathematics, faults, triton)
    for family in (*own, *(family for subject in subjects for family in subject.FAMILIES)):
        family()
    data, cases = bytearray(), []
    for case in CASES:
        places = []
        for array in case.arrays:
            data += bytes(-len(data) % 16)
            places.append(dict(at=len(data), type=array.dtype.name, count=int(array.size)))
            data += array.tobytes()
        cases.append({**case.json, "arrays": places})
    (folder / "cases.bin").write_bytes(data)
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    (folder / "cases.json").write_text("[\n" + lines + "\n]\n")
