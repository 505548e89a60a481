// Attention in tiles: see attention.h.
#include "loops/attention.h"

#include "loops/block.h"
#include "loops/gemm.h"
#include "loops/parallel.h"
#include "loops/stage.h"
#include "loops/vmath.h"

#include <algorithm>

namespace aclsim {
namespace {

constexpr int64_t kTile = 64;

ACL_VECTOR float row_max(const float* x, int64_t n) {
  float top = -std::numeric_limits<float>::infinity();
  for (int64_t i = 0; i < n; ++i) top = x[i] > top ? x[i] : top;
  return top;
}
ACL_VECTOR void row_exp(float* x, float top, int64_t n) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  ACL_IVDEP
  for (int64_t i = 0; i < n; ++i) x[i] = x[i] == -kInf ? 0.0f : v_exp(x[i] - top);
}
ACL_VECTOR void row_scale(float* x, float factor, int64_t n) {
  ACL_IVDEP
  for (int64_t i = 0; i < n; ++i) x[i] *= factor;
}
ACL_VECTOR double row_total(const float* x, int64_t n) {
  return lane_sum<float>(n, [=](int64_t i) ACL_LAMBDA { return x[i]; });
}
ACL_VECTOR double row_product(const float* a, const float* b, int64_t n) {
  return lane_sum<float>(n, [=](int64_t i) ACL_LAMBDA { return a[i] * b[i]; });
}
// ds = p (dp - delta).
ACL_VECTOR void row_back(float* ds, const float* p, const float* dp, float delta, int64_t n) {
  ACL_IVDEP
  for (int64_t i = 0; i < n; ++i) ds[i] = p[i] * (dp[i] - delta);
}

Matrix<const float> rows_of(const float* data, const HeadLayout& l, int64_t b, int64_t n, int64_t s,
                            int64_t rows, int64_t cols) {
  return {data + l.at(b, n, s), rows, cols, l.row, 1};
}
Matrix<const float> transposed(const Matrix<const float>& m) {
  return {m.data, m.cols, m.rows, m.col_stride, m.row_stride};
}

// Query rows [first, first + rows) of one head.
struct Tile {
  int64_t b, n, first, rows;
};

template <class F>
void each_operand(const Attention& a, const ScoreOperand& o, const Tile& t, F f) {
  if (!o.tensor) return;
  Buffer<float> line(a.keys);
  for (int64_t i = 0; i < t.rows; ++i) {
    const int64_t at =
        o.tensor->offset + t.b * o.strides[0] + t.n * o.strides[1] + (t.first + i) * o.strides[2];
    load(line.get(), o.tensor->data, o.tensor->dtype, at, o.strides[3], a.keys);
    f(i, static_cast<const float*>(line.get()));
  }
}
void add_slopes(const Attention& a, const Slopes& slopes, const Tile& t, float* scores) {
  const float slope = slopes.of[(t.b * a.heads + t.n) % slopes.count];
  for (int64_t i = 0; i < t.rows; ++i) {
    const int64_t from = t.first + i + slopes.query_start - slopes.key_start;
    for (int64_t j = 0; j < a.keys; ++j) {
      const auto far = static_cast<float>(std::abs(from - j));
      scores[i * a.keys + j] -= slope * (slopes.root ? std::sqrt(far) : far);
    }
  }
}
// Scaled, shifted, masked scores; what is hidden is -inf.
void scores_of(const Attention& a, const AttentionData& d, const Tile& t, float* scores) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const int64_t head = t.n / a.group(), keys = a.keys;
  gemm<float>({scores, t.rows, keys, keys, 1},
              rows_of(d.q, a.q, t.b, t.n, t.first, t.rows, a.depth),
              transposed(rows_of(d.k, a.k, t.b, head, 0, keys, a.depth)), false);
  const float scale = static_cast<float>(a.scale), of_shift = a.shift_first ? scale : 1.0f;
  row_scale(scores, scale, t.rows * keys);
  each_operand(a, a.shift, t, [&](int64_t i, const float* line) {
    for (int64_t j = 0; j < keys; ++j) scores[i * keys + j] += of_shift * line[j];
  });
  if (d.slopes.of) add_slopes(a, d.slopes, t, scores);
  if (a.sparse == Sparse::Mask || a.sparse == Sparse::AllMask) {
    each_operand(a, a.mask, t, [&](int64_t i, const float* line) {
      for (int64_t j = 0; j < keys; ++j)
        scores[i * keys + j] = line[j] != 0 ? -kInf : scores[i * keys + j];
    });
    return;
  }
  const int64_t prefix = d.prefix.size ? d.prefix[t.b] : 0;
  for (int64_t i = 0; i < t.rows; ++i) {
    for (int64_t j = 0; j < keys; ++j) {
      if (a.hidden(t.first + i, j, prefix)) scores[i * keys + j] = -kInf;
    }
  }
}
// Zeroes what is dropped and makes up for it in what is kept.
void drop(const Attention& a, const AttentionData& d, const Tile& t, float* x) {
  if (!d.kept) return;
  const float up = static_cast<float>(1 / a.keep);
  const int64_t first = ((t.b * a.heads + t.n) * a.queries + t.first) * a.keys;
  for (int64_t i = 0; i < t.rows * a.keys; ++i) {
    x[i] = d.kept[(first + i) / 8] >> (first + i) % 8 & 1 ? x[i] * up : 0.0f;
  }
}
int64_t tiles_of(const Attention& a) { return (a.queries + kTile - 1) / kTile; }

}  // namespace

