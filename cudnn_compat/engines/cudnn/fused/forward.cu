// The recurrence of one layer, forward: one launch for all steps, sequences and directions.
//
// A cluster of C blocks serves NS sequences. Each block holds the recurrent weights of U units, all
// gates, in registers and, where these have no room, in shared memory, and computes the h of these
// units; everything else of h it gets from its peers. A warp goes on as soon as the values of its chunk have arrived: there is no barrier of a
// block within a step.

constexpr int KT = HP / KL;             // k of a thread
constexpr int KR = KT - KS;             // of which so many have their weights in registers
constexpr int NJ = KR * SC / 4;         // vectors of a thread for these
constexpr int ROWS = UT * G;            // dot products of a thread
constexpr int V = UT * GP * SC;         // sums of a group of lanes
constexpr int M = V > KL ? V / KL : 1;  // of which a lane gets so many, of one gate and unit
constexpr int DUP = V > KL ? 1 : KL / V;        // lanes that have the same
constexpr int GATE_LANES = SC / M * DUP;        // from a lane to that with the next gate
// Four sequences of a unit are sent together: gathering fewer costs more than it saves.
constexpr bool TOGETHER = SC == 4 && C > 1;
constexpr int KNOW = TOGETHER ? KL / UT : GP * DUP;  // lanes that come to know what is sent
constexpr int PEERS = (C + KNOW - 1) / KNOW;    // to which each of these sends it
constexpr int DEPTH = 4;                // steps that the input parts are fetched ahead

static_assert(M <= SC && KL >= UT * GP && HP % (KL * 4) == 0, "places");
static_assert(U == THREADS / KL * UT, "threads");

extern "C" __global__ void
#if C > 1
    __cluster_dims__(C, 1, 1)
#endif
    __launch_bounds__(THREADS, 1) forward(const __grid_constant__ ForwardArgs a) {
    // h of a chunk is [k][sequence], so that one vector has all that a thread multiplies.
    __shared__ __align__(16) float h_in[2][NC][HP * SC];
    __shared__ float ahead[DEPTH][NC][M][THREADS];
    ROOM(float4, held, KS / 4 * ROWS * THREADS);  // [four k][row][thread]: a thread reads its own
#if C > 1
    __shared__ __align__(8) u64 barriers[2][NC];
#endif
    const int thread = threadIdx.x, lane = thread % 32, kl = thread % KL, group = thread / KL;
    const int rank = cluster_rank(), first = blockIdx.x / C * NS, direction = blockIdx.y;

    // Which sum is left at this lane: of gate g, of this unit, of sequences s0, s0 + 1, …
    const int place = place_of<V>(kl);
    const int s0 = place % SC, g = place / SC % GP, unit_in_thread = place / (SC * GP);
    const int copy = g * DUP + kl % DUP;  // of the lanes with the same h
    const int knows = TOGETHER ? kl % KNOW : copy;
    const int unit = rank * U + group * UT + unit_in_thread;
    const bool real = unit < H;
    const int gate0 = lane - g * GATE_LANES;  // the lane with the first gate of the same

    float w[ROWS][KR];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const int row = rank * U + group * UT + r / G;
        const scalar* R = a.R + direction * a.next_matrix + ((u64)(r % G) * H + row) * H;
#pragma unroll
        for (int i = 0; i < KT; i += 4) {
            const int k = value_of(i, kl);
            float four[4];
            load_four(four, R + k, row < H ? H - k : 0);
            if (i < KR) {
#pragma unroll
                for (int e = 0; e < 4; ++e) w[r][i + e] = four[e];
            } else {
                held[((i - KR) / 4 * ROWS + r) * THREADS + thread] = {four[0], four[1], four[2],
                                                                     four[3]};
            }
        }
    }
    float bias = 0.f, bias_inside = 0.f;  // GRU's new gate has the recurrent one inside the reset
    if (real && g < G) {
        const u64 at = direction * a.next_bias + g * H + unit;
        if (a.bias_x) bias = to_float(a.bias_x[at]);
        if (a.bias_h) {
            const float b = to_float(a.bias_h[at]);
            if (CELL == 3 && g == 2) bias_inside = b; else bias += b;
        }
    }

    float h[NC][M], c[NC][M];
    int left[NC][M], longest = 0;  // steps of each sequence, and the most in this cluster
    // Where the next input part is fetched, and where results go: all move on with the steps.
    const float* from[NC][M];
    u64 row[NC][M];
    const long long stride = direction ? -(long long)a.step_stride : (long long)a.step_stride;
    const long long gate_stride = stride * a.gate_row;
    const u64 column = g * H + unit;
    for (int s = 0; s < NS; ++s) {
        const int b = first + s;
        if (b < a.batch) longest = max(longest, a.lengths ? a.lengths[b] : a.steps);
    }
