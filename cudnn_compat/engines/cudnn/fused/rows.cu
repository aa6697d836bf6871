// What is not recurrence: rows of ragged batches to and from an order without padding, and sums of
// gate gradients over all rows, which are the gradients of biases.

enum Layout { TIME_MAJOR, BATCH_MAJOR, PACKED };

// The caller's row of step t of sequence b. Packed batches hold, step after step, the sequences
// that are longer than t, in any order of lengths: each lane counts a part of them.
__device__ inline u64 row_of(int layout, int t, int b, int steps, int batch, const int* lengths) {
    if (layout == TIME_MAJOR) return (u64)t * batch + b;
    if (layout == BATCH_MAJOR) return (u64)b * steps + t;
    u64 row = 0;
    for (int i = threadIdx.x; i < batch; i += 32) {
        const int length = lengths[i];
        row += min(length, t) + (i < b && length > t);
    }
    for (int mask = 16; mask > 0; mask /= 2) row += __shfl_xor_sync(FULL, row, mask);
    return row;
}

// One warp for one step of one sequence. `compact` has sequence after sequence without padding.
extern "C" __global__ void gather(const scalar* rows, scalar* compact, const int* lengths,
                                  const int* starts, int layout, int steps, int batch,
                                  int features) {
    const int t = blockIdx.x * blockDim.y + threadIdx.y, b = blockIdx.y;
    if (t >= lengths[b]) return;
    const scalar* from = rows + row_of(layout, t, b, steps, batch, lengths) * features;
    scalar* to = compact + (u64)(starts[b] + t) * features;
    for (int i = threadIdx.x; i < features; i += 32) to[i] = from[i];
}

// The way back; padding becomes 0.
extern "C" __global__ void scatter(const scalar* compact, scalar* rows, const int* lengths,
                                   const int* starts, int layout, int steps, int batch,
                                   int features) {
    const int t = blockIdx.x * blockDim.y + threadIdx.y, b = blockIdx.y;
    const bool there = t < lengths[b];
    if (t >= steps || (layout == PACKED && !there)) return;
    scalar* to = rows + row_of(layout, t, b, steps, batch, lengths) * features;
    const scalar* from = compact + (u64)(starts[b] + t) * features;
    for (int i = threadIdx.x; i < features; i += 32) to[i] = there ? from[i] : from_float(0.f);
}

// Sums of columns in two stages, always in the same order, so that results repeat bit for bit.
extern "C" __global__ void sum_columns(const float* values, float* parts, u64 next_values, u64 rows,
                                       int columns) {
    __shared__ float sums[8][33];
    const int column = blockIdx.x * 32 + threadIdx.x;
    values += blockIdx.z * next_values;
    float sum = 0.f;
    if (column < columns)
        for (u64 row = blockIdx.y * 8 + threadIdx.y; row < rows; row += gridDim.y * 8)
            sum += values[row * columns + column];
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && column < columns) {
        for (int i = 1; i < 8; ++i) sum += sums[i][threadIdx.x];
        parts[((u64)blockIdx.z * gridDim.y + blockIdx.y) * columns + column] = sum;
    }
}

// GRU's new gate has two gradients: in place 2 that of its input part, in place 3 the recurrent one.
extern "C" __global__ void add_biases(const float* parts, scalar* bias_x, scalar* bias_h,
                                      u64 next_bias, int stages, int hidden, int places) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x, columns = places * hidden;
    if (column >= columns) return;
    parts += (u64)blockIdx.y * stages * columns;
    float sum = 0.f;
    for (int i = 0; i < stages; ++i) sum += parts[(u64)i * columns + column];
    const int place = column / hidden;
    auto add = [&](scalar* to, int at) {
        if (!to) return;
        to += blockIdx.y * next_bias + at;
        *to = from_float(to_float(*to) + sum);
    };
    if (CELL != 3 || place != 3) add(bias_x, column);
    if (CELL != 3 || place != 2) add(bias_h, place == 3 && CELL == 3 ? column - hidden : column);
}
