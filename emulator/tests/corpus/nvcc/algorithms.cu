// Whole algorithms: scans that look back, transforms, graphs, hashing, dynamic programming.
#include <stdint.h>

// A single-pass scan: each block publishes its sum, then its prefix, and looks back at its predecessors' (status in the upper word).
extern "C" __global__ void scan_lookback(int n, const unsigned* x, unsigned* z, unsigned long long* status, unsigned* ticket) {
    __shared__ unsigned warp_sums[4], exclusive, tile;
    if (threadIdx.x == 0) tile = atomicAdd(ticket, 1);
    __syncthreads();
    unsigned at = tile * blockDim.x + threadIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    unsigned value = at < n ? x[at] : 0, sum = value;
    for (int d = 1; d < 32; d <<= 1) {
        unsigned other = __shfl_up_sync(~0u, sum, d);
        if (lane >= d) sum += other;
    }
    if (lane == 31) warp_sums[warp] = sum;
    __syncthreads();
    unsigned before = 0, total = 0;
    for (int w = 0; w < blockDim.x / 32; w++) {
        if (w < warp) before += warp_sums[w];
        total += warp_sums[w];
    }
    if (threadIdx.x == 0) {
        volatile unsigned long long* all = status;
        if (tile == 0) {
            __threadfence();
            all[0] = 2ull << 32 | total;
            exclusive = 0;
        } else {
            all[tile] = 1ull << 32 | total;
            unsigned prefix = 0;
            for (int back = (int)tile - 1; back >= 0;) {
                unsigned long long seen = all[back];
                unsigned kind = (unsigned)(seen >> 32);
                if (kind == 0) { __nanosleep(20); continue; }
                prefix += (unsigned)seen;
                if (kind == 2) break;
                back--;
            }
            __threadfence();
            all[tile] = 2ull << 32 | (prefix + total);
            exclusive = prefix;
        }
    }
    __syncthreads();
    if (at < n) z[at] = exclusive + before + sum;
}

// A transform of 256 points a block, radix 2, decimation in time, in dynamic shared memory.
extern "C" __global__ void fft(const float2* x, float2* z, int inverse) {
    extern __shared__ float2 points[];
    const int n = 256;
    int t = threadIdx.x;
    points[__brev(t) >> 24] = x[blockIdx.x * n + t];
    points[__brev(t + 128) >> 24] = x[blockIdx.x * n + t + 128];
    __syncthreads();
    for (int half = 1; half < n; half <<= 1) {
        int k = t & (half - 1), i = ((t & ~(half - 1)) << 1) | k;
        float s, c;
        sincospif((inverse ? 1.0f : -1.0f) * (float)k / (float)half, &s, &c);
        float2 a = points[i], b = points[i + half];
        float2 r = make_float2(b.x * c - b.y * s, b.x * s + b.y * c);
        __syncthreads();
        points[i] = make_float2(a.x + r.x, a.y + r.y);
        points[i + half] = make_float2(a.x - r.x, a.y - r.y);
        __syncthreads();
    }
    z[blockIdx.x * n + t] = points[t];
    z[blockIdx.x * n + t + 128] = points[t + 128];
}

// One level of a breadth-first search: a warp appends what it found with one atomic.
extern "C" __global__ void bfs_level(int frontier, int level, const int* queue, const int* start, const int* edge, int* depth, int* next, int* count) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    int node = at < frontier ? queue[at] : -1;
    int e = node >= 0 ? start[node] : 0, end = node >= 0 ? start[node + 1] : 0;
    while (__any_sync(~0u, e < end)) {
        bool found = false;
        int to = 0;
        if (e < end) {
            to = edge[e++];
            found = atomicCAS(&depth[to], -1, level + 1) == -1;
        }
        unsigned mask = __ballot_sync(~0u, found);
        if (mask) {
            int base = 0, leader = __ffs(mask) - 1, lane = threadIdx.x & 31;
            if (lane == leader) base = atomicAdd(count, __popc(mask));
            base = __shfl_sync(~0u, base, leader);
            if (found) next[base + __popc(mask & ((1u << lane) - 1))] = to;
        }
    }
}

// Open addressing: keys are put in with compare and swap, values are counted.
extern "C" __global__ void hash_count(int n, unsigned slots, const unsigned* key, unsigned* table, unsigned* count) {
    for (int at = blockIdx.x * blockDim.x + threadIdx.x; at < n; at += gridDim.x * blockDim.x) {
        unsigned k = key[at], h = k * 2654435761u;
        for (unsigned probe = 0;; probe++) {
            unsigned slot = (h + probe) % slots;
            unsigned old = atomicCAS(&table[slot], 0xffffffffu, k);
            if (old == 0xffffffffu || old == k) {
                atomicAdd(&count[slot], 1);
                break;
            }
        }
    }
}

// Edit distance of two strings by anti-diagonals.
extern "C" __global__ void edit_distance(int n, int m, const char* a, const char* b, int* result) {
    __shared__ int line[3][130];
    for (int d = 0; d <= n + m; d++) {
        for (int i = threadIdx.x; i <= n; i += blockDim.x) {
            int j = d - i;
            if (j < 0 || j > m) continue;
            int best;
            if (i == 0) best = j;
            else if (j == 0) best = i;
            else {
                best = min(line[(d + 2) % 3][i - 1], line[(d + 2) % 3][i]) + 1;
                best = min(best, line[(d + 1) % 3][i - 1] + (a[i - 1] != b[j - 1]));
            }
            line[d % 3][i] = best;
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) *result = line[(n + m) % 3][n];
}

__constant__ unsigned sha_k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
    0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
    0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
    0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
    0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
    0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

__device__ __forceinline__ unsigned rotr(unsigned x, int n) { return __funnelshift_r(x, x, n); }

// SHA-256 of messages of 32 bytes, with a message schedule that is indexed while the kernel runs.
extern "C" __global__ void sha256(int n, const unsigned char* message, unsigned char* digest) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= n) return;
    unsigned w[16], h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}, v[8];
    for (int i = 0; i < 8; i++) w[i] = __byte_perm(((const unsigned*)message)[at * 8 + i], 0, 0x0123);
    for (int i = 9; i < 15; i++) w[i] = 0;
    w[8] = 0x80000000u, w[15] = 256;
    for (int i = 0; i < 8; i++) v[i] = h[i];
#pragma unroll 1
    for (int i = 0; i < 64; i++) {
        unsigned& word = w[i & 15];
        if (i >= 16) {
            unsigned a = w[(i + 1) & 15], b = w[(i + 14) & 15];
            word += (rotr(a, 7) ^ rotr(a, 18) ^ a >> 3) + w[(i + 9) & 15] + (rotr(b, 17) ^ rotr(b, 19) ^ b >> 10);
        }
        unsigned t = v[7] + (rotr(v[4], 6) ^ rotr(v[4], 11) ^ rotr(v[4], 25)) + ((v[4] & v[5]) ^ (~v[4] & v[6])) + sha_k[i] + word;
        unsigned s = (rotr(v[0], 2) ^ rotr(v[0], 13) ^ rotr(v[0], 22)) + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
        for (int j = 7; j > 0; j--) v[j] = v[j - 1];
        v[4] += t, v[0] = t + s;
    }
    for (int i = 0; i < 8; i++) ((unsigned*)digest)[at * 8 + i] = __byte_perm(h[i] + v[i], 0, 0x0123);
}
