#!/usr/bin/env python3
"""What the machine's own libraries reach, for the times of device-check to be compared with.

    baselines.py [--json FILE]

Copies (the driver's, PyTorch's), element-wise addition, row sums and transposes (PyTorch, Triton) in GB/s, and matrix products (cuBLAS,
by way of PyTorch) in TFLOP/s; medians. Exit code 0: timed; 3: nothing could be timed, and the last line says why; 2: wrong usage.
"""

import importlib
import json
import statistics
import sys

ELEMENTS = 1 << 27  # 512 MiB of f32: far beyond any cache
ROWS = 1 << 14
SIDE = 8192  # of a matrix product
SAMPLES = 21
LAUNCHES = 10


class Missing(Exception):
    """Something that this machine does not have."""


def load(name):
    """A library; Missing says which one is not there, and why."""
    try:
        return importlib.import_module(name)
    except Exception as error:  # an installation may fail in any way
        raise Missing(f"{name} cannot be imported: {type(error).__name__}: {error}") from error


def seconds(torch, launch):
    """Median time of a launch."""
    for _ in range(3):
        launch()
    samples = []
    for _ in range(SAMPLES):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(LAUNCHES):
            launch()
        end.record()
        torch.cuda.synchronize()
        samples.append(start.elapsed_time(end) / 1e3 / LAUNCHES)
    return statistics.median(samples)


def triton_add(torch, x, y, z):
    """A launch of z = x + y by Triton."""
    triton = load("triton")
    tl = load("triton.language")
    source = {"triton": triton, "tl": tl}

    @triton.jit
    def add(x, y, z, n, block: tl.constexpr):
        at = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
        inside = at < n
        tl.store(z + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)

    # Triton looks names up in the globals of the function.
    add.fn.__globals__.update(source)
    grid = (triton.cdiv(x.numel(), 1024),)
    launch = lambda: add[grid](x, y, z, x.numel(), block=1024)
    launch()
    torch.cuda.synchronize()
    if not torch.equal(z, x + y):
        raise Missing("triton: its sum is wrong")
    return launch


def triton_transpose(torch, x, y):
    """A launch of y = xᵀ by Triton, in tiles of 64 × 64."""
    triton = load("triton")
    tl = load("triton.language")
    source = {"triton": triton, "tl": tl}

    @triton.jit
    def transpose(x, y, m, n, block: tl.constexpr):
        i = tl.program_id(1) * block + tl.arange(0, block)
        j = tl.program_id(0) * block + tl.arange(0, block)
        inside = (i[:, None] < m) & (j[None, :] < n)
        tile = tl.load(x + i[:, None].to(tl.int64) * n + j[None, :], mask=inside)
        tl.store(y + j[:, None].to(tl.int64) * m + i[None, :], tl.trans(tile), mask=tl.trans(inside))

    transpose.fn.__globals__.update(source)
    (m, n), block = x.shape, 64
    grid = (triton.cdiv(n, block), triton.cdiv(m, block))
    launch = lambda: transpose[grid](x, y, m, n, block=block)
    launch()
    torch.cuda.synchronize()
    if not torch.equal(y, x.t()):
        raise Missing("triton: its transpose is wrong")
    return launch


def baselines():
    """Rows of (name, amount, unit), and lines about what could not be timed."""
    torch = load("torch")
    if not torch.cuda.is_available():
        raise Missing("torch finds no GPU")
    torch.backends.cuda.matmul.allow_tf32 = False
    x = torch.rand(ELEMENTS, device="cuda", dtype=torch.float32)
    y, z = torch.rand_like(x), torch.empty_like(x)
    rows, missing = [], []

    def bandwidth(name, nbytes, launch):
        rows.append((name, nbytes / seconds(torch, launch) / 1e9, "GB/s"))

    bandwidth("copy f32 (driver)", 8 * ELEMENTS, lambda: z.copy_(x))
    bandwidth("add f32 (PyTorch)", 12 * ELEMENTS, lambda: torch.add(x, y, out=z))
    wide, sums = x.view(ROWS, -1), torch.empty(ROWS, device="cuda")
    bandwidth("row sums f32 (PyTorch)", 4 * ELEMENTS, lambda: torch.sum(wide, 1, out=sums))
    turned = z.view(wide.shape[1], wide.shape[0])
    bandwidth("transpose f32 (PyTorch)", 8 * ELEMENTS, lambda: turned.copy_(wide.t()))
    for name, times, launch in (
        ("add f32 (Triton)", 12, lambda: triton_add(torch, x, y, z)),
        ("transpose f32 (Triton)", 8, lambda: triton_transpose(torch, wide, turned)),
    ):
        try:
            bandwidth(name, times * ELEMENTS, launch())
        except Missing as why:
            missing.append(str(why))
        except Exception as error:
            missing.append(f"triton: {type(error).__name__}: {error}")
    for kind in ("float32", "float16", "bfloat16"):
        a = torch.rand(SIDE, SIDE, device="cuda").to(getattr(torch, kind))
        b, c = a.clone(), torch.empty_like(a)
        time = seconds(torch, lambda: torch.mm(a, b, out=c))
        rows.append((f"product {kind} (cuBLAS)", 2 * SIDE**3 / time / 1e12, "TFLOP/s"))
    return torch.cuda.get_device_name(), rows, missing


def main(arguments):
    if arguments[:1] == ["--json"] and len(arguments) == 2:
        path = arguments[1]
    elif not arguments:
        path = None
    else:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        name, rows, missing = baselines()
    except Missing as why:
        print(f"no baselines: {why}")
        return 3
    print(f"GPU: {name}")
    for row, amount, unit in rows:
        print(f"{row:<28} {amount:>10.1f} {unit}")
    for why in missing:
        print(f"not timed: {why}")
    if path:
        listed = [{"name": row, "amount": amount, "unit": unit} for row, amount, unit in rows]
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"format": 1, "gpu": name, "baselines": listed, "not_timed": missing}, file, indent=2)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
