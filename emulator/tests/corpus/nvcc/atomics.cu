// Atomic operations as nvcc and its libraries write them: loops of compare-and-swap, halves, scopes and orders.
#include <cuda/atomic>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

__device__ float atomic_max(float *at, float v) {
    int *bits = (int *)at, old = *bits, assumed;
    do {
        assumed = old;
        if (__int_as_float(assumed) >= v) break;
        old = atomicCAS(bits, assumed, __float_as_int(v));
    } while (assumed != old);
    return __int_as_float(old);
}

__device__ double atomic_multiply(double *at, double v) {
    unsigned long long *bits = (unsigned long long *)at, old = *bits, assumed;
    do {
        assumed = old;
        old = atomicCAS(bits, assumed, __double_as_longlong(__longlong_as_double(assumed) * v));
    } while (assumed != old);
    return __longlong_as_double(old);
}

// A byte in a word.
__device__ void atomic_byte_or(unsigned char *at, unsigned char v) {
    unsigned *word = (unsigned *)((size_t)at & ~(size_t)3), shift = ((size_t)at & 3) * 8, old = *(volatile unsigned *)word, assumed;
    do {
        assumed = old;
        old = atomicCAS(word, assumed, assumed | (unsigned)v << shift);
    } while (assumed != old);
}

extern "C" __global__ void cas_loops(int n, const float *x, float *top, double *product, unsigned char *flags) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    atomic_max(top, x[i]);
    if (i < 20) atomic_multiply(product, 1.0 + i % 3);
    atomic_byte_or(flags + i % 8, 1 << (i / 8 % 8));
}

extern "C" __global__ void half_sums(__half2 *h2, __nv_bfloat162 *b2, __half *h, __nv_bfloat16 *b, float *f, double *d) {
    int i = threadIdx.x;
    atomicAdd(h2, __floats2half2_rn(1, i & 1));
    atomicAdd(b2, __floats2bfloat162_rn(1, 2));
    atomicAdd(h + (i & 1), __float2half(0.5f));
    atomicAdd(b + (i & 1), __float2bfloat16(1.0f));
    atomicAdd(f + (i & 3), 0.25f);
    atomicAdd(d, (double)i);
    atomicAdd_block(f + 4, 1.0f);
    atomicAdd_system(f + 5, 1.0f);
}

// Sub-word atomics in shared memory.
extern "C" __global__ void shared_halves(const __half *x, const __nv_bfloat16 *y, __half *zh, __nv_bfloat16 *zb, float *zf) {
    __shared__ __half sh[4];
    __shared__ __nv_bfloat16 sb[4];
    __shared__ float sf[4];
    __shared__ unsigned short tickets;
    int i = threadIdx.x;
    if (i < 4) sh[i] = 0, sb[i] = 0, sf[i] = 0;
    if (i == 0) tickets = 0;
    __syncthreads();
    atomicAdd(&sh[i & 3], x[i]);
    atomicAdd(&sb[i & 3], y[i]);
    atomicAdd(&sf[i & 3], __half2float(x[i]));
    unsigned short old = tickets, assumed;
    do {
        assumed = old;
        old = atomicCAS(&tickets, assumed, (unsigned short)(assumed + 1));
    } while (assumed != old);
    __syncthreads();
    if (i < 4) zh[i] = sh[i], zb[i] = sb[i], zf[i] = sf[i] + tickets;
}

// Every scope and order of libcu++.
template <cuda::thread_scope S> __device__ void orders(int *word, unsigned long long *wide) {
    cuda::atomic_ref<int, S> a(*word);
    cuda::atomic_ref<unsigned long long, S> b(*wide);
    a.fetch_add(1, cuda::memory_order_relaxed);
    a.fetch_add(1, cuda::memory_order_acquire);
    a.fetch_add(1, cuda::memory_order_release);
    a.fetch_add(1, cuda::memory_order_acq_rel);
    a.fetch_add(1, cuda::memory_order_seq_cst);
    int expected = a.load(cuda::memory_order_relaxed);
    while (!a.compare_exchange_weak(expected, expected + 10, cuda::memory_order_acq_rel, cuda::memory_order_acquire)) {}
    b.fetch_max(1, cuda::memory_order_relaxed);
    b.fetch_or(1ull << (threadIdx.x & 7), cuda::memory_order_relaxed);
    b.fetch_or(256);
    b.fetch_xor(0);
    b.fetch_min(511);
    if (a.load(cuda::memory_order_acquire) < 0) b.store(1, cuda::memory_order_release), b.exchange(2);
}
extern "C" __global__ void scopes(int *words, unsigned long long *wides) {
    orders<cuda::thread_scope_system>(words, wides);
    orders<cuda::thread_scope_device>(words + 1, wides + 1);
    orders<cuda::thread_scope_block>(words + 2 + blockIdx.x, wides + 2 + blockIdx.x);
    __shared__ int s;
    __shared__ unsigned long long w;
    if (threadIdx.x == 0) s = 0, w = 0;
    __syncthreads();
    orders<cuda::thread_scope_block>(&s, &w);
    __syncthreads();
    if (threadIdx.x == 0) words[6 + blockIdx.x] = s;
}

// A ticket lock with libcu++, and a producer that hands a block of data on through a flag.
extern "C" __global__ void handover(const int *x, int *data, int *sum, unsigned *lock, int *total) {
    cuda::atomic_ref<int, cuda::thread_scope_device> ready(sum[0]);
    if (blockIdx.x == 0) {
        data[threadIdx.x] = x[threadIdx.x] * 3;
        __syncthreads();
        if (threadIdx.x == 0) ready.store(1, cuda::memory_order_release);
    } else {
        if (threadIdx.x == 0) while (ready.load(cuda::memory_order_acquire) == 0) {}
        __syncthreads();
        int v = data[threadIdx.x];
        for (int d = 16; d; d /= 2) v += __shfl_xor_sync(0xffffffff, v, d);
        if ((threadIdx.x & 31) == 0) {
            cuda::atomic_ref<unsigned, cuda::thread_scope_device> next(lock[0]), serving(lock[1]);
            unsigned mine = next.fetch_add(1, cuda::memory_order_relaxed);
            while (serving.load(cuda::memory_order_acquire) != mine) __nanosleep(10);
            *total += v;
            serving.store(mine + 1, cuda::memory_order_release);
        }
    }
}

// Lock-free list: a stack of nodes, with a head of 64 bits that carries a tag.
extern "C" __global__ void push_all(unsigned long long *head, unsigned *next, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned long long old = *(volatile unsigned long long *)head, fresh;
    do {
        next[i] = (unsigned)old;
        fresh = ((old >> 32) + 1) << 32 | (i + 1);
        __threadfence();
        unsigned long long seen = atomicCAS(head, old, fresh);
        if (seen == old) break;
        old = seen;
    } while (true);
}
