#!/usr/bin/env python3
"""Kernels of the examples beside the same work by PyTorch and Triton, and beside a copy of as many bytes.

    peers.py [--json FILE] [--only WORK,…] [--seconds S] [--budget S] ROWS PROGRAM PATH…

ROWS names kernels, sizes and work; `PROGRAM --row KERNEL SIZES --serve PATH…` takes samples of one of them, one for each line that it
reads. Ours and all others take turns, sample by sample. Each has several sets of memory with random numbers and takes turns at these as
well, launch by launch, so that nothing stays in the second-level cache; events of the device tell the time; a launch before them, which
is not timed, lets the host be ahead. Where a peer has several ways, all are timed, and the one with the lowest median stands for it. What
is told are bytes of traffic (each input read once, each output written once) a second, and the ratio to the copy and to each peer: above
1 is faster. --only leaves out other work, --seconds is for what one of them takes in one row, and no row begins after --budget. Exit code
0: timed, whether a goal is met or not; 3: nothing could be timed, and the last line says why; 1: a row failed; 2: wrong usage.
"""

import argparse
import contextlib
import json
import math
import queue
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from baselines import Missing, load
from clocks import Clocks
from works import Works, operations

COPY_GOAL = 0.95  # of the bandwidth of a copy
CACHE_BYTES = 64 << 20  # of the second-level cache, where PyTorch does not tell
SAMPLES = 21  # at most, of each
LAUNCHES = 10  # at most, of a sample
SECONDS = 0.4  # of each in one row
AHEAD = 2_000_000  # cycles that the device is kept busy for before a sample of a peer: the host, in Python, enqueues meanwhile
PATIENCE = 300  # seconds that an answer of PROGRAM may take, with the making of its inputs

PRODUCTS, ATTENTION = ("product",), ("attention", "causal_attention")
# What is told about several rows: name, their work and sizes (None: all), the peer ("best": the faster one in each row), the goal.
SUMMARIES = (
    ("product of 8192 x 8192 x 8192", PRODUCTS, {"M": 8192, "N": 8192, "K": 8192}, "PyTorch", 1.0),
    ("products", PRODUCTS, None, "PyTorch", 0.97),
    ("products", PRODUCTS, None, "Triton", None),
    ("attention", ATTENTION, None, "best", 1.0),
    ("attention", ATTENTION, None, "PyTorch", None),
    ("attention", ATTENTION, None, "Triton", None),
)


