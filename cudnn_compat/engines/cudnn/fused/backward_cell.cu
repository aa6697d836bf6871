// The arguments of both backward kernels, and one step of a cell backward.

struct BackwardArgs {
    const scalar* R;       // (G, H, H) of the first direction
    u64 next_matrix;
    float* gates;          // what forward left; becomes the gradients: lstm i f g o; gru r z n and
    u64 next_gates;        // the recurrent part of n; else that of the only gate
    const float* cells;
    const float* before;
    u64 next_rows;
    const float* dy;       // rows of dy_row values, or null
    u64 dy_row;
    const scalar* cx;
    const scalar* dhy;
    const scalar* dcy;
    scalar* dhx;
    scalar* dcx;
    const int* lengths;
    const int* starts;
    u64 batch_stride, step_stride;
    int gate_row, batch, steps, clips;
    float low, high;
};

__device__ inline float clipped(const BackwardArgs& a, float c) {
    return !a.clips || isnan(c) ? c : fminf(fmaxf(c, a.low), a.high);
}
__device__ inline float slope(const BackwardArgs& a, float c) {
    return !a.clips || (a.low <= c && c <= a.high) ? 1.f : 0.f;
}

constexpr int FETCHED = CELL == 2 ? 6 : CELL == 3 ? 6 : 2;  // what a step needs, as below

// A step backward is linear in the gradients of h and c: these are the factors.
struct Slopes {
    float k[6];

    // got: dy (not used here); lstm i f g o; gru r z n, the recurrent part of n, and h one step
    // earlier; else h. cell and previous: c of this step and of the one before.
    __device__ Slopes(const BackwardArgs& a, const float (&got)[FETCHED], float cell,
                      float previous) {
        if (CELL == 2) {
            const float i_ = got[1], f_ = got[2], g_ = got[3], o_ = got[4];
            const float tc = tanh_of(clipped(a, cell));
            k[0] = o_ * (1.f - tc * tc) * slope(a, cell);
            k[1] = g_ * i_ * (1.f - i_);
            k[2] = clipped(a, previous) * f_ * (1.f - f_);
            k[3] = i_ * (1.f - g_ * g_);
            k[4] = tc * o_ * (1.f - o_);
            k[5] = f_ * slope(a, previous);
        } else if (CELL == 3) {
            const float r_ = got[1], z_ = got[2], n_ = got[3], v_ = got[4], h_ = got[5];
            k[0] = (1.f - z_) * (1.f - n_ * n_);
            k[1] = (h_ - n_) * z_ * (1.f - z_);
            k[2] = v_ * r_ * (1.f - r_);
            k[3] = r_;
            k[4] = z_;
        } else {
            const float h_ = got[1];
            k[0] = CELL == 1 ? 1.f - h_ * h_ : h_ > 0.f ? 1.f : 0.f;
        }
    }

    // Gradients of the gates from those of h and c; what of them goes on to the step before on
    // other ways than through the recurrent weights.
    __device__ void apply(float dh, float (&d)[4], float& carried, float& dc) const {
        carried = 0.f;
        if (CELL == 2) {
            const float all = fmaf(dh, k[0], dc);
            d[0] = all * k[1], d[1] = all * k[2], d[2] = all * k[3], d[3] = dh * k[4];
            dc = all * k[5];
        } else if (CELL == 3) {
            d[2] = dh * k[0], d[1] = dh * k[1], d[0] = d[2] * k[2], d[3] = d[2] * k[3];
            carried = dh * k[4];
        } else {
            d[0] = dh * k[0];
        }
    }
};
