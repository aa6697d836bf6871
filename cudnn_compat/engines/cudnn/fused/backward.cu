// The recurrence of one layer, backward: gradients of the gates of all steps, and of the first
// states.
//
// The blocks hold the same recurrent weights as forward: those of their own U units. Each makes the
// gate gradients of its units, multiplies them by its weights, which gives a part of the gradient of
// every unit's h, and sends each part to the block of that unit. So as much travels as forward, one
// value for each unit and peer, while sending the gate gradients themselves would be G times that.

constexpr int OT = UT;                  // outputs of a thread
constexpr int Q = G * U;                // gate gradients of a block, for one sequence
constexpr int QP = (Q + KL * 4 - 1) / (KL * 4) * (KL * 4);
constexpr int QT = QP / KL;             // of a thread
constexpr int QR = QT - KS;             // of which so many have their weights in registers
constexpr int NJ = QR * SC / 4;
constexpr int V = OT * SC;
constexpr int M = V > KL ? V / KL : 1;
constexpr int DUP = V > KL ? 1 : KL / V;
constexpr int TASKS = NS * U;           // (sequence, unit) of a block, each of one thread
constexpr int DEPTH = 4;

static_assert(M <= SC && KL >= OT, "places");
static_assert(THREADS / KL * OT == HP && TASKS <= THREADS, "threads");

extern "C" __global__ void
#if C > 1
    __cluster_dims__(C, 1, 1)
