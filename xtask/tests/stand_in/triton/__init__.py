"""What triton_kernels.py asks of Triton: the kernels that tests launch are done by torch.py. STAND_IN_WRONG names one whose results are
wrong, STAND_IN_IDLE one that writes none."""

import os

import torch


def cdiv(a, b):
    return -(-a // b)


def next_power_of_2(n):
    return 1 << (n - 1).bit_length()


def _plain(tensor):
    return getattr(tensor, "tensor", tensor)


def _run(name, arguments, options):
    tensors = [_plain(x) for x in arguments if isinstance(_plain(x), torch.Tensor)]
    torch.launched(name, tensors[0])
    if os.environ.get("STAND_IN_IDLE") == name:
        return
    if name == "_softmax":
        torch.softmax_into(*tensors)
    elif name == "_attention":
        torch.attention_into(*tensors, options["causal"])
    else:
        torch.product_into(*tensors)
    if os.environ.get("STAND_IN_WRONG") == name:
        tensors[-1].data[-1] += 1.0


class jit:
    def __init__(self, function):
        self.name = function.__name__

    def __getitem__(self, grid):
        assert all(isinstance(size, int) and size > 0 for size in grid)
        return lambda *arguments, **options: _run(self.name, arguments, options)
