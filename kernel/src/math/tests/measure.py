#!/usr/bin/env python3
"""Exact values of the f64 functions, by mpmath.

    python3 measure.py points > points.txt      # the committed points of tests/double.rs
    TILEWRIGHT_POINTS=200000 cargo test --release -p tilewright-kernel results_for_measurement -- --nocapture | python3 measure.py
                                                # the largest error of each function
"""
import random
import struct
import sys
from mpmath import cos, erf, erfc, exp, floor, frexp, inf, log, mp, mpf, nint, pi, sin, tanh

BY_NAME = {"exp": exp, "log": log, "tanh": tanh, "erf": erf, "sin": sin, "cos": cos}


def bits(x):
    return struct.unpack("<Q", struct.pack("<d", x))[0]


def number(b):
    return struct.unpack("<d", struct.pack("<Q", b))[0]


def exact(name, x):
    """The value to at least 60 digits behind the first one that matters."""
    mp.dps = 80 if name not in ("sin", "cos") or abs(x) < 1e6 else 400
    if name == "exp" and abs(x) > 2000:
        return inf if x > 0 else mpf(0)
    if name in ("tanh", "erf") and abs(x) > 100:
        return mpf(1) if x > 0 else mpf(-1)
    return BY_NAME[name](mpf(x))


def ulp(y):
    """Distance of neighbours in the binade of y, at least the least subnormal number."""
    if y == 0:
        return mpf(2) ** -1074
    return mpf(2) ** max(frexp(abs(y))[1] - 53, -1074)


def nearest(y):
    """The nearest f64, for a y that is not in the last half step before infinity."""
    if abs(y) >= mpf(2) ** 1024 - mpf(2) ** 970:
        return float("inf") if y > 0 else float("-inf")
    unit = ulp(y)
    return float(nint(y / unit) * unit)


def arguments(name):
    """Arguments of the committed points."""
    draw = random.Random(name)
    xs = []
    if name == "exp":
        xs += [draw.uniform(-746, 710) for _ in range(150)] + [draw.uniform(-1, 1) for _ in range(100)]
        xs += [draw.uniform(-745.2, -708) for _ in range(60)] + [draw.uniform(709, 709.8) for _ in range(10)]
        # Half-way between the multiples of ln 2.
        xs += [float((k + mpf(1) / 2) * log(2)) for k in range(-1000, 1000, 61)]
    elif name == "log":
        xs += [number(draw.randrange(1, 0x7FF0 << 48)) for _ in range(150)] + [draw.uniform(0.5, 2) for _ in range(100)]
        xs += [1 + draw.uniform(-1, 1) * 2.0**-k for k in range(2, 52) for _ in range(2)] + [number(draw.randrange(1, 1 << 52)) for _ in range(20)]
    elif name in ("tanh", "erf"):
        top = 20 if name == "tanh" else 6.2
        xs += [draw.uniform(-top, top) for _ in range(150)] + [draw.uniform(-1.2, 1.2) for _ in range(120)]
        seam = 0.55 if name == "tanh" else 1.0
        xs += [seam + k * 2.0**-52 for k in range(-20, 20)] + [draw.uniform(1, 2) * 2.0**-k for k in range(1, 60)]
    else:
        xs += [draw.uniform(-10, 10) for _ in range(100)] + [draw.uniform(-1e6, 1e6) for _ in range(60)]
        xs += [number(draw.randrange(0x4130 << 48, 0x7FF0 << 48)) for _ in range(150)]
        mp.dps = 400
        # The f64 numbers nearest to multiples of π/2, small and large.
        xs += [float(k * pi / 2) for k in list(range(1, 40)) + [draw.randrange(1, 1 << 19) for _ in range(40)]]
        xs += [float(draw.randrange(1 << 40, 1 << 900) * pi / 2) for _ in range(40)]
        # The f64 number nearest to a multiple of π/2 of all, relative to it.
        xs += [6381956970095103.0 * 2.0**797, 1048576.0, float.fromhex("0x1.0000000000001p20"), sys.float_info.max]
    return sorted(set(xs))


def points():
    for name in BY_NAME:
        for x in arguments(name):
            y = exact(name, x)
            n = nearest(y)
            rest = 0 if abs(n) == float("inf") else float((y - mpf(n)) / ulp(mpf(n)) * 1000)
            print(f"{name} {bits(x):016x} {bits(n):016x} {rest:.0f}")


def measure():
    worst = {}
    for line in sys.stdin:
        words = line.split()
        if len(words) < 4 or "point" not in words:
            continue
        name, x, got = words[-3], number(int(words[-2], 16)), number(int(words[-1], 16))
        if name == "log" and x <= 0:
            continue
        y = exact(name, x)
        if abs(got) == float("inf"):
            error = 0.0 if nearest(y) == got else float("inf")
        else:
            error = float(abs(mpf(got) - y) / ulp(y)) if y != inf else float("inf")
        count, most, at = worst.get(name, (0, -1.0, 0.0))
        worst[name] = (count + 1, error, x) if error > most else (count + 1, most, at)
    for name, (count, most, at) in worst.items():
        print(f"{name}: {most:.4f} ulp at {at!r}, of {count}")


if __name__ == "__main__":
    points() if sys.argv[1:] == ["points"] else measure()
