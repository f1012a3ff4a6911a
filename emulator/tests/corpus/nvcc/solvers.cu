// Linear algebra and physics: doubles, factorisations, locks, atomics on floats, clocks.
#include <stdint.h>

__device__ double atomic_max(double* to, double value) {
    unsigned long long* bits = (unsigned long long*)to;
    unsigned long long old = *bits, assumed;
    do {
        assumed = old;
        if (__longlong_as_double(assumed) >= value) break;
        old = atomicCAS(bits, assumed, __double_as_longlong(value));
    } while (assumed != old);
    return __longlong_as_double(old);
}

// A sweep of Jacobi's method in double precision over a tile with its border, and the largest change.
extern "C" __global__ void jacobi(int h, int w, const double* x, double* z, double* change) {
    __shared__ double tile[10][34];
    int col = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
    for (int i = threadIdx.y; i < 10; i += 8)
        for (int j = threadIdx.x; j < 34; j += 32) {
            int r = min(max((int)blockIdx.y * 8 + i - 1, 0), h - 1), c = min(max((int)blockIdx.x * 32 + j - 1, 0), w - 1);
            tile[i][j] = x[r * w + c];
        }
    __syncthreads();
    double moved = 0;
    if (row < h && col < w) {
        int i = threadIdx.y + 1, j = threadIdx.x + 1;
        bool edge = row == 0 || col == 0 || row == h - 1 || col == w - 1;
        double value = edge ? tile[i][j] : 0.25 * (tile[i - 1][j] + tile[i + 1][j] + tile[i][j - 1] + tile[i][j + 1]);
        z[row * w + col] = value;
        moved = fabs(value - tile[i][j]);
    }
    for (int d = 16; d > 0; d >>= 1) moved = fmax(moved, __shfl_xor_sync(~0u, moved, d));
    if (threadIdx.x == 0) atomic_max(change, moved);
}

// Cholesky's factorisation of a symmetric matrix in shared memory, one block each, lower triangle.
extern "C" __global__ void cholesky(int n, const double* a, double* l, int* failed) {
    extern __shared__ double m[];
    for (int at = threadIdx.x; at < n * n; at += blockDim.x) m[at] = a[blockIdx.x * n * n + at];
    __syncthreads();
    for (int k = 0; k < n; k++) {
        double pivot = m[k * n + k];
        if (pivot <= 0) {
            if (threadIdx.x == 0) failed[blockIdx.x] = k + 1;
            return;
        }
        __syncthreads();
        double root = sqrt(pivot);
        for (int i = k + threadIdx.x; i < n; i += blockDim.x) m[i * n + k] = i == k ? root : m[i * n + k] / root;
        __syncthreads();
        for (int at = threadIdx.x; at < (n - k - 1) * (n - k - 1); at += blockDim.x) {
            int i = k + 1 + at / (n - k - 1), j = k + 1 + at % (n - k - 1);
            if (j <= i) m[i * n + j] -= m[i * n + k] * m[j * n + k];
        }
        __syncthreads();
    }
    for (int at = threadIdx.x; at < n * n; at += blockDim.x) l[blockIdx.x * n * n + at] = at % n <= at / n ? m[at] : 0;
}

// Gravity: tiles of bodies in shared memory, with the approximate reciprocal square root.
extern "C" __global__ void bodies(int n, const float4* body, float3* force) {
    __shared__ float4 tile[64];
    int at = blockIdx.x * 64 + threadIdx.x;
    float4 own = at < n ? body[at] : make_float4(0, 0, 0, 0);
    float3 sum = make_float3(0, 0, 0);
    for (int first = 0; first < n; first += 64) {
        int other = first + threadIdx.x;
        tile[threadIdx.x] = other < n ? body[other] : make_float4(0, 0, 0, 0);
        __syncthreads();
#pragma unroll 8
        for (int j = 0; j < 64; j++) {
            float dx = tile[j].x - own.x, dy = tile[j].y - own.y, dz = tile[j].z - own.z;
            float r = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
            float s = tile[j].w * r * r * r;
            sum.x += dx * s, sum.y += dy * s, sum.z += dz * s;
        }
        __syncthreads();
    }
    if (at < n) force[at] = sum;
}

