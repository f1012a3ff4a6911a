// Stencils, convolutions, sparse products: what walks through two and three dimensions.
__constant__ float taps[25];
__constant__ float fixed[25] = {1, 4, 6, 4, 1, 4, 16, 24, 16, 4, 6, 24, 36, 24, 6, 4, 16, 24, 16, 4, 1, 4, 6, 4, 1};

// 5 × 5 convolution with a halo in shared memory.
extern "C" __global__ void conv2d(int h, int w, const float *__restrict__ x, float *__restrict__ z) {
    __shared__ float tile[20][20 + 1];
    int x0 = blockIdx.x * 16 - 2, y0 = blockIdx.y * 16 - 2;
    for (int i = threadIdx.y * 16 + threadIdx.x; i < 400; i += 256) {
        int r = i / 20, c = i % 20, gy = y0 + r, gx = x0 + c;
        tile[r][c] = gy >= 0 && gy < h && gx >= 0 && gx < w ? x[gy * w + gx] : 0.0f;
    }
    __syncthreads();
    float sum = 0;
#pragma unroll
    for (int i = 0; i < 5; i++)
#pragma unroll
        for (int j = 0; j < 5; j++) sum += tile[threadIdx.y + i][threadIdx.x + j] * fixed[i * 5 + j];
    int gx = blockIdx.x * 16 + threadIdx.x, gy = blockIdx.y * 16 + threadIdx.y;
    if (gx < w && gy < h) z[gy * w + gx] = sum * (1.0f / 256);
}

// 7-point stencil in three dimensions, marching along z with registers.
extern "C" __global__ void stencil3d(int nx, int ny, int nz, float c0, float c1, const float *__restrict__ x, float *z) {
    __shared__ float plane[10][34];
    int i = blockIdx.x * 32 + threadIdx.x, j = blockIdx.y * 8 + threadIdx.y;
    bool inside = i < nx && j < ny;
    long long area = (long long)nx * ny, at = (long long)j * nx + i;
    float behind = 0, here = inside ? x[at] : 0, ahead;
    for (int k = 0; k < nz; k++) {
        ahead = inside && k + 1 < nz ? x[at + (k + 1) * area] : 0;
        __syncthreads();
        plane[threadIdx.y + 1][threadIdx.x + 1] = here;
        if (threadIdx.x == 0) plane[threadIdx.y + 1][0] = inside && i > 0 ? x[at + k * area - 1] : 0;
        if (threadIdx.x == 31) plane[threadIdx.y + 1][33] = inside && i + 1 < nx ? x[at + k * area + 1] : 0;
        if (threadIdx.y == 0) plane[0][threadIdx.x + 1] = inside && j > 0 ? x[at + k * area - nx] : 0;
        if (threadIdx.y == 7) plane[9][threadIdx.x + 1] = inside && j + 1 < ny ? x[at + k * area + nx] : 0;
        __syncthreads();
        float left = plane[threadIdx.y + 1][threadIdx.x], right = plane[threadIdx.y + 1][threadIdx.x + 2];
        float up = plane[threadIdx.y][threadIdx.x + 1], down = plane[threadIdx.y + 2][threadIdx.x + 1];
        if (i + 1 >= nx) right = 0;
        if (j + 1 >= ny) down = 0;
        if (inside) z[at + k * area] = c0 * here + c1 * (left + right + up + down + behind + ahead);
        behind = here;
        here = ahead;
    }
}

// Sparse rows times a vector, a warp a row.
extern "C" __global__ void spmv(int rows, const int *start, const int *column, const float *value, const float *x, float *z) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x & 31;
    if (row >= rows) return;
    float sum = 0;
    for (int i = start[row] + lane; i < start[row + 1]; i += 32) sum += value[i] * __ldg(&x[column[i]]);
    for (int d = 16; d; d /= 2) sum += __shfl_down_sync(0xffffffff, sum, d);
    if (lane == 0) z[row] = sum;
}

// Transposes of 8-byte and 2-byte elements with padding, four rows a thread.
template <class T> __device__ void transpose_tile(int rows, int cols, const T *x, T *z) {
    __shared__ T tile[32][33];
    int c = blockIdx.x * 32 + threadIdx.x;
    for (int i = 0; i < 32; i += 8) {
        int r = blockIdx.y * 32 + threadIdx.y + i;
        if (r < rows && c < cols) tile[threadIdx.y + i][threadIdx.x] = x[r * cols + c];
    }
    __syncthreads();
    int r = blockIdx.y * 32 + threadIdx.x;
    for (int i = 0; i < 32; i += 8) {
        int c = blockIdx.x * 32 + threadIdx.y + i;
        if (r < rows && c < cols) z[c * rows + r] = tile[threadIdx.x][threadIdx.y + i];
    }
}
extern "C" __global__ void transpose_f64(int rows, int cols, const double *x, double *z) { transpose_tile(rows, cols, x, z); }
extern "C" __global__ void transpose_u16(int rows, int cols, const unsigned short *x, unsigned short *z) { transpose_tile(rows, cols, x, z); }
extern "C" __global__ void transpose_u8(int rows, int cols, const unsigned char *x, unsigned char *z) { transpose_tile(rows, cols, x, z); }

// Bytes by pieces of the greatest aligned size.
extern "C" __global__ void copy_bytes(int n, const char *x, char *z) {
    int i = threadIdx.x;
    for (int at = i * 16; at + 16 <= n; at += blockDim.x * 16) *(int4 *)(z + at) = *(const int4 *)(x + at);
    for (int at = n / 16 * 16 + i; at < n; at += blockDim.x) z[at] = x[at];
}

// Structures of odd sizes by value, with memcpy.
struct __align__(4) Odd { char c; short s; unsigned char t[5]; float f; };
extern "C" __global__ void structs(int n, const Odd *x, Odd *z, float *taps_out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 25) taps_out[i] = taps[i];
    if (i >= n) return;
    Odd v = x[i];
    Odd w;
    memcpy(&w, &v, sizeof v);
    w.c = v.c + 1;
    w.s = v.s * 2;
    for (int k = 0; k < 5; k++) w.t[k] = v.t[4 - k];
    w.f = -v.f;
    memcpy(&z[i], &w, sizeof w);
}

// Reduction over the middle axis with a grid-stride loop and 64-bit indices.
extern "C" __global__ void reduce_middle(long long outer, long long middle, long long inner, const float *x, float *z) {
    for (long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x; at < outer * inner; at += (long long)gridDim.x * blockDim.x) {
        long long o = at / inner, i = at % inner;
        float best = -INFINITY;
        for (long long m = 0; m < middle; m++) best = fmaxf(best, x[(o * middle + m) * inner + i]);
        z[at] = best;
    }
}
