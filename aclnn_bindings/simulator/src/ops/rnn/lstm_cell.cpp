// Recurrent cells on their own: the fused LSTM cell, and the two-way LSTM of inference products.
#include "loops/numbers.h"

namespace aclsim {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// (inputGates [B, 4 H], hiddenGates, cx [B, H], inputBias [4 H], hiddenBias, hy, cy, storage [B, 4 H]):
// gates input, forget, cell, output; storage keeps them after their activations.
aclnnStatus check_cell(Call& c) {
  ACL_RETURN_IF_FAILED(expect_rank(c, 2, 2, 2));
  const int64_t batch = c.tensor(2).dims[0], hidden = c.tensor(2).dims[1];
  for (int i : {0, 1, 7}) ACL_RETURN_IF_FAILED(expect_dims(c, i, {batch, 4 * hidden}));
  for (int i : {3, 4}) ACL_RETURN_IF_FAILED(expect_dims(c, i, {4 * hidden}));
  return expect_all_shaped_like(c, 2, {5, 6});
}
aclError run_cell(Call& c) {
  const int64_t hidden = c.tensor(2).dims[1];
  Numbers gates = numbers(c.tensor(0)), cell = numbers(c.tensor(2)), out(cell.size());
  const Numbers more = numbers(c.tensor(1)), b1 = numbers_or(c.maybe(3), 4 * hidden, 0),
                b2 = numbers_or(c.maybe(4), 4 * hidden, 0);
  for (int64_t i = 0; i < static_cast<int64_t>(gates.size()); ++i) {
    const int64_t k = i % (4 * hidden);
    const double x = gates[i] + more[i] + b1[k] + b2[k];
    gates[i] = k / hidden == 2 ? std::tanh(x) : sigmoid(x);
  }
  for (int64_t i = 0; i < static_cast<int64_t>(cell.size()); ++i) {
    const double* g = gates.data() + i / hidden * 4 * hidden + i % hidden;
    cell[i] = g[hidden] * cell[i] + g[0] * g[2 * hidden];
    out[i] = g[3 * hidden] * std::tanh(cell[i]);
  }
  put(c.tensor(5), out);
  put(c.tensor(6), cell);
  put(c.tensor(7), gates);
  return ACL_SUCCESS;
}
// (gradHy, gradC, cx, cy, storage, hasBias, gradGates, gradCx, gradBias).
aclnnStatus check_cell_grad(Call& c) {
  ACL_RETURN_IF_FAILED(expect_rank(c, 2, 2, 2));
  const int64_t batch = c.tensor(2).dims[0], hidden = c.tensor(2).dims[1];
  for (int i : {4, 6}) ACL_RETURN_IF_FAILED(expect_dims(c, i, {batch, 4 * hidden}));
  if (c.flag(5)) ACL_RETURN_IF_FAILED(expect_dims(c, 8, {4 * hidden}));
  return expect_all_shaped_like(c, 2, {0, 1, 3, 7});
}
aclError run_cell_grad(Call& c) {
  const int64_t hidden = c.tensor(2).dims[1], n = c.tensor(2).numel();
  const Numbers dh = numbers_or(c.maybe(0), n, 0), dc = numbers_or(c.maybe(1), n, 0),
                cx = numbers(c.tensor(2)), cy = numbers(c.tensor(3)), kept = numbers(c.tensor(4));
  Numbers gates(kept.size()), before(static_cast<size_t>(n)), bias(static_cast<size_t>(4 * hidden));
  for (int64_t i = 0; i < n; ++i) {
    const int64_t at = i / hidden * 4 * hidden + i % hidden;
    const double *g = kept.data() + at, top = std::tanh(cy[i]);
    double* to = gates.data() + at;
    const double in = g[0], forget = g[hidden], cell = g[2 * hidden], out = g[3 * hidden];
    const double through = dc[i] + dh[i] * out * (1 - top * top);
    to[0] = through * cell * in * (1 - in);
    to[hidden] = through * cx[i] * forget * (1 - forget);
    to[2 * hidden] = through * in * (1 - cell * cell);
    to[3 * hidden] = dh[i] * top * out * (1 - out);
    before[i] = through * forget;
  }
  for (size_t i = 0; i < gates.size(); ++i) bias[i % bias.size()] += gates[i];
  put(c.tensor(6), gates);
  put(c.tensor(7), before);
  if (c.flag(5)) put(c.maybe(8), bias);
  return ACL_SUCCESS;
}

// (x, initH, initC, wIh, wHh, bIh, bHh, wIhReverse, wHhReverse, bIhReverse, bHhReverse, [batchSize,]
// numLayers, isbias, batchFirst, bidirection, [packed,] y, outputH, outputC): one layer.
template <int More>
struct TwoWay {
  static constexpr int layers = 11 + More, bias = 12 + More, first = 13 + More, both = 14 + More,
                       y = 15 + 2 * More;
  static aclnnStatus check(Call& c) {
    ACL_RETURN_IF_FAILED(expect_rank(c, 0, 3, 3));
    ACL_RETURN_IF_FAILED(expect_rank(c, 4, 2, 2));
    ACL_RETURN_IF_FAILED(expect_int(c, layers, 1, 1));
    const Tensor& x = c.tensor(0);
    const int64_t ways = c.flag(both) ? 2 : 1, hidden = c.tensor(4).dims[1];
    const int64_t batch = x.dims[c.flag(first) ? 0 : 1];
    if (c.flag(both)) ACL_RETURN_IF_FAILED(expect_given(c, {7, 8}));
    for (int i : {3, 7}) ACL_RETURN_IF_FAILED(expect_dims(c, i, {4 * hidden, x.dims[2]}));
    for (int i : {4, 8}) ACL_RETURN_IF_FAILED(expect_dims(c, i, {4 * hidden, hidden}));
    for (int i : {5, 6, 9, 10}) ACL_RETURN_IF_FAILED(expect_dims(c, i, {4 * hidden}));
    for (int i : {1, 2, y + 1, y + 2}) {
      ACL_RETURN_IF_FAILED(expect_dims(c, i, {ways, batch, hidden}));
    }
    if (More && !c.null(11)) ACL_RETURN_IF_FAILED(expect_numel(c, 11, c.flag(first) ? -1 : x.dims[0]));
    return expect_dims(c, y, {x.dims[0], x.dims[1], ways * hidden});
  }
  static aclError run(Call& c) {
    const Tensor& x = c.tensor(0);
    const bool batch_first = c.flag(first);
    const int64_t ways = c.flag(both) ? 2 : 1, hidden = c.tensor(4).dims[1], inputs = x.dims[2];
    const int64_t batch = x.dims[batch_first ? 0 : 1], steps = x.dims[batch_first ? 1 : 0];
    const Numbers data = numbers(x);
    Numbers h = numbers(c.tensor(1)), cell = numbers(c.tensor(2));
    Numbers out(static_cast<size_t>(c.tensor(y).numel()));
    Integers sizes(static_cast<size_t>(steps), batch);  // samples that are alive at a step
    if (More && !c.null(11) && c.flag(15 + More)) sizes = integers(c.tensor(11));
    for (int64_t way = 0; way < ways; ++way) {
      const int at = way ? 7 : 3;
      const Numbers wi = numbers(c.tensor(at)), wh = numbers(c.tensor(at + 1));
      const bool biased = c.flag(bias);
      const Numbers bi = numbers_or(biased ? c.maybe(at + 2) : nullptr, 4 * hidden, 0),
                    bh = numbers_or(biased ? c.maybe(at + 3) : nullptr, 4 * hidden, 0);
      for (int64_t s = 0; s < steps; ++s) {
        const int64_t step = way ? steps - 1 - s : s;
        for (int64_t b = 0; b < std::min(batch, sizes[step]); ++b) {
          const int64_t place = batch_first ? b * steps + step : step * batch + b;
          double *state = h.data() + (way * batch + b) * hidden,
                 *memory = cell.data() + (way * batch + b) * hidden;
          Numbers gates(static_cast<size_t>(4 * hidden));
          for (int64_t k = 0; k < 4 * hidden; ++k) {
            double sum = bi[k] + bh[k];
            for (int64_t i = 0; i < inputs; ++i) sum += wi[k * inputs + i] * data[place * inputs + i];
            for (int64_t i = 0; i < hidden; ++i) sum += wh[k * hidden + i] * state[i];
            gates[k] = k / hidden == 2 ? std::tanh(sum) : sigmoid(sum);
          }
          for (int64_t k = 0; k < hidden; ++k) {
            memory[k] = gates[hidden + k] * memory[k] + gates[k] * gates[2 * hidden + k];
            state[k] = gates[3 * hidden + k] * std::tanh(memory[k]);
            out[(place * ways + way) * hidden + k] = state[k];
          }
        }
      }
    }
    put(c.tensor(y), out);
    put(c.tensor(y + 1), h);
    put(c.tensor(y + 2), cell);
    return ACL_SUCCESS;
  }
};

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnThnnFusedLstmCell, check_cell, run_cell)
ACLNN_OP(aclnnThnnFusedLstmCellBackward, check_cell_grad, run_cell_grad)
ACLNN_OP(aclnnBidirectionLSTM, TwoWay<0>::check, TwoWay<0>::run)
ACLNN_OP(aclnnBidirectionLSTMV2, TwoWay<1>::check, TwoWay<1>::run)
