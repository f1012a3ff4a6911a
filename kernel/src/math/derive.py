#!/usr/bin/env python3
"""Derives the polynomial coefficients of the math functions, and prints them as literals; then the constants of the reductions.

Each polynomial minimises max |w(x) (P(x) - f(x))| over the interval by the Remez exchange in 60-digit arithmetic (mpmath).
For f32, coefficients are rounded all at once, or one at a time from the lowest power with the rest solved again after each; the
better of the two is printed. For f64 they are rounded all at once. Needs mpmath. Run: python3 derive.py
"""
import struct
from mpmath import cos, erf, erfc, exp, expm1, floor, log, log1p, lu_solve, matrix, mp, mpf, pi, sin, sqrt, tanh

mp.dps = 60


def f32(v):
    """The f32 nearest to v."""
    return mpf(struct.unpack("f", struct.pack("f", float(v)))[0])


def literal(v):
    """The shortest decimal that reads back as this f32."""
    return next(t for t in (f"{float(v):.{p}g}" for p in range(1, 10)) if f32(float(t)) == v)


def remez(f, w, degree, lo, hi, fixed):
    """Minimax polynomial of f with weight w on [lo, hi]; `fixed` maps powers to given coefficients."""
    free = [k for k in range(degree + 1) if k not in fixed]
    n = len(free)
    g = lambda x: f(x) - sum(c * x**k for k, c in fixed.items())
    # Chebyshev nodes, moved a little so that none is a zero of the weight.
    mid = (lo + hi) / 2 + (hi - lo) / 997
    xs = [mid - (hi - lo) * mpf("0.498") * cos(pi * (2 * i + 1) / (2 * (n + 1))) for i in range(n + 1)]
    grid = [lo + (hi - lo) * (1 - cos(pi * i / 600)) / 2 for i in range(601)]
    gv = [(x, g(x), w(x)) for x in grid]
    for _ in range(12):
        a, b = matrix(n + 1, n + 1), matrix(n + 1, 1)
        for i, x in enumerate(xs):
            for j, k in enumerate(free):
                a[i, j] = x**k
            a[i, n] = (-1) ** i / w(x)
            b[i] = g(x)
        s = lu_solve(a, b)
        err = [(wv * (sum(s[j] * x**k for j, k in enumerate(free)) - gx), x) for x, gx, wv in gv]
        # One extremum for each run of equal sign, then the n + 1 neighbouring ones with the largest error.
        runs = []
        for e, x in err:
            if runs and (runs[-1][0] > 0) == (e > 0):
                runs[-1] = max(runs[-1], (e, x), key=lambda t: abs(t[0]))
            else:
                runs.append((e, x))
        while len(runs) > n + 1:
            runs.pop(0 if abs(runs[0][0]) < abs(runs[-1][0]) else -1)
        if len(runs) < n + 1:
            break
        new = [x for _, x in runs]
        if new == xs:
            break
        xs = new
    coefficients = dict(fixed)
    coefficients.update({k: s[j] for j, k in enumerate(free)})
    return coefficients, max(abs(e) for e, _ in err)


def fit(name, f, w, degree, lo, hi):
    """Prints the f32 coefficients and the error that they achieve."""
    best, ideal = remez(f, w, degree, lo, hi, {})
    at_once = {k: f32(v) for k, v in best.items()}
    in_turn = {}
    for k in range(degree + 1):
        in_turn[k] = f32(remez(f, w, degree, lo, hi, in_turn)[0][k])
    points = [(x, f(x), w(x)) for x in (lo + (hi - lo) * mpf(i) / 1000 for i in range(1, 1000))]
    worst = lambda c: max(abs(wx * (sum(v * x**k for k, v in c.items()) - fx)) for x, fx, wx in points)
    chosen = min((at_once, in_turn), key=worst)
    print(f"{name}: minimax 2^{float(log(ideal, 2)):.1f}, with f32 coefficients 2^{float(log(worst(chosen), 2)):.1f}")
    for k in sorted(chosen):
        print(f"    {literal(chosen[k])},")


def fit_double(name, f, w, degree, lo, hi):
    """Prints the f64 coefficients and the error that they achieve."""
    best, ideal = remez(f, w, degree, lo, hi, {})
    chosen = {k: mpf(float(v)) for k, v in best.items()}
    points = [(x, f(x), w(x)) for x in (lo + (hi - lo) * mpf(i) / 1000 for i in range(1, 1000))]
    worst = max(abs(wx * (sum(v * x**k for k, v in chosen.items()) - fx)) for x, fx, wx in points)
    print(f"{name}: minimax 2^{float(log(ideal, 2)):.1f}, with f64 coefficients 2^{float(log(worst, 2)):.1f}")
    for k in sorted(chosen):
        print(f"    {float(chosen[k])!r},")


