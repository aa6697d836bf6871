// CUDA on a CPU, as far as the kernels of cudnn_compat/engines/cudnn/fused use it.
//
// A block is a thread of the system, its threads are fibers that take turns in random order; shared
// memory is thread-local, and an address in it is a block's rank and an offset. Takes the place of
// machine.cu. Slow, and strict where a GPU is not: what is sent has to be aligned, barriers are
// armed once for each phase, and who waits too long is reported.
#pragma once
// Some compilers check by themselves that longjmp goes up the stack; here it goes to another one.
#undef _FORTIFY_SOURCE
#include <setjmp.h>
#include <ucontext.h>

#include <barrier>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

using std::isnan;
using std::max;
using std::min;
typedef uint32_t u32;
typedef unsigned long long u64;

#define __device__
#define __global__
#define __grid_constant__
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __shared__ static thread_local
#define ROOM(type, name, count)                          \
    static thread_local type name[(count) ? (count) : 1]; \
    emulator::anything(&name, sizeof name)
#define __align__(n) __attribute__((aligned(n)))

struct Index { int x, y, z; };
struct float4 { float x, y, z, w; };
static thread_local Index threadIdx, blockIdx;
static Index blockDim, gridDim;

namespace emulator {

constexpr int STACK = 64 << 10;  // less than malloc gets from the system each time

struct Fiber {
    ucontext_t context;
    jmp_buf jump;
    std::unique_ptr<char[]> stack{new char[STACK]};  // not cleared: little of it is ever touched
    bool started = false, done = false;
    std::deque<std::pair<float*, const float*>> copies;  // not made yet; null ends a group
    int groups = 0;
    Index index;
    const u32* watched = nullptr;  // what the fiber waits for to change
    u32 seen = 0;
};
struct Meeting { int arrived = 0; u32 generation = 0; };
struct Warp : Meeting { u64 value[32]; float factors[32][6][2]; int size = 32; };
struct Block {
    std::vector<std::unique_ptr<Fiber>> fibers;
    std::vector<Warp> warps;
    Meeting meeting;
    jmp_buf scheduler;
    int current = 0;
    char* base = nullptr;
    std::vector<void*> shared;  // what has been filled
    bool left = false;          // a block that has ended can no longer be written to
};
static thread_local Block* block;
static thread_local int rank;
static thread_local char reference;
static std::vector<Block*> cluster;
static std::unique_ptr<std::barrier<>> clusters_meeting;
static std::recursive_mutex lock;
static std::function<void()> body;

[[noreturn]] inline void fail(const char* why) { std::fprintf(stderr, "%s\n", why); std::abort(); }
inline Fiber& current() { return *block->fibers[block->current]; }
inline Warp& warp() { return block->warps[block->current / 32]; }
inline void yield() { if (!_setjmp(current().jump)) _longjmp(block->scheduler, 1); }
inline void meet(Meeting& meeting, int size) {
    if (++meeting.arrived == size) {
        meeting.arrived = 0;
        ++meeting.generation;
        return;
    }
    Fiber& fiber = current();
    fiber.watched = &meeting.generation;
    fiber.seen = meeting.generation;
    yield();
    fiber.watched = nullptr;
}
inline void entry() { body(); current().done = true; yield(); }

// Shared memory holds anything at first: here, NaN.
inline void anything(void* memory, size_t size) {
    for (void* known : block->shared) if (known == memory) return;
    block->shared.push_back(memory);
    std::memset(memory, 255, size);
}

inline void run_block(int at_rank, Index at, int threads, unsigned seed) {
    Block own;
    block = &own, rank = at_rank, blockIdx = at;
    own.base = &reference, cluster[rank] = &own;
    own.warps.resize((threads + 31) / 32);
    own.warps.back().size = (threads - 1) % 32 + 1;
    for (int i = 0; i < threads; ++i) {
        own.fibers.push_back(std::make_unique<Fiber>());
        Fiber& fiber = *own.fibers.back();
        fiber.index = Index{i % blockDim.x, i / blockDim.x, 0};
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = fiber.stack.get();
        fiber.context.uc_stack.ss_size = STACK;
        makecontext(&fiber.context, entry, 0);
    }
    clusters_meeting->arrive_and_wait();
    std::mt19937 random(seed + rank);
    volatile int left = threads;
    volatile int slow = -1, picks = 0;  // for a while one warp comes last
    while (left) {
        if (picks == 0) slow = random() % 3 ? -1 : random() % own.warps.size();
        picks = (picks + 1) % 5000;
        int next = random() % threads;
        if (next / 32 == slow && random() % 8) next = (next + 32) % threads;
        auto stuck = [&](const Fiber& f) {
            return f.done || (f.watched && *f.watched == f.seen);
        };
        for (int k = 0; k < threads && stuck(*own.fibers[next]); ++k) next = (next + 1) % threads;
        own.current = next;
        Fiber& chosen = current();
        threadIdx = chosen.index;
        if (!_setjmp(own.scheduler)) {
            if (chosen.started) _longjmp(chosen.jump, 1);
            chosen.started = true;
            setcontext(&chosen.context);
        }
        if (current().done) --left;
    }
    own.left = true;
    clusters_meeting->arrive_and_wait();
}

inline void launch(Index grid, Index threads, int blocks, unsigned seed,
                   std::function<void()> kernel) {
    body = kernel, blockDim = threads, gridDim = grid;
    for (int z = 0; z < grid.z; ++z)
        for (int y = 0; y < grid.y; ++y)
            for (int x = 0; x < grid.x; x += blocks) {
                cluster.assign(blocks, nullptr);
                clusters_meeting = std::make_unique<std::barrier<>>(blocks);
                std::vector<std::thread> all;
                for (int r = 0; r < blocks; ++r)
                    all.emplace_back(run_block, r, Index{x + r, y, z}, threads.x * threads.y,
                                     seed + 977 * x + 31 * y);
                for (auto& each : all) each.join();
            }
}

struct Mbarrier { int32_t bytes; uint16_t armed, phase; };
inline void settle(Mbarrier& b) { if (b.armed && b.bytes == 0) { b.armed = 0; ++b.phase; } }

}  // namespace emulator

