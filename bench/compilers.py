"""How long `schedule!` takes to turn a kernel into PTX, beside Triton and nvcc on the same kernel, in one run.

    python3 -m venv /tmp/compilers
    /tmp/compilers/bin/pip install triton nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 \
        nvidia-cuda-crt==13.0.88 nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl
    /tmp/compilers/bin/python bench/compilers.py

A compiler that is not installed is left out, and a line says so. No GPU is needed: all compile for sm_90 as far as PTX.

Medians, in turn: `schedule!` is the benchmark `expansion`, in process, at opt-level 0, as a user's debug and release
builds have it, and optimised. Triton is `triton.compile` in process without its cache and without ptxas, after a first
compilation of the same kernel. nvcc is the process `nvcc -ptx`. Each kernel is written to do what the example of its
name does; here they are compiled and never run.
"""

import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = 9

# Triton looks at these when it is imported.
os.environ.setdefault("TRITON_CACHE_DIR", tempfile.mkdtemp())
os.environ["TRITON_ALWAYS_COMPILE"] = "1"
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
try:
    import triton
    import triton.language as tl
except ImportError:
    triton = tl = None


def saxpy(a, x, y, z, n, BLOCK: "tl.constexpr"):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(z + at, a * tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


def transpose(x, y, m, n, BLOCK: "tl.constexpr"):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = (i[:, None] < m) & (j[None, :] < n)
    tile = tl.load(x + i[:, None] * n + j[None, :], mask=inside)
    tl.store(y + j[None, :] * m + i[:, None], tile, mask=inside)


def softmax(x, y, n, BLOCK: "tl.constexpr"):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    values = tl.load(x + row * n + at, mask=at < n, other=float("-inf"))
    e = tl.exp(values - tl.max(values, axis=0))
    tl.store(y + row * n + at, e / tl.sum(e, axis=0), mask=at < n)


def rmsnorm(x, w, y, eps, n, BLOCK: "tl.constexpr"):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    values = tl.load(x + row * n + at, mask=at < n, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(values * values, axis=0) / n + eps)
    weight = tl.load(w + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(y + row * n + at, (values * scale * weight).to(tl.bfloat16), mask=at < n)


def role_product(a, b, c, m, n, k, BM: "tl.constexpr", BN: "tl.constexpr", BK: "tl.constexpr"):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    along = tl.arange(0, BK)
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for first in range(0, k, BK):
        left = rows[:, None] * k + first + along[None, :]
        right = columns[None, :] * k + first + along[:, None]
        x = tl.load(a + left, mask=(rows[:, None] < m) & (first + along[None, :] < k), other=0.0)
        y = tl.load(b + right, mask=(columns[None, :] < n) & (first + along[:, None] < k), other=0.0)
        sums += tl.dot(x, y, input_precision="ieee")
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c + rows[:, None] * n + columns[None, :], sums, mask=inside)


CUDA = {
    "saxpy": """
extern "C" __global__ void kernel(float a, const float* x, const float* y, float* z, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) z[i] = a * x[i] + y[i];
}
""",
    "transpose": """
extern "C" __global__ void kernel(const float* x, float* y, int m, int n) {
    int i = blockIdx.x * 32 + threadIdx.x, j = blockIdx.y * 8 + threadIdx.y;
    if (i < m && j < n) y[j * m + i] = x[i * n + j];
}
""",
    "softmax": """
template <class Op> __device__ float all(float value, float neutral, Op op) {
    __shared__ float parts[16];
    for (int step = 16; step; step /= 2) value = op(value, __shfl_xor_sync(~0u, value, step));
    __syncthreads();
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    value = threadIdx.x % 32 < 16 ? parts[threadIdx.x % 32] : neutral;
    for (int step = 16; step; step /= 2) value = op(value, __shfl_xor_sync(~0u, value, step));
    return value;
}
extern "C" __global__ void kernel(const float4* x, float4* y, int n) {
    float4 row[8];
    float most = -INFINITY, sum = 0;
    #pragma unroll
    for (int r = 0; r < 8; r++) {
        int at = r * 512 + threadIdx.x;
        row[r] = at < n / 4 ? x[blockIdx.x * (n / 4) + at] : float4{-INFINITY, -INFINITY, -INFINITY, -INFINITY};
        most = fmaxf(most, fmaxf(fmaxf(row[r].x, row[r].y), fmaxf(row[r].z, row[r].w)));
    }
    most = all(most, -INFINITY, [](float a, float b) { return fmaxf(a, b); });
    #pragma unroll
    for (int r = 0; r < 8; r++) {
        row[r] = {expf(row[r].x - most), expf(row[r].y - most), expf(row[r].z - most), expf(row[r].w - most)};
        sum += row[r].x + row[r].y + row[r].z + row[r].w;
    }
    sum = all(sum, 0, [](float a, float b) { return a + b; });
    #pragma unroll
    for (int r = 0; r < 8; r++) {
        int at = r * 512 + threadIdx.x;
        float4 e = {row[r].x / sum, row[r].y / sum, row[r].z / sum, row[r].w / sum};
        if (at < n / 4) y[blockIdx.x * (n / 4) + at] = e;
    }
}
""",
    "rmsnorm": """
#include <cuda_bf16.h>
struct alignas(16) Eight { __nv_bfloat162 of[4]; };
extern "C" __global__ void kernel(const Eight* x, const Eight* w, Eight* y, float eps, int n) {
    __shared__ float parts[16];
    float2 row[8][4];
    float sum = 0;
    #pragma unroll
    for (int r = 0; r < 8; r++) {
        int at = r * 512 + threadIdx.x;
        Eight own = at < n / 8 ? x[blockIdx.x * (n / 8) + at] : Eight{};
        for (int v = 0; v < 4; v++) {
            row[r][v] = __bfloat1622float2(own.of[v]);
            sum += row[r][v].x * row[r][v].x + row[r][v].y * row[r][v].y;
        }
    }
    for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = threadIdx.x % 32 < 16 ? parts[threadIdx.x % 32] : 0;
    for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    float scale = rsqrtf(sum / n + eps);
    #pragma unroll
    for (int r = 0; r < 8; r++) {
        int at = r * 512 + threadIdx.x;
        if (at >= n / 8) continue;
        Eight weight = w[at], out;
        for (int v = 0; v < 4; v++) {
            float2 by = __bfloat1622float2(weight.of[v]);
            out.of[v] = __floats2bfloat162_rn(row[r][v].x * scale * by.x, row[r][v].y * scale * by.y);
        }
        y[blockIdx.x * (n / 8) + at] = out;
    }
}
""",
    "role_product": """
extern "C" __global__ void kernel(const float* a, const float* b, float* c, int m, int n, int k) {
    __shared__ float at[128][33], bt[64][33];
    float sums[8][4] = {};
    int row = threadIdx.x / 16, column = threadIdx.x % 16;
    for (int first = 0; first < k; first += 32) {
        for (int e = threadIdx.x; e < 128 * 32; e += 256) {
            int i = blockIdx.x * 128 + e / 32, l = first + e % 32;
            at[e / 32][e % 32] = i < m && l < k ? a[i * k + l] : 0;
        }
        for (int e = threadIdx.x; e < 64 * 32; e += 256) {
            int j = blockIdx.y * 64 + e / 32, l = first + e % 32;
            bt[e / 32][e % 32] = j < n && l < k ? b[j * k + l] : 0;
        }
        __syncthreads();
        for (int l = 0; l < 32; l++)
            for (int i = 0; i < 8; i++)
                for (int j = 0; j < 4; j++) sums[i][j] += at[i * 16 + row][l] * bt[j * 16 + column][l];
        __syncthreads();
    }
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 4; j++) {
            int y = blockIdx.x * 128 + i * 16 + row, x = blockIdx.y * 64 + j * 16 + column;
            if (y < m && x < n) c[y * n + x] = sums[i][j];
        }
}
""",
}

# Of each example: the Triton kernel, the types of its arguments, its constants, and its warps.
TRITON = {
    "saxpy": (saxpy, "fp32 *fp32 *fp32 *fp32 i32", [256], 4),
    "transpose": (transpose, "*fp32 *fp32 i32 i32", [32], 8),
    "softmax": (softmax, "*fp32 *fp32 i32", [16384], 16),
    "rmsnorm": (rmsnorm, "*bf16 *bf16 *bf16 fp32 i32", [32768], 16),
    "role_product": (role_product, "*fp32 *fp32 *fp32 i32 i32 i32", [128, 64, 32], 8),
}


def median(run):
    """Seconds, after one run that does not count."""
    run()
    times = []
    for _ in range(SAMPLES):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def of_schedule(name, profile):
    """The median that the benchmark prints, in seconds."""
    bench = ["cargo", "bench", "-q", "--bench", "expansion", "--profile", profile, "--"]
    chosen = ["--sample-count", str(SAMPLES), "--sample-size", "1", "--exact", f"expansion::compile_kernel::{name}"]
    out = subprocess.run(bench + chosen, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    row = next(line for line in out.splitlines() if re.search(rf"\b{name} ", line))
    number, unit = row.split("│")[2].split()
    return float(number) * {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1}[unit]


def of_triton(name):
    if triton is None:
        return None
    from triton.backends.compiler import GPUTarget
    from triton.backends.nvidia.compiler import CUDABackend
    from triton.compiler import ASTSource

    # What follows PTX is ptxas, which the others do not run either.
    CUDABackend.make_cubin = lambda self, *args, **options: b""
    function, types, constants, warps = TRITON[name]
    types = types.split()
    names = function.__code__.co_varnames[: len(types) + len(constants)]
    signature = dict(zip(names, types + ["constexpr"] * len(constants)))
    source = ASTSource(triton.jit(function), signature=signature, constexprs=dict(zip(names[len(types) :], constants)))
    target, options = GPUTarget("cuda", 90, 32), {"num_warps": warps}
    return median(lambda: triton.compile(source, target=target, options=options))


def of_nvcc(name, nvcc, folder):
    if nvcc is None:
        return None
    path = Path(folder) / f"{name}.cu"
    path.write_text(CUDA[name])
    command = [nvcc, "-ptx", "-arch=sm_90", "-std=c++17", str(path), "-o", str(path.with_suffix(".ptx"))]
    return median(lambda: subprocess.run(command, check=True))


def main():
    wheels = [Path(at) / "nvidia/cu13/bin/nvcc" for at in sys.path]
    nvcc = shutil.which("nvcc") or next((str(at) for at in wheels if at.is_file()), None)
    if triton is None:
        print("no Triton: `pip install triton`")
    if nvcc is None:
        print("no nvcc: `pip install nvidia-cuda-nvcc`, with the wheels above")
    print(f"{'kernel':14} {'opt-level 0':>12} {'optimised':>12} {'Triton':>12} {'nvcc':>12}   times opt-level 0")
    with tempfile.TemporaryDirectory() as folder:
        for name in TRITON:
            ours, optimised = of_schedule(name, "dev"), of_schedule(name, "release")
            others = [of_triton(name), of_nvcc(name, nvcc, folder)]
            cells = [f"{1e3 * t:9.1f} ms" if t is not None else f"{'-':>12}" for t in [ours, optimised, *others]]
            ratios = [f"{t / ours:.1f}" if t is not None else "-" for t in others]
            print(f"{name:14} {' '.join(cells)}   Triton {ratios[0]}, nvcc {ratios[1]}", flush=True)


if __name__ == "__main__":
    main()
