// Scaled dot-product attention over dense float data, in tiles of query rows: the value with its
// softmax statistics, and the gradients from them.
#pragma once

#include "nnopbase/op.h"

namespace aclsim {

// Where element (batch, head, row, 0) of a dense tensor lies; the last dim is contiguous.
struct HeadLayout {
  int64_t batch, head, row;
  int64_t at(int64_t b, int64_t n, int64_t s) const { return b * batch + n * head + s * row; }
};
// Which scores count. Bands are those of the sparse modes of aclnnFlashAttentionScore; distances
// are counted from the diagonal through the lower right corner, but for LeftUp; Prefix adds each
// sample's first columns to RightDown.
enum class Sparse : uint8_t { Mask = 0, AllMask = 1, LeftUp = 2, RightDown = 3, Band = 4, Prefix = 6 };

// Broadcast over [B, N, Sq, Skv]; null where absent.
struct ScoreOperand {
  const Tensor* tensor = nullptr;
  int64_t strides[4] = {};
};

struct Attention {
  int64_t batch, heads, kv_heads, queries, keys, depth, value_depth;
  HeadLayout q, k, v, out;
  double scale, keep;
  bool shift_first;  // the shift is added before scaling
  Sparse sparse;
  int64_t before, after;
  ScoreOperand mask, shift;

  int64_t group() const { return heads / kv_heads; }
  bool hidden(int64_t row, int64_t column, int64_t prefix) const {
    const int64_t corner = row + keys - queries;
    switch (sparse) {
      case Sparse::Prefix:
        return column > corner && column >= prefix;
      case Sparse::LeftUp:
        return column > row;
      case Sparse::RightDown:
        return column > corner;
      case Sparse::Band:
        return column < corner - before || column > corner + after;
      default:
        return false;
    }
  }
};

// What positions add to scores (Press et al.: ALiBi, 2022): less a head's slope times the distance,
// or its root, of positions counted from two starts. `count` slopes repeat over [B, N].
struct Slopes {
  const float* of = nullptr;
  int64_t count = 0, query_start = 0, key_start = 0;
  bool root = false;
};
struct AttentionData {
  const float *q, *k, *v;
  const uint8_t* kept;  // bits over [B, N, Sq, Skv]; null: all
  const float* sink = nullptr;    // per head: a score that takes its share, and has no value
  Slopes slopes = {};
  Span<const int64_t> prefix = {};  // per sample
};
// `top` and `sum` hold 8 equal floats per row of [B, N, Sq].
constexpr int64_t kStatistics = 8;
void attention_forward(const Attention& a, const AttentionData& d, float* out, float* top,
                       float* sum);
// `dshift` is [B, N, Sq, Skv] or null, `dsink` [N] or null.
void attention_backward(const Attention& a, const AttentionData& d, const float* dout,
                        const float* top, const float* sum, float* dq, float* dk, float* dv,
                        float* dshift, float* dsink);

}  // namespace aclsim
