// Sorting, scanning and segmented sums: by hand, and by the block primitives of cub.
#include <cub/block/block_load.cuh>
#include <cub/block/block_store.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_histogram.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>

// Bitonic sort of a power of two of keys in dynamic shared memory.
extern "C" __global__ void bitonic(int n, const float *x, float *z) {
    extern __shared__ float keys[];
    for (int i = threadIdx.x; i < n; i += blockDim.x) keys[i] = x[blockIdx.x * n + i];
    __syncthreads();
    for (int k = 2; k <= n; k *= 2)
        for (int j = k / 2; j > 0; j /= 2) {
            for (int i = threadIdx.x; i < n; i += blockDim.x) {
                int other = i ^ j;
                if (other > i) {
                    bool up = (i & k) == 0;
                    float a = keys[i], b = keys[other];
                    if ((a > b) == up) keys[i] = b, keys[other] = a;
                }
            }
            __syncthreads();
        }
    for (int i = threadIdx.x; i < n; i += blockDim.x) z[blockIdx.x * n + i] = keys[i];
}

// Inclusive scan of a block: shuffles in warps, then of the warps' sums; 64-bit values.
extern "C" __global__ void __launch_bounds__(256) shuffle_scan(int n, const long long *x, long long *z) {
    __shared__ long long sums[8];
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    long long v = threadIdx.x < n ? x[threadIdx.x] : 0;
    for (int d = 1; d < 32; d *= 2) {
        long long up = __shfl_up_sync(0xffffffff, v, d);
        if (lane >= d) v += up;
    }
    if (lane == 31) sums[warp] = v;
    __syncthreads();
    if (warp == 0) {
        long long s = lane < 8 ? sums[lane] : 0;
        for (int d = 1; d < 8; d *= 2) {
            long long up = __shfl_up_sync(0xffffffff, s, d);
            if (lane >= d) s += up;
        }
        if (lane < 8) sums[lane] = s;
    }
    __syncthreads();
    if (warp) v += sums[warp - 1];
    if (threadIdx.x < n) z[threadIdx.x] = v;
}

// One pass of a radix sort: keys of a block go to the place of their digit, in order.
extern "C" __global__ void __launch_bounds__(128) radix_pass(int shift, const unsigned *keys, const unsigned *offsets, unsigned *sorted) {
    __shared__ unsigned counts[4][16];
    __shared__ unsigned base[4][16];
    unsigned key = keys[blockIdx.x * 128 + threadIdx.x], digit = key >> shift & 15;
    unsigned warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    if (threadIdx.x < 64) (&counts[0][0])[threadIdx.x] = 0;
    __syncthreads();
    unsigned peers = __match_any_sync(0xffffffff, digit);
    unsigned rank = __popc(peers & ((1u << lane) - 1));
    if (rank == 0) counts[warp][digit] = __popc(peers);
    __syncthreads();
    if (threadIdx.x < 16) {
        unsigned sum = offsets[blockIdx.x * 16 + threadIdx.x];
        for (int w = 0; w < 4; w++) {
            base[w][threadIdx.x] = sum;
            sum += counts[w][threadIdx.x];
        }
    }
    __syncthreads();
    sorted[base[warp][digit] + rank] = key;
}

extern "C" __global__ void __launch_bounds__(128) cub_sort(const int *keys, const short *values, int *sorted, short *carried) {
    using Load = cub::BlockLoad<int, 128, 4, cub::BLOCK_LOAD_TRANSPOSE>;
    using Sort = cub::BlockRadixSort<int, 128, 4, short>;
    using Store = cub::BlockStore<int, 128, 4, cub::BLOCK_STORE_WARP_TRANSPOSE>;
    __shared__ union { typename Load::TempStorage load; typename Sort::TempStorage sort; typename Store::TempStorage store; } room;
    int k[4];
    short v[4];
    Load(room.load).Load(keys + blockIdx.x * 512, k);
    for (int i = 0; i < 4; i++) v[i] = values[blockIdx.x * 512 + threadIdx.x * 4 + i];
    __syncthreads();
    Sort(room.sort).Sort(k, v);
    __syncthreads();
    Store(room.store).Store(sorted + blockIdx.x * 512, k);
    for (int i = 0; i < 4; i++) carried[blockIdx.x * 512 + threadIdx.x * 4 + i] = v[i];
}

struct Larger {
    __device__ float operator()(float a, float b) const { return a > b ? a : b; }
};

extern "C" __global__ void __launch_bounds__(96) cub_collectives(int n, const float *x, float *largest, int *before, unsigned *bins, double *warps) {
    using Reduce = cub::BlockReduce<float, 96>;
    using Scan = cub::BlockScan<int, 96, cub::BLOCK_SCAN_RAKING>;
    using Histogram = cub::BlockHistogram<unsigned char, 96, 2, 16, cub::BLOCK_HISTO_ATOMIC>;
    using Warp = cub::WarpReduce<double>;
    __shared__ union {
        typename Reduce::TempStorage reduce;
        typename Scan::TempStorage scan;
        typename Histogram::TempStorage histogram;
        typename Warp::TempStorage warp[3];
    } room;
    __shared__ unsigned counts[16];
    float v = threadIdx.x < n ? x[threadIdx.x] : -1e30f;
    float top = Reduce(room.reduce).Reduce(v, Larger(), n);
    if (threadIdx.x == 0) *largest = top;
    __syncthreads();
    int at, total;
    Scan(room.scan).ExclusiveSum(v > 0 ? 1 : 0, at, total);
    before[threadIdx.x] = at * 1000 + total;
    __syncthreads();
    unsigned char digits[2] = {(unsigned char)((int)fabsf(v) & 15), (unsigned char)(threadIdx.x & 15)};
    Histogram(room.histogram).Histogram(digits, counts);
    __syncthreads();
    if (threadIdx.x < 16) bins[threadIdx.x] = counts[threadIdx.x];
    __syncthreads();
    double sum = Warp(room.warp[threadIdx.x / 32]).Sum(threadIdx.x < n ? (double)v : 0.0);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
}

// Sums of segments of sorted keys: a segmented scan by shuffles with head flags, tails by atomic addition.
extern "C" __global__ void segmented_sum(int n, const int *segment, const float *x, float *sums) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
    int key = i < n ? segment[i] : -1;
    float v = i < n ? x[i] : 0;
    int left = __shfl_up_sync(0xffffffff, key, 1);
    unsigned heads = __ballot_sync(0xffffffff, lane == 0 || left != key);
    int start = 31 - __clz(heads & (0xffffffffu >> (31 - lane)));
    for (int d = 1; d < 32; d *= 2) {
        float up = __shfl_up_sync(0xffffffff, v, d);
        if (lane - d >= start) v += up;
    }
    bool tail = lane == 31 || heads >> (lane + 1) & 1;
    if (tail && key >= 0) atomicAdd(&sums[key], v);
}