void attention_forward(const Attention& a, const AttentionData& d, float* out, float* top,
                       float* sum) {
  const int64_t tiles = tiles_of(a);
  parallel_for(a.batch * a.heads * tiles, 1, [&](int64_t begin, int64_t end) {
    Buffer<float> scores(kTile * a.keys);
    for (int64_t k = begin; k < end; ++k) {
      const int64_t at = k / tiles, first = k % tiles * kTile;
      const Tile t = {at / a.heads, at % a.heads, first, std::min(kTile, a.queries - first)};
      scores_of(a, d, t, scores);
      for (int64_t i = 0; i < t.rows; ++i) {
        float* row = scores.get() + i * a.keys;
        float most = row_max(row, a.keys);
        if (d.sink) most = std::max(most, d.sink[t.n]);
        row_exp(row, most, a.keys);
        double total = row_total(row, a.keys);
        if (d.sink) total += std::exp(d.sink[t.n] - most);
        if (total != 0) {  // NaN goes on to the whole row, its maximum too
          row_scale(row, static_cast<float>(1 / total), a.keys);
          if (std::isnan(total)) most = static_cast<float>(total);
        } else {  // nothing to attend to: the row is zero, and its gradients as well
          most = -std::numeric_limits<float>::max();
          total = std::numeric_limits<float>::max();
        }
        const int64_t place = (at * a.queries + first + i) * kStatistics;
        if (top) std::fill_n(top + place, kStatistics, most);
        if (sum) std::fill_n(sum + place, kStatistics, static_cast<float>(total));
      }
      drop(a, d, t, scores);
      gemm<float>({out + a.out.at(t.b, t.n, first), t.rows, a.value_depth, a.out.row, 1},
                  {scores.get(), t.rows, a.keys, a.keys, 1},
                  rows_of(d.v, a.v, t.b, t.n / a.group(), 0, a.keys, a.value_depth), false);
    }
  });
}

