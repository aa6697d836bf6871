// The recurrence of one layer, backward, on tensor cores; see backward.cu for the way and
// forward_tensor.cu for the tiles. Here the 16 rows of a tile are units of h, whose gradients its
// gates give in part; gate gradients are rounded to the caller's dtype for this product alone.

constexpr int Q = G * U;               // gate gradients of a block, for one sequence
constexpr int KT = Q / 16;             // tiles along them
constexpr int ROW = Q + 8;             // those of a sequence, so that rows meet different banks
constexpr int TASKS = 8 * U;           // (sequence, unit) of a block, each of one thread

static_assert(SC == 8 && NC == 1 && HP == H && Q % 32 == 0 && H == THREADS / 32 * MT * 16, "tiles");
static_assert(TASKS <= THREADS, "tasks");

extern "C" __global__ void __cluster_dims__(C, 1, 1)
    __launch_bounds__(THREADS, 1) backward_tensor(const __grid_constant__ BackwardArgs a) {
    __shared__ __align__(16) scalar gate_in[2][8][ROW];
    __shared__ __align__(16) float parts[2][C][U][8];  // [from][unit][sequence]
    __shared__ __align__(8) u64 barriers[2];
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const int rank = cluster_rank(), first = blockIdx.x / C * 8, direction = blockIdx.y;

    u32 w[MT][KT][4];
#pragma unroll
    for (int m = 0; m < MT; ++m) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {  // rows 0, 8, 0, 8; columns 0, 0, 8, 8
            const int k = (warp * MT + m) * 16 + lane / 4 + i % 2 * 8;
#pragma unroll
            for (int j = 0; j < KT; ++j) {
                u32 pair = 0;
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                    const int q = j * 16 + lane % 4 * 2 + i / 2 * 8 + e;
                    const u64 row = (u64)(q / U) * H + rank * U + q % U;
                    pair |= (u32)a.R[direction * a.next_matrix + row * H + k] << (16 * e);
                }
                w[m][j][i] = pair;
            }
        }
    }

    const bool task = thread < TASKS;
    const int s = thread % 8, own = thread / 8 % U, mine = rank * U + own, sequence = first + s;
    const bool real = task && sequence < a.batch;
    const long long stride = direction ? -(long long)a.step_stride : (long long)a.step_stride;
    int steps = 0, longest = 0;
    for (int i = first; i < first + 8 && i < a.batch; ++i)
        longest = max(longest, a.lengths ? a.lengths[i] : a.steps);
    u64 row = 0;  // of the step that is fetched next
    float carried = 0.f, dc = 0.f, cell = 0.f, initial = 0.f;
    const u64 state = ((u64)direction * a.batch + sequence) * H + mine;
    if (real) {
        steps = a.lengths ? a.lengths[sequence] : a.steps;
        row = a.starts ? a.starts[sequence] : sequence * a.batch_stride;
        if (!direction) row += (u64)max(steps - 1, 0) * a.step_stride;
        if (a.dhy) carried = to_float(a.dhy[state]);
        if (a.dcy) dc = to_float(a.dcy[state]);
        if (CELL == 2 && a.cx) initial = to_float(a.cx[state]);
        if (CELL == 2 && steps > 0) cell = a.cells[direction * a.next_rows + row * H + mine];
    }
    float* const gates = a.gates + direction * a.next_gates + mine;
    float ahead[FETCHED] = {};
    auto fetch = [&](int t) {  // what step t needs
        if (0 <= t && t < steps) {
            if (a.dy) ahead[0] = a.dy[row * a.dy_row + direction * H + mine];
#pragma unroll
            for (int g = 0; g < 4; ++g) ahead[1 + g] = gates[row * a.gate_row + g * H];
            const u64 at = direction * a.next_rows + mine;
            if (CELL == 3) ahead[5] = a.before[at + row * H];
            if (CELL == 2 && t > 0) ahead[5] = a.cells[at + (row - stride) * H];
            row -= stride;
        }
    };
    fetch(longest - 1);

    constexpr u32 BYTES = 8 * H * 4;
    if (thread == 0) {
        for (int i = 0; i < 2; ++i) {
            barrier_init(shared_address(&barriers[i]));
            barrier_expect(shared_address(&barriers[i]), BYTES);
        }
    }
    cluster_sync();
    auto received = [&](int i) {
        if (i == 0) return 0.f;
        const u32 barrier = shared_address(&barriers[i & 1]);
        barrier_wait(barrier, ((i - 1) >> 1) & 1);
        if (thread == 0) barrier_expect(barrier, BYTES);
        float sum = 0.f;
#pragma unroll
        for (int from = 0; from < C; ++from) sum += parts[i & 1][from][own][s];
        return sum;
    };

    for (int i = 0; i < longest; ++i) {
        const int t = longest - 1 - i, now = i & 1, next = now ^ 1;
        if (task) {
            const bool live = t < steps;
            const float previous = CELL == 2 && t > 0 ? ahead[5] : initial;
            const Slopes slopes(a, ahead, cell, previous);
            const float before = received(i) + carried;
            float d[4] = {0.f, 0.f, 0.f, 0.f};
            carried = before;
            if (live) {
                slopes.apply(before + ahead[0], d, carried, dc);
                cell = previous;
            }
#pragma unroll
            for (int g = 0; g < G; ++g)  // through h, GRU's new gate has its other gradient
                gate_in[now][s][g * U + own] = from_float(d[CELL == 3 && g == 2 ? 3 : g]);
            if (live) {
#pragma unroll
                for (int g = 0; g < 4; ++g) gates[(row + stride) * a.gate_row + g * H] = d[g];
            }
            fetch(t - 1);
        }
        __syncthreads();
        const u32 vectors = shared_address(&gate_in[now][lane % 8][lane / 8 * 8]);
        float sums[MT][4] = {};
#pragma unroll
        for (int j = 0; j < KT; j += 2) {
            u32 b[4];
            load_matrices(b, vectors + j * 32);
#pragma unroll
            for (int m = 0; m < MT; ++m) {
                multiply(sums[m], w[m][j], b[0], b[1]);
                multiply(sums[m], w[m][j + 1], b[2], b[3]);
            }
        }
        // Rows 0 and 8 of a tile are at this lane, of two sequences. Of two lanes, one takes the first
        // row and one the other, of four sequences: half as many messages, twice as long.
        const bool odd = lane % 2;
#pragma unroll
        for (int m = 0; m < MT; ++m) {
            float near[2];
#pragma unroll
            for (int e = 0; e < 2; ++e)
                near[e] = __shfl_xor_sync(FULL, odd ? sums[m][e] : sums[m][2 + e], 1);
            const float four[4] = {odd ? near[0] : sums[m][0], odd ? near[1] : sums[m][1],
                                   odd ? sums[m][2] : near[0], odd ? sums[m][3] : near[1]};
            u32 all[4];
#pragma unroll
            for (int e = 0; e < 4; ++e) all[e] = __float_as_uint(four[e]);
            const int k = (warp * MT + m) * 16 + lane / 4 + odd * 8, peer = k / U;
            send(at_rank(shared_address(&parts[next][rank][k % U][lane % 4 / 2 * 4]), peer), all,
                 at_rank(shared_address(&barriers[next]), peer));
        }
    }
    if (task) {
        const float dh = received(longest) + carried;
        if (real) {
            a.dhx[state] = from_float(dh);
            if (CELL == 2) a.dcx[state] = from_float(dc);
        }
    }
    cluster_sync();
}
