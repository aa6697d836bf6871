// The recurrence of one layer, forward, on tensor cores: LSTM and GRU in float16 and bfloat16, for
// hidden sizes whose weights fit the registers of a cluster in 16 bits only.
//
// As in forward.cu a block computes U units of NS sequences, here in tiles: the 16 rows of a tile
// are the gates of 4 units, its 8 columns the sequences of a chunk. h travels in the caller's dtype.
// H is a multiple of 32 and of 4 C, so that nothing has to be rounded up.

constexpr int KT = H / 16;             // tiles along k
constexpr int CHAINS = MT == 1 ? 4 : 2;  // sums of a tile that do not wait for each other

constexpr int PEERS = (C + 7) / 8;

static_assert(SC == 8 && HP == H && H % 32 == 0 && U == THREADS / 32 * MT * 4, "tiles");

extern "C" __global__ void __cluster_dims__(C, 1, 1)
    __launch_bounds__(THREADS, 1) forward_tensor(const __grid_constant__ ForwardArgs a) {
    __shared__ __align__(16) scalar h_in[2][NC][H][8];  // [unit][sequence]
    __shared__ __align__(8) u64 barriers[2][NC];
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const int rank = cluster_rank(), first = blockIdx.x / C * NS, direction = blockIdx.y;

    // Rows 4 g + u of a tile are gate g of unit u. A lane gets sums of rows lane / 4 and 8 more, of
    // two sequences: gates `low` and `low` + 2 of unit u. It exchanges one sequence with the lane
    // that has the other gates, and then has all gates of unit u of sequence s.
    const int low = lane / 16, u = lane / 4 % 4, s = lane % 4 * 2 + low;
    const int unit = rank * U + warp * MT * 4 + u;  // in the first tile; 4 more in each next

    u32 w[MT][KT][4];
#pragma unroll
    for (int m = 0; m < MT; ++m) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {  // rows 0, 8, 0, 8; columns 0, 0, 8, 8
            const int g = low + i % 2 * 2;
            const scalar* R = a.R + direction * a.next_matrix +
                ((u64)(g < G ? g : 0) * H + unit + m * 4) * H + lane % 4 * 2 + i / 2 * 8;
#pragma unroll
            for (int k = 0; k < KT; ++k)
                w[m][k][i] = g < G ? *reinterpret_cast<const u32*>(R + k * 16) : 0u;
        }
    }
    float bias[MT][4], bias_inside[MT];  // GRU's new gate has the recurrent one inside the reset
#pragma unroll
    for (int m = 0; m < MT; ++m) {
        bias_inside[m] = 0.f;
#pragma unroll
        for (int g = 0; g < G; ++g) {
            const u64 at = direction * a.next_bias + g * H + unit + m * 4;
            const float b = a.bias_h ? to_float(a.bias_h[at]) : 0.f;
            bias[m][g] = a.bias_x ? to_float(a.bias_x[at]) : 0.f;
            if (CELL == 3 && g == 2) bias_inside[m] = b; else bias[m][g] += b;
        }
    }

    float h[NC][MT], c[NC][MT], ahead[NC][MT][G];
    int left[NC], longest = 0;
    u64 row[NC];
    const long long stride = direction ? -(long long)a.step_stride : (long long)a.step_stride;
    float* const gates = a.gates + direction * a.next_gates + unit;
    for (int i = first; i < first + NS && i < a.batch; ++i)
        longest = max(longest, a.lengths ? a.lengths[i] : a.steps);
    auto fetch = [&](int t, int n) {  // the input parts of step t, for the chunk's current row
#pragma unroll
        for (int m = 0; m < MT; ++m) {
#pragma unroll
            for (int g = 0; g < G; ++g)
                ahead[n][m][g] = t < left[n] ? gates[row[n] * a.gate_row + g * H + m * 4] : 0.f;
        }
    };
#pragma unroll
    for (int n = 0; n < NC; ++n) {
        const int b = first + n * 8 + s;
        const bool there = b < a.batch;
        left[n] = !there ? 0 : a.lengths ? a.lengths[b] : a.steps;
        row[n] = !there ? 0 : a.starts ? a.starts[b] : b * a.batch_stride;
        if (direction) row[n] += (u64)max(left[n] - 1, 0) * a.step_stride;
#pragma unroll
        for (int m = 0; m < MT; ++m) {
            const u64 at = ((u64)direction * a.batch + b) * H + unit + m * 4;
            h[n][m] = there && a.hx ? to_float(a.hx[at]) : 0.f;
            c[n][m] = there && a.cx ? to_float(a.cx[at]) : 0.f;
        }
        fetch(0, n);
        for (int i = thread; i < 8 * H; i += THREADS) {
            const int from = first + n * 8 + i / H;
            h_in[0][n][i % H][i / H] = from < a.batch && a.hx
                ? a.hx[((u64)direction * a.batch + from) * H + i % H] : from_float(0.f);
        }
    }

    constexpr u32 BYTES = 8 * H * 2;
    if (thread == 0) {
        for (int i = 0; i < 2 * NC; ++i) {
            barrier_init(shared_address(&barriers[0][0] + i));
            barrier_expect(shared_address(&barriers[0][0] + i), BYTES);
        }
    }
    // The eight lanes that come to know the h of a unit, all sequences, send it to every eighth peer.
    u32 away[PEERS];