// Threads of different blocks, one a warp, take a lock with tickets and change two words together.
extern "C" __global__ void ticket_lock(unsigned* next, unsigned* serving, int* account, int rounds) {
    if (threadIdx.x % 32 != 0) return;
    for (int i = 0; i < rounds; i++) {
        unsigned mine = atomicAdd(next, 1), wait = 8;
        while (atomicAdd(serving, 0) != mine) {
            __nanosleep(wait);
            wait = min(wait * 2, 256u);
        }
        __threadfence();
        int old = account[0];
        account[0] = old + 3;
        account[1] = account[1] - 3;
        if (old + account[1] + 3 != 0) account[2] = 1;
        __threadfence();
        atomicAdd(serving, 1);
    }
}

__device__ float atomic_min(float* to, float value) {
    return value >= 0 ? __int_as_float(atomicMin((int*)to, __float_as_int(value)))
                      : __uint_as_float(atomicMax((unsigned*)to, __float_as_uint(value)));
}

// Smallest and largest of a row, by the bits of floats, in global memory and in shared memory.
extern "C" __global__ void extremes(int cols, const float* x, float* low, float* high) {
    __shared__ float least;
    __shared__ unsigned most;
    if (threadIdx.x == 0) least = INFINITY, most = 0;
    __syncthreads();
    for (int c = threadIdx.x; c < cols; c += blockDim.x) {
        float v = x[blockIdx.x * cols + c];
        atomic_min(&least, v);
        atomic_min(low, v);
        unsigned bits = __float_as_uint(v);
        atomicMax(&most, bits >> 31 ? ~bits : bits | 0x80000000u);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned bits = most;
        high[blockIdx.x * 2] = least;
        high[blockIdx.x * 2 + 1] = __uint_as_float(bits >> 31 ? bits & 0x7fffffffu : ~bits);
    }
}

// Time passes, and every clock of a thread goes on; the timer of the whole device too.
extern "C" __global__ void clocks(unsigned* z) {
    clock_t a = clock();
    long long b = clock64();
    unsigned long long g, h;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(g));
    float s = threadIdx.x;
    for (int i = 0; i < 50; i++) s = s * 1.5f + 1.0f;
    __nanosleep(1000);
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(h));
    unsigned later = (unsigned)clock() - (unsigned)a > 0, longer = clock64() > b;
    unsigned smid;
    asm("mov.u32 %0, %smid;" : "=r"(smid));
    z[threadIdx.x] = later | longer << 1 | (h >= g) << 2 | (smid < 1024) << 3 | (s > 0) << 4;
}

// Montgomery's exponentiation modulo an odd number of 64 bits.
__device__ uint64_t redc(uint64_t a, uint64_t b, uint64_t n, uint64_t inverse) {
    uint64_t low = a * b, high = __umul64hi(a, b), q = low * inverse, over = __umul64hi(q, n);
    return high >= over ? high - over : high - over + n;
}
extern "C" __global__ void powers(int count, const uint64_t* base, const uint64_t* exponent, const uint64_t* modulus, uint64_t* z) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= count) return;
    uint64_t n = modulus[at], inverse = 1;
    for (int i = 0; i < 6; i++) inverse *= 2 - n * inverse;
    unsigned __int128 one = ((unsigned __int128)1 << 64) % n;
    uint64_t r = (uint64_t)one, x = (uint64_t)(((unsigned __int128)(base[at] % n) << 64) % n);
    for (uint64_t e = exponent[at]; e; e >>= 1) {
        if (e & 1) r = redc(r, x, n, inverse);
        x = redc(x, x, n, inverse);
    }
    z[at] = redc(r, 1, n, inverse);
}

// Insertion sort of a private array, indexed while it runs, and a median filter of it.
extern "C" __global__ void median(int n, int radius, const short* x, short* z) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= n) return;
    short window[33];
    int count = 0;
    for (int i = max(at - radius, 0); i <= min(at + radius, n - 1); i++) {
        short v = x[i];
        int j = count++;
        while (j > 0 && window[j - 1] > v) {
            window[j] = window[j - 1];
            j--;
        }
        window[j] = v;
    }
    z[at] = window[count / 2];
}
