// Halves, doubles, 8-bit floats, complex numbers, special functions.
#include <cuComplex.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

extern "C" __global__ void half2_arithmetic(int n, const __half2 *x, const __half2 *y, __half2 *z) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    __half2 a = x[i], b = y[i], *o = z + 12 * i;
    o[0] = __hadd2_sat(a, b);
    o[1] = __hfma2_sat(a, b, a);
    o[2] = __hmin2_nan(a, b);
    o[3] = __hmax2(a, __hneg2(b));
    o[4] = __hgt2(a, b);
    o[5] = __hfma2_relu(a, b, b);
    o[6] = __lows2half2(a, b);
    o[7] = __habs2(__highs2half2(a, b));
    o[8] = __h2div(a, b);
    o[9] = h2rint(a);
    o[10] = __halves2half2(__hgeu(a.x, b.x) ? a.y : b.y, __hltu(a.y, b.y) ? a.x : b.x);
    o[11] = __hbge2(a, b) ? h2ceil(a) : h2floor(b);
}

extern "C" __global__ void half_functions(int n, const __half *x, const __nv_bfloat16 *y, float *z) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    __half a = x[i], p = __habs(a);
    __nv_bfloat16 b = y[i], q = __habs(b);
    float *o = z + 16 * i;
    o[0] = __half2float(hexp(a));
    o[1] = __half2float(hlog(p));
    o[2] = __half2float(hsqrt(p));
    o[3] = __half2float(hrsqrt(p));
    o[4] = __half2float(hsin(a));
    o[5] = __half2float(htanh(a));
    o[6] = __half2float(hrcp(p));
    o[7] = __bfloat162float(hexp2(b));
    o[8] = __bfloat162float(hlog2(q));
    o[9] = __bfloat162float(hcos(b));
    o[10] = __bfloat162float(__hfma(b, b, q));
    o[11] = __bfloat162float(__hmax_nan(b, q));
    o[12] = __half2int_rn(a) + __half2uint_rz(p) * 100 + __half2short_ru(a);
    o[13] = __bfloat162int_rd(b) + __bfloat162ll_rn(q);
    o[14] = __half2float(__ll2half_rn((long long)(1000 * __half2float(a)))) + __bfloat162float(__uint2bfloat16_rz(i * 1001));
    o[15] = __half2float(__double2half(1.0 / (i + 1))) + __bfloat162float(__double2bfloat16(1.0 / (i + 3)));
}

extern "C" __global__ void double_functions(int n, const double *x, const double *y, double *z) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double a = x[i], b = y[i], p = fabs(a), *o = z + 20 * i;
    o[0] = pow(p, b);
    o[1] = tgamma(p + 0.5);
    o[2] = erf(b);
    o[3] = atan2(a, b);
    o[4] = sinh(b);
    o[5] = cbrt(a);
    o[6] = fmod(a * 100, b);
    o[7] = hypot(a, b);
    o[8] = log1p(p);
    o[9] = expm1(b);
    o[10] = j0(p);
    o[11] = rsqrt(p);
    o[12] = remainder(a * 10, b);
    o[13] = ldexp(a, 5) + ilogb(a);
    o[14] = __dadd_rd(a, b) + __dmul_ru(a, b);
    o[15] = __ddiv_rz(a, b) - __dsqrt_ru(p);
    o[16] = normcdf(b);
    o[17] = (double)(long long)(a * 1e6) + (double)(unsigned)(p * 1e3);
    o[18] = sin(a * 1e5);
    o[19] = lgamma(p + 1);
}

extern "C" __global__ void float_functions(int n, const float *x, const float *y, float *z) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float a = x[i], b = y[i], p = fabsf(a), *o = z + 28 * i;
    o[0] = acosf(b * 0.1f);
    o[1] = asinhf(a);
    o[2] = atan2f(a, b);
    o[3] = fmodf(a * 100, b);
    o[4] = sinf(a * 1e6f);
    o[5] = tanf(b);
    o[6] = lgammaf(p + 1);
    o[7] = erfcinvf(0.3f + 0.1f * (i & 7));
    o[8] = log10f(p);
    o[9] = exp10f(b);
    o[10] = remainderf(a * 10, b);
    o[11] = nextafterf(a, b);
    o[12] = scalbnf(a, i % 9 - 4);
    o[13] = __fadd_rz(a, b);
    o[14] = __fmul_ru(a, b);
    o[15] = __fmaf_rd(a, b, a);
    o[16] = __frcp_rn(b) + __fsqrt_rd(p);
    o[17] = __fdiv_ru(a, b);
    o[18] = __sinf(b);
    o[19] = __expf(b) + __logf(p);
    o[20] = __powf(p, b);
    o[21] = __saturatef(b) + __frsqrt_rn(p);
    o[22] = cyl_bessel_i0f(b);
    int e;
    o[23] = frexpf(a, &e);
    o[24] = e + (signbit(b) ? 0.5f : 0) + (isfinite(a / (b - b)) ? 1 : 0);
    float whole;
    o[25] = modff(a, &whole);
    o[25] += whole * 2;
    o[26] = normf(3, x + (i < n - 3 ? i : n - 3));
    o[27] = fdimf(a, b) + fmaf(a, b, -a * b) + __tanf(b * 0.1f);
}

extern "C" __global__ void eight_bits(int n, const float *x, unsigned char *z, float *back, unsigned short *pairs) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    __nv_fp8_e4m3 a(x[i]);
    __nv_fp8_e5m2 b(x[i]);
    z[4 * i] = a.__x;
    z[4 * i + 1] = b.__x;
    z[4 * i + 2] = __nv_cvt_float_to_fp8(x[i], __NV_NOSAT, __NV_E5M2);
    z[4 * i + 3] = __nv_cvt_halfraw_to_fp8(__half_raw(__float2half(x[i])), __NV_SATFINITE, __NV_E4M3);
    back[2 * i] = float(a);
    back[2 * i + 1] = float(b);
    __nv_fp8x2_e4m3 p(make_float2(x[i], -x[i]));
    pairs[i] = p.__x;
}

extern "C" __global__ void complex_numbers(int n, const cuDoubleComplex *x, const cuDoubleComplex *y, cuDoubleComplex *z, cuFloatComplex *f) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    z[3 * i] = cuCmul(x[i], y[i]);
    z[3 * i + 1] = cuCdiv(x[i], y[i]);
    z[3 * i + 2] = make_cuDoubleComplex(cuCabs(x[i]), 0);
    f[i] = cuComplexDoubleToFloat(cuCfma(x[i], y[i], cuConj(x[i])));
}

// A sum that must not be reassociated, a long dependent chain in f64, and Horner's rule in packed halves.
extern "C" __global__ void compensated(int n, const float *x, float *z) {
    float sum = 0, lost = 0;
    for (int i = 0; i < n; i++) {
        float y = __fsub_rn(x[threadIdx.x * n + i], lost), t = __fadd_rn(sum, y);
        lost = __fsub_rn(__fsub_rn(t, sum), y);
        sum = t;
    }
    z[threadIdx.x] = sum;
}
