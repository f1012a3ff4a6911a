// Kernels that are wrong, each in one way, compiled with line information.
#include <cassert>
extern "C" __global__ void missing_barrier(const int *x, int *z) {
    __shared__ int tile[64];
    tile[threadIdx.x] = x[threadIdx.x];
    z[threadIdx.x] = tile[63 - threadIdx.x];
}

__device__ __forceinline__ int past(const int *x, int i) { return x[i + 1]; }
extern "C" __global__ void out_of_bounds(int n, const int *x, int *z) {
    if (threadIdx.x < n) z[threadIdx.x] = past(x, threadIdx.x);
}

extern "C" __global__ void asserts(int n) {
    assert(threadIdx.x + 1 < n);
}

extern "C" __global__ void traps(int n) {
    if (threadIdx.x == n) __trap();
}

extern "C" __global__ void async_unwaited(const float4 *x, float4 *z) {
    __shared__ float4 tile[32];
    unsigned to = (unsigned)__cvta_generic_to_shared(&tile[threadIdx.x]);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(to), "l"(x + threadIdx.x) : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
    z[threadIdx.x] = tile[threadIdx.x];
    asm volatile("cp.async.wait_all;" ::: "memory");
}
