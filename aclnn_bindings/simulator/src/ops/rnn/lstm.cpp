// Long short-term memory layers (Hochreiter and Schmidhuber, 1997): gates i, f, g, o in that order
// in the weights.
#include "params/rnn.h"
#include "loops/recurrent.h"

namespace aclsim {
namespace {

using namespace recurrent;

constexpr Args kLstmForward = {4, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, true};
constexpr Args kLstmBackward = {4, 0, 2, 1, 13, 14, 15, 16, 17, 18, 19, true};
using Alive = std::vector<int64_t>;

// What a cell leaves for the way back: i, j, f, o, h, c, tanh(c), each [T, B, H].
struct LstmTrace {
  Floats kept[7];
};

// One direction of one layer; `y` gets h at column `at` of each row of D H.
void run_cell(const Net& n, const Floats* w, const Floats& x, int64_t layer, bool reverse,
              const Alive& alive, float* h, float* c, LstmTrace& trace, Floats& y, int64_t at) {
  const int64_t gates = 4 * n.hidden, rows = n.batch, cell = rows * n.hidden;
  Floats all(static_cast<size_t>(n.steps * rows * gates));
  gemm<float>(target(all.data(), n.steps * rows, gates),
              matrix(x.data(), n.steps * rows, n.width(layer)),
              transposed(w[0].data(), gates, n.width(layer)), false);
  for (Floats& kept : trace.kept) kept.resize(static_cast<size_t>(n.steps * cell));
  for (int64_t k = 0; k < n.steps; ++k) {
    const int64_t t = reverse ? n.steps - 1 - k : k;
    float* g = &all[static_cast<size_t>(t * rows * gates)];
    gemm<float>(target(g, rows, gates), matrix(h, rows, n.hidden),
                transposed(w[1].data(), gates, n.hidden), true);
    for (int64_t b = 0; b < rows; ++b) {
      for (int64_t j = 0; j < n.hidden; ++j) {
        if (b >= alive[t]) {  // states wait, for the next step or for good
          trace.kept[4][t * cell + b * n.hidden + j] = h[b * n.hidden + j];
          trace.kept[5][t * cell + b * n.hidden + j] = c[b * n.hidden + j];
          continue;
        }
        float v[4];
        for (int64_t q = 0; q < 4; ++q) {
          const int64_t column = q * n.hidden + j;
          v[q] = g[b * gates + column] + (n.bias ? w[2][column] + w[3][column] : 0);
        }
        const int64_t e = b * n.hidden + j, to = t * cell + e;
        const float i = sigmoid(v[0]), f = sigmoid(v[1]), u = std::tanh(v[2]), o = sigmoid(v[3]);
        c[e] = f * c[e] + i * u;
        const float tc = std::tanh(c[e]);
        h[e] = o * tc;
        const float values[7] = {i, u, f, o, h[e], c[e], tc};
        for (int q = 0; q < 7; ++q) trace.kept[q][to] = values[q];
        y[(t * rows + b) * n.directions * n.hidden + at + j] = h[e];
      }
    }
  }
}

aclnnStatus check_lstm(Call& c) {
  using P = params::LSTM;

  ACL_RETURN_IF_FAILED(read_net(c, kLstmForward));
  const Net& n = c.get<Net>();
  for (int i : {P::output, P::hy, P::cy}) {
    if (c.null(i)) return c.fail(ACLNN_ERR_PARAM_NULLPTR, "Parameter %s is null.", c.name(i));
    const int64_t wanted =
        i == 10 ? n.steps * n.batch * n.directions * n.hidden : n.cells() * n.batch * n.hidden;
    if (c.tensor(i).numel() != wanted || (c.tensor(i).rank != 3 && c.tensor(P::input).rank == 3)) {
      return c.fail(ACLNN_ERR_PARAM_INVALID, "Shape %s of %s doesn't fit.", shape_text(c.tensor(i)),
                    c.name(i));
    }
  }
  return c.flag(P::train) ? expect_lists(c, n, P::iOut, 7) : ACLNN_SUCCESS;
}
void run_lstm(Call& c) {
  using P = params::LSTM;

  const Net& n = c.get<Net>();
  Floats h = state(c, kLstmForward, n, 0), cell = state(c, kLstmForward, n, 1);
  Floats x = read(steps_first(c.tensor(P::input), n.batch_first));
  const int64_t size = n.batch * n.hidden;
  const Alive alive = alive_of(c, kLstmForward, n);
  for (int64_t layer = 0; layer < n.layers; ++layer) {
    Floats y(static_cast<size_t>(n.steps * n.batch * n.directions * n.hidden));
    for (int64_t d = 0; d < n.directions; ++d) {
      const int64_t k = layer * n.directions + d;
      Floats w[4];
      for (int64_t q = 0; q < n.per_cell(); ++q)
        w[q] = read(*c.tensors(P::params)[k * n.per_cell() + q]);
      LstmTrace trace;
      run_cell(n, w, x, layer, d == 1, alive, &h[k * size], &cell[k * size], trace, y,
               d * n.hidden);
      for (int q = 0; q < 7; ++q) {
        if (c.tensors(P::iOut + q).size > k) write_trace(c.tensors(P::iOut + q)[k], trace.kept[q]);
      }
    }
    x = y;
  }
  Tensor out = steps_first(c.tensor(P::output), n.batch_first);
  write(&out, x);
  write(&c.tensor(P::hy), h);
  write(&c.tensor(P::cy), cell);
}

// The way back through one direction of one layer. dx is added to.
struct CellGrads {
  Floats w[4];
};
void cell_back(const Net& n, const Floats* w, const Floats& x, const Floats (&kept)[7],
               const Floats& h0, const Floats& c0, int64_t k, int64_t layer, bool reverse,
               const Alive& alive, const Floats& dy, int64_t at, float* dh, float* dc, Floats& dx,
               CellGrads& out) {
  const int64_t gates = 4 * n.hidden, rows = n.batch, size = rows * n.hidden;
  Floats dg(static_cast<size_t>(n.steps * rows * gates)),
      before(static_cast<size_t>(n.steps * size));
  for (int64_t s = n.steps - 1; s >= 0; --s) {
    const int64_t t = reverse ? n.steps - 1 - s : s, last = reverse ? t + 1 : t - 1;
    float* g = &dg[static_cast<size_t>(t * rows * gates)];
    for (int64_t e = 0; e < size; ++e) {
      const int64_t b = e / n.hidden, j = e % n.hidden, p = t * size + e;
      const float i = kept[0][p], u = kept[1][p], f = kept[2][p], o = kept[3][p], tc = kept[6][p];
      const float c_before = s == 0 ? c0[k * size + e] : kept[5][last * size + e];
      if (b >= alive[t]) continue;
      before[p] = s == 0 ? h0[k * size + e] : kept[4][last * size + e];
      const float grad = dh[e] + dy[(t * rows + b) * n.directions * n.hidden + at + j];
      const float dcell = dc[e] + grad * o * (1 - tc * tc);
      const float values[4] = {dcell * u * i * (1 - i), dcell * c_before * f * (1 - f),
                               dcell * i * (1 - u * u), grad * tc * o * (1 - o)};
      for (int64_t q = 0; q < 4; ++q) g[b * gates + q * n.hidden + j] = values[q];
      dc[e] = dcell * f;
    }
    gemm<float>(target(dh, alive[t], n.hidden),
                matrix(g, alive[t], gates), matrix(w[1].data(), gates, n.hidden),
                false);
  }
  const int64_t all = n.steps * rows, wide = n.width(layer);
  for (int q = 0; q < 4; ++q)
    out.w[q].assign(static_cast<size_t>(gates * (q == 0 ? wide : q == 1 ? n.hidden : 1)), 0);
  gemm<float>(target(out.w[0].data(), gates, wide), transposed(dg.data(), all, gates),
              matrix(x.data(), all, wide), false);
  gemm<float>(target(out.w[1].data(), gates, n.hidden), transposed(dg.data(), all, gates),
              matrix(before.data(), all, n.hidden), false);
  for (int64_t r = 0; r < all; ++r) {
    for (int64_t q = 0; q < gates; ++q) out.w[2][q] += dg[r * gates + q];
  }
  out.w[3] = out.w[2];
  gemm<float>(target(dx.data(), all, wide), matrix(dg.data(), all, gates),
              matrix(w[0].data(), gates, wide), true);
}

aclnnStatus check_lstm_grad(Call& c) {
  using P = params::LstmBackward;

  ACL_RETURN_IF_FAILED(read_net(c, kLstmBackward));
  const Net& n = c.get<Net>();
  ACL_RETURN_IF_FAILED(expect_lists(c, n, P::i, 7));
  bool fits = !c.null(P::dxOut) && !c.null(P::dparamsOut) &&
              c.tensors(P::dparamsOut).size == c.tensors(P::params).size;
  for (int i = P::i; fits && i < 13; ++i) fits = c.tensors(i).size == n.cells();
  for (int64_t k = 0; fits && k < c.tensors(P::dparamsOut).size; ++k) {
    fits = c.tensors(P::dparamsOut)[k] &&
           c.tensors(P::dparamsOut)[k]->numel() == c.tensors(P::params)[k]->numel();
  }
  for (int i : {P::dh, P::dc, P::dhPrevOut, P::dcPrevOut})
    fits = fits && (c.null(i) || c.tensor(i).numel() == n.cells() * n.batch * n.hidden);
  fits = fits &&
         (c.null(P::dy) || c.tensor(P::dy).numel() == n.steps * n.batch * n.directions * n.hidden);
  if (!fits) return c.fail(ACLNN_ERR_PARAM_INVALID, "The gradients' shapes don't fit the layers.");
  return expect_same_shape(c, P::dxOut, P::input);
}
void run_lstm_grad(Call& c) {
  using P = params::LstmBackward;

  const Net& n = c.get<Net>();
  const int64_t size = n.batch * n.hidden;
  const auto maybe = [&](int i, int64_t count) {
    return c.null(i) ? Floats(static_cast<size_t>(count)) : read(c.tensor(i));
  };
  const Floats h0 = state(c, kLstmBackward, n, 0), c0 = state(c, kLstmBackward, n, 1);
  Floats dh = maybe(4, n.cells() * size), dc = maybe(5, n.cells() * size);
  Floats dy(static_cast<size_t>(n.steps * size * n.directions));
  if (!c.null(P::dy)) dy = read(steps_first(c.tensor(P::dy), n.batch_first));
  const Alive alive = alive_of(c, kLstmBackward, n);
  for (int64_t layer = n.layers - 1; layer >= 0; --layer) {
    const Floats x = layer_input(c, n, P::input, P::h, layer);
    Floats dx(static_cast<size_t>(n.steps * n.batch * n.width(layer)));
    for (int64_t d = 0; d < n.directions; ++d) {
      const int64_t k = layer * n.directions + d;
      Floats w[4], kept[7];
      for (int64_t q = 0; q < n.per_cell(); ++q)
        w[q] = read(*c.tensors(P::params)[k * n.per_cell() + q]);
      for (int q = 0; q < 7; ++q) kept[q] = read(*c.tensors(P::i + q)[k]);
      CellGrads grads;
      cell_back(n, w, x, kept, h0, c0, k, layer, d == 1, alive, dy, d * n.hidden, &dh[k * size],
                &dc[k * size], dx, grads);
      for (int64_t q = 0; q < n.per_cell(); ++q)
        write(c.tensors(P::dparamsOut)[k * n.per_cell() + q], grads.w[q]);
    }
    dy = dx;
  }
  Tensor out = steps_first(c.tensor(P::dxOut), n.batch_first);
  write(&out, dy);
  write(c.maybe(P::dhPrevOut), dh);
  write(c.maybe(P::dcPrevOut), dc);
}

}  // namespace
}  // namespace aclsim

ACLNN_OP_FLAGS(aclnnLSTM, check_lstm, run_lstm, kOwnNulls)
ACLNN_OP_FLAGS(aclnnLstmBackward, check_lstm_grad, run_lstm_grad, kOwnNulls)
