// Recurrent cells on their own: the fused LSTM cell, and the two-way LSTM of inference products.
#include "params/rnn.h"
#include "loops/numbers.h"

namespace aclsim {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// (inputGates [B, 4 H], hiddenGates, cx [B, H], inputBias [4 H], hiddenBias, hy, cy, storage [B, 4 H]):
// gates input, forget, cell, output; storage keeps them after their activations.
aclnnStatus check_cell(Call& c) {
  using P = params::ThnnFusedLstmCell;

  ACL_RETURN_IF_FAILED(expect_rank(c, P::cx, 2, 2));
  const int64_t batch = c.tensor(P::cx).dims[0], hidden = c.tensor(P::cx).dims[1];
  for (int i : {P::inputGates, P::hiddenGates, P::storageOut})
    ACL_RETURN_IF_FAILED(expect_dims(c, i, {batch, 4 * hidden}));
  for (int i : {P::inputBiasOptional, P::hiddenBiasOptional})
    ACL_RETURN_IF_FAILED(expect_dims(c, i, {4 * hidden}));
  return expect_all_shaped_like(c, P::cx, {P::hyOut, P::cyOut});
}
void run_cell(Call& c) {
  using P = params::ThnnFusedLstmCell;

  const int64_t hidden = c.tensor(P::cx).dims[1];
  Numbers gates = numbers(c.tensor(P::inputGates)), cell = numbers(c.tensor(P::cx)),
          out(cell.size());
  const Numbers more = numbers(c.tensor(P::hiddenGates)),
                b1 = numbers_or(c.maybe(P::inputBiasOptional), 4 * hidden, 0),
                b2 = numbers_or(c.maybe(P::hiddenBiasOptional), 4 * hidden, 0);
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
  put(c.tensor(P::hyOut), out);
  put(c.tensor(P::cyOut), cell);
  put(c.tensor(P::storageOut), gates);
}
aclnnStatus check_cell_grad(Call& c) {
  using P = params::ThnnFusedLstmCellBackward;

  ACL_RETURN_IF_FAILED(expect_rank(c, P::cx, 2, 2));
  const int64_t batch = c.tensor(P::cx).dims[0], hidden = c.tensor(P::cx).dims[1];
  for (int i : {P::storage, P::gradGatesOut})
    ACL_RETURN_IF_FAILED(expect_dims(c, i, {batch, 4 * hidden}));
  if (c.flag(P::hasBias)) ACL_RETURN_IF_FAILED(expect_dims(c, P::gradBiasOut, {4 * hidden}));
  return expect_all_shaped_like(c, P::cx,
                                {P::gradHyOptional, P::gradCOptional, P::cy, P::gradCxOut});
}
void run_cell_grad(Call& c) {
  using P = params::ThnnFusedLstmCellBackward;

  const int64_t hidden = c.tensor(P::cx).dims[1], n = c.tensor(P::cx).numel();
  const Numbers dh = numbers_or(c.maybe(P::gradHyOptional), n, 0),
                dc = numbers_or(c.maybe(P::gradCOptional), n, 0), cx = numbers(c.tensor(P::cx)),
                cy = numbers(c.tensor(P::cy)), kept = numbers(c.tensor(P::storage));
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
  put(c.tensor(P::gradGatesOut), gates);
  put(c.tensor(P::gradCxOut), before);
  if (c.flag(P::hasBias)) put(c.maybe(P::gradBiasOut), bias);
}

// (x, initH, initC, wIh, wHh, bIh, bHh, wIhReverse, wHhReverse, bIhReverse, bHhReverse, [batchSize,]
// numLayers, isbias, batchFirst, bidirection, [packed,] y, outputH, outputC): one layer.
template <int More>
struct TwoWay {
  static constexpr int layers = 11 + More, bias = 12 + More, first = 13 + More, both = 14 + More,
                       y = 15 + 2 * More;
  static aclnnStatus check(Call& c) {
    using P = params::BidirectionLSTMV2;

    ACL_RETURN_IF_FAILED(expect_rank(c, P::x, 3, 3));
    ACL_RETURN_IF_FAILED(expect_rank(c, P::wHh, 2, 2));
    ACL_RETURN_IF_FAILED(expect_int(c, layers, 1, 1));
    const Tensor& x = c.tensor(P::x);
    const int64_t ways = c.flag(both) ? 2 : 1, hidden = c.tensor(P::wHh).dims[1];
    const int64_t batch = x.dims[c.flag(first) ? 0 : 1];
    if (c.flag(both))
      ACL_RETURN_IF_FAILED(expect_given(c, {P::wIhReverseOptional, P::wHhReverseOptional}));
    for (int i : {P::wIh, P::wIhReverseOptional})
      ACL_RETURN_IF_FAILED(expect_dims(c, i, {4 * hidden, x.dims[2]}));
    for (int i : {P::wHh, P::wHhReverseOptional})
      ACL_RETURN_IF_FAILED(expect_dims(c, i, {4 * hidden, hidden}));
    for (int i : {P::bIhOptional, P::bHhOptional, P::bIhReverseOptional, P::bHhReverseOptional})
      ACL_RETURN_IF_FAILED(expect_dims(c, i, {4 * hidden}));
    for (int i : std::initializer_list<int>{P::initH, P::initC, y + 1, y + 2}) {
      ACL_RETURN_IF_FAILED(expect_dims(c, i, {ways, batch, hidden}));
    }
    if (More && !c.null(P::batchSizeOptional))
      ACL_RETURN_IF_FAILED(expect_numel(c, P::batchSizeOptional, c.flag(first) ? -1 : x.dims[0]));
    return expect_dims(c, y, {x.dims[0], x.dims[1], ways * hidden});
  }
  static aclError run(Call& c) {
    using P = params::BidirectionLSTMV2;

    const Tensor& x = c.tensor(P::x);
    const bool batch_first = c.flag(first);
    const int64_t ways = c.flag(both) ? 2 : 1, hidden = c.tensor(P::wHh).dims[1],
                  inputs = x.dims[2];
    const int64_t batch = x.dims[batch_first ? 0 : 1], steps = x.dims[batch_first ? 1 : 0];
    const Numbers data = numbers(x);
    Numbers h = numbers(c.tensor(P::initH)), cell = numbers(c.tensor(P::initC));
    Numbers out(static_cast<size_t>(c.tensor(y).numel()));
    Integers sizes(static_cast<size_t>(steps), batch);  // samples that are alive at a step
    if (More && !c.null(P::batchSizeOptional) && c.flag(P::bidirection + More))
      sizes = integers(c.tensor(P::batchSizeOptional));
    for (int64_t way = 0; way < ways; ++way) {
      const int at = way ? P::wIhReverseOptional : P::wIh;
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
