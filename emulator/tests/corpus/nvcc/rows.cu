// Row softmax, layer norm, transpose, tiled product.
#include <math_constants.h>

extern "C" __global__ void softmax(int cols, const float *x, float *z) {
    __shared__ float part[32];
    const float *row = x + (size_t)blockIdx.x * cols;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    float most = -CUDART_INF_F;
    for (int i = threadIdx.x; i < cols; i += blockDim.x) most = fmaxf(most, row[i]);
    for (int d = 16; d > 0; d >>= 1) most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
    if (lane == 0) part[warp] = most;
    __syncthreads();
    most = part[0];
    for (int w = 1; w < warps; w++) most = fmaxf(most, part[w]);
    __syncthreads();
    float sum = 0;
    for (int i = threadIdx.x; i < cols; i += blockDim.x) sum += __expf(row[i] - most);
    for (int d = 16; d > 0; d >>= 1) sum += __shfl_xor_sync(~0u, sum, d);
    if (lane == 0) part[warp] = sum;
    __syncthreads();
    sum = 0;
    for (int w = 0; w < warps; w++) sum += part[w];
    for (int i = threadIdx.x; i < cols; i += blockDim.x) z[(size_t)blockIdx.x * cols + i] = __fdividef(__expf(row[i] - most), sum);
}

extern "C" __global__ void layer_norm(int cols, float eps, const float *x, const float *gain, const float *bias, float *z) {
    __shared__ float2 part[32];
    const float *row = x + (size_t)blockIdx.x * cols;
    float sum = 0, squares = 0;
    for (int i = threadIdx.x; i < cols; i += blockDim.x) {
        float v = row[i];
        sum += v;
        squares = fmaf(v, v, squares);
    }
    for (int d = 16; d > 0; d >>= 1) {
        sum += __shfl_xor_sync(~0u, sum, d);
        squares += __shfl_xor_sync(~0u, squares, d);
    }
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = make_float2(sum, squares);
    __syncthreads();
    sum = squares = 0;
    for (int w = 0; w < blockDim.x >> 5; w++) {
        sum += part[w].x;
        squares += part[w].y;
    }
    float mean = sum / cols, scale = rsqrtf(squares / cols - mean * mean + eps);
    for (int i = threadIdx.x; i < cols; i += blockDim.x)
        z[(size_t)blockIdx.x * cols + i] = (row[i] - mean) * scale * gain[i] + bias[i];
}

extern "C" __global__ void transpose(int rows, int cols, const float *x, float *z) {
    __shared__ float tile[32][33];
    int c = blockIdx.x * 32 + threadIdx.x, r0 = blockIdx.y * 32;
    for (int j = threadIdx.y; j < 32; j += blockDim.y)
        if (c < cols && r0 + j < rows) tile[j][threadIdx.x] = x[(size_t)(r0 + j) * cols + c];
    __syncthreads();
    int r = r0 + threadIdx.x, c0 = blockIdx.x * 32;
    for (int j = threadIdx.y; j < 32; j += blockDim.y)
        if (r < rows && c0 + j < cols) z[(size_t)(c0 + j) * rows + r] = tile[threadIdx.x][j];
}

extern "C" __global__ void __launch_bounds__(256, 2) matmul(int m, int n, int k, const float *a, const float *b, float *c) {
    __shared__ float ta[16][16], tb[16][17];
    int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
    float sum = 0;
    for (int k0 = 0; k0 < k; k0 += 16) {
        ta[threadIdx.y][threadIdx.x] = row < m && k0 + threadIdx.x < k ? a[row * k + k0 + threadIdx.x] : 0;
        tb[threadIdx.y][threadIdx.x] = col < n && k0 + threadIdx.y < k ? b[(k0 + threadIdx.y) * n + col] : 0;
        __syncthreads();
        for (int i = 0; i < 16; i++) sum = fmaf(ta[threadIdx.y][i], tb[i][threadIdx.x], sum);
        __syncthreads();
    }
    if (row < m && col < n) c[row * n + col] = sum;
}
