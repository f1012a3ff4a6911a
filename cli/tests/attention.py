"""Attention in float64.

`make FOLDER M N D E SEED` writes inputs, `check FOLDER KIND SCALE` compares what a kernel made of them.

Inputs are bf16, whose bits NumPy keeps as u2. KIND is `plain` or `causal`; SCALE is that of exp2(SCALE * (s - m)).
"""

import sys

import numpy as np


def bits_of(x):
    """bf16 by rounding to nearest even, as bits."""
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def numbers(folder, name):
    return (np.load(f"{folder}/{name}.npy").astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def make(folder, m, n, d, e, seed):
    random = np.random.default_rng(seed)
    for name, shape in [("q", (m, d)), ("k", (n, d)), ("v", (n, e))]:
        np.save(f"{folder}/{name}.npy", bits_of(random.normal(size=shape)))


def check(folder, kind, scale):
    q, k, v = (numbers(folder, name) for name in "qkv")
    y = np.load(f"{folder}/y.npy").astype(np.float64)
    s = scale * (q @ k.T)
    if kind == "causal":
        s = np.where(np.arange(k.shape[0]) <= np.arange(q.shape[0])[:, None], s, -np.inf)
    p = np.exp2(s - s.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    # A factor is an exponential that was rounded to 8 bits, half a unit of which is 2^-9; the rest is far smaller.
    most = (p @ np.abs(v)) * 2.0**-8 + 1e-6
    wrong = ~(np.abs(y - p @ v) <= most)
    print(f"{np.max(np.abs(y - p @ v) / most):.3f} of what is allowed, {np.count_nonzero(wrong)} of {y.size} wrong")
    return 1 if wrong.any() or y.shape != (p @ v).shape else 0


if sys.argv[1] == "make":
    make(sys.argv[2], *map(int, sys.argv[3:]))
else:
    sys.exit(check(sys.argv[2], sys.argv[3], float(sys.argv[4])))
