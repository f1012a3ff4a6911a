// Products by warpgroups as CUTLASS's headers (PyPI: nvidia-cutlass) write them: GMMA atoms, shared layouts, the
// asynchronous pipeline, register reallocation. The tensor maps come from the host.

#include <cuda.h>
#include <cute/tensor.hpp>
#include <cute/arch/copy_sm90_tma.hpp>
#include <cute/atom/mma_traits_sm90_gmma.hpp>
#include <cutlass/arch/reg_reconfig.h>
#include <cutlass/pipeline/sm90_pipeline.hpp>

using namespace cute;

constexpr int STAGES = 3;
using Pipeline = cutlass::PipelineTmaAsync<STAGES>;

template <class T, class LayoutA, class LayoutB>
struct Shared {
    alignas(1024) ArrayEngine<T, cosize_v<LayoutA>> a;
    alignas(1024) ArrayEngine<T, cosize_v<LayoutB>> b;
    typename Pipeline::SharedStorage pipeline;
};

// d = a · b', tiles of 128 × N: a warpgroup copies, two multiply, with one product pending each. BK elements of k are 128 bytes.
template <class T, class Acc, class Atom, int N, class Epilogue>
__device__ void multiplied(const CUtensorMap &map_a, const CUtensorMap &map_b, Acc *d, int m, int n, int k, Epilogue epilogue) {
    constexpr int BK = 128 / sizeof(T);
    using LayoutA = decltype(tile_to_shape(GMMA::Layout_K_SW128_Atom<T>{}, Shape<_128, Int<BK>, Int<STAGES>>{}));
    using LayoutB = decltype(tile_to_shape(GMMA::Layout_K_SW128_Atom<T>{}, Shape<Int<N>, Int<BK>, Int<STAGES>>{}));
    extern __shared__ __align__(1024) char raw[];
    auto &shared = *reinterpret_cast<Shared<T, LayoutA, LayoutB> *>(raw);
    auto tiled = make_tiled_mma(Atom{}, Layout<Shape<_2, _1, _1>>{});
    int group = threadIdx.x / 128;
    typename Pipeline::Params params;
    params.transaction_bytes = (128 + N) * 128;
    params.role = group == 0 ? Pipeline::ThreadCategory::Producer : Pipeline::ThreadCategory::Consumer;
    params.is_leader = threadIdx.x % 128 == 0;
    params.num_consumers = 256;
    Pipeline pipeline(shared.pipeline, params, Shape<_1, _1, _1>{});
    __syncthreads();
    int steps = (k + BK - 1) / BK, row = blockIdx.x * 128, column = blockIdx.y * N;
    if (group == 0) {
        cutlass::arch::warpgroup_reg_dealloc<40>();
        if (threadIdx.x < 32 && cute::elect_one_sync()) {
            auto state = cutlass::make_producer_start_state<Pipeline>();
            for (int step = 0; step < steps; ++step, ++state) {
                pipeline.producer_acquire(state);
                auto *barrier = pipeline.producer_get_barrier(state);
                SM90_TMA_LOAD_2D::copy(&map_a, barrier, uint64_t(TMA::CacheHintSm90::EVICT_NORMAL), shared.a.begin() + state.index() * 128 * BK, step * BK, row);
                SM90_TMA_LOAD_2D::copy(&map_b, barrier, uint64_t(TMA::CacheHintSm90::EVICT_NORMAL), shared.b.begin() + state.index() * N * BK, step * BK, column);
            }
            pipeline.producer_tail(state);
        }
        return;
    }
    cutlass::arch::warpgroup_reg_alloc<232>();
    Tensor sa = make_tensor(make_smem_ptr(shared.a.begin()), LayoutA{});
    Tensor sb = make_tensor(make_smem_ptr(shared.b.begin()), LayoutB{});
    auto thread = tiled.get_slice(threadIdx.x - 128);
    Tensor fa = thread.make_fragment_A(thread.partition_A(sa));
    Tensor fb = thread.make_fragment_B(thread.partition_B(sb));
    Tensor acc = partition_fragment_C(tiled, Shape<_128, Int<N>>{});
    tiled.accumulate_ = GMMA::ScaleOut::Zero;
    cutlass::PipelineState<STAGES> read, release;
    for (int step = 0; step < steps; ++step) {
        pipeline.consumer_wait(read);
        warpgroup_fence_operand(acc);
        warpgroup_arrive();
        for (int block = 0; block < size<2>(fa); ++block) {
            gemm(tiled, fa(_, _, block, read.index()), fb(_, _, block, read.index()), acc);
            tiled.accumulate_ = GMMA::ScaleOut::One;
        }
        warpgroup_commit_batch();
        warpgroup_wait<1>();
        warpgroup_fence_operand(acc);
        if (step > 0) {
            pipeline.consumer_release(release);
            ++release;
        }
        ++read;
    }
    warpgroup_wait<0>();
    warpgroup_fence_operand(acc);
    pipeline.consumer_release(release);
    Tensor places = thread.partition_C(make_identity_tensor(Shape<_128, Int<N>>{}));
    for (int i = 0; i < size(acc); ++i) {
        int at_row = row + get<0>(places(i)), at_column = column + get<1>(places(i));
        if (at_row < m && at_column < n) d[at_row * n + at_column] = epilogue(acc(i));
    }
}

struct Same {
    template <class V> __device__ V operator()(V v) const { return v; }
};
struct Positive {
    __device__ float operator()(float v) const { return v > 0 ? v : 0; }
};

extern "C" __global__ __launch_bounds__(384, 1) void bf16_product(
    const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b, float *d, int m, int n, int k) {
    multiplied<bfloat16_t, float, SM90_64x128x16_F32BF16BF16_SS<GMMA::Major::K, GMMA::Major::K>, 128>(map_a, map_b, d, m, n, k, Same{});
}

extern "C" __global__ __launch_bounds__(384, 1) void f16_product(
    const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b, float *d, int m, int n, int k) {
    multiplied<half_t, float, SM90_64x96x16_F32F16F16_SS<GMMA::Major::K, GMMA::Major::K>, 96>(map_a, map_b, d, m, n, k, Positive{});
}

extern "C" __global__ __launch_bounds__(384, 1) void s8_product(
    const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b, int *d, int m, int n, int k) {
    multiplied<int8_t, int, SM90_64x64x32_S32S8S8_SS_TN, 64>(map_a, map_b, d, m, n, k, Same{});
}
