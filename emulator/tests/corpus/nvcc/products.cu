// Products: several stages of cp.async with ldmatrix and mma of different types, wmma with loads of every layout.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>
using namespace nvcuda;

// C = A·B of halves: 64 × 64 × 32 tiles, three stages, B row-major through ldmatrix.trans, padding against bank conflicts.
extern "C" __global__ void __launch_bounds__(128) gemm_stages(int m, int n, int k, const half *a, const half *b, float *c) {
    constexpr int S = 3;
    __shared__ __align__(16) half ta[S][64][32 + 8], tb[S][32][64 + 8];
    int t = threadIdx.x, warp = t / 32, lane = t % 32, m0 = blockIdx.y * 64, n0 = blockIdx.x * 64;
    int wm = warp / 2 * 32, wn = warp % 2 * 32;
    float acc[2][4][4] = {};
    auto fetch = [&](int stage, int k0) {
        for (int i = t; i < 256; i += 128) {
            int ra = i / 4, ca = i % 4 * 8, rb = i / 8, cb = i % 8 * 8;
            bool ina = m0 + ra < m, inb = n0 + cb < n;
            __pipeline_memcpy_async(&ta[stage][ra][ca], ina ? &a[(m0 + ra) * k + k0 + ca] : a, 16, ina ? 0 : 16);
            __pipeline_memcpy_async(&tb[stage][rb][cb], inb ? &b[(k0 + rb) * n + n0 + cb] : b, 16, inb ? 0 : 16);
        }
    };
    int tiles = k / 32;
    for (int s = 0; s < S - 1; s++) {
        if (s < tiles) fetch(s, s * 32);
        __pipeline_commit();
    }
    for (int i = 0; i < tiles; i++) {
        __pipeline_wait_prior(S - 2);
        __syncthreads();
        if (i + S - 1 < tiles) fetch((i + S - 1) % S, (i + S - 1) * 32);
        __pipeline_commit();
        auto &sa = ta[i % S];
        auto &sb = tb[i % S];
        for (int kk = 0; kk < 32; kk += 16) {
            unsigned fa[2][4], fb[4][2];
            for (int x = 0; x < 2; x++) {
                unsigned at = (unsigned)__cvta_generic_to_shared(&sa[wm + x * 16 + lane % 16][kk + lane / 16 * 8]);
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(fa[x][0]), "=r"(fa[x][1]), "=r"(fa[x][2]), "=r"(fa[x][3]) : "r"(at));
            }
            for (int y = 0; y < 4; y++) {
                unsigned at = (unsigned)__cvta_generic_to_shared(&sb[kk + lane % 16][wn + y * 8]);
                asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(fb[y][0]), "=r"(fb[y][1]) : "r"(at));
            }
            for (int x = 0; x < 2; x++)
                for (int y = 0; y < 4; y++)
                    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                        : "+f"(acc[x][y][0]), "+f"(acc[x][y][1]), "+f"(acc[x][y][2]), "+f"(acc[x][y][3])
                        : "r"(fa[x][0]), "r"(fa[x][1]), "r"(fa[x][2]), "r"(fa[x][3]), "r"(fb[y][0]), "r"(fb[y][1]));
        }
    }
    for (int x = 0; x < 2; x++)
        for (int y = 0; y < 4; y++)
            for (int e = 0; e < 4; e++) {
                int r = m0 + wm + x * 16 + lane / 4 + e / 2 * 8, col = n0 + wn + y * 8 + lane % 4 * 2 + e % 2;
                if (r < m && col < n) c[r * n + col] = acc[x][y][e];
            }
}

