"""The work of rows.json by PyTorch and Triton."""

import contextlib
from dataclasses import dataclass, field
from typing import Callable


@dataclass
class Way:
    """One way to do a work, with one set of memory."""

    peer: str  # whose it is
    by: str  # which of that peer's
    make: Callable  # makes the launch; Missing if that is not there
    result: Callable  # what a launch has computed; None before the first one, if each gives a tensor of its own
    setting: Callable = field(default=contextlib.nullcontext)  # makes what must hold while it runs


@contextlib.contextmanager
def library(torch, name):
    """Products by this library, as far as PyTorch lets it be chosen."""
    before = torch.backends.cuda.preferred_blas_library()
    torch.backends.cuda.preferred_blas_library(name)
    try:
        yield
    finally:
        torch.backends.cuda.preferred_blas_library(before)


class Works:
    """Each kind of work at some sizes: its method makes the ways to do it with one set of memory, and the tolerance of their results,
    relative and absolute. The first way is the one that others must agree with."""

    def __init__(self, torch, triton, dims):
        self.torch, self.triton, self.dims = torch, triton, dims
        self.functional = torch.nn.functional

    def rand(self, *shape, kind="float32", scale=1.0):
        numbers = self.torch.rand(shape, device="cuda", dtype=self.torch.float32)
        return numbers.sub_(0.5).mul_(scale).to(getattr(self.torch, kind))

    def empty(self, *shape):
        return self.torch.empty(shape, device="cuda", dtype=self.torch.float32)

    def both(self, launch, out, triton, z, tolerance):
        """PyTorch in one way, whose launch returns its result if `out` is None, and Triton in one way."""
        kept = [out]

        def keep():
            found = launch()
            if out is None:
                kept[0] = found

        by_triton = Way("Triton", "pointers", lambda: triton(self.triton()), lambda: z)
        return [Way("PyTorch", "default", lambda: keep, lambda: kept[0]), by_triton], (tolerance, tolerance)

    def softmax(self):
        x = self.rand(self.dims["M"], self.dims["N"])
        y, z = self.torch.empty_like(x), self.torch.empty_like(x)
        return self.both(lambda: self.torch.softmax(x, 1, out=y), y, lambda t: t.softmax(x, z), z, 1e-5)

    def rms_norm(self):
        n = self.dims["N"]
        x, w = self.rand(self.dims["M"], n, kind="bfloat16"), self.rand(n, kind="bfloat16")
        z = self.torch.empty_like(x)
        launch = lambda: self.functional.rms_norm(x, (n,), w, 1e-5)
        return self.both(launch, None, lambda t: t.rms_norm(x, w, z, 1e-5), z, 2e-2)

    def layer_norm(self):
        n = self.dims["N"]
        x, w, b = self.rand(self.dims["M"], n), self.rand(n), self.rand(n)
        z = self.torch.empty_like(x)
        launch = lambda: self.functional.layer_norm(x, (n,), w, b, 1e-5)
        return self.both(launch, None, lambda t: t.layer_norm(x, w, b, z, 1e-5), z, 1e-4)

    # Sums of positive numbers, so that a relative tolerance tells something.
    def column_sum(self):
        x = self.rand(self.dims["M"], self.dims["N"]).add_(1.0)
        y, z = self.empty(self.dims["N"]), self.empty(self.dims["N"])
        return self.both(lambda: self.torch.sum(x, 0, out=y), y, lambda t: t.column_sum(x, z), z, 1e-4)

    def batch_statistics(self):
        x = self.rand(self.dims["M"], self.dims["N"]).add_(1.0)
        mean, variance = self.empty(self.dims["N"]), self.empty(self.dims["N"])
        launch = lambda: self.torch.var_mean(x, 0, correction=0)[0]
        return self.both(launch, None, lambda t: t.batch_statistics(x, mean, variance), variance, 1e-3)

    def full_sum(self):
        x = self.rand(self.dims["N"]).add_(1.0)
        y, z = self.empty(), self.empty()
        return self.both(lambda: self.torch.sum(x, 0, out=y), y, lambda t: t.full_sum(x, z), z, 1e-4)

    def blur(self):
        x, z = self.rand(self.dims["H"], self.dims["W"]), self.empty(self.dims["H"] - 2, self.dims["W"] - 2)
        ninth = self.torch.full((3, 3), 1 / 9, device="cuda")
        launch = lambda: self.functional.avg_pool2d(x[None, None], 3, stride=1)[0, 0]
        return self.both(launch, None, lambda t: t.window(x, ninth, z, 0), z, 1e-5)

    def convolution(self):
        x, weights = self.rand(self.dims["H"], self.dims["W"]), self.rand(5, 5)
        z = self.torch.empty_like(x)
        launch = lambda: self.functional.conv2d(x[None, None], weights[None, None], padding=2)[0, 0]
        return self.both(launch, None, lambda t: t.window(x, weights, z, 2), z, 1e-4)

    # The numbers of products and of attention have the distribution of ours, between -2 and 2: those that toggle fewer bits draw less
    # power, and run at higher clocks.
    def product(self):
        m, n, k = self.dims["M"], self.dims["N"], self.dims["K"]
        a, b = self.rand(m, k, kind="bfloat16", scale=4.0), self.rand(n, k, kind="bfloat16", scale=4.0)
        y, z = (self.empty(m, n).to(self.torch.bfloat16) for _ in range(2))
        launch, result = (lambda: self.torch.matmul(a, b.t(), out=y)), (lambda: y)
        ways = [Way("PyTorch", "default", lambda: launch, result)]
        if hasattr(self.torch.backends.cuda, "preferred_blas_library"):
            ways.append(Way("PyTorch", "cuBLASLt", lambda: launch, result, lambda: library(self.torch, "cublaslt")))
        for name in ("descriptors, 128 x 256", "descriptors, 128 x 128", "descriptors, 64 x 128"):
            tile = tuple(int(size) for size in name.split(",")[1].split("x"))
            make = lambda tile=tile: self.triton().persistent_product(a, b, z, *tile)
            ways.append(Way("Triton", name, make, lambda: z))
        ways.append(Way("Triton", "pointers", lambda: self.triton().product(a, b, z), lambda: z))
        # Sums of so many terms: what one way rounds away is a part of their spread, also where they are near zero.
        return ways, (2e-2, 2e-2 * k**0.5)

    def attention_of(self, heads, shared, queries, keys, size, causal):
        rand = lambda *shape: self.rand(*shape, kind="bfloat16", scale=4.0)
        q, k, v = rand(heads, queries, size), rand(heads // shared, keys, size), rand(heads // shared, keys, size)
        z, attention = self.torch.empty_like(q), self.torch.nn.attention

        def by(name, backend):
            out = [None]

            def launch():
                out[0] = self.functional.scaled_dot_product_attention(
                    q[None], k[None], v[None], is_causal=causal, enable_gqa=shared > 1
                )[0]

            return Way("PyTorch", name, lambda: launch, lambda: out[0], lambda: attention.sdpa_kernel([backend]))

        backends = (("FlashAttention", attention.SDPBackend.FLASH_ATTENTION), ("cuDNN", attention.SDPBackend.CUDNN_ATTENTION))
        ways = [by(*one) for one in backends]
        ways.append(Way("Triton", "pointers", lambda: self.triton().attention(q, k, v, z, causal), lambda: z))
        return ways, (2e-2, 2e-2)

    def attention(self):
        return self.attention_of(self.dims["H"], 1, self.dims["S"], self.dims["T"], 128, False)

    def causal_attention(self):
        return self.attention_of(4 * self.dims["G"], 4, self.dims["S"], self.dims["S"], 128, True)

    def few_queries(self):
        return self.attention_of(self.dims["H"], 1, self.dims["S"], self.dims["T"], 64, False)


def operations(work, dims):
    """Operations of what has more to compute than to move; none of other work."""
    if work == "product":
        return 2 * dims["M"] * dims["N"] * dims["K"]
    if work == "attention":
        return 4 * dims["H"] * dims["S"] * dims["T"] * 128
    if work == "causal_attention":
        return 2 * 4 * dims["G"] * dims["S"] * (dims["S"] + 1) * 128
    return None
