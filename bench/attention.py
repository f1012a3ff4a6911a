"""The attention of `examples/` beside Triton's: what one assembler makes of the main loop of each.

    python3 -m venv /tmp/products
    /tmp/products/bin/pip install triton==3.6.0 nvidia-cuda-nvcc==13.0.88 nvidia-cuda-nvdisasm
    /tmp/products/bin/python bench/attention.py

No GPU is needed, and nothing is run on one. Triton's kernels are those that `xtask device` measures
(`xtask/src/device/triton_kernels.py`), in blocks of 128 queries and 128 keys, heads of 128, with 8 warps, two stages.
They mask scores of all blocks; Triton's tutorial has a second loop for those that need it, and no masks in the first.
Ours are `tests/golden/attention.Attention.ptx` and `attention_variants.Causal.ptx`. The loop is the smallest one with
products: of ours, that of blocks that need no mask.
"""

import os
import sys
import tempfile
import types

from products import ROOT, figures

SIZES = dict(bm=128, bn=128, d=128)


def of_triton(causal):
    os.environ["TRITON_ALWAYS_COMPILE"] = "1"
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.backends.nvidia.compiler import CUDABackend
    from triton.compiler import ASTSource

    # What follows PTX is ptxas.
    CUDABackend.make_cubin = lambda self, *args, **options: b""
    # The kernels are compiled alone here; what launches them takes tensors of PyTorch.
    sys.modules.setdefault("torch", types.ModuleType("torch"))
    sys.path.insert(0, str(ROOT / "xtask/src/device"))
    import triton_kernels

    constants = dict(SIZES, causal=causal)
    signature = dict.fromkeys("qkvo", "*bf16") | dict(s="i32", t="i32", scale="fp32", shared="i32")
    signature |= dict.fromkeys(constants, "constexpr")
    # Tensors begin at multiples of 16 bytes.
    aligned = {(n,): [["tt.divisibility", 16]] for n in range(4)}
    source = ASTSource(triton_kernels._attention, signature=signature, constexprs=constants, attrs=aligned)
    options = {"num_warps": 8, "num_stages": 2}
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options).asm["ptx"]


def main():
    print("| | HGMMA | loop | for each HGMMA | registers | spilled |\n| --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        kernels = [("all keys", False, "attention.Attention"), ("causal", True, "attention_variants.Causal")]
        for name, causal, golden in kernels:
            ours = (ROOT / f"tests/golden/{golden}.ptx").read_text()
            for of, text in [("schedule!", ours), ("Triton", of_triton(causal))]:
                made = figures(text, folder)
                each = made["loop"] / made["products"]
                cells = [made["products"], made["loop"], f"{each:.1f}", made["registers"], made["spilled"]]
                print("|", " | ".join(map(str, [f"{of}, {name}", *cells])), "|")


if __name__ == "__main__":
    main()