#if SCALAR == 0
typedef float scalar;
inline float to_float(scalar v) { return v; }
inline scalar from_float(float v) { return v; }
#elif SCALAR == 2
typedef uint16_t scalar;
inline float to_float(scalar v) { u32 b = (u32)v << 16; float r; std::memcpy(&r, &b, 4); return r; }
inline scalar from_float(float v) {  // to nearest even
    u32 b;
    std::memcpy(&b, &v, 4);
    return isnan(v) ? 0x7fff : (b + 0x7fff + (b >> 16 & 1)) >> 16;
}
#else
typedef uint16_t scalar;
inline float to_float(scalar v) { _Float16 h; std::memcpy(&h, &v, 2); return h; }
inline scalar from_float(float v) { _Float16 h = v; scalar r; std::memcpy(&r, &h, 2); return r; }
#endif
inline float __uint_as_float(u32 v) { float r; std::memcpy(&r, &v, 4); return r; }
inline u32 __float_as_uint(float v) { u32 r; std::memcpy(&r, &v, 4); return r; }
inline float quick_exp(float x) { return std::exp(x); }
inline float quick_inverse(float x) { return 1.f / x; }

inline void __syncthreads() { emulator::meet(emulator::block->meeting, emulator::block->fibers.size()); }
inline void __syncwarp() { emulator::meet(emulator::warp(), emulator::warp().size); }
template <class T>
T __shfl_sync(u32, T v, int from) {
    auto& warp = emulator::warp();
    u64 bits = 0;
    std::memcpy(&bits, &v, sizeof v);
    warp.value[emulator::block->current % 32] = bits;
    emulator::meet(warp, warp.size);
    bits = warp.value[from & 31];
    emulator::meet(warp, warp.size);
    std::memcpy(&v, &bits, sizeof v);
    return v;
}
template <class T>
T __shfl_xor_sync(u32 all, T v, int mask) {
    return __shfl_sync(all, v, emulator::block->current % 32 ^ mask);
}

