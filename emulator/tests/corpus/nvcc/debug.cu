// Compiled with -G: unoptimised code with everything in local memory and debug sections.
__device__ int helper(int v, int *calls) {
    *calls += 1;
    if (v > 100) return v - 7;
    return v * 2;
}

extern "C" __global__ void debug_build(int n, const int *x, int *z) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    __shared__ int tile[64];
    int calls = 0, sum = 0;
    if (i < n) {
        int local[4] = {1, 2, 3, 4};
        for (int k = 0; k < 4; k++) sum += helper(x[i] + local[k], &calls);
    }
    tile[threadIdx.x] = sum;
    __syncthreads();
    if (i < n) z[i] = sum * 1000 + calls + tile[threadIdx.x ^ 1];
}
