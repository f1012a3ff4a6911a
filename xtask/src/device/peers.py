#!/usr/bin/env python3
"""Kernels of the examples beside the same work by PyTorch and Triton, and beside a copy of as many bytes.

    peers.py [--json FILE] ROWS PROGRAM PATH…

ROWS names kernels, sizes and work; `PROGRAM --row KERNEL SIZES PATH…` times one of them. Everything is timed one after the other, ours
before and after the others, so that ratios compare. What is told are bytes of traffic (each input read once, each output written once) a
second, and its ratio to the copy and to each peer: above 1 is faster. Exit code 0: timed; 3: nothing could be timed, and the last line
says why; 1: a row failed; 2: wrong usage.
"""

import json
import subprocess
import sys

from baselines import Missing, load, seconds

GOAL = 0.95  # of the bandwidth of a copy


def close(torch, name, found, expected, tolerance):
    """Missing if a peer computes something else."""
    torch.cuda.synchronize()
    if not torch.allclose(found.float(), expected.float(), rtol=tolerance, atol=tolerance):
        raise Missing(f"{name}: its result is wrong")


def works(torch, dims):
    """Each kind of work at sizes: makes (launch by PyTorch, how to make the launch by Triton, its result, tolerance)."""
    functional = torch.nn.functional

    def rand(*shape, kind="float32"):
        return torch.rand(shape, device="cuda", dtype=torch.float32).sub_(0.5).to(getattr(torch, kind))

    def softmax():
        x = rand(dims["M"], dims["N"])
        y, z = torch.empty_like(x), torch.empty_like(x)
        return (lambda: torch.softmax(x, 1, out=y), lambda t: t.softmax(x, z), (y, z), 1e-5)

    def rms_norm():
        n = dims["N"]
        x, w = rand(dims["M"], n, kind="bfloat16"), rand(n, kind="bfloat16")
        z, out = torch.empty_like(x), [None]

        def launch():
            out[0] = functional.rms_norm(x, (n,), w, 1e-5)

        return (launch, lambda t: t.rms_norm(x, w, z, 1e-5), (out, z), 2e-2)

    def layer_norm():
        n = dims["N"]
        x, w, b = rand(dims["M"], n), rand(n), rand(n)
        z, out = torch.empty_like(x), [None]

        def launch():
            out[0] = functional.layer_norm(x, (n,), w, b, 1e-5)

        return (launch, lambda t: t.layer_norm(x, w, b, z, 1e-5), (out, z), 1e-4)

    # Sums of positive numbers, so that a relative tolerance tells something.
    def column_sum():
        x = rand(dims["M"], dims["N"]).add_(1.0)
        y, z = torch.empty(dims["N"], device="cuda"), torch.empty(dims["N"], device="cuda")
        return (lambda: torch.sum(x, 0, out=y), lambda t: t.column_sum(x, z), (y, z), 1e-4)

    def batch_statistics():
        x = rand(dims["M"], dims["N"]).add_(1.0)
        mean, variance, out = torch.empty(dims["N"], device="cuda"), torch.empty(dims["N"], device="cuda"), [None]

        def launch():
            out[0] = torch.var_mean(x, 0, correction=0)[0]

        return (launch, lambda t: t.batch_statistics(x, mean, variance), (out, variance), 1e-3)

    def full_sum():
        x = rand(dims["N"]).add_(1.0)
        y, z = torch.empty((), device="cuda"), torch.empty((), device="cuda")
        return (lambda: torch.sum(x, 0, out=y), lambda t: t.full_sum(x, z), (y, z), 1e-4)

    def blur():
        x, out = rand(dims["H"], dims["W"]), [None]
        z = torch.empty(dims["H"] - 2, dims["W"] - 2, device="cuda")
        ninth = torch.full((3, 3), 1 / 9, device="cuda")

        def launch():
            out[0] = functional.avg_pool2d(x[None, None], 3, stride=1)[0, 0]

        return (launch, lambda t: t.window(x, ninth, z, 0), (out, z), 1e-5)

    def convolution():
        x, weights, out = rand(dims["H"], dims["W"]), rand(5, 5), [None]
        z = torch.empty_like(x)

        def launch():
            out[0] = functional.conv2d(x[None, None], weights[None, None], padding=2)[0, 0]

        return (launch, lambda t: t.window(x, weights, z, 2), (out, z), 1e-4)

    # Random numbers with a normal distribution: products of others draw less power, and run at higher clocks.
    def product():
        def normal(*shape):
            return torch.randn(shape, device="cuda", dtype=torch.float32).to(torch.bfloat16)

        a, b = normal(dims["M"], dims["K"]), normal(dims["N"], dims["K"])
        y, z = (torch.empty(dims["M"], dims["N"], device="cuda", dtype=torch.bfloat16) for _ in range(2))
        return (lambda: torch.matmul(a, b.t(), out=y), lambda t: t.product(a, b, z), (y, z), 2e-2)

    # By PyTorch: the faster of what it has for that, FlashAttention and cuDNN.
    def attention_of(heads, shared, queries, keys, size, causal):
        def normal(*shape):
            return torch.randn(shape, device="cuda", dtype=torch.float32).to(torch.bfloat16)

        q, k, v = normal(heads, queries, size), normal(heads // shared, keys, size), normal(heads // shared, keys, size)
        z, out = torch.empty_like(q), [None]
        backends = torch.nn.attention.SDPBackend

        def by(backend):
            def launch():
                with torch.nn.attention.sdpa_kernel([backend]):
                    out[0] = functional.scaled_dot_product_attention(
                        q[None], k[None], v[None], is_causal=causal, enable_gqa=shared > 1
                    )[0]

            return launch

        tried = []
        for backend in (backends.FLASH_ATTENTION, backends.CUDNN_ATTENTION):
            try:
                by(backend)()
                tried.append((seconds(torch, by(backend)), by(backend)))
            except RuntimeError:
                pass
        if not tried:
            raise Missing("PyTorch: neither FlashAttention nor cuDNN has this attention")
        launch = min(tried, key=lambda one: one[0])[1]
        return (launch, lambda t: t.attention(q, k, v, z, causal), (out, z), 2e-2)

    def attention():
        return attention_of(dims["H"], 1, dims["S"], dims["T"], 128, False)

    def causal_attention():
        return attention_of(4 * dims["G"], 4, dims["S"], dims["S"], 128, True)

    def few_queries():
        return attention_of(dims["H"], 1, dims["S"], dims["T"], 64, False)

    made = (softmax, rms_norm, layer_norm, column_sum, batch_statistics, full_sum, blur, convolution, product)
    made += (attention, causal_attention, few_queries)
    return {make.__name__: make for make in made}


def operations(work, dims):
    """Operations of what has more to compute than to move; none of other work."""
    if work == "product":
        return 2 * dims["M"] * dims["N"] * dims["K"]
    if work == "attention":
        return 4 * dims["H"] * dims["S"] * dims["T"] * 128
    if work == "causal_attention":
        return 2 * 4 * dims["G"] * dims["S"] * (dims["S"] + 1) * 128
    return None


def measure(torch, row, program, paths, missing):
    """One row of the table: names, seconds of each, bytes."""
    sizes = ",".join(f"{name}={size}" for name, size in row["dims"].items())

    def ours():
        done = subprocess.run([program, "--row", row["kernel"], sizes, *paths], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{row['kernel']}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    before = ours()
    times = {"bytes": before["bytes"]}
    half = before["bytes"] // 2
    source, target = (torch.empty(half, dtype=torch.uint8, device="cuda") for _ in range(2))
    times["copy"] = seconds(torch, lambda: target.copy_(source))
    del source, target
    launch, triton, (result, other), tolerance = works(torch, row["dims"])[row["work"]]()
    for name, make in (("PyTorch", lambda: launch), ("Triton", lambda: triton(load("triton_kernels")))):
        try:
            timed = make()
            timed()
            if name == "Triton":
                expected = result[0] if isinstance(result, list) else result
                close(torch, f"Triton, {row['work']}", other, expected, tolerance)
            times[name] = seconds(torch, timed)
        except Missing as why:
            missing.append(str(why))
        except Exception as error:
            missing.append(f"{name}, {row['work']}: {type(error).__name__}: {error}")
    times["ours"] = (before["seconds"] + ours()["seconds"]) / 2
    if operations(row["work"], row["dims"]) is not None:
        times["operations"] = operations(row["work"], row["dims"])
    return {"kernel": row["kernel"], "sizes": sizes, **times}


def is_bound_by_memory(row):
    """Whether the bandwidth of a copy is what the work can reach: not that of products, which have more to compute."""
    return "operations" not in row


def table(rows):
    """Lines for a reader."""
    yield f"{'kernel':<16} {'sizes':<24} {'GB/s':>8} {'TFLOP/s':>8} {'of copy':>8} {'of PyTorch':>11} {'of Triton':>10}"
    for row in rows:
        ratio = lambda name: row[name] / row["ours"] if name in row else None
        shown = lambda name: "?" if ratio(name) is None else f"{ratio(name):.2f}"
        fast = ratio("copy") >= GOAL or not is_bound_by_memory(row)
        met = fast and all((ratio(name) or 1) >= 1 for name in ("PyTorch", "Triton"))
        rate = row["bytes"] / row["ours"] / 1e9
        work = "" if is_bound_by_memory(row) else f"{row['operations'] / row['ours'] / 1e12:.0f}"
        line = f"{row['kernel']:<16} {row['sizes']:<24} {rate:>8.0f} {work:>8} {shown('copy'):>8} {shown('PyTorch'):>11}"
        yield f"{line} {shown('Triton'):>10}{'' if met else '   below the goal'}"


def main(arguments):
    path = None
    if arguments[:1] == ["--json"] and len(arguments) > 1:
        path, arguments = arguments[1], arguments[2:]
    if len(arguments) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    with open(arguments[0], encoding="utf-8") as file:
        wanted = json.load(file)["rows"]
    try:
        torch = load("torch")
        if not torch.cuda.is_available():
            raise Missing("torch finds no GPU")
        # Like ours: products of f32, not of its leading bits.
        torch.backends.cudnn.allow_tf32 = False
    except Missing as why:
        print(f"no peers: {why}")
        return 3
    rows, missing, failed = [], [], []
    for row in wanted:
        try:
            rows.append(measure(torch, row, arguments[1], arguments[2:], missing))
        except Exception as error:
            failed.append(f"{row['kernel']}: {type(error).__name__}: {error}")
        torch.cuda.empty_cache()
    print(f"GPU: {torch.cuda.get_device_name()}; PyTorch {torch.__version__}; the goal is {GOAL} of a copy and no slower than a peer")
    for line in table(rows):
        print(line)
    for why in missing:
        print(f"not timed: {why}")
    for why in failed:
        print(f"failed: {why}")
    if path:
        with open(path, "w", encoding="utf-8") as file:
            listed = {"format": 1, "gpu": torch.cuda.get_device_name(), "rows": rows, "not_timed": missing, "failed": failed}
            json.dump(listed, file, indent=2)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
