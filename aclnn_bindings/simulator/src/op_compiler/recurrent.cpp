// Recurrent types: long short-term memory (Hochreiter and Schmidhuber, 1997) with gates for input,
// candidate, forgetting and output, as torch.nn.LSTMCell has them.
#include <algorithm>
#include <cmath>

#include "op_compiler/rows.h"

#include <aclnnop/aclnn_matmul.h>

namespace aclsim {
namespace {

// Where the gates lie among the columns of the weights.
struct Order {
  int64_t input, candidate, forget, output;
};
aclError order_of(TypeCall& c, const char* fallback, Order* order) {
  std::string text = c.text_attr("gate_order", fallback);
  if (text == "ifco" || text == "ifjo") {
    *order = {0, 2, 1, 3};
  } else if (text == "ijfo" || text == "icfo") {
    *order = {0, 1, 2, 3};
  } else {
    return c.refuse("gate_order %s is none of ifco, ifjo and ijfo", text.c_str());
  }
  if (c.text_attr("direction", "UNIDIRECTIONAL") != "UNIDIRECTIONAL") {
    return c.refuse("direction %s is not simulated", c.text_attr("direction", "").c_str());
  }
  if (c.text_attr("cell_type", "LSTM") != "LSTM" || c.text_attr("activation", "tanh") != "tanh" ||
      c.flag_attr("use_peephole", false) || c.int_attr("num_proj", 0) ||
      !c.flag_attr("time_major", true)) {
    return c.refuse("other cells than plain LSTM, time first, are not simulated");
  }
  return ACL_SUCCESS;
}

View turned(View view) {
  std::swap(view.dims[0], view.dims[1]);
  std::swap(view.strides[0], view.strides[1]);
  return view;
}
View shaped(View view, const Dims& dims) {
  view.dims = dims;
  view.strides = strides_of(dims);
  return view;
}
View step_of(const View& all, int64_t step, int64_t rows, int64_t columns) {
  View view = shaped(all, {rows, columns});
  view.offset = all.offset + step * rows * columns;
  return view;
}
aclError product(TypeCall& c, const View& a, const View& b, const View& out) {
  return ACLSIM_RUN(c, aclnnMatmul, c.tensor(a), c.tensor(b), c.tensor(out), int8_t{0});
}
float logistic(float x) { return 1 / (1 + std::exp(-x)); }

struct Forward {
  int64_t rows, width;  // batch, hidden size
  Order order;
  float forget_bias, clip;
  float *y, *h, *c, *i, *j, *f, *o, *tanhc;
};

// One step: gates [rows, 4·width] of the input and of the state before are added.
void advance(const Forward& s, const float* own, const float* state, const float* bias,
             const float* cell, int64_t at) {
  for (int64_t r = 0; r < s.rows; ++r) {
    for (int64_t k = 0; k < s.width; ++k) {
      int64_t to = (at * s.rows + r) * s.width + k;
      auto gate = [&](int64_t which) {
        int64_t column = which * s.width + k, from = r * 4 * s.width + column;
        return own[from] + (state ? state[from] : 0) + (bias ? bias[column] : 0);
      };
      float i = logistic(gate(s.order.input)), j = std::tanh(gate(s.order.candidate));
      float f = logistic(gate(s.order.forget) + s.forget_bias), o = logistic(gate(s.order.output));
      float c = f * (cell ? cell[r * s.width + k] : 0) + i * j;
      if (s.clip > 0) c = std::clamp(c, -s.clip, s.clip);
      float t = std::tanh(c);
      s.c[to] = c, s.y[to] = s.h[to] = o * t;
      s.i[to] = i, s.j[to] = j, s.f[to] = f, s.o[to] = o, s.tanhc[to] = t;
    }
  }
}

// Weights of the input and of the state; the first version has them one above the other.
struct Weights {
  View input, state;
  size_t next;  // the input that follows them
};

// x [steps, rows, in], weights, bias, -, h and c before → y, h, c, i, j, f, o, tanh(c).
aclError forward(TypeCall& c, const Weights& w, const char* order) {
  const Dims& x = c.in(0).dims;
  if (x.size() != 3 || w.input.dims.size() != 2 || w.input.dims[1] % 4) {
    return c.refuse("x needs three dimensions, and the weights two with four gates");
  }
  int64_t steps = x[0], rows = x[1], width = w.input.dims[1] / 4;
  if (w.input.dims[0] != x[2] || w.state.dims != Dims{width, 4 * width}) {
    return c.refuse("the weights do not fit x");
  }
  if (c.given(w.next + 1)) return c.refuse("seq_length is not simulated");
  Forward s = {rows, width, {}, c.float_attr("forget_bias", 0), c.float_attr("cell_clip", -1),
               nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr};
  if (aclError code = order_of(c, order, &s.order)) return code;
  std::vector<View> rooms;
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_OUT(c, i, {steps, rows, width});
    rooms.push_back(float_room(c, i));
  }
  float** parts[] = {&s.y, &s.h, &s.c, &s.i, &s.j, &s.f, &s.o, &s.tanhc};
  for (size_t i = 0; i < 8; ++i) *parts[i] = floats(rooms[i]);
  View input, before[3] = {};  // bias, state, cell
  if (aclError code = float_in(c, 0, &input)) return code;
  const size_t places[] = {w.next, w.next + 2, w.next + 3};
  for (size_t k = 0; k < 3; ++k) {
    if (!c.given(places[k])) continue;
    if (count_of(c.in(places[k]).dims) != (k ? rows : 4) * width) {
      return c.refuse("input %zu does not fit the weights", places[k]);
    }
    if (aclError code = float_in(c, places[k], &before[k])) return code;
  }
  View own = c.room(ACL_FLOAT, {steps * rows, 4 * width}), state = c.room(ACL_FLOAT, {rows, 4 * width});
  if (aclError code = product(c, shaped(input, {steps * rows, x[2]}), w.input, own)) return code;
  for (int64_t t = 0; t < steps; ++t) {
    bool has_state = t || before[1].data;
    if (has_state) {
      View h = t ? step_of(rooms[1], t - 1, rows, width) : shaped(before[1], {rows, width});
      if (aclError code = product(c, h, w.state, state)) return code;
    }
    const float* gates = floats(own) + t * rows * 4 * width;
    const float* cell = t ? s.c + (t - 1) * rows * width : floats(before[2]);
    const float *added = has_state ? floats(state) : nullptr, *bias = floats(before[0]);
    aclError code = c.on_stream([=] {
      advance(s, gates, added, bias, cell, t);
      return ACL_SUCCESS;
    });
    if (code != ACL_SUCCESS) return code;
  }
  for (size_t i = 0; i < 8; ++i) {
    if (aclError code = float_out(c, rooms[i], i)) return code;
  }
  return ACL_SUCCESS;
}
aclError rnn_v2(TypeCall& c) {
  EXPECT(c, 3, 8);
  Weights w = {{}, {}, 3};
  if (aclError code = float_in(c, 1, &w.input)) return code;
  if (aclError code = float_in(c, 2, &w.state)) return code;
  return forward(c, w, "ijfo");
}
aclError rnn(TypeCall& c) {
  EXPECT(c, 2, 8);
  View both;
  if (aclError code = float_in(c, 1, &both)) return code;
  if (c.in(0).dims.size() != 3 || both.dims.size() != 2 || both.dims[0] < c.in(0).dims[2]) {
    return c.refuse("x needs three dimensions, and the weight two with a row per input and state");
  }
  Weights w = {both, both, 2};
  w.input.dims[0] = c.in(0).dims[2];
  w.state.dims[0] -= w.input.dims[0];
  w.state.offset = w.input.dims[0] * both.dims[1];
  return forward(c, w, "ijfo");
}

struct Backward {
  int64_t rows, width;
  Order order;
  const float *dy, *i, *j, *f, *o, *tanhc;
};
// One step back: `dh` and `dc` are of the state after, `dc` becomes that of the state before.
void retreat(const Backward& s, const float* dh, float* dc, const float* cell, float* gates,
             int64_t at) {
  for (int64_t r = 0; r < s.rows; ++r) {
    for (int64_t k = 0; k < s.width; ++k) {
      int64_t here = r * s.width + k, all = at * s.rows * s.width + here;
      float i = s.i[all], j = s.j[all], f = s.f[all], o = s.o[all], t = s.tanhc[all];
      float h = dh[here] + s.dy[all], c = dc[here] + h * o * (1 - t * t);
      auto put = [&](int64_t which, float value) {
        gates[r * 4 * s.width + which * s.width + k] = value;
      };
      put(s.order.input, c * j * i * (1 - i));
      put(s.order.candidate, c * i * (1 - j * j));
      put(s.order.forget, c * cell[here] * f * (1 - f));
      put(s.order.output, h * t * o * (1 - o));
      dc[here] = c * f;
    }
  }
}

// x, both weights, y, h and c before, h, c, dy, dh, dc, i, j, f, o, tanh(c) →
// gradients of both weights, bias, x, h and c before.
aclError rnn_v2_grad(TypeCall& c) {
  EXPECT(c, 16, 6);
  enum { kX, kInput, kState, kY, kH0, kC0, kH, kC, kDy, kDh, kDc, kI, kJ, kF, kO, kTanh, kCount };
  const Dims& y = c.in(kY).dims;
  if (y.size() != 3 || c.in(kInput).dims.size() != 2) {
    return c.refuse("y needs three dimensions, and the weight two");
  }
  int64_t steps = y[0], rows = y[1], width = y[2], in = c.in(kInput).dims[0];
  EXPECT_IN(c, kInput, {in, 4 * width});
  EXPECT_IN(c, kState, {width, 4 * width});
  for (size_t i = 0; i < kCount; ++i) {
    if (i == kInput || i == kState) continue;
    bool single = i == kH0 || i == kC0 || i == kDh || i == kDc;
    int64_t expected = i == kX ? steps * rows * in : (single ? 1 : steps) * rows * width;
    if (count_of(c.in(i).dims) != expected) return c.refuse("input %zu does not fit y", i);
  }
  int64_t sizes[] = {in * 4 * width, 4 * width * width, 4 * width, steps * rows * in, rows * width,
                     rows * width};
  std::vector<View> in_views(kCount), out;
  for (size_t i = 0; i < 6; ++i) {
    if (count_of(c.out(i).dims) != sizes[i]) return c.refuse("output %zu does not fit y", i);
    out.push_back(float_room(c, i));
  }
  for (size_t i = 0; i < kCount; ++i) {
    if (aclError code = float_in(c, i, &in_views[i])) return code;
  }
  Backward s = {rows, width, {}, floats(in_views[kDy]), floats(in_views[kI]), floats(in_views[kJ]),
                floats(in_views[kF]), floats(in_views[kO]), floats(in_views[kTanh])};
  if (aclError code = order_of(c, "ijfo", &s.order)) return code;
  View gates = c.room(ACL_FLOAT, {steps * rows, 4 * width});
  View before = c.room(ACL_FLOAT, {steps * rows, width});  // the state before each step
  int64_t one = rows * width;
  float *dh = floats(out[4]), *dc = floats(out[5]), *all = floats(gates), *h0 = floats(before);
  const float *first_h = floats(in_views[kH0]), *h = floats(in_views[kH]);
  const float *last_dh = floats(in_views[kDh]), *last_dc = floats(in_views[kDc]);
  aclError code = c.on_stream([=] {
    if (!steps) return ACL_SUCCESS;
    std::copy_n(first_h, one, h0);
    std::copy_n(h, (steps - 1) * one, h0 + one);
    std::copy_n(last_dh, one, dh);
    std::copy_n(last_dc, one, dc);
    return ACL_SUCCESS;
  });
  for (int64_t t = steps - 1; t >= 0 && code == ACL_SUCCESS; --t) {
    const float* cell = t ? floats(in_views[kC]) + (t - 1) * one : floats(in_views[kC0]);
    float* own = all + t * rows * 4 * width;
    code = c.on_stream([=] {
      retreat(s, dh, dc, cell, own, t);
      return ACL_SUCCESS;
    });
    if (code != ACL_SUCCESS) return code;
    code = product(c, step_of(gates, t, rows, 4 * width), turned(in_views[kState]),
                   shaped(out[4], {rows, width}));
  }
  if (code != ACL_SUCCESS) return code;
  View x = shaped(in_views[kX], {steps * rows, in});
  if ((code = product(c, turned(x), gates, shaped(out[0], {in, 4 * width})))) return code;
  if ((code = product(c, turned(before), gates, shaped(out[1], {width, 4 * width})))) return code;
  if ((code = product(c, gates, turned(in_views[kInput]), shaped(out[3], {steps * rows, in})))) return code;
  float* bias = floats(out[2]);
  code = c.on_stream([=] {
    std::vector<double> sums(static_cast<size_t>(4 * width));
    for (int64_t r = 0; r < steps * rows; ++r) {
      for (size_t k = 0; k < sums.size(); ++k) sums[k] += all[r * 4 * width + static_cast<int64_t>(k)];
    }
    std::copy(sums.begin(), sums.end(), bias);
    return ACL_SUCCESS;
  });
  for (size_t i = 0; i < 6 && code == ACL_SUCCESS; ++i) code = float_out(c, out[i], i);
  return code;
}

}  // namespace

const TypeTable& recurrent_types() {
  static const auto* rows = new TypeTable{
      {"DynamicRNN", rnn}, {"DynamicRNNV2", rnn_v2}, {"DynamicRNNV2Grad", rnn_v2_grad}};
  return *rows;
}

}  // namespace aclsim
