"""Compiles the Triton kernels of this folder for sm_90, without a GPU: `python generate.py` with Triton 3.6 writes *.ptx next to itself.

`turn` doubles tiles on their way from one tensor to another; `total` adds up the tiles of a row of tiles, with the loads of the next iterations under way.
"""

import pathlib

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def turn(x, y):
    row = 16 * tl.program_id(0)
    column = 32 * tl.program_id(1)
    tile = x.load([row, column])
    y.store([row, column], 2 * tile)


@triton.jit
def total(x, y, tiles):
    row = 16 * tl.program_id(0)
    sum = tl.zeros((16, 32), tl.float32)
    for tile in tl.range(0, tiles, num_stages=3):
        sum += x.load([row, 32 * tile])
    y.store([row, 0], sum)


TENSORS = {"x": "tensordesc<fp32[16, 32]>", "y": "tensordesc<fp32[16, 32]>"}

for kernel, scalars in [(turn, {}), (total, {"tiles": "i32"})]:
    source = ASTSource(fn=kernel, signature={**TENSORS, **scalars}, constexprs={})
    compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 4})
    lines = [line for line in compiled.asm["ptx"].splitlines() if ".loc" not in line]
    # Debug sections follow the code, and `.loc` and `.file` name files of this machine.
    text = "\n".join(lines)
    text = text[: text.index(".section")] if ".section" in text else text
    lines = [line for line in text.splitlines() if not line.lstrip().startswith(".file")]
    name = kernel.__name__
    pathlib.Path(__file__).with_name(f"{name}.ptx").write_text("\n".join(lines).rstrip() + "\n")
