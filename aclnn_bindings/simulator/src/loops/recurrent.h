// What recurrent layers share: torch's arrangement of layers, directions and weights in flat lists.
#pragma once

#include "loops/gemm.h"
#include "loops/promote.h"
#include "loops/rows.h"

#include <cmath>
#include <vector>

namespace aclsim {
namespace recurrent {

using Floats = std::vector<float>;

struct Net {
  int64_t steps, batch, inputs, hidden, layers, directions;
  bool bias, batch_first;

  int64_t cells() const { return layers * directions; }
  int64_t per_cell() const { return bias ? 4 : 2; }
  int64_t width(int64_t layer) const { return layer == 0 ? inputs : directions * hidden; }
};

inline Floats read(const Tensor& t) {
  Floats to(static_cast<size_t>(t.numel()));
  copy_tensor(dense(to.data(), ACL_FLOAT, t.dims, t.rank), t);
  return to;
}
inline void write(const Tensor* t, Floats& values) {
  if (t && t->numel() > 0) copy_tensor(*t, dense(values.data(), ACL_FLOAT, t->dims, t->rank));
}
// [T, B, ...] whatever the order given.
inline Tensor steps_first(const Tensor& t, bool batch_first) {
  Tensor v = t;
  if (batch_first && t.rank == 3) {
    std::swap(v.dims[0], v.dims[1]);
    std::swap(v.strides[0], v.strides[1]);
  }
  return v;
}
inline Matrix<const float> matrix(const float* data, int64_t rows, int64_t cols) {
  return {data, rows, cols, cols, 1};
}
inline Matrix<const float> transposed(const float* data, int64_t rows, int64_t cols) {
  return {data, cols, rows, 1, cols};
}
inline Matrix<float> target(float* data, int64_t rows, int64_t cols) {
  return {data, rows, cols, cols, 1};
}
inline float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

// Positions of what the ops share; -1 where an op has no such argument. `hx` is one tensor or a
// list.
struct Args {
  int gates, input, params, hx, batch_sizes, bias, layers, dropout, train, bidirectional,
      batch_first;
  bool packs = false;  // sequences of different lengths: how many samples each step has
};

inline int64_t given_states(const Call& c, int hx) {
  if (c.null(hx)) return 0;
  return c.args[hx].kind == ArgKind::TensorList ? c.tensors(hx).size : 1;
}
inline const Tensor* given_state(const Call& c, int hx, int64_t which) {
  return c.args[hx].kind == ArgKind::TensorList ? c.tensors(hx)[which] : c.maybe(hx);
}

inline aclnnStatus read_net(Call& c, const Args& a) {
  if (c.null(a.input) || c.null(a.params)) {
    return c.fail(ACLNN_ERR_PARAM_NULLPTR, "input or params is null.");
  }
  const Tensor& x = c.tensor(a.input);
  const Span<Tensor*> params = c.tensors(a.params);
  Net& n = c.make<Net>();
  n.bias = c.flag(a.bias);
  n.batch_first = c.flag(a.batch_first);
  n.layers = c.integer(a.layers);
  n.directions = c.flag(a.bidirectional) ? 2 : 1;
  if (!a.packs && !c.null(a.batch_sizes) && c.tensor(a.batch_sizes).numel() > 0) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "Packed sequences are not supported by the simulator.");
  }
  if (a.dropout >= 0 && c.flag(a.train) && c.number(a.dropout) > 0 && n.layers > 1) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "Dropout is not supported by the simulator.");
  }
  // Packed sequences come padded, with steps and samples in one dim.
  const int64_t sizes = !a.packs || c.null(a.batch_sizes) ? 0 : c.tensor(a.batch_sizes).numel();
  const bool flat = sizes > 0 && x.rank == 2 && x.dims[0] % sizes == 0;
  bool fits = (x.rank == 3 || flat) && n.layers >= 1 && params.size == n.cells() * n.per_cell();
  for (const Tensor* p : params) fits = fits && p;
  if (!fits || params[1]->rank != 2) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "params has %lld tensors for %lld layers of %s.",
                  static_cast<long long>(params.size), static_cast<long long>(n.layers),
                  shape_text(x));
  }
  n.steps = flat ? sizes : x.dims[n.batch_first ? 1 : 0];
  n.batch = flat ? x.dims[0] / sizes : x.dims[n.batch_first ? 0 : 1];
  n.inputs = x.dims[x.rank - 1];
  n.hidden = params[1]->dims[1];
  if (sizes > 0) fits = sizes == n.steps;
  for (int64_t k = 0; fits && k < params.size; ++k) {
    const int64_t kind = k % n.per_cell(), layer = k / n.per_cell() / n.directions;
    const int64_t wide = kind == 0 ? n.width(layer) : (kind == 1 ? n.hidden : 1);
    fits = params[k]->numel() == a.gates * n.hidden * wide;
  }
  for (int64_t k = 0; fits && k < given_states(c, a.hx); ++k) {
    const Tensor* h = given_state(c, a.hx, k);
    fits = h && h->numel() == n.cells() * n.batch * n.hidden;
  }
  if (fits) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID, "The shapes of params or hx don't fit %s.", shape_text(x));
}
inline Floats state(const Call& c, const Args& a, const Net& n, int64_t which) {
  if (which < given_states(c, a.hx)) return read(*given_state(c, a.hx, which));
  return Floats(static_cast<size_t>(n.cells() * n.batch * n.hidden));
}
// Samples that are alive at each step: the first ones, since longer sequences come first.
inline std::vector<int64_t> alive_of(const Call& c, const Args& a, const Net& n) {
  std::vector<int64_t> alive(static_cast<size_t>(n.steps), n.batch);
  const Tensor* t = c.maybe(a.batch_sizes);
  if (t && t->numel() == n.steps && n.steps > 0) {
    copy_tensor(dense(alive.data(), ACL_INT64, t->dims, t->rank), *t);
    for (int64_t& k : alive) k = std::min(std::max<int64_t>(k, 0), n.batch);
  }
  return alive;
}
// What a cell leaves goes where a client has room for it; outside of training it has none.
inline void write_trace(const Tensor* t, Floats& values) {
  if (t && t->numel() == static_cast<int64_t>(values.size())) write(t, values);
}
inline aclnnStatus expect_lists(const Call& c, const Net& n, int first, int count) {
  for (int i = first; i < first + count; ++i) {
    bool fits = c.null(i) || c.tensors(i).size == 0 || c.tensors(i).size == n.cells();
    for (const Tensor* t : c.tensors(i)) {
      fits = fits && t && t->numel() == n.steps * n.batch * n.hidden;
    }
    if (!fits) return c.fail(ACLNN_ERR_PARAM_INVALID, "The tensors of %s don't fit.", c.name(i));
  }
  return ACLNN_SUCCESS;
}
// The input of a layer: the op's own, or the outputs of the layer below side by side. `outputs`:
// the list of h per cell.
inline Floats layer_input(const Call& c, const Net& n, int input, int outputs, int64_t layer) {
  if (layer == 0) return read(steps_first(c.tensor(input), n.batch_first));
  Floats x(static_cast<size_t>(n.steps * n.batch * n.directions * n.hidden));
  for (int64_t d = 0; d < n.directions; ++d) {
    const Floats h = read(*c.tensors(outputs)[(layer - 1) * n.directions + d]);
    for (int64_t r = 0; r < n.steps * n.batch; ++r) {
      std::copy_n(&h[r * n.hidden], n.hidden, &x[(r * n.directions + d) * n.hidden]);
    }
  }
  return x;
}

}  // namespace recurrent
}  // namespace aclsim
