// Atomics in shared and global memory, match, activemask.
extern "C" __global__ void histogram(int n, const unsigned char *x, unsigned *bins) {
    __shared__ unsigned local[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x) local[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&local[x[i]], 1);
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x)
        if (local[i]) atomicAdd(&bins[i], local[i]);
}

// Lanes with the same key elect one that adds for all.
extern "C" __global__ void aggregate(int n, const int *keys, unsigned *bins) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned mask = __activemask();
    unsigned same = __match_any_sync(mask, keys[i]);
    int pred;
    __match_all_sync(mask, keys[i], &pred);
    if (__ffs(same) - 1 == (threadIdx.x & 31)) atomicAdd(&bins[keys[i]], __popc(same));
    if (pred) atomicAdd(&bins[16], 1);
}

// Every read-modify-write on one word each: and, or, xor, min, max, inc, dec, exch, cas, add.
extern "C" __global__ void every_atomic(int *word, unsigned *uword, unsigned long long *wide, float *f, double *d) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAnd(&word[0], ~(1 << (t & 7)));
    atomicOr(&word[1], 1 << (t & 31));
    atomicXor(&word[2], t);
    atomicMin(&word[3], -t);
    atomicMax(&word[4], t * 3);
    atomicSub(&word[5], t);
    atomicMin(&uword[0], 1000u - t);
    atomicMax(&uword[1], (unsigned)t ^ 5u);
    atomicInc(&uword[2], 6);
    atomicDec(&uword[3], 6);
    unsigned old = *(volatile unsigned *)&uword[4], seen;
    do {
        seen = old;
        old = atomicCAS(&uword[4], seen, seen + 2 * t + 1);
    } while (old != seen);
    atomicExch(&uword[5], 77);
    atomicAdd(&wide[0], 0x100000001ull * t);
    atomicMax(&wide[1], 1ull << (t & 63));
    atomicAdd((unsigned long long *)&wide[2], (unsigned long long)-1);
    atomicAdd(f, 0.5f);
    atomicAdd(d, 0.25);
    atomicAdd_block(&uword[6], 1);
    atomicAdd_system(&uword[7], 1);
}
