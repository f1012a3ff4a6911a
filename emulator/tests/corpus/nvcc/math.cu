// Floating-point instructions.
#include <cuda_fp16.h>
#include <cuda_bf16.h>

extern "C" __global__ void functions(int n, const float *x, const float *y, float *z) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float a = x[i], b = y[i], *out = z + i * 24, r;
    out[0] = a / b;
    out[1] = __fdividef(a, b);
    out[2] = sqrtf(fabsf(a));
    out[3] = rsqrtf(fabsf(a));
    out[4] = __frcp_rn(b);
    out[5] = __fmaf_rz(a, b, a);
    out[6] = __fadd_ru(a, b);
    out[7] = __fmul_rd(a, b);
    out[8] = expf(b);
    out[9] = logf(fabsf(a));
    out[10] = sinf(b);
    out[11] = powf(fabsf(a), 0.3f);
    out[12] = tanhf(b);
    out[13] = erff(b);
    out[14] = fminf(a, b);
    out[15] = copysignf(a, b);
    out[16] = floorf(a) + ceilf(b) + truncf(a) + rintf(b);
    out[17] = (float)__float2int_rz(a) + (float)__float2uint_rn(fabsf(b)) + __ll2float_rn((long long)(a * 1000));
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(b));
    out[18] = r;
    asm("tanh.approx.f32 %0, %1;" : "=f"(r) : "f"(b));
    out[19] = r;
    asm("{ .reg .pred p; testp.normal.f32 p, %1; selp.f32 %0, 1.0, 0.0, p; }" : "=f"(r) : "f"(a));
    out[20] = r;
    asm("slct.f32.f32 %0, %1, %2, %3;" : "=f"(r) : "f"(a), "f"(b), "f"(b));
    out[21] = r;
    asm("set.gt.f32.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
    out[22] = r;
    asm("fma.rn.ftz.sat.f32 %0, %1, %2, 0.25;" : "=f"(r) : "f"(a), "f"(b));
    out[23] = r;
}

extern "C" __global__ void doubles(int n, const double *x, const double *y, double *z) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double a = x[i], b = y[i], *out = z + i * 10;
    out[0] = a / b;
    out[1] = sqrt(fabs(a));
    out[2] = __dadd_rd(a, b);
    out[3] = __fma_rz(a, b, 1.0);
    out[4] = exp(b);
    out[5] = sin(a);
    out[6] = log(fabs(a));
    out[7] = (double)(float)a + (double)(int)b;
    out[8] = fmax(a, b) + fmin(a, 0.5);
    out[9] = rint(a) + __drcp_rn(b);
}

extern "C" __global__ void halves(int n, const __half *x, const __half *y, __half *z, const __nv_bfloat16 *bx, const __nv_bfloat16 *by, __nv_bfloat16 *bz) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    __half a = x[i], b = y[i], *out = z + i * 10;
    out[0] = __hadd(a, b);
    out[1] = __hmul(a, b);
    out[2] = __hsub(a, b);
    out[3] = __hmax(a, b);
    out[4] = __hfma_relu(a, b, a);
    out[5] = __habs(a);
    out[6] = __hneg(b);
    out[7] = __hlt(a, b) ? a : b;
    out[8] = __float2half_rz(__half2float(a) * 3.3f);
    out[9] = __int2half_rn(__half2int_rd(b) + 1);
    __nv_bfloat16 c = bx[i], d = by[i], *bout = bz + i * 5;
    bout[0] = __hadd(c, d);
    bout[1] = __hmul(c, d);
    bout[2] = __hmin(c, d);
    bout[3] = __hfma(c, d, c);
    bout[4] = __hgt(c, d) ? __habs(c) : __hneg(d);
}

extern "C" __global__ void half_atomics(__half2 *h, __half *s, unsigned short *w) {
    int t = threadIdx.x;
    atomicAdd(h, __floats2half2_rn(1.0f, 0.5f));
    atomicAdd(s, __float2half(0.25f));
    atomicCAS(&w[t & 1], (unsigned short)(t / 2), (unsigned short)(t / 2 + 1));
}