#pragma unroll
    for (int n = 0; n < NC; ++n) {
#pragma unroll
        for (int m = 0; m < M; ++m) {
            const int b = first + n * SC + s0 + m;
            const bool there = b < a.batch;
            const u64 at = ((u64)direction * a.batch + b) * H + unit;
            h[n][m] = there && real && a.hx ? to_float(a.hx[at]) : 0.f;
            c[n][m] = there && real && a.cx ? to_float(a.cx[at]) : 0.f;
            left[n][m] = !there || !real ? 0 : a.lengths ? a.lengths[b] : a.steps;
            row[n][m] = !there ? 0 : a.starts ? a.starts[b] : b * a.batch_stride;
            if (direction) row[n][m] += (u64)max(left[n][m] - 1, 0) * a.step_stride;
            from[n][m] = a.gates + direction * a.next_gates + row[n][m] * a.gate_row + column;
        }
        for (int i = thread; i < HP * SC; i += THREADS) {
            const int k = i / SC, s = i % SC, b = first + n * SC + s;
            h_in[0][n][position_of(k, s)] = k < H && b < a.batch && a.hx
                ? to_float(a.hx[((u64)direction * a.batch + b) * H + k]) : 0.f;
        }
    }
    auto fetch = [&](int t, int n) {
#pragma unroll
        for (int m = 0; m < M; ++m) {
            if (g < G && t < left[n][m]) copy_ahead(&ahead[t % DEPTH][n][m][thread], from[n][m]);
            from[n][m] += gate_stride;
        }
        copies_end();
    };
    for (int t = 0; t < DEPTH - 1; ++t)
        for (int n = 0; n < NC; ++n) fetch(t, n);
    int place_in_h[M];
#pragma unroll
    for (int m = 0; m < M; ++m) place_in_h[m] = position_of(unit, TOGETHER ? 0 : s0 + m);

#if C > 1
    constexpr u32 BYTES = HP * SC * 4;
    if (thread == 0) {
        for (int i = 0; i < 2 * NC; ++i) {
            barrier_init(shared_address(&barriers[0][0] + i));
            barrier_expect(shared_address(&barriers[0][0] + i), BYTES);
        }
    }
    // The same place in a peer is so far away. A lane without a peer left sends to nobody.
    u32 away[PEERS];
#pragma unroll
    for (int p = 0; p < PEERS; ++p) {
        const u32 here = shared_address(&h_in[0][0][0]);
        away[p] = at_rank(here, min(knows + p * KNOW, C - 1)) - here;
    }
    cluster_sync();
#else
    __syncthreads();
