// Tensor cores: wmma, and mma.sync with ldmatrix and cp.async.
#include <mma.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
using namespace nvcuda;

extern "C" __global__ void wmma_f16(int m, int n, int k, const half *a, const half *b, float *c) {
    int row = blockIdx.y * 16, col = blockIdx.x * 16;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
    wmma::fill_fragment(fc, 0.0f);
    for (int i = 0; i < k; i += 16) {
        wmma::load_matrix_sync(fa, a + row * k + i, k);
        wmma::load_matrix_sync(fb, b + col * k + i, k);
        wmma::mma_sync(fc, fa, fb, fc);
    }
    for (int i = 0; i < fc.num_elements; i++) fc.x[i] *= 0.5f;
    wmma::store_matrix_sync(c + row * n + col, fc, n, wmma::mem_row_major);
}

extern "C" __global__ void wmma_s8(int n, int k, const signed char *a, const signed char *b, int *c) {
    __shared__ int tile[256];
    int row = blockIdx.y * 16, col = blockIdx.x * 16;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::row_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, int> fc;
    wmma::fill_fragment(fc, 0);
    for (int i = 0; i < k; i += 16) {
        wmma::load_matrix_sync(fa, a + row * k + i, k);
        wmma::load_matrix_sync(fb, b + i * n + col, n);
        wmma::mma_sync(fc, fa, fb, fc);
    }
    wmma::store_matrix_sync(tile, fc, 16, wmma::mem_col_major);
    __syncwarp();
    for (int i = threadIdx.x; i < 256; i += 32) c[(row + i / 16) * n + col + i % 16] = tile[i % 16 * 16 + i / 16];
}

__device__ __forceinline__ void copy16(void *to, const void *from, bool valid) {
    unsigned at = (unsigned)__cvta_generic_to_shared(to);
    int bytes = valid ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(bytes) : "memory");
}

// C (m × n, f32) = A (m × k, bf16, row) · B (n × k, bf16, row)ᵀ, 64 × 64 × 32 tiles, two stages, four warps.
extern "C" __global__ void __launch_bounds__(128) gemm_bf16(int m, int n, int k, const __nv_bfloat16 *a, const __nv_bfloat16 *b, float *c) {
    __shared__ __align__(128) __nv_bfloat16 sa[2][64][40], sb[2][64][40];
    int t = threadIdx.x, lane = t & 31, warp = t >> 5;
    int row0 = blockIdx.y * 64, col0 = blockIdx.x * 64;
    float acc[2][4][4] = {};
    auto load = [&](int stage, int k0) {
        for (int i = t; i < 256; i += 128) {
            int r = i / 4, q = i % 4 * 8;
            copy16(&sa[stage][r][q], a + (size_t)min(row0 + r, m - 1) * k + k0 + q, row0 + r < m);
            copy16(&sb[stage][r][q], b + (size_t)min(col0 + r, n - 1) * k + k0 + q, col0 + r < n);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    load(0, 0);
    for (int k0 = 0, stage = 0; k0 < k; k0 += 32, stage ^= 1) {
        if (k0 + 32 < k) load(stage ^ 1, k0 + 32);
        else asm volatile("cp.async.commit_group;" ::: "memory");
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncthreads();
        for (int kk = 0; kk < 32; kk += 16) {
            unsigned fa[2][4], fb[4][2];
            for (int i = 0; i < 2; i++) {
                unsigned at = (unsigned)__cvta_generic_to_shared(&sa[stage][(warp / 2) * 32 + i * 16 + lane % 16][kk + lane / 16 * 8]);
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                    : "=r"(fa[i][0]), "=r"(fa[i][1]), "=r"(fa[i][2]), "=r"(fa[i][3]) : "r"(at) : "memory");
            }
            for (int j = 0; j < 4; j++) {
                unsigned at = (unsigned)__cvta_generic_to_shared(&sb[stage][(warp % 2) * 32 + j * 8 + lane % 8][kk + lane / 8 % 2 * 8]);
                asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];" : "=r"(fb[j][0]), "=r"(fb[j][1]) : "r"(at) : "memory");
            }
            for (int i = 0; i < 2; i++)
                for (int j = 0; j < 4; j++)
                    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                        : "+f"(acc[i][j][0]), "+f"(acc[i][j][1]), "+f"(acc[i][j][2]), "+f"(acc[i][j][3])
                        : "r"(fa[i][0]), "r"(fa[i][1]), "r"(fa[i][2]), "r"(fa[i][3]), "r"(fb[j][0]), "r"(fb[j][1]));
        }
        __syncthreads();
    }
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 4; j++)
            for (int e = 0; e < 4; e++) {
                int r = row0 + (warp / 2) * 32 + i * 16 + lane / 4 + e / 2 * 8, q = col0 + (warp % 2) * 32 + j * 8 + lane % 4 * 2 + e % 2;
                if (r < m && q < n) c[(size_t)r * n + q] = acc[i][j][e];
            }
}

