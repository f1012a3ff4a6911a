// mbarriers (cuda::barrier), pipelines, named barriers, message passing, hints.
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda/atomic>
#include <cooperative_groups.h>

// Producers and consumers of a block pass tiles through an mbarrier in shared memory.
extern "C" __global__ void barrier_reverse(const int *x, int *z) {
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    __shared__ int tile[128];
    if (threadIdx.x == 0) init(&bar, blockDim.x);
    __syncthreads();
    for (int round = 0; round < 3; round++) {
        tile[threadIdx.x] = x[round * 128 + threadIdx.x] + round;
        bar.arrive_and_wait();
        z[round * 128 + threadIdx.x] = tile[127 - threadIdx.x];
        auto token = bar.arrive();
        bar.wait(std::move(token));
    }
}

extern "C" __global__ void mbarrier_copy(const float *x, float *z) {
    __shared__ __align__(8) unsigned long long bar;
    __shared__ __align__(16) float tile[256];
    unsigned at = (unsigned)__cvta_generic_to_shared(&bar), to = (unsigned)__cvta_generic_to_shared(&tile[threadIdx.x * 4]);
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(at), "r"(64));
    __syncthreads();
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(to), "l"(x + threadIdx.x * 4) : "memory");
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(at) : "memory");
    asm volatile("{\n.reg .pred done;\nWAIT:\nmbarrier.test_wait.parity.shared.b64 done, [%0], 0;\n@done bra DONE;\nbra WAIT;\nDONE:\n}" ::"r"(at) : "memory");
    for (int i = threadIdx.x; i < 256; i += 64) z[i] = tile[255 - i];
    __syncthreads();
    if (threadIdx.x == 0) asm volatile("mbarrier.inval.shared.b64 [%0];" ::"r"(at));
}

// Double-buffered copies by cuda::pipeline.
extern "C" __global__ void pipeline_sum(int tiles, const float4 *x, float4 *z) {
    __shared__ float4 stage[2][64];
    auto pipe = cuda::make_pipeline();
    float4 sum = make_float4(0, 0, 0, 0);
    pipe.producer_acquire();
    cuda::memcpy_async(&stage[0][threadIdx.x], &x[threadIdx.x], sizeof(float4), pipe);
    pipe.producer_commit();
    for (int i = 0; i < tiles; i++) {
        if (i + 1 < tiles) {
            pipe.producer_acquire();
            cuda::memcpy_async(&stage[(i + 1) & 1][threadIdx.x], &x[(i + 1) * 64 + threadIdx.x], sizeof(float4), pipe);
            pipe.producer_commit();
        }
        cuda::pipeline_consumer_wait_prior<1>(pipe);
        if (i + 1 == tiles) cuda::pipeline_consumer_wait_prior<0>(pipe);
        float4 v = stage[i & 1][threadIdx.x];
        sum.x += v.x; sum.y += v.y; sum.z += v.z; sum.w += v.w;
        pipe.consumer_release();
    }
    z[threadIdx.x] = sum;
}

// Two groups of warps hand a buffer to and fro with named barriers.
extern "C" __global__ void named_barriers(int rounds, const int *x, int *z) {
    __shared__ int buffer[64];
    int t = threadIdx.x & 63;
    if (threadIdx.x < 64) {
        for (int r = 0; r < rounds; r++) {
            if (r) asm volatile("barrier.cta.sync 2, 128;" ::: "memory");
            buffer[t] = x[r * 64 + t];
            asm volatile("barrier.cta.arrive 1, 128;" ::: "memory");
        }
    } else {
        for (int r = 0; r < rounds; r++) {
            asm volatile("bar.sync 1, 128;" ::: "memory");
            z[r * 64 + t] = buffer[63 - t] * 2;
            if (r + 1 < rounds) asm volatile("bar.arrive 2, 128;" ::: "memory");
        }
    }
}

// Block b waits for block b - 1 by a flag with release and acquire.
extern "C" __global__ void chain(const int *x, int *sums, int *flags) {
    cuda::atomic_ref<int, cuda::thread_scope_device> mine(flags[blockIdx.x]);
    if (threadIdx.x == 0) {
        int before = 0;
        if (blockIdx.x) {
            cuda::atomic_ref<int, cuda::thread_scope_device> theirs(flags[blockIdx.x - 1]);
            while (theirs.load(cuda::memory_order_acquire) == 0) __nanosleep(20);
            before = sums[blockIdx.x - 1];
        }
        sums[blockIdx.x] = before + x[blockIdx.x];
        mine.store(1, cuda::memory_order_release);
    }
}

// Grid-wide barrier by hand, with volatile and __threadfence.
extern "C" __global__ void grid_barrier(volatile int *arrived, const int *x, int *y, int *z) {
    int b = blockIdx.x, n = gridDim.x;
    if (threadIdx.x == 0) {
        y[b] = x[b] * 2;
        __threadfence();
        atomicAdd((int *)arrived, 1);
        while (*arrived < n) {}
        __threadfence();
        z[b] = y[(b + 1) % n];
    }
}

// Loads and stores with hints, the read-only cache, address space queries, clocks.
extern "C" __global__ void hints(const float *__restrict__ x, float *z, long long *t) {
    __shared__ float s[32];
    float local[4];
    int i = threadIdx.x;
    float v = __ldg(x + i) + __ldcs(x + i + 32) + __ldcg(x + i + 64) + __ldca(x + i + 96) + __ldcv(x + i + 128);
    asm volatile("prefetch.global.L2 [%0];" ::"l"(x + i));
    asm volatile("prefetchu.L1 [%0];" ::"l"(x + i));
    float2 pair;
    asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v2.f32 {%0, %1}, [%2];" : "=f"(pair.x), "=f"(pair.y) : "l"(x + 2 * i));
    unsigned long long policy;
    asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    float hinted;
    asm volatile("ld.global.L2::cache_hint.f32 %0, [%1], %2;" : "=f"(hinted) : "l"(x + i), "l"(policy));
    s[i] = v;
    local[i & 3] = v;
    int spaces = __isGlobal(x) | __isShared(s) << 1 | __isLocal(local) << 2 | __isConstant(x) << 3;
    long long before = clock64();
    __nanosleep(100);
    unsigned hi;
    asm volatile("mov.u32 %0, %%clock_hi;" : "=r"(hi));
    t[i] = (clock64() > before) + (clock() >= 0 || true) + (hi == 0);
    __syncwarp();
    __stcs(z + i, v + pair.x - pair.y + hinted);
    __stwt(z + 32 + i, s[31 - i] + spaces + local[i & 3]);
    __threadfence_block();
    __threadfence_system();
}

namespace cg = cooperative_groups;
extern "C" __global__ void groups(const int *x, int *z) {
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<8>(block);
    int v = x[block.thread_rank()];
    for (int d = 4; d > 0; d /= 2) v += tile.shfl_down(v, d);
    if (tile.thread_rank() == 0) z[block.thread_rank() / 8] = v;
    if (v & 1) {
        auto active = cg::coalesced_threads();
        z[64 + block.thread_rank()] = active.size() * 100 + active.thread_rank();
    }
}