#pragma unroll
    for (int p = 0; p < PEERS; ++p) {
        const u32 here = shared_address(&h_in[0][0][0][0]);
        away[p] = at_rank(here, min(s + p * 8, C - 1)) - here;
    }
    cluster_sync();

    for (int t = 0; t < longest; ++t) {
        const int now = t & 1, next = now ^ 1;
#pragma unroll
        for (int n = 0; n < NC; ++n) {
            if (t > 0) {
                const u32 barrier = shared_address(&barriers[now][n]);
                barrier_wait(barrier, ((t - 1) >> 1) & 1);
                if (thread == 0) barrier_expect(barrier, BYTES);
            }
            float sums[MT][CHAINS][4];
#pragma unroll
            for (int i = 0; i < MT * CHAINS * 4; ++i) (&sums[0][0][0])[i] = 0.f;
            const u32 vectors = shared_address(&h_in[now][n][lane][0]);
#pragma unroll
            for (int k = 0; k < KT; k += 2) {
                u32 b[4];
                load_across(b, vectors + k * 16 * 16);
#pragma unroll
                for (int m = 0; m < MT; ++m) {
                    multiply(sums[m][k % CHAINS], w[m][k], b[0], b[1]);
                    multiply(sums[m][(k + 1) % CHAINS], w[m][k + 1], b[2], b[3]);
                }
            }
            const bool live = t < left[n];
            float keep[MT][4], old[MT];
#pragma unroll
            for (int m = 0; m < MT; ++m) {
#pragma unroll
                for (int i = 0; i < 4; ++i) {
#pragma unroll
                    for (int j = 1; j < CHAINS; ++j) sums[m][0][i] += sums[m][j][i];
                }
                const float(&sum)[4] = sums[m][0];
                const float other = __shfl_xor_sync(FULL, low ? sum[0] : sum[1], 16);
                const float last = __shfl_xor_sync(FULL, low ? sum[2] : sum[3], 16);
                float v[4] = {low ? other : sum[0], low ? sum[1] : other, low ? last : sum[2],
                              low ? sum[3] : last};
                float out;
                old[m] = h[n][m];
                if (CELL == 2) {
#pragma unroll
                    for (int g = 0; g < 4; ++g) v[g] += ahead[n][m][g] + bias[m][g];
                    const float i_ = sigmoid_of(v[0]), f_ = sigmoid_of(v[1]);
                    const float g_ = tanh_of(v[2]), o_ = sigmoid_of(v[3]);
                    const float cell = f_ * clipped(a, c[n][m]) + i_ * g_;
                    out = o_ * tanh_of(clipped(a, cell));
                    if (live) c[n][m] = cell;
                    keep[m][0] = i_, keep[m][1] = f_, keep[m][2] = g_, keep[m][3] = o_;
                } else {
                    const float r_ = sigmoid_of(v[0] + ahead[n][m][0] + bias[m][0]);
                    const float z_ = sigmoid_of(v[1] + ahead[n][m][1] + bias[m][1]);
                    const float v_ = v[2] + bias_inside[m];
                    const float n_ = tanh_of(ahead[n][m][2] + bias[m][2] + r_ * v_);
                    out = (1.f - z_) * n_ + z_ * h[n][m];
                    keep[m][0] = r_, keep[m][1] = z_, keep[m][2] = n_, keep[m][3] = v_;
                }
                if (live) h[n][m] = out;

                // Eight sequences of one unit, in their order, make one message.
                if (t + 1 < longest) {
                    const u32 bits = from_float(h[n][m]);
                    const u32 near = __shfl_xor_sync(FULL, bits, 16);
                    const u32 pair = low ? bits << 16 | near : near << 16 | bits;
                    u32 pack[4];
#pragma unroll
                    for (int i = 0; i < 4; ++i)
                        pack[i] = __shfl_sync(FULL, pair, lane / 4 * 4 + i);
                    const u32 to =
                        shared_address(&h_in[next][n][rank * U + (warp * MT + m) * 4 + u][0]);
                    const u32 barrier = shared_address(&barriers[next][n]);
#pragma unroll
                    for (int p = 0; p < PEERS; ++p)
                        if (s + p * 8 < C) send(to + away[p], pack, barrier + away[p]);
                }
            }
            // What others wait for is under way; now what nobody waits for.
#pragma unroll
            for (int m = 0; m < MT; ++m) {
                if (live)
                    a.y[row[n] * a.y_row + direction * H + unit + m * 4] = from_float(h[n][m]);
                if (TRAIN && live) {
#pragma unroll
                    for (int g = 0; g < 4; ++g)
                        gates[row[n] * a.gate_row + g * H + m * 4] = keep[m][g];
                    const u64 at = direction * a.next_rows + row[n] * H + unit + m * 4;
                    a.before[at] = old[m];
                    if (CELL == 2) a.cells[at] = c[n][m];
                }
            }
            row[n] += stride;
            fetch(t + 1, n);
        }
    }
#pragma unroll
    for (int n = 0; n < NC; ++n) {
#pragma unroll
        for (int m = 0; m < MT; ++m) {
            const int b = first + n * 8 + s;
            const u64 at = ((u64)direction * a.batch + b) * H + unit + m * 4;
            if (b < a.batch && a.hy) a.hy[at] = from_float(h[n][m]);
            if (b < a.batch && a.cy) a.cy[at] = from_float(c[n][m]);
        }
    }
    cluster_sync();
}
