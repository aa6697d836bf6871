// The arguments of both forward kernels.

struct ForwardArgs {
    const scalar* R;       // (G, H, H) of the first direction
    const scalar* bias_x;  // (G, H), or null
    const scalar* bias_h;
    u64 next_matrix, next_bias;  // from one direction to the next, in elements
    float* gates;          // rows of gate_row values (G, H): what x gives; in training, then, gates
    u64 next_gates;
    float* cells;          // training, lstm: rows of c
    float* before;         // training: rows of h one step earlier
    u64 next_rows;         // from one direction to the next in cells and before
    scalar* y;
    u64 y_row;
    const scalar* hx;      // (directions, B, H), or null
    const scalar* cx;
    scalar* hy;
    scalar* cy;
    const int* lengths;    // (B), or null: all have `steps`
    const int* starts;     // (B), or null: the row of each sequence's first step
    u64 batch_stride, step_stride;  // rows from sequence to sequence and step to step
    int gate_row, batch, steps, clips;
    float low, high;
};

__device__ inline float clipped(const ForwardArgs& a, float c) {
    return !a.clips || isnan(c) ? c : fminf(fmaxf(c, a.low), a.high);
}

