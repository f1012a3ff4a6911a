// Integer instructions, by intrinsics and by inline PTX.
extern "C" __global__ void bits(int n, const unsigned *x, const unsigned *y, unsigned *z) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned a = x[i], b = y[i], *out = z + i * 32, r;
    unsigned long long w = (unsigned long long)a << 32 | b;
    out[0] = __popc(a);
    out[1] = __clz(a);
    out[2] = __brev(a);
    out[3] = __ffs(a);
    out[4] = __byte_perm(a, b, b & 0x7777);
    out[5] = __funnelshift_l(a, b, b & 31);
    out[6] = __funnelshift_rc(a, b, b & 63);
    out[7] = __umulhi(a, b);
    out[8] = __mulhi((int)a, (int)b);
    out[9] = __umul24(a, b);
    out[10] = __mul24((int)a, (int)b);
    out[11] = __usad(a, b, 7);
    out[12] = __sad((int)a, (int)b, 7);
    out[13] = __dp4a((int)a, (int)b, 11);
    out[14] = __dp4a(a, b, 11u);
    out[15] = __dp2a_lo((int)a, (int)b, 5);
    out[16] = __popcll(w);
    out[17] = __clzll(w);
    out[18] = (unsigned)(__brevll(w) >> 17);
    out[19] = (unsigned)(__umul64hi(w, w + 12345) ^ (w * 77));
    asm("bfe.u32 %0, %1, 5, 11;" : "=r"(r) : "r"(a));
    out[20] = r;
    asm("bfe.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b & 31), "r"(b >> 27));
    out[21] = r;
    asm("bfi.b32 %0, %1, %2, %3, 9;" : "=r"(r) : "r"(a), "r"(b), "r"(a & 31));
    out[22] = r;
    asm("bfind.shiftamt.u32 %0, %1;" : "=r"(r) : "r"(a));
    out[23] = r;
    asm("bfind.s32 %0, %1;" : "=r"(r) : "r"(a));
    out[24] = r;
    asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(r) : "r"(a), "r"(b), "r"(a >> 3));
    out[25] = r;
    asm("{ .reg .u32 lo, hi; add.cc.u32 lo, %1, %2; addc.u32 hi, 0, 0; xor.b32 %0, lo, hi; }" : "=r"(r) : "r"(a), "r"(b));
    out[26] = r;
    asm("mad24.lo.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(b));
    out[27] = r;
    asm("prmt.b32.f4e %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(a & 3));
    out[28] = r;
    out[29] = b ? a / b : 0;
    out[30] = b ? (unsigned)((int)a % (int)b) : 0;
    out[31] = __vadd4(a, b) ^ __vmaxs2(a, b) ^ __vabsdiffu4(a, b);
}

extern "C" __global__ void warp_votes(const int *x, unsigned *z) {
    int v = x[threadIdx.x];
    unsigned *out = z + threadIdx.x * 8;
    out[0] = __ballot_sync(~0u, v & 1);
    out[1] = __any_sync(~0u, v > 1000) | __all_sync(~0u, v >= 0) << 1 | __all_sync(~0u, v == x[0]) << 2;
    out[2] = __reduce_add_sync(~0u, v);
    out[3] = __reduce_min_sync(~0u, v) ^ __reduce_max_sync(~0u, (unsigned)v);
    out[4] = __reduce_xor_sync(~0u, (unsigned)v) ^ __reduce_and_sync(~0u, (unsigned)v | 3) ^ __reduce_or_sync(~0u, (unsigned)v);
    out[5] = __syncthreads_count(v & 1);
    out[6] = __syncthreads_and(v >= 0) | __syncthreads_or(v > 90) << 1;
    if (threadIdx.x & 1) out[7] = __shfl_sync(0xaaaaaaaau, v, 3) + __popc(__activemask());
    else out[7] = __shfl_sync(0x55555555u, v, (threadIdx.x + 2) & 31, 16);
    unsigned lt, ge;
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(lt));
    asm("mov.u32 %0, %%lanemask_ge;" : "=r"(ge));
    out[7] += lt ^ ge;
}
