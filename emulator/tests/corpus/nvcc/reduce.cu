// Reductions and scans.
extern "C" __global__ void block_sum(int n, const float *x, float *sums) {
    __shared__ float part[256];
    float v = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) v += x[i];
    part[threadIdx.x] = v;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s];
        __syncthreads();
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = part[0];
}

__device__ __forceinline__ int warp_sum(int v) {
    for (int d = 16; d > 0; d >>= 1) v += __shfl_down_sync(~0u, v, d);
    return v;
}

extern "C" __global__ void warp_reduce(int n, const int *x, int *sum) {
    extern __shared__ int part[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int v = warp_sum(i < n ? x[i] : 0);
    if ((threadIdx.x & 31) == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x < 32) {
        v = warp_sum(threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0);
        if (threadIdx.x == 0) atomicAdd(sum, v);
    }
}

// Inclusive scan of a block, by shuffles.
extern "C" __global__ void scan(const int *x, int *z) {
    __shared__ int totals[32];
    int t = threadIdx.x, lane = t & 31, warp = t >> 5, v = x[blockIdx.x * blockDim.x + t];
    for (int d = 1; d < 32; d <<= 1) {
        int other = __shfl_up_sync(~0u, v, d);
        if (lane >= d) v += other;
    }
    if (lane == 31) totals[warp] = v;
    __syncthreads();
    if (warp == 0) {
        int s = lane < (blockDim.x >> 5) ? totals[lane] : 0;
        for (int d = 1; d < 32; d <<= 1) {
            int other = __shfl_up_sync(~0u, s, d);
            if (lane >= d) s += other;
        }
        totals[lane] = s;
    }
    __syncthreads();
    z[blockIdx.x * blockDim.x + t] = v + (warp ? totals[warp - 1] : 0);
}

// The last block to arrive adds up the partial sums of all: one kernel, a ticket and fences.
__device__ unsigned tickets;
extern "C" __global__ void ticket_sum(int n, const float *x, volatile float *partial, float *sum) {
    __shared__ float part[128];
    __shared__ bool last;
    float v = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) v += x[i];
    part[threadIdx.x] = v;
    __syncthreads();
    for (int s = 64; s > 0; s >>= 1) {
        if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s];
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = part[0];
        __threadfence();
        last = atomicInc(&tickets, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        float total = 0;
        for (unsigned b = 0; b < gridDim.x; b++) total += partial[b];
        *sum = total;
    }
}

extern "C" __global__ void double_dot(int n, const double *x, const double *y, double *dot) {
    double v = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) v = fma(x[i], y[i], v);
    for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(~0u, v, d);
    if (threadIdx.x % 32 == 0) atomicAdd(dot, v);
}