// wmma: bf16 of 32 × 8 × 16 with a column-major A, tf32, double, s4, through shared memory.
extern "C" __global__ void wmma_types(const __nv_bfloat16 *a, const __nv_bfloat16 *b, float *c, const float *ta, const float *tb, float *tc,
                                      const double *da, const double *db, double *dc, const half *ha, const half *hb, half *hc) {
    __shared__ __align__(32) float room[32 * 8];
    wmma::fragment<wmma::matrix_a, 32, 8, 16, __nv_bfloat16, wmma::col_major> fa;
    wmma::fragment<wmma::matrix_b, 32, 8, 16, __nv_bfloat16, wmma::row_major> fb;
    wmma::fragment<wmma::accumulator, 32, 8, 16, float> fc;
    wmma::fill_fragment(fc, 0.5f);
    wmma::load_matrix_sync(fa, a, 32);
    wmma::load_matrix_sync(fb, b, 8);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(room, fc, 32, wmma::mem_col_major);
    __syncwarp();
    for (int i = threadIdx.x; i < 256; i += 32) c[i] = room[i % 8 * 32 + i / 8];

    wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> ga;
    wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::col_major> gb;
    wmma::fragment<wmma::accumulator, 16, 16, 8, float> gc;
    wmma::fill_fragment(gc, 0.0f);
    wmma::load_matrix_sync(ga, ta, 8);
    wmma::load_matrix_sync(gb, tb, 8);
    for (int i = 0; i < ga.num_elements; i++) ga.x[i] = wmma::__float_to_tf32(ga.x[i]);
    for (int i = 0; i < gb.num_elements; i++) gb.x[i] = wmma::__float_to_tf32(gb.x[i]);
    wmma::mma_sync(gc, ga, gb, gc);
    wmma::store_matrix_sync(tc, gc, 16, wmma::mem_row_major);

    wmma::fragment<wmma::matrix_a, 8, 8, 4, double, wmma::row_major> pa;
    wmma::fragment<wmma::matrix_b, 8, 8, 4, double, wmma::row_major> pb;
    wmma::fragment<wmma::accumulator, 8, 8, 4, double> pc;
    wmma::load_matrix_sync(pc, dc, 8, wmma::mem_row_major);
    wmma::load_matrix_sync(pa, da, 4);
    wmma::load_matrix_sync(pb, db, 8);
    wmma::mma_sync(pc, pa, pb, pc);
    for (int i = 0; i < pc.num_elements; i++) pc.x[i] *= 2;
    wmma::store_matrix_sync(dc, pc, 8, wmma::mem_row_major);

    wmma::fragment<wmma::matrix_a, 8, 32, 16, half, wmma::row_major> qa;
    wmma::fragment<wmma::matrix_b, 8, 32, 16, half, wmma::col_major> qb;
    wmma::fragment<wmma::accumulator, 8, 32, 16, half> qc;
    wmma::fill_fragment(qc, __float2half(0));
    wmma::load_matrix_sync(qa, ha, 16);
    wmma::load_matrix_sync(qb, hb, 16);
    wmma::mma_sync(qc, qa, qb, qc);
    wmma::store_matrix_sync(hc, qc, 32, wmma::mem_row_major);
}

// Integers of 4 bits and of 1 bit.
extern "C" __global__ void small_integers(const unsigned *a, const unsigned *b, int *c, int *d) {
    using namespace wmma::experimental;
    wmma::fragment<wmma::matrix_a, 8, 8, 32, precision::s4, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 8, 8, 32, precision::s4, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 8, 8, 32, int> fc;
    wmma::fill_fragment(fc, 0);
    wmma::load_matrix_sync(fa, a, 32);
    wmma::load_matrix_sync(fb, b, 32);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(c, fc, 8, wmma::mem_row_major);
    wmma::fragment<wmma::matrix_a, 8, 8, 128, precision::b1, wmma::row_major> ga;
    wmma::fragment<wmma::matrix_b, 8, 8, 128, precision::b1, wmma::col_major> gb;
    wmma::fragment<wmma::accumulator, 8, 8, 128, int> gc;
    wmma::fill_fragment(gc, 1);
    wmma::load_matrix_sync(ga, a, 128);
    wmma::load_matrix_sync(gb, b, 128);
    bmma_sync(gc, ga, gb, gc, bmmaBitOpAND);
    wmma::store_matrix_sync(d, gc, 8, wmma::mem_row_major);
}

// Register blocking without tensor cores: 64 × 64 tiles, 4 × 4 a thread, vectors of four.
extern "C" __global__ void __launch_bounds__(256) sgemm(int m, int n, int k, float alpha, float beta, const float *a, const float *b, float *c) {
    __shared__ float ta[8][64 + 4], tb[8][64];
    int t = threadIdx.x, tx = t % 16, ty = t / 16, m0 = blockIdx.y * 64, n0 = blockIdx.x * 64;
    float acc[4][4] = {};
    for (int k0 = 0; k0 < k; k0 += 8) {
        if (t < 128) {
            int r = t / 2, q = t % 2 * 4;
            float4 v = m0 + r < m ? *(const float4 *)&a[(m0 + r) * k + k0 + q] : make_float4(0, 0, 0, 0);
            ta[q][r] = v.x; ta[q + 1][r] = v.y; ta[q + 2][r] = v.z; ta[q + 3][r] = v.w;
        } else {
            int r = (t - 128) / 16, q = t % 16 * 4;
            *(float4 *)&tb[r][q] = n0 + q < n ? *(const float4 *)&b[(k0 + r) * n + n0 + q] : make_float4(0, 0, 0, 0);
        }
        __syncthreads();
#pragma unroll
        for (int kk = 0; kk < 8; kk++) {
            float4 x = *(float4 *)&ta[kk][ty * 4], y = *(float4 *)&tb[kk][tx * 4];
            float p[4] = {x.x, x.y, x.z, x.w}, q[4] = {y.x, y.y, y.z, y.w};
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) acc[i][j] += p[i] * q[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            int r = m0 + ty * 4 + i, col = n0 + tx * 4 + j;
            if (r < m && col < n) c[r * n + col] = alpha * acc[i][j] + beta * c[r * n + col];
        }
}

// Bytes by dp4a, with per-row scales.
extern "C" __global__ void int8_dot(int rows, int k, const char4 *a, const char4 *x, const float *scale, float *z) {
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    int sum = 0;
    for (int i = threadIdx.x; i < k / 4; i += 32) sum = __dp4a(a[row * (k / 4) + i], x[i], sum);
    sum = __reduce_add_sync(0xffffffff, sum);
    if (threadIdx.x == 0) z[row] = sum * scale[row];
}