class Ours:
    """PROGRAM with one kernel: answers one line by one line."""

    def __init__(self, command):
        self.errors = tempfile.TemporaryFile(mode="w+", encoding="utf-8")
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=self.errors, text=True, encoding="utf-8")
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def answer(self):
        try:
            line = self.lines.get(timeout=PATIENCE)
        except queue.Empty:
            raise RuntimeError(f"no answer in {PATIENCE} s") from None
        if line is None:
            self.process.wait()
            self.errors.seek(0)
            raise RuntimeError(self.errors.read().strip() or f"exit code {self.process.returncode}")
        found = json.loads(line)
        if "error" in found:
            raise RuntimeError(found["error"])
        return found

    def sample(self, launches):
        try:
            self.process.stdin.write(f"{launches}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended, and the answer says why
        return self.answer()["seconds"]

    def close(self):
        """Ends it, whatever it does."""
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.errors.close()


class Theirs:
    """One way of a peer, with a launch for each set of memory."""

    def __init__(self, torch, launches, setting):
        self.torch, self.launches, self.setting, self.turn = torch, launches, setting, 0

    def launch(self):
        self.launches[self.turn % len(self.launches)]()
        self.turn += 1

    def sample(self, launches):
        cuda = self.torch.cuda
        with self.setting():
            start, end = (cuda.Event(enable_timing=True) for _ in range(2))
            if hasattr(cuda, "_sleep"):
                cuda._sleep(AHEAD)
            self.launch()
            start.record()
            for _ in range(launches):
                self.launch()
            end.record()
            end.synchronize()
        return start.elapsed_time(end) / 1e3 / launches


def copies(torch, nbytes, sets):
    """Copies that move as many bytes."""
    half = nbytes // 2
    pairs = [[torch.empty(half, dtype=torch.uint8, device="cuda") for _ in range(2)] for _ in range(sets)]
    return Theirs(torch, [lambda pair=pair: pair[1].copy_(pair[0]) for pair in pairs], contextlib.nullcontext)


def peers(torch, triton, row, sets, missing):
    """The ways of all peers that work here and compute the same: (peer, by) and samples of it."""
    made = [getattr(Works(torch, triton, row["dims"]), row["work"])() for _ in range(sets)]
    (relative, absolute), expected, found = made[0][1], None, []
    for ways in zip(*(ways for ways, _ in made)):
        first = ways[0]
        name = f"{first.peer} ({first.by}), {row['work']}"
        try:
            one = Theirs(torch, [way.make() for way in ways], first.setting)
            # Ways may share their results' memory: what another one has left there is none of this one.
            if first.result() is not None:
                first.result().fill_(math.nan)
            # All sets once: the first launch of a way may build it.
            with one.setting():
                for _ in ways:
                    one.launch()
            torch.cuda.synchronize()
            result = first.result()
            if expected is None:
                expected = result.float().clone()
            elif not torch.allclose(result.float(), expected, rtol=relative, atol=absolute):
                raise Missing("its result is wrong")
            found.append(((first.peer, first.by), one))
        except Missing as why:
            missing.append(f"{name}: {why}")
        except Exception as error:
            missing.append(f"{name}: {type(error).__name__}: {error}")
    return found


def measure(torch, triton, row, clocks, options, missing):
    """One row of the table."""
    sizes = sizes_of(row)
    command = [options.program, "--row", row["kernel"], sizes, "--serve", "--cache", str(options.cache), *options.paths]
    ours = Ours(command)
    try:
        about = ours.answer()
        sets = about["sets"]
        if sets * about["set_bytes"] < 2 * options.cache:
            missing.append(f"{row['kernel']} {sizes}: its {sets} sets of memory are less than twice the second-level cache")
        ways = [(("ours", ""), ours), (("copy", ""), copies(torch, about["bytes"], sets))]
        ways += peers(torch, triton, row, sets, missing)
        room = max(options.seconds / max(about["seconds"], 1e-9), 1)
        launches = int(min(max(room / SAMPLES, 1), LAUNCHES))
        rounds = int(min(max(room / launches, 1), SAMPLES))
        samples = {name: [] for name, _ in ways}
        for _, way in ways:
            way.sample(launches)
        with clocks.during() as found:
            for turn in range(rounds):
                # Another one begins each round: nobody is always after the same one.
                first = turn % len(ways)
                for name, way in ways[first:] + ways[:first]:
                    samples[name].append(way.sample(launches))
    finally:
        ours.close()
    medians = {name: statistics.median(values) for name, values in samples.items()}
    result = {"kernel": row["kernel"], "work": row["work"], "dims": row["dims"], "sizes": sizes, "bytes": about["bytes"], "by": {}}
    for name in dict.fromkeys(peer for peer, _ in medians):
        best = min((way for way in medians if way[0] == name), key=medians.get)
        result[name] = medians[best]
        if best[1]:
            result["by"][name] = best[1]
    if operations(row["work"], row["dims"]) is not None:
        result["operations"] = operations(row["work"], row["dims"])
    result |= {"rounds": rounds, "launches": launches, "sets": sets, "set_bytes": about["set_bytes"], "clocks": found}
    result["losses"] = about["losses"]
    told = lambda name: {"peer": name[0], "by": name[1], "median": medians[name], "samples": samples[name]}
    result["ways"] = [told(name) for name in medians]
    return result


def ratio(row, peer):
    """How many times as fast as a peer ours is in a row; None if that is not known."""
    names = ("PyTorch", "Triton") if peer == "best" else (peer,)
    times = [row[name] for name in names if name in row]
    return min(times) / row["ours"] if times else None


def summaries(rows, wanted):
    """Geometric means over several rows, with goals; whether one is met is known only if every row of it was timed."""
    found = []
    for name, works, dims, peer, goal in SUMMARIES:
        of, timed = ([row for row in all if row["work"] in works and dims in (None, row["dims"])] for all in (wanted, rows))
        ratios = [one for one in (ratio(row, peer) for row in timed) if one is not None]
        if not of:
            continue
        mean = math.exp(math.fsum(map(math.log, ratios)) / len(ratios)) if ratios else None
        met = None if goal is None or len(ratios) < len(of) else mean >= goal
        found.append(
            {"rows": name, "peer": peer, "geometric_mean": mean, "least": min(ratios, default=None), "timed": len(ratios)}
            | {"of": len(of), "goal": goal, "met": met}
        )
    return found


def sizes_of(row):
    return ",".join(f"{name}={size}" for name, size in row["dims"].items())


def is_bound_by_memory(row):
    """Whether the bandwidth of a copy is what the work can reach: not that of products, which have more to compute."""
    return "operations" not in row


def table(rows):
    """Lines for a reader."""
    head = f"{'kernel':<16} {'sizes':<24} {'GB/s':>8} {'TFLOP/s':>8} {'of copy':>8} {'of PyTorch':>11} {'of Triton':>10}"
    yield f"{head} {'MHz':>6} {'W':>5}  peers by"
    for row in rows:
        shown = lambda name: "?" if ratio(row, name) is None else f"{ratio(row, name):.2f}"
        fast = ratio(row, "copy") >= COPY_GOAL or not is_bound_by_memory(row)
        met = fast and all((ratio(row, name) or 1) >= 1 for name in ("PyTorch", "Triton"))
        rate = row["bytes"] / row["ours"] / 1e9
        work = "" if is_bound_by_memory(row) else f"{row['operations'] / row['ours'] / 1e12:.0f}"
        line = f"{row['kernel']:<16} {row['sizes']:<24} {rate:>8.0f} {work:>8} {shown('copy'):>8} {shown('PyTorch'):>11}"
        median = lambda name: f"{row['clocks'][name]['median']:.0f}" if name in row["clocks"] else "?"
        line = f"{line} {shown('Triton'):>10} {median('sm_megahertz'):>6} {median('watts'):>5}"
        yield f"{line}  {'; '.join(row['by'].values())}{'' if met else '   below a peer or the copy'}"


def conclusions(found):
    """Lines for a reader, about several rows."""
    for one in found:
        mean = "?" if one["geometric_mean"] is None else f"{one['geometric_mean']:.3f}, at least {one['least']:.3f}"
        line = f"{one['rows']}: {mean} of {one['peer']} ({one['timed']} of {one['of']} timed)"
        if one["goal"] is not None:
            verdict = {True: "met", False: "NOT MET", None: "not known"}[one["met"]]
            line += f"; the goal is {one['goal']}: {verdict}"
        yield line


def arguments_of(arguments):
    parser = argparse.ArgumentParser(usage=__doc__.replace("%", "%%"), add_help=False)
    parser.add_argument("--json")
    parser.add_argument("--only", type=lambda text: text.split(","))
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--budget", type=float, default=math.inf)
    parser.add_argument("rows")
    parser.add_argument("program")
    parser.add_argument("paths", nargs="+")
    return parser.parse_args(arguments)


def main(arguments):
    options, began = arguments_of(arguments), time.monotonic()
    with open(options.rows, encoding="utf-8") as file:
        wanted = [row for row in json.load(file)["rows"] if options.only is None or row["work"] in options.only]
    try:
        torch = load("torch")
        if not torch.cuda.is_available():
            raise Missing("torch finds no GPU")
        # Like ours: products of f32, not of its leading bits.
        torch.backends.cudnn.allow_tf32 = False
    except Missing as why:
        print(f"no peers: {why}")
        return 3
    gpu = torch.cuda.get_device_properties(0)
    options.cache = getattr(gpu, "L2_cache_size", CACHE_BYTES)
    # Its number is another one for PyTorch if some GPUs are hidden.
    name = str(getattr(gpu, "uuid", "0"))
    clocks = Clocks(f"GPU-{name}" if "-" in name and not name.startswith(("GPU-", "MIG-")) else name)
    rows, missing, failed = [], [], []
    for row in wanted:
        if time.monotonic() - began > options.budget:
            missing.append(f"{row['kernel']} {sizes_of(row)}: {options.budget:.0f} s were over")
            continue
        try:
            rows.append(measure(torch, lambda: load("triton_kernels"), row, clocks, options, missing))
        except Exception as error:
            failed.append(f"{row['kernel']} {sizes_of(row)}: {type(error).__name__}: {error}")
        torch.cuda.empty_cache()
    if clocks.failure is not None:
        missing.append(f"clocks: {clocks.failure}")
    name = torch.cuda.get_device_name()
    goal = f"{COPY_GOAL} of a copy where memory is the bound, and no peer that is faster"
    print(f"GPU: {name}; PyTorch {torch.__version__}; medians; the goal of a row is {goal}")
    found = summaries(rows, wanted)
    for line in [*table(rows), *conclusions(found)]:
        print(line)
    for why in missing:
        print(f"not timed: {why}")
    for why in failed:
        print(f"failed: {why}")
    if options.json:
        versions = {"torch": torch.__version__, "cuda": getattr(torch.version, "cuda", None)}
        listed = {"format": 2, "gpu": name, "versions": versions, "cache_bytes": options.cache, "rows": rows}
        listed |= {"summaries": found, "not_timed": missing, "failed": failed}
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(listed, file, indent=2)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
