// Warp operations of sm_80, wide shuffles, hints, integers of 64 and 128 bits.
extern "C" __global__ void warp_ops(const int *x, unsigned *z, double *zd, unsigned long long *zl) {
    int t = threadIdx.x, lane = t & 31;
    int v = x[t];
    z[t * 8] = __reduce_add_sync(0xffffffff, v);
    z[t * 8 + 1] = __reduce_min_sync(0xffffffff, v);
    z[t * 8 + 2] = __reduce_max_sync(0xffffffff, (unsigned)v);
    z[t * 8 + 3] = __reduce_and_sync(0xffffffff, v) | __reduce_or_sync(0xffffffff, v) << 1 | __reduce_xor_sync(0xffffffff, v) << 2;
    int all;
    unsigned mask = __match_all_sync(0xffffffff, v >> 20, &all);
    z[t * 8 + 4] = mask + all;
    z[t * 8 + 5] = __match_any_sync(0xffffffff, (unsigned long long)(v & 3) << 40);
    if (lane < 16) {
        z[t * 8 + 6] = __reduce_add_sync(0xffff, v);
        z[t * 8 + 7] = __shfl_xor_sync(0xffff, v, 3, 8) + (__activemask() == 0xffff);
    } else {
        z[t * 8 + 6] = __any_sync(0xffff0000, v > 90) * 2 + __all_sync(0xffff0000, v >= 0);
        z[t * 8 + 7] = __ballot_sync(0xffff0000, v & 1);
    }
    __syncwarp();
    zd[t] = __shfl_down_sync(0xffffffff, v * 0.5, 3) + __shfl_sync(0xffffffff, v * 2.0, 40 + lane, 16);
    zl[t] = __shfl_up_sync(0xffffffff, (unsigned long long)v << 33, 1, 4);
}

extern "C" __global__ void wide_integers(int n, const long long *x, const long long *y, long long *q, unsigned long long *u) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    long long a = x[i], b = y[i];
    q[4 * i] = a / b;
    q[4 * i + 1] = a % b;
    q[4 * i + 2] = __mul64hi(a, b);
    q[4 * i + 3] = __clzll(a) + 100 * __ffsll(b) + 10000 * __popcll(a ^ b);
    unsigned long long c = a, d = b;
    u[4 * i] = c / d;
    u[4 * i + 1] = c % d;
    u[4 * i + 2] = __umul64hi(c, d);
    u[4 * i + 3] = __brevll(c) ^ __usad(a, b, 5);
}

extern "C" __global__ void int128(int n, const unsigned long long *x, const unsigned long long *y, unsigned long long *z) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned __int128 a = (unsigned __int128)x[i] * y[i] + x[i];
    __int128 b = -(__int128)y[i] * 3;
    unsigned __int128 s = (a << 7 | a >> 121) - (unsigned __int128)b;
    unsigned __int128 d = a / (y[i] | 1), m = a % ((unsigned __int128)y[i] << 9 | 1);
    z[8 * i] = (unsigned long long)a;
    z[8 * i + 1] = (unsigned long long)(a >> 64);
    z[8 * i + 2] = (unsigned long long)s;
    z[8 * i + 3] = (unsigned long long)(s >> 64);
    z[8 * i + 4] = (unsigned long long)d;
    z[8 * i + 5] = (unsigned long long)(d >> 64);
    z[8 * i + 6] = (unsigned long long)m;
    z[8 * i + 7] = (unsigned long long)(m >> 64);
}

// Accesses with every hint, vectors of every size, volatile.
extern "C" __global__ void accesses(const char *__restrict__ x, char *z, volatile int *v, float4 *f4, const double2 *__restrict__ d2, double2 *zd) {
    int i = threadIdx.x;
    const char4 *c4 = (const char4 *)x;
    const uchar2 *c2 = (const uchar2 *)(x + 256);
    const short4 *s4 = (const short4 *)(x + 512);
    char4 a = __ldg(c4 + i);
    uchar2 b = __ldcs(c2 + i);
    short4 c = __ldcg(s4 + i);
    int2 d = __ldlu((const int2 *)x + i);
    ushort2 e = __ldcv((const ushort2 *)x + i);
    int4 r = make_int4(a.x + a.w, b.x * b.y, c.x - c.w + c.y, d.x ^ d.y + e.x);
    __stcs((int4 *)z + i, r);
    __stcg((int2 *)(z + 1024) + i, make_int2(a.y, c.z));
    __stwb((short2 *)(z + 2048) + i, make_short2(b.y, e.y));
    __stwt((unsigned char *)(z + 4096) + i, b.x);
    v[i] = i * 3;
    int s = v[i] + 1;
    v[i] = s;
    float4 g = f4[i];
    f4[i] = make_float4(g.w, g.z, g.y, g.x);
    double2 h = d2[i];
    zd[i] = make_double2(h.y, -h.x);
}

extern "C" __global__ void philox(unsigned seed, int n, float keep, const float *x, float *z, unsigned *bits) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned c[4] = {(unsigned)i, 0, 0, 0}, k[2] = {seed, 0xdeadbeef};
    for (int round = 0; round < 10; round++) {
        unsigned h0 = __umulhi(0xD2511F53u, c[0]), l0 = 0xD2511F53u * c[0];
        unsigned h1 = __umulhi(0xCD9E8D57u, c[2]), l1 = 0xCD9E8D57u * c[2];
        c[0] = h1 ^ c[1] ^ k[0];
        c[1] = l1;
        c[2] = h0 ^ c[3] ^ k[1];
        c[3] = l0;
        k[0] += 0x9E3779B9u;
        k[1] += 0xBB67AE85u;
    }
    for (int j = 0; j < 4; j++)
        if (i * 4 + j < n) {
            float uniform = (c[j] >> 8) * (1.0f / 16777216.0f);
            bits[i * 4 + j] = c[j];
            z[i * 4 + j] = uniform < keep ? x[i * 4 + j] / keep : 0.0f;
        }
}

// SIMD in a word: nvcc has instructions for some, sequences for others.
extern "C" __global__ void simd_words(int n, const unsigned *x, const unsigned *y, unsigned *z) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned a = x[i], b = y[i], *o = z + 16 * i;
    o[0] = __vadd4(a, b);
    o[1] = __vsub2(a, b);
    o[2] = __vavgu4(a, b);
    o[3] = __vmaxs2(a, b);
    o[4] = __vminu4(a, b);
    o[5] = __vabsdiffu4(a, b);
    o[6] = __vsadu4(a, b);
    o[7] = __vcmpgtu2(a, b);
    o[8] = __vaddss2(a, b);
    o[9] = __vsubus4(a, b);
    o[10] = __vneg4(a);
    o[11] = __vabsss4(b);
    o[12] = __vseteq4(a, b);
    o[13] = __viaddmax_s32(a, b, 5) + __vimin3_u32(a, b, 1u << 30);
    bool high, low;
    o[14] = __vibmax_s16x2(a, b, &high, &low);
    o[14] += high + 2 * low;
    o[15] = __hadd(a, b) + __uhadd(a, b) + __urhadd(a, b) + __rhadd(a, b);
}