namespace {

struct Gradients {
  float *dq, *dk, *dv, *dshift;
  double* dsink;  // per sample and head
};
// One tile: p = probabilities, ds = gradient by the scaled scores.
void backward_tile(const Attention& a, const AttentionData& d, const Tile& t, const float* dout,
                   const float* top, const float* sum, const Gradients& g, float* p, float* ds) {
  const int64_t keys = a.keys, head = t.n / a.group();
  scores_of(a, d, t, p);
  for (int64_t i = 0; i < t.rows; ++i) {
    const int64_t place = ((t.b * a.heads + t.n) * a.queries + t.first + i) * kStatistics;
    row_exp(p + i * keys, top[place], keys);
    row_scale(p + i * keys, 1 / sum[place], keys);
  }
  const auto up = rows_of(dout, a.out, t.b, t.n, t.first, t.rows, a.value_depth);
  std::copy_n(p, t.rows * keys, ds);
  drop(a, d, t, ds);
  gemm<float>({g.dv + a.v.at(t.b, head, 0), keys, a.value_depth, a.v.row, 1},
              transposed({ds, t.rows, keys, keys, 1}), up, true);
  gemm<float>({ds, t.rows, keys, keys, 1}, up,
              transposed(rows_of(d.v, a.v, t.b, head, 0, keys, a.value_depth)), false);
  drop(a, d, t, ds);
  for (int64_t i = 0; i < t.rows; ++i) {
    float *row = ds + i * keys, *weights = p + i * keys;
    const double delta = row_product(row, weights, keys);
    if (g.dsink) {
      const int64_t head_at = t.b * a.heads + t.n, place = (head_at * a.queries + t.first + i) * kStatistics;
      g.dsink[head_at] -= std::exp(d.sink[t.n] - top[place]) / sum[place] * delta;
    }
    row_back(row, weights, row, static_cast<float>(delta), keys);
  }
  const float scale = static_cast<float>(a.scale);
  const int64_t place = ((t.b * a.heads + t.n) * a.queries + t.first) * keys;
  if (g.dshift && !a.shift_first) std::copy_n(ds, t.rows * keys, g.dshift + place);
  row_scale(ds, scale, t.rows * keys);
  if (g.dshift && a.shift_first) std::copy_n(ds, t.rows * keys, g.dshift + place);
  gemm<float>({g.dq + a.q.at(t.b, t.n, t.first), t.rows, a.depth, a.q.row, 1},
              {ds, t.rows, keys, keys, 1}, rows_of(d.k, a.k, t.b, head, 0, keys, a.depth), false);
  gemm<float>({g.dk + a.k.at(t.b, head, 0), keys, a.depth, a.k.row, 1},
              transposed({ds, t.rows, keys, keys, 1}),
              rows_of(d.q, a.q, t.b, t.n, t.first, t.rows, a.depth), true);
}

}  // namespace

void attention_backward(const Attention& a, const AttentionData& d, const float* dout,
                        const float* top, const float* sum, float* dq, float* dk, float* dv,
                        float* dshift, float* dsink) {
  Buffer<double> sinks(dsink ? a.batch * a.heads : 0);
  std::fill_n(sinks.get(), dsink ? a.batch * a.heads : 0, 0.0);
  std::fill_n(dk, a.batch * a.kv_heads * a.keys * a.depth, 0.0f);
  std::fill_n(dv, a.batch * a.kv_heads * a.keys * a.value_depth, 0.0f);
  const Gradients g = {dq, dk, dv, dshift, dsink ? sinks.get() : nullptr};
  // Heads that share keys add to the same gradients: one thread has them all.
  parallel_for(a.batch * a.kv_heads, 1, [&](int64_t begin, int64_t end) {
    Buffer<float> p(kTile * a.keys), ds(kTile * a.keys);
    for (int64_t k = begin; k < end; ++k) {
      for (int64_t i = 0; i < a.group() * tiles_of(a); ++i) {
        const int64_t first = i % tiles_of(a) * kTile;
        const Tile t = {k / a.kv_heads, k % a.kv_heads * a.group() + i / tiles_of(a), first,
                        std::min(kTile, a.queries - first)};
        backward_tile(a, d, t, dout, top, sum, g, p, ds);
      }
    }
  });
  for (int64_t n = 0; dsink && n < a.heads; ++n) {
    double total = 0;
    for (int64_t b = 0; b < a.batch; ++b) total += sinks[b * a.heads + n];
    dsink[n] = static_cast<float>(total);
  }
}

}  // namespace aclsim
