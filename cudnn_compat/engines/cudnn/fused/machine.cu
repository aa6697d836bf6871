// What only the machine can say: all inline PTX is in this file, so that another can take its place.
// No header is used, so that nothing has to be found where this is compiled.

typedef unsigned int u32;
typedef unsigned long long u64;

#if SCALAR == 0
typedef float scalar;
__device__ inline float to_float(scalar v) { return v; }
__device__ inline scalar from_float(float v) { return v; }
#else
typedef unsigned short scalar;
#if SCALAR == 1
__device__ inline float to_float(scalar v) {
    float r;
    asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(v));
    return r;
}
__device__ inline scalar from_float(float v) {
    scalar r;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(v));
    return r;
}
#else
__device__ inline float to_float(scalar v) { return __uint_as_float((u32)v << 16); }
__device__ inline scalar from_float(float v) {
    scalar r;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r) : "f"(v));
    return r;
}
#endif
#endif

// exp through the hardware's power of two: 2 ulp, and more only where it does not matter.
__device__ inline float quick_exp(float x) {
    float r;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x * 1.4426950408889634f));
    return r;
}
__device__ inline float quick_inverse(float x) {
    float r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}

// Memory that the threads of a block share, as much as the launch says.
#define ROOM(type, name, count) extern __shared__ __align__(16) type name[]

// ---- copies from device memory that go on behind the arithmetic; a thread reads its own alone

__device__ inline u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }

__device__ inline void copy_ahead(float* to, const float* from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(to)), "l"(from)
                 : "memory");
}
__device__ inline void copies_end() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int BUT>  // waits for all groups but the last BUT
__device__ inline void copies_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(BUT) : "memory");
}

// ---- exchange between the blocks of a cluster: remote stores that count their bytes at a barrier
// in the receiving block, so that nobody waits for more than the values that he needs

#if C > 1
__device__ inline u32 cluster_rank() {
    u32 r;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
    return r;
}
__device__ inline void cluster_sync() {
    asm volatile(
        "barrier.cluster.arrive.release.aligned;\n"
        "barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
__device__ inline u32 at_rank(u32 address, u32 rank) {
    u32 r;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(address), "r"(rank));
    return r;
}
__device__ inline void barrier_init(u32 barrier) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
}
__device__ inline void barrier_expect(u32 barrier, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}
// Gives up after some seconds with a trap: an error is better than a GPU that hangs.
__device__ inline void barrier_wait(u32 barrier, u32 parity) {
    u32 done = 0;
    for (int tries = 0; tries < (1 << 24); ++tries) {
        asm volatile(
            "{\n.reg .pred p;\n"
            "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
            "selp.u32 %0, 1, 0, p;\n}"
            : "=r"(done)
            : "r"(barrier), "r"(parity)
            : "memory");
        if (done) return;
    }
    asm volatile("trap;");
}
// Few messages travel faster than many small ones: up to four values make one.
__device__ inline void send(u32 remote, const u32 (&v)[1], u32 remote_barrier) {
    asm volatile(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(remote),
        "r"(v[0]), "r"(remote_barrier)
        : "memory");
}
__device__ inline void send(u32 remote, const u32 (&v)[2], u32 remote_barrier) {
    asm volatile(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%0], {%1, %2}, [%3];" ::"r"(
            remote),
        "r"(v[0]), "r"(v[1]), "r"(remote_barrier)
        : "memory");
}
__device__ inline void send(u32 remote, const u32 (&v)[4], u32 remote_barrier) {
    asm volatile(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, "
        "[%5];" ::"r"(remote),
        "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3]), "r"(remote_barrier)
        : "memory");
}
#else
__device__ inline u32 cluster_rank() { return 0; }
#endif

// ---- tensor cores, for the short dtypes

#if SCALAR > 0
#if SCALAR == 1
#define FACTORS "f16.f16"
#else
#define FACTORS "bf16.bf16"
#endif
// sum (16, 8) += a (16, 16) · b (16, 8): products exact, sums float32.
__device__ inline void multiply(float (&sum)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32." FACTORS ".f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// Four 8x8 matrices, whose rows of 16 bytes begin where lanes 0-7, 8-15, … say; across: transposed.
__device__ inline void load_across(u32 (&b)[4], u32 address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
                 : "r"(address)
                 : "memory");
}
__device__ inline void load_matrices(u32 (&b)[4], u32 address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
                 : "r"(address)
                 : "memory");
}
#endif
