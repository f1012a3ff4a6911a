"""Computes results of the conformance files once more, with Python's integers and NumPy's floats, which share nothing
with the oracle that the files are from. Prints how many were compared, and every difference.

python3 recompute.py FOLDER
"""

import json
import sys
from pathlib import Path

import numpy as np

FOLDER = Path(sys.argv[1])
FLOATS = {"f16": (np.uint16, np.float16, 0x7FFF), "f32": (np.uint32, np.float32, 0x7FFFFFFF), "f64": (np.uint64, np.float64, None)}


def cases(family):
    """Each instruction of a family with its rows: operands, and what the results must be."""
    for case in json.loads((FOLDER / f"{family}.json").read_text())["cases"]:
        each = case["y"] // len(case["instructions"])
        for at, instruction in enumerate(case["instructions"]):
            rows = [(x.split(), y.split()[at * each : (at + 1) * each]) for x, y in case["rows"]]
            yield instruction, rows


def number(text, ty):
    """The number that bits of a type are."""
    bits = int(text, 16)
    if ty in FLOATS:
        of_bits, of_numbers, _ = FLOATS[ty]
        return np.array([bits], dtype=of_bits).view(of_numbers)[0]
    width = int(ty[1:])
    return bits - (1 << width) if ty[0] == "s" and bits >> (width - 1) else bits


def spelled(value, ty):
    """The bits of a number of a type, as the files spell them."""
    if ty in FLOATS:
        of_bits, of_numbers, nan = FLOATS[ty]
        if np.isnan(value):
            return "nan" if nan is None else f"{nan:x}"
        return f"{int(np.array([value], dtype=of_numbers).view(of_bits)[0]):x}"
    return f"{value & ((1 << int(ty[1:])) - 1):x}"


SUMS = {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b}
EXTREMES = {"min": min, "max": max}
FUNCTIONS = {
    "ex2": np.exp2,
    "lg2": np.log2,
    "rcp": lambda x: 1 / x,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sqrt": np.sqrt,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
}


def compared():
    """Instructions, operands, what the files say and what comes out here."""
    for ty in ("f32", "f64"):
        for instruction, rows in cases(ty):
            name, *words = instruction.split(".")
            if name in SUMS and words in ([ty], ["rn", ty]):
                for x, y in rows:
                    yield instruction, x, y[0], spelled(SUMS[name](number(x[0], ty), number(x[1], ty)), ty)
    for family in ("integer", "multiply"):
        for instruction, rows in cases(family):
            name, *words = instruction.split(".")
            ty, width = words[-1], words[-1][1:]
            if not width.isdigit() or name not in ("add", "sub", "mul", "min", "max") or len(words) != 1 + (name == "mul"):
                continue
            for x, y in rows:
                value = (SUMS | EXTREMES)[name](number(x[0], ty), number(x[1], ty))
                if words[0] == "hi":
                    value >>= int(width)
                result = f"{ty[0]}{2 * int(width)}" if words[0] == "wide" else ty
                yield instruction, x, y[0], spelled(value, result)
    for instruction, rows in cases("convert_floats"):
        name, *words = instruction.split(".")
        if words[0] == "rn" and len(words) == 3 and words[1] in FLOATS and words[2] in FLOATS:
            for x, y in rows:
                value = number(x[0], words[2])
                yield instruction, x, y[0], spelled(FLOATS[words[1]][1](value), words[1])
    for instruction, rows in cases("approximate"):
        name, *words = instruction.split(".")
        if words != ["approx", "f32"] or name not in FUNCTIONS:
            continue
        for x, y in rows:
            value = FUNCTIONS[name](np.float64(number(x[0], "f32")))
            if "~" in y[0]:
                # Ends that are infinities stand for what follows the greatest number.
                ends = [np.float64(number(end, "f32")) for end in y[0].split("~")]
                inside = ends[0] <= value <= ends[1] or np.isinf(ends).any()
                yield instruction, x, y[0], y[0] if inside else f"{value}"
            elif y[0] != "*":
                yield instruction, x, y[0], spelled(np.float32(value), "f32")


def main():
    np.seterr(all="ignore")
    count, wrong = 0, 0
    for instruction, operands, said, found in compared():
        count += 1
        if said != found:
            wrong += 1
            print(f"{instruction} of {' '.join(operands)}: {said}, here {found}")
    print(f"{count} compared, {wrong} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