// One warp, B given k-major: ldmatrix.trans. f16 accumulators.
extern "C" __global__ void mma_trans(const half *a, const half *b, half *c) {
    __shared__ __align__(16) half sa[16][16], sb[16][8];
    for (int i = threadIdx.x; i < 256; i += 32) sa[i / 16][i % 16] = a[i];
    for (int i = threadIdx.x; i < 128; i += 32) sb[i / 8][i % 8] = b[i];
    __syncwarp();
    unsigned fa[4], fb[2], fc[2] = {0, 0};
    int lane = threadIdx.x;
    unsigned at = (unsigned)__cvta_generic_to_shared(&sa[lane % 16][lane / 16 * 8]), bt = (unsigned)__cvta_generic_to_shared(&sb[lane % 16][0]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(fa[0]), "=r"(fa[1]), "=r"(fa[2]), "=r"(fa[3]) : "r"(at));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(fb[0]), "=r"(fb[1]) : "r"(bt));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%0,%1};"
        : "+r"(fc[0]), "+r"(fc[1]) : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]));
    *(unsigned *)&c[(lane / 4) * 8 + lane % 4 * 2] = fc[0];
    *(unsigned *)&c[(lane / 4 + 8) * 8 + lane % 4 * 2] = fc[1];
}

// f64, tf32 and u8 products of one warp.
extern "C" __global__ void mma_types(const double *a, const double *b, double *c, const float *ta, const float *tb, float *tc,
                                     const unsigned char *ua, const unsigned char *ub, int *uc) {
    int lane = threadIdx.x, g = lane / 4, q = lane % 4;
    double d0 = 0, d1 = 0;
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
        : "+d"(d0), "+d"(d1) : "d"(a[g * 4 + q]), "d"(b[q * 8 + g]));
    c[g * 8 + 2 * q] = d0;
    c[g * 8 + 2 * q + 1] = d1;
    unsigned fa[4], fb[2];
    float acc[4] = {};
    for (int i = 0; i < 4; i++) asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(fa[i]) : "f"(ta[(g + i % 2 * 8) * 8 + q + i / 2 * 4]));
    for (int i = 0; i < 2; i++) asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(fb[i]) : "f"(tb[(q + i * 4) * 8 + g]));
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3]) : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]));
    for (int i = 0; i < 4; i++) tc[(g + i / 2 * 8) * 8 + 2 * q + i % 2] = acc[i];
    int sum[4] = {};
    for (int i = 0; i < 4; i++) fa[i] = *(const unsigned *)&ua[(g + i % 2 * 8) * 32 + q * 4 + i / 2 * 16];
    for (int i = 0; i < 2; i++) fb[i] = *(const unsigned *)&ub[g * 32 + q * 4 + i * 16];
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3]) : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]));
    for (int i = 0; i < 4; i++) uc[(g + i / 2 * 8) * 8 + 2 * q + i % 2] = sum[i];
}