#endif

    for (int t = 0; t < longest; ++t) {
        const int now = t & 1, next = now ^ 1;
#pragma unroll
        for (int n = 0; n < NC; ++n) {
#if C > 1
            if (t > 0) {  // step t's values are the (t + 1) / 2-th that came to this buffer
                const u32 barrier = shared_address(&barriers[now][n]);
                barrier_wait(barrier, ((t - 1) >> 1) & 1);
                if (thread == 0) barrier_expect(barrier, BYTES);
            }
#endif
            float sums[V];
#pragma unroll
            for (int i = 0; i < V; ++i) sums[i] = 0.f;
            const float4* vectors = reinterpret_cast<const float4*>(h_in[now][n]) + kl;
#pragma unroll
            for (int j = 0; j < NJ; ++j) {
                const float4 vector = vectors[j * KL];
                const float value[4] = {vector.x, vector.y, vector.z, vector.w};
#pragma unroll
                for (int e = 0; e < 4; ++e) {
#pragma unroll
                    for (int r = 0; r < ROWS; ++r) {
                        const int to = (r / G * GP + r % G) * SC + e % SC;
                        sums[to] = fmaf(w[r][(j * 4 + e) / SC], value[e], sums[to]);
                    }
                }
            }
            multiply_held<ROWS, V>(sums, held + thread, vectors + NJ * KL,
                                   [](int r) { return (r / G * GP + r % G) * SC; });
            sum_over_lanes<V>(sums, kl);

            copies_wait<(DEPTH - 1) * NC - 1>();
            // In training the first of the lanes with the same h writes, below, what all of them read.
            if (TRAIN && G == 1 && DUP > 1) __syncwarp();
            float out[M], keep[M], old[M];
#pragma unroll
            for (int m = 0; m < M; ++m) {
                const float inside = sums[m] + bias_inside;
                const float given = ahead[t % DEPTH][n][m][thread] + bias;
                old[m] = h[n][m];
                if (CELL == 2) {
                    const float sum = given + inside;
                    const float own = gate_of(sum, g == 2);
                    const float i_ = __shfl_sync(FULL, own, gate0);
                    const float f_ = __shfl_sync(FULL, own, gate0 + GATE_LANES);
                    const float g_ = __shfl_sync(FULL, own, gate0 + 2 * GATE_LANES);
                    const float o_ = __shfl_sync(FULL, own, gate0 + 3 * GATE_LANES);
                    const float cell = f_ * clipped(a, c[n][m]) + i_ * g_;
                    out[m] = o_ * tanh_of(clipped(a, cell));
                    if (t < left[n][m]) c[n][m] = cell;
                    keep[m] = own;
                } else if (CELL == 3) {
                    const float own = sigmoid_of(given + inside);
                    const float r_ = __shfl_sync(FULL, own, gate0);
                    const float z_ = __shfl_sync(FULL, own, gate0 + GATE_LANES);
                    const float x_ = __shfl_sync(FULL, given, gate0 + 2 * GATE_LANES);
                    const float v_ = __shfl_sync(FULL, inside, gate0 + 2 * GATE_LANES);
                    const float n_ = tanh_of(x_ + r_ * v_);
                    out[m] = (1.f - z_) * n_ + z_ * h[n][m];
                    keep[m] = g == 0 ? r_ : g == 1 ? z_ : g == 2 ? n_ : v_;
                } else {
                    const float sum = given + inside;
                    out[m] = CELL == 1 ? tanh_of(sum) : sum > 0.f || isnan(sum) ? sum : 0.f;
                    keep[m] = out[m];
                }
                if (t < left[n][m]) h[n][m] = out[m];
            }
            // Everything is sent, the h of ended and absent sequences too: the bytes are counted.
            if (t + 1 < longest) {
#if C > 1
                const u32 barrier = shared_address(&barriers[next][n]);
                auto send_to_all = [&](const auto& values, int place) {
                    const u32 to = shared_address(&h_in[next][n][place]);
#pragma unroll
                    for (int p = 0; p < PEERS; ++p)
                        if (knows + p * KNOW < C) send(to + away[p], values, barrier + away[p]);
                };
                if constexpr (TOGETHER) {
                    u32 all[4];
#pragma unroll
                    for (int s = 0; s < 4; ++s)
                        all[s] = __float_as_uint(
                            __shfl_sync(FULL, h[n][s % M], lane + (s / M - s0 / M) * DUP));
                    send_to_all(all, place_in_h[0]);
                } else {
#pragma unroll
                    for (int m = 0; m < M; ++m) {
                        const u32 one[1] = {__float_as_uint(h[n][m])};
                        send_to_all(one, place_in_h[m]);
                    }
                }
#else
#pragma unroll
                for (int m = 0; m < M; ++m)
                    if (copy == 0) h_in[next][n][place_in_h[m]] = h[n][m];
#endif
            }
            // What others wait for is under way; now what nobody waits for.
#pragma unroll
            for (int m = 0; m < M; ++m) {
                if (t < left[n][m]) {
                    if (copy == 0)
                        a.y[row[n][m] * a.y_row + direction * H + unit] = from_float(h[n][m]);
                    if (TRAIN && kl % DUP == 0) {
                        a.gates[direction * a.next_gates + row[n][m] * a.gate_row + column] = keep[m];
                        const u64 at = direction * a.next_rows + row[n][m] * H + unit;
                        if (g == 0) a.before[at] = old[m];
                        if (CELL == 2 && g == 1) a.cells[at] = c[n][m];
                    }
                }
                row[n][m] += stride;
            }
            fetch(t + DEPTH - 1, n);
        }
#if C == 1
        __syncthreads();
#endif
    }
    if (copy == 0 && real) {
#pragma unroll
        for (int n = 0; n < NC; ++n) {
#pragma unroll
            for (int m = 0; m < M; ++m) {
                const int b = first + n * SC + s0 + m;
                const u64 at = ((u64)direction * a.batch + b) * H + unit;
                if (b < a.batch && a.hy) a.hy[at] = from_float(h[n][m]);
                if (b < a.batch && a.cy) a.cy[at] = from_float(c[n][m]);
            }
        }
    }
#if C > 1
    cluster_sync();  // a block that has ended can no longer be written to
#endif
}
