"""What peers.py asks of PyTorch, over lists of numbers and a clock that only launches move.

STAND_IN_LOG names a file that gets a line for each launch (which work, at which memory) and each event; STAND_IN_COST multiplies what a
launch takes; STAND_IN_CACHE is the bytes of the second-level cache; with STAND_IN_OLD libraries cannot be chosen, with STAND_IN_NO_GPU
there is no GPU.
"""

import contextlib
import itertools
import math
import os
import random
from types import SimpleNamespace

__version__ = "stand-in"
version = SimpleNamespace(cuda=None)
float32, bfloat16, uint8 = "float32", "bfloat16", "uint8"
# Milliseconds of a launch. What an environment does not have is left out here.
COSTS = {
    "copy": 1.0,
    "softmax": 3.0,
    "matmul by default": 5.0,
    "matmul by cublaslt": 4.0,
    "attention by flash": 4.0,
    "attention by cudnn": 3.0,
    "_softmax": 2.0,
    "_product": 7.0,
    "_persistent_product": 6.0,
    "_attention": 6.0,
}
_numbers, _random = itertools.count(), random.Random(1)
_state = {"now": 0.0, "library": "default", "backend": None}


def log(line):
    with open(os.environ["STAND_IN_LOG"], "a", encoding="utf-8") as file:
        file.write(f"{line}\n")


def launched(work, tensor):
    _state["now"] += COSTS[work] * float(os.environ.get("STAND_IN_COST", "1"))
    log(f"{work} {tensor.number}")


class Tensor:
    def __init__(self, shape, data, dtype=float32, number=None):
        self.shape, self.data, self.dtype, self.device = tuple(shape), data, dtype, "cuda"
        self.number = next(_numbers) if number is None else number

    def view(self, *shape):
        return Tensor(shape, self.data, self.dtype, self.number)

    def each(self, change):
        self.data[:] = [change(x) for x in self.data]
        return self

    def sub_(self, y):
        return self.each(lambda x: x - y)

    def mul_(self, y):
        return self.each(lambda x: x * y)

    def fill_(self, y):
        return self.each(lambda _: y)

    def to(self, dtype):
        return Tensor(self.shape, list(self.data), dtype)

    def float(self):
        return self.to(float32)

    def clone(self):
        return self.to(self.dtype)

    def t(self):
        m, n = self.shape
        return Tensor((n, m), [self.data[i * n + j] for j in range(n) for i in range(m)], self.dtype, self.number)

    def copy_(self, other):
        launched("copy", other)
        self.data[:] = other.data

    def __getitem__(self, index):
        if index is None:
            return self.view(1, *self.shape)
        assert index == 0 and self.shape[0] == 1, "only what peers.py needs"
        return self.view(*self.shape[1:])


def rand(shape, device, dtype):
    return Tensor(shape, [_random.random() for _ in range(math.prod(shape))], dtype)


def empty(shape, device, dtype=float32):
    shape = shape if isinstance(shape, tuple) else (shape,)
    return Tensor(shape, [math.nan] * math.prod(shape), dtype)


def empty_like(x):
    return empty(x.shape, x.device, x.dtype)


def allclose(x, y, rtol, atol):
    assert x.shape == y.shape
    return all(abs(a - b) <= atol + rtol * abs(b) for a, b in zip(x.data, y.data))


def softmax_of(row):
    powers = [math.exp(x - max(row)) for x in row]
    return [power / sum(powers) for power in powers]


def softmax_into(x, y):
    n = x.shape[1]
    y.data[:] = [value for i in range(x.shape[0]) for value in softmax_of(x.data[i * n : (i + 1) * n])]


def softmax(x, dim, out):
    launched("softmax", x)
    softmax_into(x, out)


def product_into(a, b, c):
    """c = a times the transpose of b."""
    (m, k), n = a.shape, b.shape[0]
    rows = lambda x: [x.data[i * k : (i + 1) * k] for i in range(x.shape[0])]
    c.data[:] = [math.sumprod(r, s) if hasattr(math, "sumprod") else sum(map(float.__mul__, r, s)) for r in rows(a) for s in rows(b)]
    assert len(c.data) == m * n


def matmul(a, b, out):
    launched(f"matmul by {_state['library']}", a)
    product_into(a, b.t(), out)


def attention_into(q, k, v, o, causal):
    (heads, s, d), t = q.shape, k.shape[1]
    shared, found = heads // k.shape[0], []
    for head in range(heads):
        base = head // shared * t * d
        keys = [k.data[base + j * d : base + (j + 1) * d] for j in range(t)]
        values = [v.data[base + j * d : base + (j + 1) * d] for j in range(t)]
        for i in range(s):
            query = q.data[(head * s + i) * d : (head * s + i + 1) * d]
            last = i + 1 if causal else t
            p = softmax_of([sum(map(float.__mul__, query, key)) / d**0.5 for key in keys[:last]])
            found += [sum(weight * value[e] for weight, value in zip(p, values)) for e in range(d)]
    o.data[:] = found


def _attention(q, k, v, is_causal, enable_gqa):
    launched(f"attention by {_state['backend']}", q)
    out = empty(q.shape, "cuda")
    attention_into(q[0], k[0], v[0], out, is_causal)
    return out


@contextlib.contextmanager
def _sdpa_kernel(chosen):
    before, (_state["backend"],) = _state["backend"], chosen
    try:
        yield
    finally:
        _state["backend"] = before


nn = SimpleNamespace(
    functional=SimpleNamespace(scaled_dot_product_attention=_attention),
    attention=SimpleNamespace(
        sdpa_kernel=_sdpa_kernel, SDPBackend=SimpleNamespace(FLASH_ATTENTION="flash", CUDNN_ATTENTION="cudnn")
    ),
)


def _library(name=None):
    if name is not None:
        _state["library"] = name
    return _state["library"]


class _Event:
    def __init__(self, enable_timing):
        self.at = None

    def record(self):
        self.at = _state["now"]
        log("event")

    def synchronize(self):
        assert self.at is not None

    def elapsed_time(self, end):
        return end.at - self.at


backends = SimpleNamespace(
    cuda=SimpleNamespace(preferred_blas_library=_library), cudnn=SimpleNamespace(allow_tf32=True)
)
if os.environ.get("STAND_IN_OLD"):
    del backends.cuda.preferred_blas_library
_gpu = SimpleNamespace(L2_cache_size=int(os.environ.get("STAND_IN_CACHE", "0")), uuid="stand-in", multi_processor_count=2)
cuda = SimpleNamespace(
    is_available=lambda: not os.environ.get("STAND_IN_NO_GPU"),
    get_device_name=lambda: "stand-in",
    get_device_properties=lambda device: _gpu,
    synchronize=lambda: None,
    empty_cache=lambda: None,
    Event=_Event,
)
