// What both recurrence kernels share. The host puts these definitions in front of it:
//   CELL     0 relu, 1 tanh, 2 lstm, 3 gru
//   SCALAR   0 float32, 1 float16, 2 bfloat16: what arrays of the caller hold; sums are float32
//   H, HP    hidden size, and the same rounded up; what is added has zero weights
//   C        blocks of a cluster, which share the recurrent weights of all units
//   KL       lanes that share one dot product
//   UT       units of a thread
//   SC, NC   sequences of a chunk, and chunks of a cluster; while the values of one chunk travel
//            between blocks, the next chunk is computed
//   THREADS  threads of a block
//   KS       values of a dot product whose weights a thread has in shared memory, where registers
//            have no room for them; a multiple of four
//   TRAIN    whether backward needs what is computed

constexpr int G = CELL == 2 ? 4 : CELL == 3 ? 3 : 1;  // gates
constexpr int GP = G == 1 ? 1 : 4;                    // and places for them: powers of two
constexpr int U = HP / C;                             // units of a block
constexpr int NS = SC * NC;                           // sequences of a cluster
constexpr u32 FULL = 0xffffffffu;

__device__ inline float sigmoid_of(float x) { return quick_inverse(1.f + quick_exp(-x)); }

// tanh to a few ulp, small arguments too: there a polynomial, because 1 - 2 / (1 + exp(2|x|)), made
// from `inverse`, loses all digits. The sign goes around both.
__device__ inline float tanh_from(float x, float inverse) {
    const float a = fabsf(x), s = x * x;
    float p = fmaf(s, -5.6867748e-3f, 2.1118844e-2f);
    p = fmaf(p, s, -5.3859096e-2f);
    p = fmaf(p, s, 1.3332587e-1f);
    p = fmaf(p, s, -3.3333322e-1f);
    const float small = fmaf(p * s, a, a), large = fmaf(-2.f, inverse, 1.f);
    return copysignf(a < 0.55f ? small : large, x);
}
__device__ inline float tanh_of(float x) {
    return tanh_from(x, quick_inverse(1.f + quick_exp(2.f * fabsf(x))));
}

// Either, with one exponential for both: lanes of one warp have different gates.
__device__ inline float gate_of(float x, bool is_tanh) {
    const float inverse = quick_inverse(1.f + quick_exp(is_tanh ? 2.f * fabsf(x) : -x));
    return is_tanh ? tanh_from(x, inverse) : inverse;
}

// ---- what a group of KL lanes multiplies: each lane has four values in a row of every 4 KL, which
// it loads from the weights at once, and SC sequences of each lie together in its vectors.

// Which value is the i-th of a lane.
__device__ inline constexpr int value_of(int i, int lane) { return (i / 4 * KL + lane) * 4 + i % 4; }

// Where value k of a sequence lies.
__device__ inline int position_of(int k, int sequence) {
    const int lane = k / 4 % KL, flat = (k / 4 / KL * 4 + k % 4) * SC + sequence;
    return (flat / 4 * KL + lane) * 4 + flat % 4;
}

// Four elements in a row, which begin at a multiple of four where H is one.
__device__ inline void load_four(float (&to)[4], const scalar* from, int valid) {
    if (H % 4 == 0) {
        struct __align__(4 * sizeof(scalar)) Four { scalar v[4]; };
        Four four = {};
        if (valid > 0) four = *reinterpret_cast<const Four*>(from);
#pragma unroll
        for (int i = 0; i < 4; ++i) to[i] = to_float(four.v[i]);
    } else {
#pragma unroll
        for (int i = 0; i < 4; ++i) to[i] = i < valid ? to_float(from[i]) : 0.f;
    }
}

// Adds products with the weights of a thread's last KS values, which are in shared memory: held has
// four of a row together, and the rows of all threads beside each other; vectors are what they are
// multiplied by. The sums of row r begin at first(r).
template <int ROWS, int V, class First>
__device__ inline void multiply_held(float (&sums)[V], const float4* held, const float4* vectors,
                                     First first) {
#pragma unroll
    for (int i = 0; i < KS / 4; ++i) {
        float value[SC * 4];
#pragma unroll
        for (int v = 0; v < SC; ++v) {
            const float4 vector = vectors[(i * SC + v) * KL];
            value[v * 4] = vector.x, value[v * 4 + 1] = vector.y;
            value[v * 4 + 2] = vector.z, value[v * 4 + 3] = vector.w;
        }
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const float4 four = held[(i * ROWS + r) * THREADS];
            const float weight[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
            for (int n = 0; n < SC * 4; ++n) {
                float& sum = sums[first(r) + n % SC];
                sum = fmaf(weight[n / SC], value[n], sum);
            }
        }
    }
}

// ---- sums over the lanes of a group of KL: V values go in at every lane, and each lane is left
// with V / KL of the sums (one, where V is not larger), those from place_of<V>(lane) on.

template <int V>
__device__ inline int place_of(int lane) {
    return V > KL ? lane * (V / KL) : lane / (KL / V);
}

template <int V>
__device__ inline void sum_over_lanes(float (&v)[V], int lane) {
    int n = V;
#pragma unroll
    for (int mask = KL / 2; mask > 0; mask /= 2) {
        if (n > 1) {
            n /= 2;
            bool upper = lane & mask;
#pragma unroll
            for (int i = 0; i < V / 2; ++i) {
                if (i < n) {
                    float give = upper ? v[i] : v[i + n];
                    float keep = upper ? v[i + n] : v[i];
                    v[i] = keep + __shfl_xor_sync(FULL, give, mask);
                }
            }
        } else {
            v[0] += __shfl_xor_sync(FULL, v[0], mask);
        }
    }
}
