"""The product of `examples/gemm.rs` beside Triton's, CUTLASS's and one in CuTe DSL: what one assembler makes of each,
and how long each toolchain takes.

    python3 -m venv /tmp/products
    /tmp/products/bin/pip install triton==3.6.0 nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 \
        nvidia-cuda-crt==13.0.88 nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl nvidia-cuda-nvdisasm
    /tmp/products/bin/pip install --no-deps nvidia-cutlass==4.2.0.0
    python3 -m venv /tmp/cute
    /tmp/cute/bin/pip install quack-kernels==0.6.5 nvidia-cutlass-dsl==4.8.1
    CUTE_PYTHON=/tmp/cute/bin/python /tmp/products/bin/python bench/products.py

A compiler that is not installed is left out, and a line says so. No GPU is needed, and nothing is run on one. All
compute c = a · bᵀ of bf16 with sums in f32, in tiles of 128 × 256 × 64:

- Triton: a persistent kernel with tensor descriptors and 8 warps, once with two loops and once with these made one
  (`flatten`), as its tutorial of persistent products does;
- CUTLASS: its collectives for Hopper, cooperative and persistent, clusters of 2 × 1, as many stages as fit;
- CuTe DSL: the product of quack-kernels, of the same kind, since the DSL's own package has no kernels;
- ours: `tests/golden/gemm.Gemm.ptx`.

The PTX of each is assembled by `ptxas` of the wheels above, or the one that PTXAS names. Of the innermost loop around
tensor cores: all instructions, and the fewest of an iteration that runs all products and arrivals at barriers. The
loops of Triton contain the copies, and the flattened one the stores of a tile, too. The epilogue is what stands between
that loop and the last store.

Times are CPU time, since that depends less on what else the machine does: of a first compilation in a new process, of
its imports, and of one more compilation in the same process, as far as PTX. CuTe DSL assembles as well. nvcc is a
process each time. `schedule!` is the benchmark `expansion`, in process, at opt-level 0 and optimised: the difference
between many samples and one. Medians of several processes.
"""

import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = {"CUTLASS": 1, "schedule!": 20}
CUTLASS = """
#include "cutlass/cutlass.h"
#include "cutlass/epilogue/collective/collective_builder.hpp"
#include "cutlass/gemm/collective/collective_builder.hpp"
#include "cutlass/gemm/device/gemm_universal_adapter.h"
#include "cutlass/gemm/kernel/gemm_universal.hpp"
namespace c = cutlass;
using Number = c::bfloat16_t;
using Block = cute::Shape<cute::_128, cute::_256, cute::_64>;
using Pair = cute::Shape<cute::_2, cute::_1, cute::_1>;
using Rows = c::layout::RowMajor;
using Store = c::epilogue::collective::CollectiveBuilder<c::arch::Sm90, c::arch::OpClassTensorOp, Block, Pair,
    c::epilogue::collective::EpilogueTileAuto, float, float, void, Rows, 8, Number, Rows, 8,
    c::epilogue::TmaWarpSpecializedCooperative>::CollectiveOp;
using Main = c::gemm::collective::CollectiveBuilder<c::arch::Sm90, c::arch::OpClassTensorOp, Number, Rows, 8, Number,
    c::layout::ColumnMajor, 8, float, Block, Pair,
    c::gemm::collective::StageCountAutoCarveout<int(sizeof(typename Store::SharedStorage))>,
    c::gemm::KernelTmaWarpSpecializedCooperative>::CollectiveOp;
using Kernel =
    c::gemm::kernel::GemmUniversal<cute::Shape<int, int, int>, Main, Store, c::gemm::PersistentScheduler>;
template __global__ void c::device_kernel<Kernel>(CUTLASS_GRID_CONSTANT typename Kernel::Params const);
__device__ extern const int kernel_stages = Main::DispatchPolicy::Stages;
__device__ extern const int kernel_shared = Kernel::SharedStorageSize;
"""


