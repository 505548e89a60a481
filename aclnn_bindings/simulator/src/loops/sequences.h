// Attention over sequences of differing lengths: dense or packed layouts, caches in blocks, shared
// prefixes, rotary parts beside the rest, sinks, quantised operands. Row by row and in double, for
// inference and variable lengths; loops/attention.h has the fast dense form.
#pragma once

#include "loops/values.h"

#include <functional>

namespace aclsim {

// Where element (batch, head, row, 0) lies in `data`; rows of a batch, heads and batches are apart
// by any amount.
struct Heads {
  Floats data;
  Ints start;  // per batch
  int64_t heads = 0, row = 0, head = 0, depth = 0;
  const float* at(int64_t b, int64_t n, int64_t s) const {
    return data.data() + start[b] + n * head + s * row;
  }
  float* at(int64_t b, int64_t n, int64_t s) { return data.data() + start[b] + n * head + s * row; }
  bool empty() const { return start.empty(); }
};
// Reads the geometry of a layout (BSH, SBH, BSND, BNSD, NBSD, TND, NTD) into `h` and each batch's
// rows into `rows`. `heads` 0 follows from `depth`; `ends` says where packed sequences end. False
// where the shape does not fit.
bool place_heads(const int64_t* dims, int rank, const char* layout, int64_t heads, int64_t depth,
                 const Ints& ends, Heads& h, Ints& rows);

// A tensor spread over [batch, head, query, key] by strides of zero.
struct Spread {
  Floats data;
  int64_t strides[4] = {};
  bool empty() const { return data.empty(); }
  int64_t index(int64_t b, int64_t n, int64_t q, int64_t k) const {
    return b * strides[0] + n * strides[1] + q * strides[2] + k * strides[3];
  }
};

struct Sequences {
  int64_t heads = 0, kv_heads = 0;
  Ints queries, keys;           // rows per batch
  Ints first_query, first_key;  // where they begin in masks and shifts
  Heads q, k, v, q_rope, k_rope;
  double scale = 1, keep = 1;
  bool shift_first = false;  // shifts are added before scaling
  int64_t sparse = 0, before = INT32_MAX, after = INT32_MAX;
  Ints prefix;  // keys that every query sees, per batch; modes 5 and 6
  Spread mask, shift;
  Floats slopes;            // per (batch and) head: the shift is -slope times the distance
  bool slope_root = false;  // or its root
  Ints query_start, key_start;
  Floats sink;  // per head: a score without a value
  std::function<bool(int64_t b, int64_t n, int64_t i, int64_t j)> closed;  // hides further keys
  double dequant1 = 1, quant1 = 0, dequant2 = 1;  // quant1 0: probabilities are not quantised
  std::vector<uint8_t> kept;                      // bits over each batch's [heads, queries, keys]
  Ints kept_start;

  bool hidden(int64_t b, int64_t i, int64_t j) const;
  // Scaled, shifted and masked scores of one query; what is hidden is -inf.
  void score(int64_t b, int64_t n, int64_t i, Doubles& out) const;
  bool dropped(int64_t b, int64_t n, int64_t i, int64_t j) const;
};
// What softmax left behind: per row its maximum and sum, by `at(b, n, i)`.
struct Statistics {
  Floats top, sum;
  Heads place;
};
// `out` and `statistics.place` have their geometry set; rows past a batch's are left alone.
void attend(const Sequences& s, Heads& out, Statistics& statistics);

struct SequenceGradients {
  Heads q, k, v, q_rope, k_rope;  // geometry of the inputs
  Floats shift, sink;
  explicit SequenceGradients(const Sequences& s)  // zeros
      : q(s.q), k(s.k), v(s.v), q_rope(s.q_rope), k_rope(s.k_rope) {
    for (Heads* each : {&q, &k, &v, &q_rope, &k_rope}) std::fill(each->data.begin(), each->data.end(), 0);
  }
};
void attend_back(const Sequences& s, const Heads& dout, const Statistics& statistics,
                 SequenceGradients& g);

}  // namespace aclsim