// Copies are made as late as is allowed; until then their place holds NaN.
inline void copy_ahead(float* to, const float* from) {
    *to = NAN;
    emulator::current().copies.emplace_back(to, from);
}
inline void copies_end() {
    emulator::current().copies.emplace_back(nullptr, nullptr);
    ++emulator::current().groups;
}
template <int BUT>
void copies_wait() {
    auto& fiber = emulator::current();
    while (fiber.groups > BUT) {
        auto [to, from] = fiber.copies.front();
        fiber.copies.pop_front();
        if (to) *to = *from; else --fiber.groups;
    }
}

inline u32 cluster_rank() { return emulator::rank; }
inline u32 shared_address(const void* p) {
    return (u32)((const char*)p - emulator::block->base + (1 << 22)) | cluster_rank() << 24;
}
inline char* where(u32 a) { return emulator::cluster[a >> 24]->base + (int)(a & 0xffffff) - (1 << 22); }
inline u32 at_rank(u32 address, u32 rank) { return (address & 0xffffff) | rank << 24; }
inline void cluster_sync() {
    __syncthreads();
    if (emulator::block->current == 0) emulator::clusters_meeting->arrive_and_wait();
    __syncthreads();
}
inline void barrier_init(u32 a) { *(emulator::Mbarrier*)where(a) = {0, 0, 0}; }
inline void barrier_expect(u32 a, u32 bytes) {
    std::lock_guard guard(emulator::lock);
    auto& barrier = *(emulator::Mbarrier*)where(a);
    if (barrier.armed) emulator::fail("a barrier is armed twice");
    barrier.bytes += bytes, barrier.armed = 1;
    settle(barrier);
}
inline void barrier_wait(u32 a, u32 parity) {
    for (long tries = 0;; ++tries) {
        {
            std::lock_guard guard(emulator::lock);
            if ((((emulator::Mbarrier*)where(a))->phase & 1) != (int)parity) return;
        }
        if (tries > 20'000'000) emulator::fail("a barrier is waited for in vain");
        emulator::yield();
        if (tries % 64 == 63) std::this_thread::yield();
    }
}
template <int N>
void send(u32 to, const u32 (&v)[N], u32 barrier) {
    if ((uintptr_t)where(to) % (4 * N)) emulator::fail("what is sent is not aligned");
    if (emulator::cluster[to >> 24]->left) emulator::fail("what is sent comes to a block that ended");
    std::lock_guard guard(emulator::lock);
    std::memcpy(where(to), v, 4 * N);
    auto& counted = *(emulator::Mbarrier*)where(barrier);
    counted.bytes -= 4 * N;
    settle(counted);
}

#if SCALAR > 0
inline void multiply(float (&sum)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    auto& warp = emulator::warp();
    const int lane = emulator::block->current % 32;
    const u32 given[6] = {a[0], a[1], a[2], a[3], b0, b1};
    for (int i = 0; i < 6; ++i)
        for (int e = 0; e < 2; ++e)
            warp.factors[lane][i][e] = to_float((scalar)(given[i] >> 16 * e));
    emulator::meet(warp, warp.size);
    for (int k = 0; k < 16; ++k) {  // lanes hold rows and columns, two k each
        const int pair = k % 8 / 2, high = k / 8;
        const auto& row = warp.factors[lane / 4 * 4 + pair];
        for (int c = 0; c < 2; ++c) {
            const float b = warp.factors[(lane % 4 * 2 + c) * 4 + pair][4 + high][k % 2];
            sum[c] += row[2 * high][k % 2] * b;
            sum[2 + c] += row[2 * high + 1][k % 2] * b;
        }
    }
    emulator::meet(warp, warp.size);
}
inline void load(u32 (&b)[4], u32 address, bool across) {
    const int lane = emulator::block->current % 32, here = lane / 4, there = lane % 4 * 2;
    for (int j = 0; j < 4; ++j) {
        b[j] = 0;
        for (int i = 0; i < 2; ++i) {
            const u32 row = __shfl_sync(~0u, address, j * 8 + (across ? there + i : here));
            scalar one;
            std::memcpy(&one, where(row) + 2 * (across ? here : there + i), 2);
            b[j] |= (u32)one << 16 * i;
        }
    }
}
inline void load_matrices(u32 (&b)[4], u32 address) { load(b, address, false); }
inline void load_across(u32 (&b)[4], u32 address) { load(b, address, true); }
#endif
