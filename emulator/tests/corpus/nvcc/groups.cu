// Cooperative groups and libcu++ beyond the basics.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda/semaphore>
#include <cuda/latch>
namespace cg = cooperative_groups;

extern "C" __global__ void reductions(const int *x, const float *y, const double *w, int *zi, float *zf, double *zd, unsigned *zu) {
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<32>(block);
    auto small = cg::tiled_partition<4>(block);
    int t = block.thread_rank();
    zi[t] = cg::reduce(tile, x[t], cg::plus<int>());
    zi[128 + t] = cg::reduce(small, x[t], cg::less<int>());
    zf[t] = cg::reduce(tile, y[t], cg::greater<float>());
    zf[128 + t] = cg::reduce(small, y[t], [](float a, float b) { return a * b; });
    zd[t] = cg::reduce(tile, w[t], cg::plus<double>());
    zu[t] = cg::reduce(tile, (unsigned)x[t], cg::bit_xor<unsigned>());
    zi[256 + t] = cg::inclusive_scan(tile, x[t]);
    zi[384 + t] = cg::exclusive_scan(small, x[t], cg::plus<int>());
    if (x[t] & 1) {
        auto active = cg::coalesced_threads();
        int sum = cg::reduce(active, x[t], cg::plus<int>());
        if (active.thread_rank() == 0) zu[128 + t] = sum;
    }
    auto parity = cg::binary_partition(tile, x[t] % 3 == 0);
    zu[256 + t] = parity.size() * 100 + parity.thread_rank();
    auto label = cg::labeled_partition(tile, x[t] & 3);
    zu[384 + t] = cg::reduce(label, 1u, cg::plus<unsigned>());
}

// Tiles wider than a warp exchange through shared memory that the group is given.
extern "C" __global__ void wide_tiles(const int *x, int *z) {
    __shared__ cg::block_tile_memory<128> room;
    auto block = cg::this_thread_block(room);
    auto tile = cg::tiled_partition<64>(block);
    int t = block.thread_rank();
    int sum = cg::reduce(tile, x[t], cg::plus<int>());
    tile.sync();
    int first = tile.shfl(x[t], 5);
    z[t] = sum + 100000 * tile.meta_group_rank();
    tile.sync();
    z[128 + t] = first + tile.all(x[t] >= 0);
}

// Copies of a whole block, waited for by the group.
extern "C" __global__ void group_copy(int n, const float *x, float *z) {
    extern __shared__ float4 store[];
    float *tile = (float *)store;
    auto block = cg::this_thread_block();
    for (int at = 0; at < n; at += 256) {
        int count = min(256, n - at);
        cg::memcpy_async(block, tile, x + at, sizeof(float) * count);
        cg::wait(block);
        for (int i = block.thread_rank(); i < count; i += block.size()) z[at + i] = tile[count - 1 - i];
        block.sync();
    }
}

// A pipeline of the block: producers and consumers are the same threads, two stages on mbarriers.
extern "C" __global__ void __launch_bounds__(64) block_pipeline(int tiles, const int *x, int *z) {
    constexpr int stages = 2;
    __shared__ alignas(16) int tile[stages][64];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, stages> state;
    auto block = cg::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &state);
    int sum = 0;
    for (int in = 0, out = 0; out < tiles; out++) {
        for (; in < tiles && in < out + stages; in++) {
            pipe.producer_acquire();
            cuda::memcpy_async(block, tile[in % stages], x + in * 64, cuda::aligned_size_t<16>(64 * sizeof(int)), pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        sum += tile[out % stages][63 - threadIdx.x] * (out + 1);
        pipe.consumer_release();
    }
    z[threadIdx.x] = sum;
}

// One warp produces, three consume: a partitioned pipeline.
extern "C" __global__ void __launch_bounds__(128) partitioned(int tiles, const int *x, int *z) {
    constexpr int stages = 3;
    __shared__ int tile[stages][96];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, stages> state;
    auto block = cg::this_thread_block();
    auto role = threadIdx.x < 32 ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer;
    auto pipe = cuda::make_pipeline(block, &state, role);
    if (role == cuda::pipeline_role::producer) {
        for (int i = 0; i < tiles; i++) {
            pipe.producer_acquire();
            for (int k = threadIdx.x; k < 96; k += 32) cuda::memcpy_async(&tile[i % stages][k], &x[i * 96 + k], sizeof(int), pipe);
            pipe.producer_commit();
        }
    } else {
        int t = threadIdx.x - 32, sum = 0;
        for (int i = 0; i < tiles; i++) {
            pipe.consumer_wait();
            sum += tile[i % stages][95 - t] ^ i;
            pipe.consumer_release();
        }
        z[t] = sum;
    }
}

// Copies tied to a cuda::barrier, and a barrier whose participants drop out.
extern "C" __global__ void barrier_copies(const float *x, float *z, int *rounds) {
    __shared__ cuda::barrier<cuda::thread_scope_block> loaded, fewer;
    __shared__ alignas(16) float tile[128];
    auto block = cg::this_thread_block();
    if (threadIdx.x == 0) {
        init(&loaded, 64);
        init(&fewer, 64);
    }
    block.sync();
    for (int round = 0; round < 2; round++) {
        cuda::memcpy_async(block, tile, x + round * 128, cuda::aligned_size_t<16>(512), loaded);
        loaded.arrive_and_wait();
        z[round * 128 + threadIdx.x] = tile[127 - threadIdx.x];
        z[round * 128 + 64 + threadIdx.x] = tile[63 - threadIdx.x];
        loaded.arrive_and_wait();
    }
    int count = 0;
    for (;;) {
        if (count == 1 + threadIdx.x / 16) {
            fewer.arrive_and_drop();
            break;
        }
        count++;
        fewer.arrive_and_wait();
    }
    rounds[threadIdx.x] = count;
}

extern "C" __global__ void semaphores(int *inside, int *most, int *sum) {
    using Semaphore = cuda::counting_semaphore<cuda::thread_scope_block, 2>;
    using Latch = cuda::latch<cuda::thread_scope_block>;
    __shared__ alignas(16) char rooms[2][64];
    Semaphore &slots = *(Semaphore *)rooms[0];
    Latch &ready = *(Latch *)rooms[1];
    if (threadIdx.x == 0) {
        new (rooms[0]) Semaphore(2);
        new (rooms[1]) Latch(blockDim.x);
    }
    __syncthreads();
    ready.arrive_and_wait();
    if (threadIdx.x % 32 == 0) {
        slots.acquire();
        int now = atomicAdd(inside, 1) + 1;
        atomicMax(most, now);
        atomicAdd(sum, threadIdx.x);
        atomicSub(inside, 1);
        slots.release();
    }
}
