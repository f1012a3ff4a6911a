// What C++ becomes: recursion with frames, tables of functions, virtual destructors, alloca-like arrays, printf, the heap, asserts.
#include <cassert>
#include <cstdio>
#include <new>

extern "C" __global__ void prints(int n, const float *x) {
    int i = threadIdx.x;
    if (i < n) printf("lane %d: %5.2f %s 0x%llx %c%%\n", i, x[i], x[i] < 0 ? "below" : "above", (unsigned long long)i << 36, 'a' + i);
    if (i == 0) printf("done\n");
}

struct Node {
    int value;
    Node *next;
};
extern "C" __global__ void heap(int n, int *z) {
    Node *list = nullptr;
    for (int i = 0; i < n; i++) {
        Node *node = (Node *)malloc(sizeof(Node));
        if (!node) break;
        node->value = i * (threadIdx.x + 1);
        node->next = list;
        list = node;
    }
    int sum = 0;
    while (list) {
        Node *next = list->next;
        sum = sum * 3 + list->value;
        free(list);
        list = next;
    }
    int *array = new int[n];
    for (int i = 0; i < n; i++) array[i] = sum + i;
    z[threadIdx.x] = array[n - 1] - array[0] + sum;
    delete[] array;
}

extern "C" __global__ void asserted(int n, const int *x, int *z) {
    int i = threadIdx.x;
    assert(x[i] >= 0 && "inputs are not negative");
    if (i < n) z[i] = x[i] + 1;
}

__noinline__ __device__ int ackermann(int m, int n) { return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1)); }
__noinline__ __device__ int is_odd(int n);
__noinline__ __device__ int is_even(int n) { return n == 0 ? 1 : is_odd(n - 1); }
__noinline__ __device__ int is_odd(int n) { return n == 0 ? 0 : is_even(n - 1); }
__noinline__ __device__ void quicksort(int *a, int n) {
    if (n < 2) return;
    int pivot = a[n / 2], i = 0, j = n - 1;
    while (i <= j) {
        while (a[i] < pivot) i++;
        while (a[j] > pivot) j--;
        if (i <= j) {
            int t = a[i];
            a[i++] = a[j];
            a[j--] = t;
        }
    }
    quicksort(a, j + 1);
    quicksort(a + i, n - i);
}
extern "C" __global__ void recursion(int *x, int *z) {
    int t = threadIdx.x;
    quicksort(x + t * 20, 20);
    z[t] = ackermann(2, t % 4) * 10 + is_even(t);
}

typedef int (*Binary)(int, int);
__noinline__ __device__ int add(int a, int b) { return a + b; }
__noinline__ __device__ int mul(int a, int b) { return a * b; }
__noinline__ __device__ int gcd(int a, int b) { return b ? gcd(b, a % b) : a; }
__constant__ Binary operations[3] = {add, mul, gcd};
__noinline__ __device__ int fold(Binary f, const int *x, int n) {
    int v = x[0];
    for (int i = 1; i < n; i++) v = f(v, x[i]);
    return v;
}
extern "C" __global__ void function_tables(const int *x, int *z) {
    Binary f = operations[threadIdx.x % 3];
    z[threadIdx.x] = fold(f, x + threadIdx.x, 4) + f(threadIdx.x, 7);
}

struct Counter {
    int *at;
    __device__ Counter(int *at) : at(at) {}
    __device__ virtual ~Counter() { atomicAdd(at, 1); }
    __device__ virtual int step(int v) { return v + 1; }
};
struct Doubler : Counter {
    using Counter::Counter;
    __device__ ~Doubler() override { atomicAdd(at + 1, 1); }
    __device__ int step(int v) override { return v * 2; }
};
__noinline__ __device__ int steps(Counter &c, int v, int n) {
    while (n--) v = c.step(v);
    return v;
}
extern "C" __global__ void virtuals(int *counts, int *z) {
    Doubler d(counts);
    Counter c(counts);
    z[threadIdx.x] = steps(threadIdx.x & 1 ? (Counter &)d : c, threadIdx.x, 3);
}

struct Big {
    double a[6];
    char tag[3];
};
__noinline__ __device__ Big rotate(Big b, int k) {
    Big r;
    for (int i = 0; i < 6; i++) r.a[i] = b.a[(i + k) % 6];
    for (int i = 0; i < 3; i++) r.tag[i] = b.tag[2 - i];
    return r;
}
extern "C" __global__ void by_value(Big b, double *z, char *tags) {
    Big r = rotate(b, threadIdx.x);
    for (int i = 0; i < 6; i++) z[threadIdx.x * 6 + i] = r.a[i] * (threadIdx.x + 1);
    for (int i = 0; i < 3; i++) tags[threadIdx.x * 3 + i] = r.tag[i];
}

__device__ int counter = 5;
__device__ float scratch[64];
__managed__ int managed = 9;
__shared__ int shared_everywhere[32];
__noinline__ __device__ void publish(int v) { shared_everywhere[threadIdx.x] = v; }
extern "C" __global__ void globals(int *z) {
    publish(threadIdx.x * 3);
    __syncthreads();
    scratch[threadIdx.x] = shared_everywhere[31 - threadIdx.x];
    int old = atomicAdd(&counter, 1);
    z[threadIdx.x] = (int)scratch[threadIdx.x] + (old >= 5) + managed;
}

extern "C" __global__ void traps(int n, int *z) {
    if (threadIdx.x == 3 && n > 5) __trap();
    if (n == -1) __brkpt();
    z[threadIdx.x] = 1;
}

// State machines: a switch in a loop, with lanes in different states.
extern "C" __global__ void tokens(const char *text, int *z) {
    const char *p = text + threadIdx.x * 16;
    int state = 0, words = 0, numbers = 0, value = 0;
    for (int i = 0; i < 16; i++) {
        char c = p[i];
        switch (state) {
        case 0:
            if (c >= '0' && c <= '9') state = 1, value = c - '0';
            else if (c >= 'a' && c <= 'z') state = 2, words++;
            else if (c == '"') state = 3;
            else if (c == '#') state = 4;
            else if (c == '-') state = 5;
            break;
        case 1:
            if (c >= '0' && c <= '9') value = value * 10 + c - '0';
            else numbers += value, state = 0;
            break;
        case 2:
            if (c == ' ') state = 0;
            break;
        case 3:
            if (c == '\\') state = 6;
            else if (c == '"') state = 0, words += 100;
            break;
        case 4: break;
        case 5:
            if (c >= '0' && c <= '9') state = 1, value = -(c - '0');
            else state = 0;
            break;
        case 6: state = 3; break;
        }
    }
    z[threadIdx.x] = words * 100000 + numbers + state;
}