def double():
    """Everything that the functions of f64 need."""
    near = lambda x: abs(x) < mpf(2) ** -60  # where the formulas below would divide 0 by 0
    ln2 = log(mpf(2))
    half = ln2 / 2 * (1 + mpf(2) ** -30)
    second = lambda r: mpf(1) / 2 if near(r) else (expm1(r) - r) / r**2
    fit_double("exp(r) = 1 + r + r^2 P(r), relative", second, lambda r: r**2 / exp(r), 9, -half, half)
    end = ((sqrt(mpf(2)) - 1) / (sqrt(mpf(2)) + 1)) ** 2
    quotient = lambda z: mpf(2) / 3 if near(z) else (log((1 + sqrt(z)) / (1 - sqrt(z))) / sqrt(z) - 2) / z
    fit_double("log((1 + s)/(1 - s)) = 2s + s z P(z), z = s^2, relative", quotient, lambda z: z / 2, 6, mpf(0), end)
    end = (pi / 4 + mpf(1) / 1000) ** 2
    sinc = lambda s: mpf(1) if near(s) else sin(sqrt(s)) / sqrt(s)
    fit_double("sin(r) = r + r s P(s), s = r^2, relative", lambda s: -mpf(1) / 6 if near(s) else (sinc(s) - 1) / s,
               lambda s: s / sinc(s), 5, mpf(0), end)
    fit_double("cos(r) = 1 - s/2 + s^2 P(s), s = r^2, relative",
               lambda s: mpf(1) / 24 if near(s) else (cos(sqrt(s)) - 1 + s / 2) / s**2,
               lambda s: s**2 / cos(sqrt(s)), 5, mpf(0), end)
    tanhc = lambda s: mpf(1) if near(s) else tanh(sqrt(s)) / sqrt(s)
    fit_double("tanh(x) = x + x s P(s), s = x^2, relative", lambda s: -mpf(1) / 3 if near(s) else (tanhc(s) - 1) / s,
               lambda s: s / tanhc(s), 10, mpf(0), mpf("0.55") ** 2)
    slope = lambda s: 2 / sqrt(pi) if near(s) else erf(sqrt(s)) / sqrt(s)
    fit_double("erf(x) = x + x P(x^2), relative", lambda s: slope(s) - 1, lambda s: 1 / slope(s), 12, mpf(0), mpf(1))
    fit_double("erf(x) = 1 - 2^-Q(x - 2), relative", lambda t: -log(erfc(t + 2), 2),
               lambda t: erfc(t + 2) * ln2 / erf(t + 2), 18, mpf(-1), mpf(4))
    fit_double("2^-f = 1 + f P(f), relative", lambda f: -ln2 if near(f) else (mpf(2) ** -f - 1) / f,
               lambda f: abs(f) * mpf(2) ** f, 10, -mpf(1) / 2, mpf(1) / 2)
    mp.dps = 400
    # Bit p of the words, from the top, counts 2^(53 - p); 19 words.
    bits = int(floor(2 / pi * mpf(2) ** (19 * 64 - 1 - 53)))
    print("2/pi:", ", ".join(f"0x{bits >> 64 * (18 - i) & (1 << 64) - 1:016x}" for i in range(19)))


def split(name, v, parts, below=False):
    """A constant as a sum of f32 numbers, each the nearest to what is left, or the nearest below."""
    terms = []
    for _ in range(parts):
        term = f32(v)
        if below and term > v:
            term = mpf(struct.unpack("f", struct.pack("I", struct.unpack("I", struct.pack("f", float(term)))[0] - 1))[0])
        terms.append(term)
        v -= term
    print(f"{name}: {' + '.join(map(literal, terms))}, rest {float(v):.3g}")


def main():
    near = lambda x: abs(x) < mpf(2) ** -40  # where the formulas below would divide 0 by 0
    ln2 = log(mpf(2))
    split("log2(e)", 1 / ln2, 1)
    split("ln 2", ln2, 2)
    split("2/pi", 2 / pi, 1)
    split("pi/2", pi / 2, 3, below=True)
    # Half of ln 2 and a little more, for the error of the reduction.
    half = ln2 / 2 * (1 + mpf(2) ** -15)
    second = lambda r: mpf(1) / 2 if near(r) else (expm1(r) - r) / r**2
    fit("exp(r) = 1 + r + r^2 P(r), relative", second, lambda r: r**2 / exp(r), 4, -half, half)
    fit("log(1 + f) = f + f^2 P(f), relative", lambda x: -mpf(1) / 2 if near(x) else (log1p(x) - x) / x**2,
        lambda x: abs(x) if near(x) else abs(x**2 / log1p(x)), 8, sqrt(mpf(1) / 2) - 1, sqrt(mpf(2)) - 1)
    # A quarter of a period and more, for the error of the quotient.
    end = (pi / 4 + mpf(1) / 20) ** 2
    sinc = lambda s: mpf(1) if near(s) else sin(sqrt(s)) / sqrt(s)
    fit("sin(r) = r + r s P(s), s = r^2, relative", lambda s: -mpf(1) / 6 if near(s) else (sinc(s) - 1) / s,
        lambda s: s / sinc(s), 2, mpf(0), end)
    fit("cos(r) = 1 - s/2 + s^2 P(s), s = r^2, relative", lambda s: mpf(1) / 24 if near(s) else (cos(sqrt(s)) - 1 + s / 2) / s**2,
        lambda s: s**2 / cos(sqrt(s)), 2, mpf(0), end)
    tanhc = lambda s: mpf(1) if near(s) else tanh(sqrt(s)) / sqrt(s)
    fit("tanh(x) = x + x s P(s), s = x^2, relative", lambda s: -mpf(1) / 3 if near(s) else (tanhc(s) - 1) / s,
        lambda s: s / tanhc(s), 4, mpf(0), mpf("0.55") ** 2)
    slope = lambda s: 2 / sqrt(pi) if near(s) else erf(sqrt(s)) / sqrt(s)
    fit("erf(x) = x + x P(x^2), relative", lambda s: slope(s) - 1, lambda s: 1 / slope(s), 6, mpf(0), mpf(1))
    fit("erf(x) = 1 - 2^-Q(x), relative", lambda x: -log(erfc(x), 2), lambda x: erfc(x) * ln2 / erf(x), 5, mpf(1), mpf(4))
    fit("2^-f = 1 + f P(f), relative", lambda f: -ln2 if near(f) else (mpf(2) ** -f - 1) / f, lambda f: abs(f) * mpf(2) ** f,
        4, -mpf(1) / 2, mpf(1) / 2)


if __name__ == "__main__":
    main()
    double()
