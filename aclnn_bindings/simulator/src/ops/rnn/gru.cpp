// Gated recurrent layers (Cho et al., 2014) as torch has them: gates r, z, n in that order in the
// weights, the reset gate applied to the hidden part after its product.
#include "params/rnn.h"
#include "loops/recurrent.h"

namespace aclsim {
namespace {

using namespace recurrent;

constexpr Args kForward = {3, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
constexpr Args kBackward = {3, 0, 1, 2, 10, 11, 12, -1, -1, 13, 14};

// What a cell leaves for the way back: r, z, n, hidden part of n, h, each [T, B, H].
struct Trace {
  Floats kept[5];
};

void run_cell(const Net& n, const Floats* w, const Floats& x, int64_t layer, bool reverse, float* h,
              Trace& trace, Floats& y, int64_t at) {
  const int64_t gates = 3 * n.hidden, rows = n.batch, size = rows * n.hidden;
  Floats all(static_cast<size_t>(n.steps * rows * gates)), mine(static_cast<size_t>(rows * gates));
  gemm<float>(target(all.data(), n.steps * rows, gates),
              matrix(x.data(), n.steps * rows, n.width(layer)),
              transposed(w[0].data(), gates, n.width(layer)), false);
  for (Floats& kept : trace.kept) kept.resize(static_cast<size_t>(n.steps * size));
  for (int64_t k = 0; k < n.steps; ++k) {
    const int64_t t = reverse ? n.steps - 1 - k : k;
    const float* given = &all[static_cast<size_t>(t * rows * gates)];
    gemm<float>(target(mine.data(), rows, gates), matrix(h, rows, n.hidden),
                transposed(w[1].data(), gates, n.hidden), false);
    for (int64_t e = 0; e < size; ++e) {
      const int64_t b = e / n.hidden, j = e % n.hidden;
      float a[3], v[3];
      for (int64_t q = 0; q < 3; ++q) {
        const int64_t column = q * n.hidden + j;
        a[q] = given[b * gates + column] + (n.bias ? w[2][column] : 0);
        v[q] = mine[b * gates + column] + (n.bias ? w[3][column] : 0);
      }
      const float r = sigmoid(a[0] + v[0]), z = sigmoid(a[1] + v[1]);
      const float u = std::tanh(a[2] + r * v[2]);
      h[e] = (1 - z) * u + z * h[e];
      const float values[5] = {r, z, u, v[2], h[e]};
      for (int q = 0; q < 5; ++q) trace.kept[q][t * size + e] = values[q];
      y[(t * rows + b) * n.directions * n.hidden + at + j] = h[e];
    }
  }
}

aclnnStatus check_gru(Call& c) {
  using P = params::GRU;

  ACL_RETURN_IF_FAILED(read_net(c, kForward));
  const Net& n = c.get<Net>();
  for (int i : {P::output, P::hy}) {
    if (c.null(i)) return c.fail(ACLNN_ERR_PARAM_NULLPTR, "Parameter %s is null.", c.name(i));
    const int64_t wide = i == 10 ? n.steps * n.directions : n.cells();
    if (c.tensor(i).numel() == wide * n.batch * n.hidden && c.tensor(i).rank == 3) continue;
    return c.fail(ACLNN_ERR_PARAM_INVALID, "Shape %s of %s doesn't fit.", shape_text(c.tensor(i)),
                  c.name(i));
  }
  return expect_lists(c, n, P::rOut, 5);
}
void run_gru(Call& c) {
  using P = params::GRU;

  const Net& n = c.get<Net>();
  Floats h = state(c, kForward, n, 0), x = read(steps_first(c.tensor(P::input), n.batch_first));
  for (int64_t layer = 0; layer < n.layers; ++layer) {
    Floats y(static_cast<size_t>(n.steps * n.batch * n.directions * n.hidden));
    for (int64_t d = 0; d < n.directions; ++d) {
      const int64_t k = layer * n.directions + d;
      Floats w[4];
      for (int64_t q = 0; q < n.per_cell(); ++q)
        w[q] = read(*c.tensors(P::params)[k * n.per_cell() + q]);
      Trace trace;
      run_cell(n, w, x, layer, d == 1, &h[k * n.batch * n.hidden], trace, y, d * n.hidden);
      for (int q = 0; q < 5; ++q) {
        if (c.tensors(P::rOut + q).size > 0) write(c.tensors(P::rOut + q)[k], trace.kept[q]);
      }
    }
    x = y;
  }
  Tensor out = steps_first(c.tensor(P::output), n.batch_first);
  write(&out, x);
  write(&c.tensor(P::hy), h);
}

// Gradients of the gates as the input sees them and as the hidden state does.
struct GateGrads {
  Floats input, hidden, before;  // [T, B, 3 H] twice, and h before each step [T, B, H]
};
GateGrads gate_grads(const Net& n, const Floats* w, const Floats (&kept)[5], const float* h0,
                     bool reverse, const Floats& dy, int64_t at, float* dh) {
  const int64_t gates = 3 * n.hidden, rows = n.batch, size = rows * n.hidden;
  GateGrads out;
  out.input.resize(static_cast<size_t>(n.steps * rows * gates));
  out.hidden = out.input;
  out.before.resize(static_cast<size_t>(n.steps * size));
  for (int64_t s = n.steps - 1; s >= 0; --s) {
    const int64_t t = reverse ? n.steps - 1 - s : s, last = reverse ? t + 1 : t - 1;
    Floats through(static_cast<size_t>(size));
    for (int64_t e = 0; e < size; ++e) {
      const int64_t b = e / n.hidden, j = e % n.hidden, p = t * size + e;
      const float r = kept[0][p], z = kept[1][p], u = kept[2][p], hn = kept[3][p];
      const float before = out.before[p] = s == 0 ? h0[e] : kept[4][last * size + e];
      const float grad = dh[e] + dy[(t * rows + b) * n.directions * n.hidden + at + j];
      const float du = grad * (1 - z) * (1 - u * u), dz = grad * (before - u) * z * (1 - z);
      const float values[3] = {du * hn * r * (1 - r), dz, du};
      for (int64_t q = 0; q < 3; ++q) {
        const int64_t place = (t * rows + b) * gates + q * n.hidden + j;
        out.input[place] = values[q];
        out.hidden[place] = q == 2 ? du * r : values[q];
      }
      through[e] = grad * z;
    }
    std::copy(through.begin(), through.end(), dh);
    gemm<float>(target(dh, rows, n.hidden), matrix(&out.hidden[t * rows * gates], rows, gates),
                matrix(w[1].data(), gates, n.hidden), true);
  }
  return out;
}

aclnnStatus check_gru_grad(Call& c) {
  using P = params::GRUBackward;

  ACL_RETURN_IF_FAILED(read_net(c, kBackward));
  const Net& n = c.get<Net>();
  ACL_RETURN_IF_FAILED(expect_lists(c, n, P::r, 5));
  bool fits = !c.null(P::dxOut) && !c.null(P::dparamsOut) &&
              c.tensors(P::dparamsOut).size == c.tensors(P::params).size;
  for (int i = P::r; fits && i < 10; ++i) fits = c.tensors(i).size == n.cells();
  for (int64_t k = 0; fits && k < c.tensors(P::dparamsOut).size; ++k) {
    fits = c.tensors(P::dparamsOut)[k] &&
           c.tensors(P::dparamsOut)[k]->numel() == c.tensors(P::params)[k]->numel();
  }
  const int64_t states = n.cells() * n.batch * n.hidden;
  for (int i : {P::dh, P::dhPrevOut}) fits = fits && (c.null(i) || c.tensor(i).numel() == states);
  const int64_t outputs = n.steps * n.batch * n.directions * n.hidden;
  fits =
      fits && (c.null(P::dy) || (c.tensor(P::dy).numel() == outputs && c.tensor(P::dy).rank == 3));
  if (!fits) return c.fail(ACLNN_ERR_PARAM_INVALID, "The gradients' shapes don't fit the layers.");
  return expect_same_shape(c, P::dxOut, P::input);
}
void write_weights(const Call& c, const Net& n, int64_t k, int64_t wide, const Floats& x,
                   const GateGrads& g) {
  using P = params::GRUBackward;

  const int64_t gates = 3 * n.hidden, all = n.steps * n.batch;
  Floats grads[4] = {Floats(static_cast<size_t>(gates * wide)),
                     Floats(static_cast<size_t>(gates * n.hidden)),
                     Floats(static_cast<size_t>(gates)), Floats(static_cast<size_t>(gates))};
  gemm<float>(target(grads[0].data(), gates, wide), transposed(g.input.data(), all, gates),
              matrix(x.data(), all, wide), false);
  gemm<float>(target(grads[1].data(), gates, n.hidden), transposed(g.hidden.data(), all, gates),
              matrix(g.before.data(), all, n.hidden), false);
  for (int64_t e = 0; e < all * gates; ++e) {
    grads[2][e % gates] += g.input[e];
    grads[3][e % gates] += g.hidden[e];
  }
  for (int64_t q = 0; q < n.per_cell(); ++q)
    write(c.tensors(P::dparamsOut)[k * n.per_cell() + q], grads[q]);
}
void run_gru_grad(Call& c) {
  using P = params::GRUBackward;

  const Net& n = c.get<Net>();
  const int64_t size = n.batch * n.hidden;
  const Floats h0 = state(c, kBackward, n, 0);
  Floats dh = c.null(P::dh) ? Floats(static_cast<size_t>(n.cells() * size)) : read(c.tensor(P::dh));
  Floats dy(static_cast<size_t>(n.steps * size * n.directions));
  if (!c.null(P::dy)) dy = read(steps_first(c.tensor(P::dy), n.batch_first));
  for (int64_t layer = n.layers - 1; layer >= 0; --layer) {
    const Floats x = layer_input(c, n, P::input, P::h, layer);
    const int64_t wide = n.width(layer), all = n.steps * n.batch;
    Floats dx(static_cast<size_t>(all * wide));
    for (int64_t d = 0; d < n.directions; ++d) {
      const int64_t k = layer * n.directions + d;
      Floats w[4], kept[5];
      for (int64_t q = 0; q < n.per_cell(); ++q)
        w[q] = read(*c.tensors(P::params)[k * n.per_cell() + q]);
      for (int q = 0; q < 5; ++q) kept[q] = read(*c.tensors(P::r + q)[k]);
      const GateGrads g =
          gate_grads(n, w, kept, &h0[k * size], d == 1, dy, d * n.hidden, &dh[k * size]);
      write_weights(c, n, k, wide, x, g);
      gemm<float>(target(dx.data(), all, wide), matrix(g.input.data(), all, 3 * n.hidden),
                  matrix(w[0].data(), 3 * n.hidden, wide), true);
    }
    dy = dx;
  }
  Tensor out = steps_first(c.tensor(P::dxOut), n.batch_first);
  write(&out, dy);
  write(c.maybe(P::dhPrevOut), dh);
}

}  // namespace
}  // namespace aclsim

ACLNN_OP_FLAGS(aclnnGRU, check_gru, run_gru, kOwnNulls)
ACLNN_OP_FLAGS(aclnnGRUBackward, check_gru_grad, run_gru_grad, kOwnNulls)