#endif
    __launch_bounds__(THREADS, 1) backward(const __grid_constant__ BackwardArgs a) {
    __shared__ __align__(16) float gate_in[2][NC][QP * SC];  // [gate, unit][sequence]
    __shared__ float parts[2][NC][C][SC * U];                // [from][sequence, unit]
    __shared__ float ahead[DEPTH][FETCHED][TASKS];
    ROOM(float4, held, KS / 4 * OT * THREADS);  // [four q][output][thread]: a thread reads its own
#if C > 1
    __shared__ __align__(8) u64 barriers[2][NC];
#endif
    const int thread = threadIdx.x, kl = thread % KL, group = thread / KL;
    const int rank = cluster_rank(), first = blockIdx.x / C * NS, direction = blockIdx.y;
    // The sums left at this lane: those of one unit, and from this sequence on.
    const int place = place_of<V>(kl), s0 = place % SC, output = group * OT + place / SC;

    float w[OT][QR];
    auto keep = [&](int o, int i, float weight) {
        if (i < QR) {
            w[o][i] = weight;
        } else {
            float4* const four = &held[((i - QR) / 4 * OT + o) * THREADS + thread];
            reinterpret_cast<float*>(four)[(i - QR) % 4] = weight;
        }
    };
#pragma unroll
    for (int i = 0; i < QT; ++i) {
        const int q = value_of(i, kl), row = rank * U + q % U;
        const scalar* R = a.R + direction * a.next_matrix + ((u64)(q / U) * H + row) * H;
#pragma unroll
        for (int o = 0; o < OT; o += 4) {
            const int k = group * OT + o, valid = q < Q && row < H ? H - k : 0;
            if (OT % 4 == 0) {
                float four[4];
                load_four(four, R + k, valid);
#pragma unroll
                for (int e = 0; e < 4; ++e) keep(o + e, i, four[e]);
            } else {
#pragma unroll
                for (int e = 0; e < OT; ++e) keep(e, i, e < valid ? to_float(R[k + e]) : 0.f);
            }
        }
    }

    // The task of this thread: unit `mine` of sequence `sequence`, in chunk `chunk`.
    const bool task = thread < TASKS;
    const int chunk = task ? thread / (SC * U) : NC, s = thread / U % SC, own = thread % U;
    const int mine = rank * U + own, sequence = first + thread / U;
    const bool real = task && mine < H && sequence < a.batch;
    const long long stride = direction ? -(long long)a.step_stride : (long long)a.step_stride;
    int steps = 0, longest = 0;
    for (int i = first; i < first + NS && i < a.batch; ++i)
        longest = max(longest, a.lengths ? a.lengths[i] : a.steps);
    u64 row0 = 0;
    float carried = 0.f, dc = 0.f, cell = 0.f, initial = 0.f;
    const u64 state = ((u64)direction * a.batch + sequence) * H + mine;
    if (real) {
        steps = a.lengths ? a.lengths[sequence] : a.steps;
        row0 = a.starts ? a.starts[sequence] : sequence * a.batch_stride;
        if (direction) row0 += (u64)max(steps - 1, 0) * a.step_stride;
        if (a.dhy) carried = to_float(a.dhy[state]);
        if (a.dcy) dc = to_float(a.dcy[state]);
        if (CELL == 2 && a.cx) initial = to_float(a.cx[state]);
        if (CELL == 2 && steps > 0)
            cell = a.cells[direction * a.next_rows + (row0 + (steps - 1) * stride) * H + mine];
    }
    int place_in_dg[G];
#pragma unroll
    for (int g = 0; g < G; ++g) place_in_dg[g] = position_of(g * U + own, s);
    float* const gates = a.gates + direction * a.next_gates + mine;
    auto fetch = [&](int t) {  // what step t needs
        if (0 <= t && t < steps) {
            const u64 row = row0 + t * stride;
            auto get = [&](int what, const float* from) {
                copy_ahead(&ahead[t % DEPTH][what][thread], from);
            };
            if (a.dy) get(0, a.dy + row * a.dy_row + direction * H + mine);
            if (CELL < 2) {
                get(1, gates + row * a.gate_row);
            } else {
#pragma unroll
                for (int g = 0; g < 4; ++g) get(1 + g, gates + row * a.gate_row + g * H);
                const u64 at = direction * a.next_rows + mine;
                if (CELL == 3) get(5, a.before + at + row * H);
                if (CELL == 2 && t > 0) get(5, a.cells + at + (row - stride) * H);
            }
        }
        copies_end();
    };
    for (int i = 0; i < DEPTH - 1; ++i) fetch(longest - 1 - i);
    for (int i = thread; i < 2 * NC * QP * SC; i += THREADS) (&gate_in[0][0][0])[i] = 0.f;

#if C > 1
    constexpr u32 BYTES = HP * SC * 4;
    if (thread == 0) {
        for (int i = 0; i < 2 * NC; ++i) {
            barrier_init(shared_address(&barriers[0][0] + i));
            barrier_expect(shared_address(&barriers[0][0] + i), BYTES);
        }
    }
    cluster_sync();
#else
    __syncthreads();
#endif
#if C > 1
    const u32 here = shared_address(&parts[0][0][0][0]), away = at_rank(here, output / U) - here;
#endif
    // The parts that others, and this block, sent in the pass before pass i.
    auto received = [&](int i) {
        if (i == 0) return 0.f;
#if C > 1
        const u32 barrier = shared_address(&barriers[i & 1][chunk]);
        barrier_wait(barrier, ((i - 1) >> 1) & 1);
        if (s == 0 && own == 0) barrier_expect(barrier, BYTES);
#endif
        float sum = 0.f;
#pragma unroll
        for (int from = 0; from < C; ++from) sum += parts[i & 1][chunk][from][s * U + own];
        return sum;
    };

    for (int i = 0; i < longest; ++i) {
        const int t = longest - 1 - i, now = i & 1, next = now ^ 1;
#pragma unroll
        for (int n = 0; n < NC; ++n) {
            if (chunk == n) {
                copies_wait<DEPTH - 2>();
                const bool live = t < steps;
                float got[FETCHED];
#pragma unroll
                for (int k = 0; k < FETCHED; ++k) got[k] = live ? ahead[t % DEPTH][k][thread] : 0.f;
                if (!a.dy) got[0] = 0.f;
                // All that does not depend on what is received comes first.
                const float previous = CELL == 2 && t > 0 ? got[5] : initial;
                const Slopes slopes(a, got, cell, previous);
                const float before = received(i) + carried;
                float d[4];
                carried = before;
                if (live) {
                    slopes.apply(before + got[0], d, carried, dc);
                    cell = previous;
                }
#pragma unroll
                for (int g = 0; g < G; ++g)  // through h, GRU's new gate has its other gradient
                    gate_in[now][n][place_in_dg[g]] = live ? d[CELL == 3 && g == 2 ? 3 : g] : 0.f;
                if (live) {
                    float* const out = gates + (row0 + t * stride) * a.gate_row;
#pragma unroll
                    for (int g = 0; g < GP; ++g) out[g * H] = d[g];
                }
                fetch(t - DEPTH + 1);
            }
            __syncthreads();
            float sums[V];
#pragma unroll
            for (int k = 0; k < V; ++k) sums[k] = 0.f;
            const float4* from = reinterpret_cast<const float4*>(gate_in[now][n]) + kl;
#pragma unroll
            for (int j = 0; j < NJ; ++j) {
                const float4 vector = from[j * KL];
                const float value[4] = {vector.x, vector.y, vector.z, vector.w};
#pragma unroll
                for (int e = 0; e < 4; ++e) {
#pragma unroll
                    for (int o = 0; o < OT; ++o)
                        sums[o * SC + e % SC] =
                            fmaf(w[o][(j * 4 + e) / SC], value[e], sums[o * SC + e % SC]);
                }
            }
            multiply_held<OT, V>(sums, held + thread, from + NJ * KL, [](int o) { return o * SC; });
            sum_over_lanes<V>(sums, kl);
            if (kl % DUP == 0) {
#pragma unroll
                for (int m = 0; m < M; ++m) {
                    float* const to = &parts[next][n][rank][(s0 + m) * U + output % U];
#if C > 1
                    const u32 one[1] = {__float_as_uint(sums[m])};
                    send(shared_address(to) + away, one,
                         shared_address(&barriers[next][n]) + away);
#else
                    *to = sums[m];
#endif
                }
            }
        }
#if C == 1
        __syncthreads();
#endif
    }
    if (task) {
        const float dh = received(longest) + carried;
        if (real) {
            a.dhx[state] = from_float(dh);
            if (CELL == 2) a.dcx[state] = from_float(dc);
        }
    }
#if C > 1
    cluster_sync();
#endif
}
