"""Cases of what C++ becomes: calls, tables, the heap, printing; see `cases.py`."""

import math

import numpy as np
from cases import Case, f32, rng


def heap():
    n = 7
    z = []
    for t in range(32):
        total, numbers = 0, [i * (t + 1) for i in range(n)]
        for value in reversed(numbers):
            total = total * 3 + value
        z.append(n - 1 + total)
    Case("device_heap", "nvcc/language.ptx", "heap", 1, 32).scalar(n).buffer(None, np.array(z, np.int32))


def printing():
    x = np.array([1.5, -2.25, 100.0], np.float32)
    text = "".join(f"lane {i}: {v:5.2f} {'below' if v < 0 else 'above'} 0x{i << 36:x} {chr(97 + i)}%\n" for i, v in enumerate(x)) + "done\n"
    Case("prints", "nvcc/language.ptx", "prints", 1, 32).scalar(3).buffer(x).prints(text)
    x = rng.integers(0, 100, 32).astype(np.int32)
    Case("asserted", "nvcc/language.ptx", "asserted", 1, 32).scalar(32).buffer(x).buffer(None, x + 1)


def calls():
    x = rng.integers(-100, 100, (32, 20)).astype(np.int32)
    ackermann = [3, 5, 7, 9]
    z = np.array([ackermann[t % 4] * 10 + (t % 2 == 0) for t in range(32)], np.int32)
    Case("recursion", "nvcc/language.ptx", "recursion", 1, 32).buffer(x, np.sort(x, 1)).buffer(None, z)
    y = rng.integers(1, 60, 35).astype(np.int32)
    operations = [lambda a, b: a + b, lambda a, b: (a * b + 2**31) % 2**32 - 2**31, math.gcd]
    out = []
    for t in range(32):
        f = operations[t % 3]
        v = int(y[t])
        for k in range(1, 4):
            v = f(v, int(y[t + k]))
        out.append(v + f(t, 7))
    Case("function_tables", "nvcc/language.ptx", "function_tables", 1, 32).buffer(y).buffer(None, np.array(out, np.int32))
    z = np.array([t * 8 if t & 1 else t + 3 for t in range(32)], np.int32)
    # Every thread destroys both, the derived one twice over.
    Case("virtuals", "nvcc/language.ptx", "virtuals", 1, 32).buffer(np.zeros(2, np.int32), np.array([64, 32], np.int32)).buffer(None, z)
    a, tag = np.arange(6) * 1.5, b"xyz"
    z = np.array([[a[(i + k) % 6] * (k + 1) for i in range(6)] for k in range(8)])
    Case("by_value", "nvcc/language.ptx", "by_value", 1, 8).raw(a.tobytes() + tag + bytes(5)).buffer(None, z).buffer(
        None, np.frombuffer(tag[::-1] * 8, np.uint8))
    Case("globals", "nvcc/language.ptx", "globals", 1, 32).buffer(None, (3 * (31 - np.arange(32)) + 1 + 9).astype(np.int32))
    Case("no_trap", "nvcc/language.ptx", "traps", 1, 32).scalar(5).buffer(None, np.ones(32, np.int32))


def tokens():
    alphabet = b"0123456789abcz  \"\\#-"
    text = np.frombuffer(bytes(rng.choice(list(alphabet), 64 * 16).astype(np.uint8)), np.uint8)
    out = []
    for t in range(64):
        state = words = numbers = value = 0
        for c in text[16 * t : 16 * t + 16].tobytes().decode():
            digit, letter = c.isdigit(), c.islower()
            if state == 0:
                if digit:
                    state, value = 1, int(c)
                elif letter:
                    state, words = 2, words + 1
                else:
                    state = {'"': 3, "#": 4, "-": 5}.get(c, 0)
            elif state == 1:
                if digit:
                    value = value * 10 + int(c)
                else:
                    numbers, state = numbers + value, 0
            elif state == 2:
                state = 0 if c == " " else 2
            elif state == 3:
                if c == "\\":
                    state = 6
                elif c == '"':
                    state, words = 0, words + 100
            elif state == 5:
                state, value = (1, -int(c)) if digit else (0, value)
            elif state == 6:
                state = 3
        out.append((words * 100000 + numbers + state + 2**31) % 2**32 - 2**31)
    Case("tokens", "nvcc/language.ptx", "tokens", 1, 64).buffer(text).buffer(None, np.array(out, np.int32))


FAMILIES = (heap, printing, calls, tokens)