def cpu():
    """Seconds of this process and of those that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(of.ru_utime + of.ru_stime for of in used)


def wheel(path):
    """A file of the wheels of NVIDIA, or none."""
    return next((str(p) for p in (Path(at) / "nvidia/cu13" / path for at in sys.path) if p.exists()), None)


def triton_product(a, b, c, m, n, k, FLATTEN, BM, BN, BK):
    # Triton's language is `tl` once it is imported.
    down, across = tl.cdiv(m, BM), tl.cdiv(n, BN)
    for tile in tl.range(tl.program_id(0), down * across, tl.num_programs(0), flatten=FLATTEN):
        first = tile // (8 * across) * 8
        high = min(down - first, 8)
        row = (first + tile % (8 * across) % high) * BM
        column = tile % (8 * across) // high * BN
        sums = tl.zeros((BM, BN), tl.float32)
        for step in range(tl.cdiv(k, BK)):
            sums = tl.dot(a.load([row, step * BK]), b.load([column, step * BK]).T, sums)
        c.store([row, column], sums.to(tl.bfloat16))


def of_triton(flatten):
    os.environ["TRITON_CACHE_DIR"] = tempfile.mkdtemp()
    os.environ["TRITON_ALWAYS_COMPILE"] = "1"
    import triton
    import triton.language
    from triton.backends.compiler import GPUTarget
    from triton.backends.nvidia.compiler import CUDABackend
    from triton.compiler import ASTSource

    # What follows PTX is ptxas.
    CUDABackend.make_cubin = lambda self, *args, **options: b""
    globals()["tl"] = triton.language
    tile = "tensordesc<bf16[{}, {}]>".format
    signature = dict(a=tile(128, 64), b=tile(256, 64), c=tile(128, 256), m="i32", n="i32", k="i32")
    constants = dict(FLATTEN=flatten, BM=128, BN=256, BK=64)
    signature |= {name: "constexpr" for name in constants}
    source = ASTSource(triton.jit(triton_product), signature=signature, constexprs=constants)
    options = {"num_warps": 8, "num_stages": 3}
    yield "imported"
    for _ in range(2):
        made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)
        yield made.asm["ptx"], 3, made.metadata.shared


def of_cute():
    folder = tempfile.mkdtemp()
    os.environ |= {"QUACK_ARCH": "90", "CUTE_DSL_ARCH": "sm_90a", "CUTE_DSL_KEEP": "ptx", "CUTE_DSL_DUMP_DIR": folder}
    os.environ |= {"QUACK_CACHE_ENABLED": "0", "CUTE_DSL_DISABLE_FILE_CACHING": "1"}
    import quack.gemm as gemm
    from cutlass import BFloat16 as number
    from quack.gemm_sm90 import GemmSm90

    made, kernel = [], GemmSm90.kernel
    GemmSm90.kernel = lambda self, *args, **more: made.append(self) or kernel(self, *args, **more)
    types = dict(a_dtype=number, b_dtype=number, d_dtype=number, a_major="k", b_major="k", d_major="n")
    chosen = dict(tile_shape_mn=(128, 256), cluster_shape_mnk=(2, 1, 1), persistent=True, device_capacity=(9, 0))
    nothing = "c_dtype c_major rowvec_dtype colvec_dtype concat_layout num_warps"
    off = "pingpong is_dynamic_persistent add_to_output varlen_m varlen_k gather_A use_tma_gather has_batch_idx_permute"
    zero = "colvec_ndim alpha_mode beta_mode sr_seed_mode"
    arguments = types | chosen | dict.fromkeys(nothing.split()) | dict.fromkeys(zero.split(), 0)
    arguments |= dict.fromkeys([*off.split(), "batched"], False) | {"rounding_mode": gemm.RoundingMode.RN}
    compile = getattr(gemm._compile_gemm, "__wrapped__", gemm._compile_gemm)
    yield "imported"
    for _ in range(2):
        compile(**arguments)
        ptx = next(Path(folder).glob("*.ptx")).read_text()
        yield ptx, made[-1].ab_stage, made[-1].shared_storage.size_in_bytes()


def of_cutlass():
    import cutlass_library

    nvcc = shutil.which("nvcc") or wheel("bin/nvcc")
    headers = Path(cutlass_library.__file__).parent / "source/include"
    path = Path(tempfile.mkdtemp()) / "product.cu"
    path.write_text(CUTLASS)
    command = [nvcc, "-ptx", "-arch=sm_90a", "-std=c++17", "-DNDEBUG"]
    command += ["--expt-relaxed-constexpr", "-diag-suppress=20054", f"-I{headers}", f"-I{wheel('include/cccl')}"]
    command += [str(path), "-o", str(path.with_suffix(".ptx"))]
    yield "begun"
    subprocess.run(command, check=True)
    text = path.with_suffix(".ptx").read_text()
    stages, shared = (int(re.search(rf"kernel_{name} = (\d+)", text)[1]) for name in ("stages", "shared"))
    yield text, stages, shared


MAKERS = {
    "Triton, two loops": lambda: of_triton(False),
    "Triton, flattened": lambda: of_triton(True),
    "CuTe DSL": of_cute,
    "CUTLASS": of_cutlass,
}


def worker(name):
    """One process: how long imports and compilations take, and what the last one gave."""
    start, times = cpu(), []
    for made in MAKERS[name]():
        times.append(cpu() - start)
        start = cpu()
    text, stages, shared = made
    print("\n" + json.dumps(dict(times=times, text=text, stages=stages, shared=shared)))


def sampled(name):
    """Medians of new processes, or why there are none."""
    python = os.environ.get("CUTE_PYTHON", sys.executable) if name == "CuTe DSL" else sys.executable
    all_times = []
    for _ in range(SAMPLES.get(name, 5)):
        done = subprocess.run([python, __file__, name], capture_output=True, text=True)
        if done.returncode != 0:
            print(f"no {name}: {done.stderr.strip().splitlines()[-1]}")
            return None
        made = json.loads(done.stdout.splitlines()[-1])
        all_times.append(made["times"])
    return made | {"times": [statistics.median(column) for column in zip(*all_times)]}


def innermost(lines):
    """Where the shortest loop around products of a listing begins and ends."""
    labels = {line.strip()[:-1]: at for at, line in enumerate(lines) if re.match(r"\s*\.L\w+:", line)}
    loops = []
    for at, line in enumerate(lines):
        jump = re.search(r"BRA.*`\((\.L\w+)\)", line)
        first = labels.get(jump[1], at) if jump else at
        if any("HGMMA" in inside for inside in lines[first:at]):
            loops.append((first, at + 1))
    return min(loops, key=lambda loop: loop[1] - loop[0])


def fewest(loop):
    """The fewest instructions of an iteration: shortest ways in the loop, from one product or arrival to the next."""
    labels = {line.strip()[:-1]: at for at, line in enumerate(loop) if line.strip().endswith(":")}
    stops = [at for at, line in enumerate(loop) if re.search(r"HGMMA|SYNCS\.ARRIVE", line)] + [len(loop) - 1]
    count, at = 0, 0
    for stop in stops:
        reached, front = {at}, {at}
        # Labels cost nothing; each step is one instruction.
        length = 0
        while stop not in front:
            following = set()
            for here in front:
                line = loop[here]
                jump = re.search(r"BRA.*`\((\.L\w+)\)", line)
                if jump and jump[1] in labels and here != len(loop) - 1:
                    following.add(labels[jump[1]])
                if not (jump and "@" not in line) and here + 1 < len(loop):
                    following.add(here + 1)
            skipped = set()
            for here in following:
                while here < len(loop) and "/*" not in loop[here]:
                    here += 1
                skipped.add(here)
            front = skipped - reached
            reached |= front
            length += 1
        count, at = count + length, stop
    return count


def figures(text, folder):
    """What the assembler makes of a kernel."""
    ptxas = os.environ.get("PTXAS") or wheel("bin/ptxas")
    # CuTe DSL writes for a newer assembler; the numbers of versions say nothing of the instructions.
    version = re.search(r"\.version (\d+)\.(\d+)", text)
    if tuple(map(int, version.groups())) > (9, 0):
        text = text.replace(version[0], ".version 9.0", 1)
    text = re.sub(r"\.target sm_90\b", ".target sm_90a", text)
    ptx, code = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
    ptx.write_text(text)
    log = subprocess.run([ptxas, "-v", "-arch=sm_90a", str(ptx), "-o", str(code)], capture_output=True, text=True)
    assert log.returncode == 0, log.stderr
    listing = subprocess.run(
        [str(Path(ptxas).with_name("nvdisasm")), "-c", str(code)], check=True, capture_output=True, text=True
    ).stdout
    lines = [line for line in listing.splitlines() if not re.match(r"\s*/\* 0x", line)]
    # The entry point with the tensor cores.
    entry = max(re.split(r"^//-+ \.text\.", "\n".join(lines), flags=re.M), key=lambda part: part.count("HGMMA"))
    name = entry.split()[0]
    lines = [line for line in entry.splitlines() if "/*" in line or line.strip().startswith(".L")]
    report = (log.stderr + log.stdout).split(f"'{name}' for")[1]
    given = sorted({int(n) for n in re.findall(r"setmaxnreg\S+\s+(\d+)", text)})
    first, end = innermost(lines)
    loop = lines[first:end]
    last = max(at for at, line in enumerate(lines) if re.search(r"\b(UTMASTG|STG)\b", line))
    count = lambda part, word: sum(bool(re.search(rf"\b{word}\b", line)) for line in part)
    stores = {word: count(lines, word) for word in ("STS", "STSM", "STG", "UTMASTG")}
    return {
        "products": count(loop, "HGMMA"),
        "loop": sum("/*" in line for line in loop),
        "fewest": fewest(loop),
        "epilogue": sum("/*" in line for line in lines[end : last + 1]) or "-",
        "registers": re.search(r"Used (\d+)", report)[1] + "".join(f" → {n}" for n in given[-1:]),
        "spilled": int(re.search(r"(\d+) bytes spill stores", report)[1]),
        "stores": " ".join(f"{n} {word}" for word, n in stores.items() if n),
    }


def of_schedule(profile):
    """Seconds of an expansion. Both kernels of the example have a row in the benchmark, which takes `Gemm` for both."""

    def samples(count):
        command = ["cargo", "bench", "-q", "--bench", "expansion", "--profile", profile, "--", "--exact"]
        command += ["--sample-count", str(count), "--sample-size", "1", "expansion::compile_kernel::gemm"]
        start = cpu()
        out = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
        return cpu() - start, len(re.findall(r"\bgemm ", out))

    # Built before.
    samples(1)
    (few, rows), (many, _) = samples(1), samples(1 + SAMPLES["schedule!"])
    return (many - few) / rows / SAMPLES["schedule!"]


def main():
    ours = (ROOT / "tests/golden/gemm.Gemm.ptx").read_text()
    explained = (ROOT / "tests/golden/gemm.Gemm.txt").read_text()
    shared = int(re.search(r"shared memory: (\d+) bytes", explained)[1])
    stages = int(re.search(r"copy sa .*ring of (\d+)", explained)[1])
    rows = {"schedule!": dict(text=ours, stages=stages, shared=shared, times=[])}
    rows |= {name: sampled(name) for name in MAKERS}
    print("| | HGMMA | loop | fewest | for each HGMMA | epilogue | registers | spilled | shared memory | stages | stores |")
    print("| --- " * 11 + "|")
    with tempfile.TemporaryDirectory() as folder:
        for name, row in rows.items():
            if row:
                of = figures(row["text"], folder)
                each = of["fewest"] / of["products"]
                counts = [of["products"], of["loop"], of["fewest"], f"{each:.1f}", of["epilogue"]]
                memory = [of["registers"], of["spilled"], row["shared"], row["stages"], of["stores"]]
                print("|", " | ".join(map(str, [name, *counts, *memory])), "|")
    print("\n| | imports | first | again |\n| --- | --- | --- | --- |")
    for name, row in rows.items():
        if row and row["times"]:
            cells = [f"{1e3 * t:.0f} ms" for t in row["times"]] + ["-"] * (3 - len(row["times"]))
            if name == "CUTLASS":
                cells[0] = "-"
            print("|", " | ".join([name, *cells]), "|")
    for profile, name in [("dev", "opt-level 0"), ("release", "optimised")]:
        print(f"| schedule!, {name} | - | - | {1e3 * of_schedule(profile):.0f} ms |", flush=True)


if __name__ == "__main__":
    worker(sys.argv[1]) if len(sys.argv) > 1 else main()
