#!/usr/bin/env python3
"""Regenerates the corpus: PTX by nvcc and Triton, and what NumPy says the kernels compute.

Needs no GPU. In a fresh environment:

    pip install nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88 \\
        nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.3.5.0.6 nvidia-cutlass==4.2.0.0 triton==3.6.0 numpy==2.4.6
    python generate.py            # everything
    python generate.py --cases    # only the expected results

Writes `nvcc/*.ptx`, `triton/*.ptx`, `cases.json` and `cases.bin`. Tolerances come from the operations (see `cases.py`), never from a run.
"""

import importlib.metadata
import importlib.util
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
VERSIONS = {"nvidia-cuda-nvcc": "13.0.88", "triton": "3.6.0"}
# Flags beyond the common ones, by source.
FLAGS = {"faults": ["-lineinfo"], "debug": ["-G"], "warpgroups": ["--expt-relaxed-constexpr"]}
HOPPER = {"warpgroups"}


def check_versions():
    for package, version in VERSIONS.items():
        found = importlib.metadata.version(package)
        if found != version:
            sys.exit(f"{package} is {found}, not {version}")


def compile_nvcc():
    import nvidia

    root = next(pathlib.Path(p) / "cu13" for p in nvidia.__path__ if (pathlib.Path(p) / "cu13/bin/nvcc").exists())
    cutlass = pathlib.Path(importlib.util.find_spec("cutlass_library").origin).parent / "source/include"
    for source in sorted((HERE / "nvcc").glob("*.cu")):
        arch = "sm_90a" if source.stem in HOPPER else "sm_80"
        flags = ["-ptx", f"-arch={arch}", "-std=c++17", "-diag-suppress=20054", f"-I{root}/include/cccl", f"-I{cutlass}"]
        flags += FLAGS.get(source.stem, [])
        subprocess.run([f"{root}/bin/nvcc", *flags, source.name, "-o", source.stem + ".ptx"], check=True, cwd=source.parent)
        scrub(source.with_suffix(".ptx"))


def compile_triton():
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    sys.path.insert(0, str(HERE / "triton"))
    import kernels
    import kinds
    import more
    import warpgroups

    ampere = {**kernels.KERNELS, **more.KERNELS, **kinds.KERNELS}
    for name, (kernel, signature, constants, warps, stages) in {**ampere, **warpgroups.KERNELS}.items():
        everything = {**signature, **{constant: "constexpr" for constant in constants}}
        # Pointers are multiples of 16; sizes of products are too, as Triton would find out by itself.
        aligned = [at for at, ty in enumerate(everything.values()) if ty[0] == "*" or (ty == "i32" and ("matmul" in name or name in warpgroups.KERNELS))]
        source = ASTSource(kernel, everything, constants, {(at,): [["tt.divisibility", 16]] for at in aligned})
        options = dict(num_warps=warps, num_stages=stages)
        compiled = triton.compile(source, target=GPUTarget("cuda", 80 if name in ampere else 90, 32), options=options)
        path = HERE / "triton" / (name + ".ptx")
        path.write_text(compiled.asm["ptx"])
        scrub(path)


def scrub(path):
    """Removes what depends on where the script ran: folders in `.file` lines, and the debug sections that spell them byte by byte."""
    text = re.sub(r'"/[^"\n]*/([^"/\n]*)"', r'"\1"', path.read_text())
    text = re.sub(r"(?m)^\s*\.section\s+\.debug_(info|str|line_str)\s*\{[^}]*\}\n?", "", text)
    path.write_text("\n".join(line.rstrip() for line in text.split("\n")).rstrip("\n") + "\n")


def main():
    if "--cases" not in sys.argv:
        check_versions()
        compile_nvcc()
        compile_triton()
    sys.path.insert(0, str(HERE))
    import cases

    cases.write(HERE)


if __name__ == "__main__":
    main()
