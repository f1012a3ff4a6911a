// Branch tables, calls, recursion, indirect calls, local and constant arrays, virtual functions.
__constant__ float weights[8] = {1, -2, 3, -4, 5, -6, 7, -8};
__constant__ unsigned char order[16] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3};
__device__ int table[4] = {10, 20, 30, 40};
__device__ int *const indirect = table + 1;
__device__ const char *const names[2] = {"even", "odd!"};

extern "C" __global__ void switches(int n, const int *x, int *z) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int v = x[i], r;
    switch (v & 15) {
    case 0: r = v * 3; break;
    case 1: r = v - 100; break;
    case 2: r = v ^ 0x55; break;
    case 3: r = v / 7; break;
    case 4: r = -v; break;
    case 5: r = v % 13; break;
    case 6: r = v << 3; break;
    case 7: r = __popc(v); break;
    case 8: r = v * v; break;
    case 11: r = ~v; break;
    default: r = 1; break;
    }
    z[i] = r;
}

// A branch table in PTX itself.
extern "C" __global__ void branch_table(int n, const int *x, int *z) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int r;
    asm volatile("{\n"
        ".reg .u32 %index;\n"
        "and.b32 %index, %1, 3;\n"
        "ts: .branchtargets L0, L1, L2, L1;\n"
        "brx.idx %index, ts;\n"
        "L0: mov.s32 %0, 100; bra.uni DONE;\n"
        "L1: add.s32 %0, %1, 1000; bra DONE;\n"
        "L2: neg.s32 %0, %1;\n"
        "DONE:\n"
        "}" : "=r"(r) : "r"(x[i]));
    z[i] = r;
}

__noinline__ __device__ int collatz(int v) {
    int steps = 0;
    while (v != 1) {
        v = v & 1 ? 3 * v + 1 : v / 2;
        steps++;
    }
    return steps;
}

struct Pair {
    float a;
    double b;
    short c[3];
};

__noinline__ __device__ Pair combine(Pair p, Pair q, int k) {
    Pair r;
    r.a = p.a + q.a * k;
    r.b = p.b - q.b;
    for (int i = 0; i < 3; i++) r.c[i] = p.c[i] + q.c[2 - i];
    return r;
}

__noinline__ __device__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

// Recursion with an address-taken local in every frame.
__noinline__ __device__ int depth_sum(int n, int *parent) {
    int mine = n;
    if (n > 0) mine += depth_sum(n - 1, &mine);
    if (parent) *parent += 1;
    return mine;
}

extern "C" __global__ void calls(int n, const int *x, int *steps, float *pairs, int *recursive) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    steps[i] = collatz(x[i]);
    Pair p = {1.5f * i, 2.25 * i, {(short)i, 2, 3}}, q = {0.5f, -1.0, {4, 5, (short)(6 - i)}};
    Pair r = combine(p, q, x[i]);
    pairs[3 * i] = r.a;
    pairs[3 * i + 1] = (float)r.b;
    pairs[3 * i + 2] = r.c[0] * 10000 + r.c[1] * 100 + r.c[2];
    recursive[2 * i] = fibonacci(i % 11);
    recursive[2 * i + 1] = depth_sum(i % 7, nullptr);
}

__noinline__ __device__ float twice(float v) { return v * 2; }
__noinline__ __device__ float square(float v) { return v * v; }
__noinline__ __device__ float inverse(float v) { return 1 / v; }
typedef float (*Unary)(float);
__device__ Unary functions[3] = {twice, square, inverse};

struct Shape {
    __device__ virtual float area(float s) const = 0;
    __device__ virtual int corners() const { return 0; }
};
struct Square : Shape {
    __device__ float area(float s) const override { return s * s; }
    __device__ int corners() const override { return 4; }
};
struct Circle : Shape {
    __device__ float area(float s) const override { return s * s * 0.785f; }
};

extern "C" __global__ void indirect_calls(int n, const float *x, const int *which, float *z) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Square square;
    Circle circle;
    const Shape *shape = which[i] & 4 ? (const Shape *)&square : (const Shape *)&circle;
    z[i] = functions[which[i] & 1 ? 2 : which[i] >> 1 & 1](x[i]) + shape->area(x[i]) + shape->corners();
}

extern "C" __global__ void arrays(int n, const int *x, float *z) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float local[16];
    for (int k = 0; k < 16; k++) local[k] = weights[k & 7] * (k + x[i]);
    float sum = 0;
    for (int k = 0; k < 16; k++) {
        int at = order[(k + x[i]) & 15];
        sum += local[at];
        local[(at * 7) & 15] += 1;
    }
    z[i] = sum + table[x[i] & 3] + indirect[x[i] & 1] + names[x[i] & 1][x[i] & 3];
}
