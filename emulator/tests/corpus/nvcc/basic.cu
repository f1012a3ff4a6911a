// Elementwise kernels, vector accesses, gathers.
#include <cuda_fp16.h>
#include <cuda_bf16.h>

extern "C" __global__ void saxpy(int n, float a, const float *x, float *y) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = a * x[i] + y[i];
}

extern "C" __global__ void saxpy4(int n4, float a, const float4 *__restrict__ x, float4 *__restrict__ y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n4) return;
    float4 v = x[i], w = y[i];
    y[i] = make_float4(a * v.x + w.x, a * v.y + w.y, a * v.z + w.z, a * v.w + w.w);
}

// z = a·b + c in f16, two at a time.
extern "C" __global__ void half_fma(int n2, const __half2 *a, const __half2 *b, const __half2 *c, __half2 *z) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n2) z[i] = __hfma2(a[i], b[i], c[i]);
}

// bf16 in, computed in f32, bf16 out.
extern "C" __global__ void bf16_scale(int n, float s, const __nv_bfloat16 *x, __nv_bfloat16 *z) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) z[i] = __float2bfloat16(__bfloat162float(x[i]) * s);
}

extern "C" __global__ void bf16_fma2(int n2, const __nv_bfloat162 *x, const __nv_bfloat162 *y, __nv_bfloat162 *z) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n2) z[i] = __hfma2(x[i], y[i], x[i]);
}

struct Layout {
    int rows, cols;
    long long row_stride, col_stride;
    short pad;
    unsigned char flags[5];
};

// A strided gather through a struct passed by value.
extern "C" __global__ void gather(Layout layout, const int *__restrict__ index, const double *__restrict__ x, double *z) {
    int r = blockIdx.y, c = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= layout.rows || c >= layout.cols) return;
    double v = x[(long long)index[r] * layout.row_stride + (long long)c * layout.col_stride];
    z[(long long)r * layout.cols + c] = layout.flags[3] ? -v : v;
}
