// Grouped products: rows, or what is summed over, split among experts; with quantisation before,
// activation between and routing after. Formulas: the "npu_grouped_matmul", "npu_ffn",
// "npu_grouped_matmul_swiglu_quant_v2" and "npu_grouped_matmul_finalize_routing" pages of
// torch_npu.
#include "params/matmul.h"
#include "loops/matrices.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace aclsim {
namespace {

// Where the versions have their arguments; lists from 0 on are x, weight, bias, scale, offset,
// antiquantScale, antiquantOffset.
struct Places {
  int tokens, groups, split, type, list_type, activation, out;
};
constexpr Places kFirst = [] {
  using P = params::GroupedMatmul;
  return Places{kNone, P::groupListOptional, 8, kNone, kNone, kNone, P::y};
}();
constexpr Places kV2 = [] {
  using P = params::GroupedMatmulV2;
  return Places{kNone, P::groupListOptional, 8, P::groupType, kNone, kNone, P::y};
}();
constexpr Places kV4 = [] {
  using P = params::GroupedMatmulV4;
  return Places{P::perTokenScaleOptional, P::groupListOptional, 12,    P::groupType,
                P::groupListType,         P::actType,           P::out};
}();
constexpr Places kV5 = [] {
  using P = params::GroupedMatmulV5;
  return Places{P::perTokenScaleOptional, P::groupListOptional, 12,    P::groupType,
                P::groupListType,         P::actType,           P::out};
}();
constexpr Places kInner = [] {
  using P = params::GroupedMatmulWeightNz;
  return Places{P::perTokenScaleOptional, P::groupListOptional, 12,    P::groupType,
                P::groupListType,         P::actType,           P::out};
}();

int64_t int_at(const Call& c, int arg, int64_t otherwise) {
  return arg == kNone ? otherwise : c.integer(arg);
}
Span<Tensor*> list_at(const Call& c, int arg) {
  if (arg == kNone || c.null(arg)) return {};
  Span<Tensor*> list = c.tensors(arg);
  // A list of one empty tensor stands for none.
  if (list.size == 1 && (!list[0] || list[0]->numel() == 0)) return {};
  return list;
}
bool has_groups(const Call& c, int arg) {
  return !c.null(arg) &&
         (c.args[arg].kind == ArgKind::Tensor ? c.tensor(arg).numel() : c.args[arg].size) > 0;
}
// Where groups begin along `total` rows, one more than there are groups. Lists hold ends, sizes, or
// pairs of expert and size.
Ints bounds_of(const Ints& list, int64_t kind) {
  Ints bounds = {0};
  const size_t step = kind == 2 ? 2 : 1;
  for (size_t i = 0; i < list.size(); i += step) {
    bounds.push_back(kind == 0 ? std::max(list[i], bounds.back())
                               : bounds.back() + list[i + step - 1]);
  }
  return bounds;
}
Ints group_list(const Call& c, int arg) {
  if (c.args[arg].kind == ArgKind::Tensor) return integers(c.maybe(arg));
  const Span<const int64_t> v = c.ints(arg);
  return Ints(v.begin(), v.end());
}
// Member g of a list of matrices, or group g of its one tensor.
struct Weights {
  Span<Tensor*> list;
  bool packs = true;  // whether words hold eight elements
  static bool stacked(const Tensor& t) {
    return t.rank > (t.format == ACL_FORMAT_FRACTAL_NZ && t.rank >= 4 ? 4 : 2);
  }
  // How many groups have a matrix; one matrix alone serves all.
  int64_t count() const {
    if (list.size > 1) return list.size;
    return stacked(*list[0]) ? list[0]->dims[0] : INT64_MAX;
  }
  Tensor member(int64_t g) const {
    if (list.size > 1) return *list[g];
    Tensor one = *list[0];
    if (stacked(one)) {
      one.offset += g * one.strides[0];
      for (int i = 1; i < one.rank; ++i)
        one.dims[i - 1] = one.dims[i], one.strides[i - 1] = one.strides[i];
      --one.rank;
    }
    return one;
  }
  Matrices get(int64_t g, int64_t rows, int64_t cols) const {
    return matrices_of(member(g), false, packs, rows, cols);
  }
};
// Parameters of group g: member g of a list, or a slice of its one tensor.
Tensor slice_of(Span<Tensor*> list, int64_t g, int64_t groups) {
  if (list.size > 1) return *list[g];
  Tensor t = *list[0];
  if (groups == 1 && t.rank > 1 && t.dims[0] != 1) return t;
  if (t.rank == 0 || t.dims[0] != groups) return t;
  t.offset += g * t.strides[0];
  if (t.rank == 1) {
    t.dims[0] = 1;
    return t;
  }
  for (int i = 1; i < t.rank; ++i) t.dims[i - 1] = t.dims[i], t.strides[i - 1] = t.strides[i];
  --t.rank;
  return t;
}

// Beside x of floats the weights are plain floats; beside another x, words of eight elements.
bool packs_words(const Call& c) {
  using P = params::GroupedMatmul;
  return c.tensors(P::x)[0]->dtype != ACL_FLOAT;
}

aclnnStatus refuse_group(const Call& c, const char* why) {
  return c.fail(ACLNN_ERR_PARAM_INVALID,
                "The lists of x, weight, groups and output do not fit: %s.", why);
}
int64_t group_type(const Call& c, const Places& at) {
  using P = params::GroupedMatmul;

  return int_at(
      c, at.type,
      has_groups(c, at.groups) || list_at(c, P::x).size < list_at(c, P::weight).size ? 0 : -1);
}
// Whether groups follow one another and end within `limit`.
bool within(const Ints& bounds, int64_t limit) {
  return std::is_sorted(bounds.begin(), bounds.end()) && bounds.back() <= limit;
}
int64_t group_count(const Call& c, const Places& at) {
  using P = params::GroupedMatmul;

  if (group_type(c, at) == -1 || !has_groups(c, at.groups)) return c.tensors(P::x).size;
  const int64_t size = c.args[at.groups].kind == ArgKind::Tensor ? c.tensor(at.groups).numel()
                                                                 : c.args[at.groups].size;
  return int_at(c, at.list_type, 0) == 2 ? size / 2 : size;
}
int64_t rows_in(const Matrices& m) { return m.batch * m.rows; }
// What is summed over, and the width of the output, in each group.
aclnnStatus check_products(const Call& c, const Places& at, int64_t groups) {
  using P = params::GroupedMatmul;

  const Weights weights{c.tensors(P::weight), packs_words(c)};
  const Span<Tensor*> xs = c.tensors(P::x), outs = c.tensors(at.out);
  for (int64_t g = 0; g < groups; ++g) {
    const Matrices x = matrices_like(*xs[xs.size > 1 ? g : 0], false, packs_words(c)),
                   w = matrices_like(weights.member(g), false, packs_words(c));
    const Tensor& out = *outs[outs.size > 1 ? g : 0];
    if (w.batch != 1) return refuse_group(c, "a weight of a list has more than two dims");
    if (w.rows < x.cols || w.cols < width_of(out))
      return refuse_group(c, "a weight is smaller than the width of x by that of the output");
    const bool own = group_type(c, at) == -1 || (xs.size > 1 && outs.size > 1);
    if (own && rows_in(x) != rows_of(out))
      return refuse_group(c, "an output has not the rows of its x");
  }
  return ACLNN_SUCCESS;
}
aclnnStatus check_sums(const Call& c, const Places& at, int64_t groups) {
  using P = params::GroupedMatmul;

  const Span<Tensor*> ws = c.tensors(P::weight), outs = c.tensors(at.out);
  if (c.tensors(P::x).size != 1) return refuse_group(c, "groupType 2 needs one x");
  const Matrices x = matrices_like(*c.tensors(P::x)[0], false, packs_words(c));
  for (int64_t g = 0; g < std::min(groups, ws.size); ++g) {
    const Matrices w = matrices_like(*ws[g], false, packs_words(c));
    if (x.batch != 1 || w.batch != 1 || (ws.size == 1 && w.rows != x.cols))
      return refuse_group(c, "groupType 2 sums over equal sizes of matrices");
    const int64_t size = x.rows * w.cols;
    for (Tensor* out : outs) {
      if (ws.size == 1 && outs.size > 1 && out->numel() != size)
        return refuse_group(c, "an output is not as large as a product");
      if (width_of(*out) != w.cols) return refuse_group(c, "an output has another width");
    }
  }
  return ACLNN_SUCCESS;
}
// Lists of parameters: one for all groups or one for each; tokens have a value for each row of x.
aclnnStatus check_parameters(const Call& c, const Places& at, int64_t groups) {
  using P = params::GroupedMatmul;

  const Span<Tensor*> outs = c.tensors(at.out);
  for (int arg : std::initializer_list<int>{P::biasOptional, P::scaleOptional, P::offsetOptional,
                                            P::antiquantScaleOptional, P::antiquantOffsetOptional,
                                            at.tokens}) {
    const Span<Tensor*> list = list_at(c, arg);
    for (Tensor* t : list) {
      if (!t) return refuse_group(c, "a list of parameters has an absent member");
    }
    if (list.size > 1 && list.size < groups)
      return refuse_group(c, "a list of parameters has fewer members than there are groups");
    for (int64_t g = 0; list.size && arg < 5 && arg != at.tokens && g < groups; ++g) {
      const Tensor t = slice_of(list, g, groups);
      const bool blocks = arg == 3 && t.rank >= 2 && t.dims[t.rank - 2] > 1;
      const int64_t n = width_of(*outs[outs.size > g ? g : 0]);  // products of own widths
      if (!blocks && t.numel() > 1 && t.numel() < n)
        return refuse_group(c, "a bias, scale or offset is narrower than the output");
    }
  }
  const Span<Tensor*> tokens = list_at(c, at.tokens), xs = c.tensors(P::x);
  if (tokens.size > 1 && tokens.size != xs.size)
    return refuse_group(c, "per-token scales need one tensor, or one for each x");
  int64_t rows = 0;
  for (int64_t i = 0; i < xs.size; ++i) {
    const int64_t own = rows_in(matrices_like(*xs[i], false, packs_words(c)));
    if (tokens.size > 1 && rows_of(*tokens[i]) != own && tokens[i]->numel() != own)
      return refuse_group(c, "per-token scales are not as many as rows of x");
    rows += own;
  }
  if (tokens.size == 1 && tokens[0]->numel() < rows)
    return refuse_group(c, "per-token scales are fewer than rows of x");
  return ACLNN_SUCCESS;
}
aclnnStatus check_sizes(const Call& c, const Places& at) {
  using P = params::GroupedMatmul;

  const int64_t type = group_type(c, at), groups = group_count(c, at);
  const Span<Tensor*> xs = c.tensors(P::x), ws = c.tensors(P::weight), outs = c.tensors(at.out);
  if (xs.size > 1 && xs.size != groups) return refuse_group(c, "x has not a member a group");
  if (outs.size > 1 && outs.size != groups)
    return refuse_group(c, "the output has not a member a group");
  const bool pairs = has_groups(c, at.groups) && int_at(c, at.list_type, 0) == 2;
  if (type == 2 ? ws.size > 1 && ws.size != groups : Weights{ws}.count() < groups)
    return refuse_group(c, "weight has fewer members than there are groups");
  if (pairs && type == 0 && Weights{ws}.count() == INT64_MAX)
    return refuse_group(c, "groupListType 2 needs a weight for each expert");
  ACL_RETURN_IF_FAILED(type == 2 ? check_sums(c, at, groups) : check_products(c, at, groups));
  return check_parameters(c, at, pairs && type == 0 ? Weights{ws}.count() : groups);
}
aclnnStatus check_lists(Call& c, const Places& at) {
  using P = params::GroupedMatmul;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::x, P::weight, at.out}));
  for (int arg : std::initializer_list<int>{P::x, P::weight, at.out}) {
    for (Tensor* t : c.tensors(arg)) {
      if (!t || t->rank < 2) return refuse_group(c, "every member needs two dims or more");
    }
    if (c.tensors(arg).size == 0) return refuse_group(c, "a list is empty");
  }
  const int64_t type = group_type(c, at), kind = int_at(c, at.list_type, 0);
  if (type != -1 && type != 0 && type != 2) return refuse_group(c, "groupType is not -1, 0 or 2");
  if (kind < 0 || kind > 2) return refuse_group(c, "groupListType is not 0, 1 or 2");
  if (type == -1 && (c.tensors(P::x).size != c.tensors(P::weight).size ||
                     c.tensors(P::x).size != c.tensors(at.out).size)) {
    return refuse_group(c, "groupType -1 needs as many members in each");
  }
  if (type >= 0 && !has_groups(c, at.groups) && c.tensors(P::x).size == 1) {
    return refuse_group(c, "a group list is needed to split one x");
  }
  return check_sizes(c, at);
}
template <const Places& at>
aclnnStatus check_grouped(Call& c) {
  return check_lists(c, at);
}
// One group: out = activation((x w + integer bias) scale tokens + float bias + offset).
struct Group {
  Matrices x, w;
  int64_t index, count, first_row;
};
Doubles multiplied(const Call& c, const Places& at, Group& g) {
  using P = params::GroupedMatmul;

  const Span<Tensor*> anti = list_at(c, P::antiquantScaleOptional),
                      shift = list_at(c, P::antiquantOffsetOptional),
                      scale = list_at(c, P::scaleOptional), offset = list_at(c, P::offsetOptional),
                      bias = list_at(c, P::biasOptional), tokens = list_at(c, at.tokens);
  if (shift.size) shift_blocks(g.w, over_columns(slice_of(shift, g.index, g.count)), 1);
  if (anti.size) scale_blocks(g.w, over_columns(slice_of(anti, g.index, g.count)), true);
  Floats column, add;
  bool early = false;
  if (scale.size) {
    const Tensor s = slice_of(scale, g.index, g.count);
    if (s.rank >= 2 && s.dims[s.rank - 2] > 1 && s.dtype != ACL_UINT64 && s.dtype != ACL_INT64) {
      scale_blocks(g.w, s, true);  // by groups of what is summed over
    } else {
      column = packed_scales(&s);
    }
  }
  if (bias.size) {
    const Tensor b = slice_of(bias, g.index, g.count);
    add = floats(b), early = b.dtype == ACL_INT32;
  }
  Floats rows, shifts;
  if (tokens.size) {
    const Tensor& t = tokens.size > 1 ? *tokens[g.index] : *tokens[0];
    if (t.rank >= 2 && width_of(t) > 1) {
      Matrices all = g.x;  // scales by blocks of x
      Tensor part = t;
      if (tokens.size == 1) part.offset += g.first_row * t.strides[0], part.dims[0] = g.x.rows;
      scale_blocks(all, part, false);
      g.x = all;
    } else {
      rows = floats(t);
    }
  }
  if (offset.size) {
    const Tensor o = slice_of(offset, g.index, g.count);
    shifts = floats(o);
  }
  const Matrices m = product(g.x, g.w);
  const int64_t kind = int_at(c, at.activation, 0);
  Doubles y = m.v;
  const auto pick = [](const Floats& f, int64_t i, double none) {
    return f.empty() ? none : f[f.size() == 1 ? 0 : i];
  };
  for (size_t i = 0; i < y.size(); ++i) {
    const int64_t j = static_cast<int64_t>(i) % m.cols, r = static_cast<int64_t>(i) / m.cols;
    double v = y[i] + (early ? pick(add, j, 0) : 0);
    v *= pick(column, j, 1);
    if (!rows.empty())
      v *=
          rows[rows.size() == static_cast<size_t>(m.rows) && tokens.size > 1 ? r : g.first_row + r];
    v += (early ? 0 : pick(add, j, 0)) + pick(shifts, j, 0);
    y[i] = activated(v, static_cast<Activation>(kind));
  }
  return y;
}
void write_rows(const Tensor& t, const Doubles& y) {
  const Floats v(y.begin(), y.end());
  if (t.dtype == ACL_INT8 || t.dtype == ACL_INT4) {
    write_quantized(&t, v);
  } else {
    write(t, y);
  }
}
// Rows [begin, end) of a matrix of one batch; columns instead where `across`.
Matrices part_of(const Matrices& m, int64_t begin, int64_t end, bool across) {
  Matrices p = {Doubles(), 1, across ? m.rows : end - begin, across ? end - begin : m.cols};
  for (int64_t i = 0; i < p.rows; ++i) {
    const double* row = m.v.data() + (across ? i : begin + i) * m.cols + (across ? begin : 0);
    p.v.insert(p.v.end(), row, row + p.cols);
  }
  return p;
}
// Outputs are one tensor for all groups, or one for each.
struct Outputs {
  Span<Tensor*> list;
  Doubles all;
  bool put(int64_t g, const Doubles& y) {
    if (list.size > 1) {
      if (list[g]->numel() != static_cast<int64_t>(y.size())) return false;
      write_rows(*list[g], y);
    } else {
      all.insert(all.end(), y.begin(), y.end());
    }
    return true;
  }
  void done() {
    if (list.size != 1) return;
    all.resize(static_cast<size_t>(list[0]->numel()));  // rows of no group are zero
    write_rows(*list[0], all);
  }
};
aclError run_each(Call& c, const Places& at) {
  using P = params::GroupedMatmul;

  Outputs outs{c.tensors(at.out), {}};
  const Weights weights{c.tensors(P::weight), packs_words(c)};
  for (int64_t i = 0; i < c.tensors(P::x).size; ++i) {
    const Tensor& out = *c.tensors(at.out)[i];
    Group g = {
        matrices_of(*c.tensors(P::x)[i], false, packs_words(c)), {}, i, c.tensors(P::x).size, 0};
    g.x.rows *= g.x.batch, g.x.batch = 1;
    g.w = weights.get(i, g.x.cols, out.dims[out.rank - 1]);
    write_rows(out, multiplied(c, at, g));
  }
  return ACL_SUCCESS;
}
aclError run_rows(Call& c, const Places& at) {
  using P = params::GroupedMatmul;

  const Span<Tensor*> xs = c.tensors(P::x);
  Ints list = has_groups(c, at.groups) ? group_list(c, at.groups) : Ints();
  const int64_t kind = list.empty() ? 1 : int_at(c, at.list_type, 0);
  if (list.empty()) {
    for (Tensor* x : xs) list.push_back(rows_of(*x));
  }
  const Ints bounds = bounds_of(list, kind);
  const auto groups = static_cast<int64_t>(bounds.size()) - 1;
  Outputs outs{c.tensors(at.out), {}};
  const Weights weights{c.tensors(P::weight), packs_words(c)};
  const int64_t n = width_of(*c.tensors(at.out)[0]);
  Matrices x = xs.size == 1 ? matrices_of(*xs[0], false, packs_words(c)) : Matrices();
  if (!within(bounds, xs.size == 1 ? rows_in(x) : INT64_MAX))
    return c.trap(507015, "groupList ends past x.");
  for (int64_t i = 0; i < groups; ++i) {
    const int64_t e = kind == 2 ? list[2 * i] : i;
    if (e < 0 || e >= weights.count()) return c.trap(507015, "groupList names no expert.");
    Group g = {xs.size == 1 ? part_of(x, bounds[i], bounds[i + 1], false)
                            : matrices_of(*xs[i], false, packs_words(c)),
               {},
               e,
               kind == 2 ? -1 : groups,
               bounds[i]};
    g.x.rows *= g.x.batch, g.x.batch = 1;
    if (g.count < 0)
      g.count = c.tensors(P::weight).size > 1 ? c.tensors(P::weight).size
                                              : c.tensors(P::weight)[0]->dims[0];
    g.w = weights.get(e, g.x.cols, n);
    if (!outs.put(i, multiplied(c, at, g))) return c.trap(507015, "A group is not its output's.");
  }
  outs.done();
  return ACL_SUCCESS;
}
// What is summed over is split: x [m, k] by columns, the weight by rows.
aclError run_sums(Call& c, const Places& at) {
  using P = params::GroupedMatmul;

  const Ints bounds = bounds_of(group_list(c, at.groups), int_at(c, at.list_type, 0));
  Outputs outs{c.tensors(at.out), {}};
  const Matrices x = matrices_of(*c.tensors(P::x)[0], false, packs_words(c));
  const Span<Tensor*> list = c.tensors(P::weight);
  const Matrices whole = list.size == 1 ? matrices_of(*list[0], false, packs_words(c)) : Matrices();
  if (!within(bounds, x.cols)) return c.trap(507015, "groupList ends past what is summed over.");
  for (size_t i = 0; i + 1 < bounds.size(); ++i) {
    Group g = {part_of(x, bounds[i], bounds[i + 1], true),
               {},
               static_cast<int64_t>(i),
               static_cast<int64_t>(bounds.size()) - 1,
               0};
    g.w = list.size == 1 ? part_of(whole, bounds[i], bounds[i + 1], false)
                         : matrices_of(*list[i], false, packs_words(c));
    if (g.x.cols != g.w.rows || !outs.put(static_cast<int64_t>(i), multiplied(c, at, g)))
      return c.trap(507015, "A group does not fit its weight or output.");
  }
  outs.done();
  return ACL_SUCCESS;
}
template <const Places& at>
aclError run_grouped(Call& c) {
  const int64_t type = group_type(c, at);
  return type == -1 ? run_each(c, at) : type == 0 ? run_rows(c, at) : run_sums(c, at);
}

// (x, weight, groupList, yRef, transposeX, transposeWeight, groupType, [groupListType]):
// y += x w for each group of what is summed over.
template <bool Typed>
aclnnStatus check_add(Call& c) {
  using P = params::GroupedMatmulAdd;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::x, P::weight, P::groupList, P::yRef}));
  const Matrices x = matrices_like(c.tensor(P::x), c.flag(P::transposeX), false),
                 w = matrices_like(c.tensor(P::weight), c.flag(P::transposeWeight), false);
  if (c.integer(P::groupType) != 2 || x.cols != w.rows)
    return refuse_group(c, "groupType 2 sums over equal sizes");
  return expect_numel(c, P::yRef, c.tensor(P::groupList).numel() * x.rows * w.cols);
}
template <bool Typed>
aclError run_add(Call& c) {
  using P = params::GroupedMatmulAddV2;

  const Matrices x = matrices_of(c.tensor(P::x), c.flag(P::transposeX), false),
                 w = matrices_of(c.tensor(P::weight), c.flag(P::transposeWeight), false);
  const Ints bounds =
      bounds_of(integers(c.tensor(P::groupList)), Typed ? c.integer(P::groupListType) : 0);
  if (!within(bounds, x.cols)) return c.trap(507015, "groupList ends past what is summed over.");
  Doubles y = doubles(c.tensor(P::yRef));
  for (size_t g = 0; g + 1 < bounds.size(); ++g) {
    const Matrices m = product(part_of(x, bounds[g], bounds[g + 1], true),
                               part_of(w, bounds[g], bounds[g + 1], false));
    for (size_t i = 0; i < m.v.size(); ++i) y[g * m.v.size() + i] += m.v[i];
  }
  write(c.tensor(P::yRef), y);
  return ACL_SUCCESS;
}

// Grouped product, dequantisation, SwiGLU and quantisation of each row.
struct Swiglu {
  int weight_scale, assist, x_scale, smooth, groups, list_type, out, out_scale;
};
constexpr Swiglu kSwiglu = [] {
  using P = params::GroupedMatmulSwigluQuant;
  return Swiglu{P::weightScale, P::bias, P::xScale, kNone,
                P::groupList,   kNone,   P::output, P::outputScale};
}();
constexpr Swiglu kSwigluV2 = [] {
  using P = params::GroupedMatmulSwigluQuantV2;
  return Swiglu{P::weightScale, P::weightAssistMatrix, P::xScale, P::smoothScale,
                P::groupList,   P::groupListType,      P::output, P::outputScale};
}();
Span<Tensor*> members(const Call& c, int arg) {
  if (arg == kNone || c.null(arg)) return {};
  if (c.args[arg].kind == ArgKind::TensorList) return list_at(c, arg);
  return c.tensor(arg).numel() ? Span<Tensor*>{&c.args[arg].tensor, 1} : Span<Tensor*>{};
}
template <const Swiglu& at>
aclnnStatus check_swiglu(Call& c) {
  using P = params::GroupedMatmulSwigluQuant;

  ACL_RETURN_IF_FAILED(expect_given(
      c, {P::x, P::weight, at.weight_scale, at.x_scale, at.groups, at.out, at.out_scale}));
  const aclDataType of = c.tensor(P::x).dtype;
  const bool integers = of == ACL_INT8 || of == ACL_INT4 || of == ACL_INT32;
  if (!integers || c.tensor(at.out).dtype != ACL_INT8 || members(c, P::weight).size == 0) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "x of %s and an output of %s are not supported by the simulator: it "
                  "quantises INT8 and INT4 to INT8.",
                  dtype_name(c.tensor(P::x).dtype), dtype_name(c.tensor(at.out).dtype));
  }
  const Span<Tensor*> assist = members(c, at.assist);
  const int64_t wide = 2 * width_of(c.tensor(at.out)), experts = c.tensor(at.groups).numel();
  for (int64_t k = 0; k < assist.size; ++k) {
    if (assist[k] && assist[k]->numel() == (assist.size > 1 ? wide : experts * wide)) continue;
    return c.fail(ACLNN_ERR_PARAM_INVALID, "%s should have a value for each group and column.",
                  c.name(at.assist));
  }
  if (assist.size > 1 && assist.size != experts)
    return refuse_group(c, "the assisting matrices are not as many as groups");
  ACL_RETURN_IF_FAILED(expect_numel(c, at.x_scale, rows_of(c.tensor(P::x))));
  return expect_numel(c, at.out_scale, rows_of(c.tensor(P::x)));
}
template <const Swiglu& at>
aclError run_swiglu(Call& c) {
  using P = params::GroupedMatmulSwigluQuant;

  const Matrices x = matrices_of(c.tensor(P::x), false, true);
  const Ints bounds = bounds_of(integers(c.tensor(at.groups)), int_at(c, at.list_type, 0));
  const auto groups = static_cast<int64_t>(bounds.size()) - 1;
  if (!within(bounds, x.rows)) return c.trap(507015, "groupList ends past the rows of x.");
  const Weights weights{members(c, P::weight)};
  const Floats tokens = floats(c.tensor(at.x_scale));
  const Span<Tensor*> smooth = members(c, at.smooth), assist = members(c, at.assist);
  const int64_t h = width_of(c.tensor(at.out));
  Floats rows(static_cast<size_t>(x.rows * h));
  for (int64_t g = 0; g < groups; ++g) {
    Matrices w = weights.get(g, x.cols, 2 * h);
    Tensor scale = over_columns(slice_of(members(c, at.weight_scale), g, groups));
    const Floats words = packed_scales(&scale);
    scale_blocks(w, dense(const_cast<float*>(words.data()), ACL_FLOAT, scale.dims, scale.rank),
                 true);
    Matrices own = part_of(x, bounds[g], bounds[g + 1], false);
    // For weights of four bits x comes in two digits, 16 floor(x / 16) + (x mod 16 - 8): what the 8
    // takes away, the assisting matrix gives back (op-plugin, npu_grouped_matmul_swiglu_quant_v2).
    if (assist.size) {
      for (double& v : own.v) v -= 8;
    }
    Matrices m = product(own, w);
    const Floats back = assist.size ? floats(slice_of(assist, g, groups)) : Floats();
    for (size_t i = 0; i < m.v.size() && !back.empty(); ++i) m.v[i] += back[i % back.size()];
    const Floats soft = smooth.size ? floats(slice_of(smooth, g, groups)) : Floats();
    for (int64_t i = 0; i < m.rows * h; ++i) {
      const int64_t r = i / h, j = i % h, row = bounds[g] + r;
      const double a = m.v[r * 2 * h + j] * tokens[row], b = m.v[r * 2 * h + h + j] * tokens[row];
      const double up = soft.empty() ? 1 : soft[soft.size() == 1 ? 0 : j];
      rows[row * h + j] = static_cast<float>(activated(a, Activation::Silu) * b * up);
    }
  }
  const QuantizedRows q = quantize_rows(rows, h, 127);
  write_quantized(c.maybe(at.out), q.values);
  write(c.tensor(at.out_scale), q.scales);
  return ACL_SUCCESS;
}

// (x, w, scale, bias, [offset, antiquantScale, antiquantOffset,] pertokenScale, groupList,
// sharedInput, logit, rowIndex, dtype, sharedInputWeight, sharedInputOffset, transposeX,
// transposeW, groupListType, [tuning,] out): out[rowIndex] += logit x w, with shared rows added.
template <int Tokens, int Out>
aclnnStatus check_finalize(Call& c) {
  using P = params::GroupedMatmulFinalizeRoutingV2;

  ACL_RETURN_IF_FAILED(
      expect_given(c, {P::x1, P::x2, P::scaleOptional, Tokens, Tokens + 1, Tokens + 4, Out}));
  const int64_t rows = rows_of(c.tensor(P::x1));
  for (int i : {Tokens, Tokens + 3, Tokens + 4}) ACL_RETURN_IF_FAILED(expect_numel(c, i, rows));
  if (Tokens > 4 &&
      (given(c.maybe(P::offsetOptional)) || given(c.maybe(P::antiquantScaleOptional)) ||
       given(c.maybe(P::antiquantOffsetOptional)))) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "offset, antiquantScale and antiquantOffset are not supported by "
                  "the simulator.");
  }
  if (c.tensor(P::x1).rank != 2 || c.flag(Tokens + 8))
    return refuse_group(c, "x needs two dims, not transposed");
  return !c.null(Tokens + 2) && width_of(c.tensor(Tokens + 2)) != width_of(c.tensor(Out))
             ? expect_same_shape(c, Tokens + 2, Out)
             : ACLNN_SUCCESS;
}
template <int Tokens, int Out>
aclError run_finalize(Call& c) {
  using P = params::GroupedMatmulFinalizeRoutingV2;

  const Tensor& out = c.tensor(Out);
  const Matrices x = matrices_of(c.tensor(P::x1), false, true);
  const Ints bounds = bounds_of(integers(c.tensor(Tokens + 1)), c.integer(Tokens + 10)),
             index = integers(c.tensor(Tokens + 4));
  const Floats tokens = floats(c.tensor(Tokens)), logit = floats(c.maybe(Tokens + 3)),
               shared = floats(c.maybe(Tokens + 2));
  const auto groups = static_cast<int64_t>(bounds.size()) - 1;
  const int64_t n = width_of(out);
  if (!within(bounds, x.rows)) return c.trap(507015, "groupList ends past the rows of x.");
  Doubles y(static_cast<size_t>(out.numel()));
  const int64_t first = c.integer(Tokens + 7) * n;
  for (size_t i = 0; i < shared.size() && first + i < y.size(); ++i)
    y[first + i] = c.number(Tokens + 6) * shared[i];
  Tensor weight = c.tensor(P::x2);
  if (c.flag(Tokens + 9)) {
    std::swap(weight.dims[weight.rank - 1], weight.dims[weight.rank - 2]);
    std::swap(weight.strides[weight.rank - 1], weight.strides[weight.rank - 2]);
  }
  Tensor* one = &weight;
  const Weights weights{{&one, 1}};
  for (int64_t g = 0; g < groups; ++g) {
    Matrices w = weights.get(g, x.cols, n);
    const Tensor scale = over_columns(slice_of(members(c, P::scaleOptional), g, groups));
    const Floats words = packed_scales(&scale),
                 bias = given(c.maybe(P::biasOptional))
                            ? floats(slice_of(members(c, P::biasOptional), g, groups))
                            : Floats();
    scale_blocks(w, dense(const_cast<float*>(words.data()), ACL_FLOAT, scale.dims, scale.rank),
                 true);
    const Matrices m = product(part_of(x, bounds[g], bounds[g + 1], false), w);
    for (size_t i = 0; i < m.v.size(); ++i) {
      const int64_t row = bounds[g] + static_cast<int64_t>(i) / n, j = static_cast<int64_t>(i) % n;
      const double v = (m.v[i] + (bias.empty() ? 0 : bias[j])) * tokens[row];
      if (index[row] >= 0 && index[row] < rows_of(out))
        y[index[row] * n + j] += v * (logit.empty() ? 1 : logit[row]);
    }
  }
  write(out, y);
  return ACL_SUCCESS;
}

template <int Out>
aclnnStatus check_ffn(Call& c) {
  using P = params::FFNV3;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::x, P::weight1, P::weight2, Out}));
  static const char* const known[] = {"gelu",  "fastgelu", "relu", "silu",
                                      "geglu", "swiglu",   "reglu"};
  const char* text = c.text(P::activation) ? c.text(P::activation) : "";
  const bool fits = std::any_of(std::begin(known), std::end(known),
                                [&](const char* k) { return !std::strcmp(k, text); });
  if (!fits) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "activation \"%s\" should be gelu, fastgelu, relu, silu, geglu, "
                  "swiglu or reglu.",
                  text);
  }
  const Matrices w1 = matrices_like(c.tensor(P::weight1), false, true),
                 w2 = matrices_like(c.tensor(P::weight2), false, true);
  const int64_t half = text[0] != 'f' && std::strstr(text, "glu") ? 2 : 1;
  if (w1.rows != width_of(c.tensor(P::x)) || w1.cols != half * w2.rows || w1.batch != w2.batch) {
    return refuse_group(c, "x, weight1 and weight2 are not of matching sizes");
  }
  const bool list = c.args[P::expertTokensOptional].kind == ArgKind::IntArray;
  const int64_t told = list ? c.ints(params::FFN::expertTokens).size
                       : given(c.maybe(P::expertTokensOptional))
                           ? c.tensor(P::expertTokensOptional).numel()
                           : 0,
                experts = std::max<int64_t>(1, told);
  if (experts != w1.batch)
    return refuse_group(c, "expertTokens does not count the tokens of each expert that weights are of");
  for (int which : {0, 1}) {
    const int64_t cols = which ? w2.cols : w1.cols;
    for (int arg : {P::bias1Optional + which, P::deqScale1Optional + which,
                    P::antiquantScale1Optional + which, P::antiquantOffset1Optional + which}) {
      if (!given(c.maybe(arg))) continue;
      // Antiquantisation may go by groups of rows; other scales may be one for an expert.
      const int64_t n = c.tensor(arg).numel();
      const bool one = arg == 8 + which && n == experts;
      if (!one && (arg < 10 ? n != experts * cols : n % (experts * cols) != 0))
        return refuse_group(c, "a bias or a scale has no element for each expert and column");
    }
  }
  for (int arg : {P::scaleOptional, P::offsetOptional}) {
    const int64_t n = given(c.maybe(arg)) ? c.tensor(arg).numel() : 1;
    if (n != 1 && n != experts && n != w2.rows && n != experts * w2.rows)
      return refuse_group(c, "scale and offset have no element for each expert or column");
  }
  return expect_numel(c, Out, rows_of(c.tensor(P::x)) * w2.cols);
}
Doubles gated(const Matrices& m, const char* text) {
  const bool pairs = std::strstr(text, "glu") != nullptr;
  const Activation kind =
      !std::strcmp(text, "fastgelu")                               ? Activation::FastGelu
      : !std::strcmp(text, "silu") || !std::strcmp(text, "swiglu") ? Activation::Silu
      : !std::strcmp(text, "relu") || !std::strcmp(text, "reglu")  ? Activation::Relu
                                                                   : Activation::GeluTanh;
  const int64_t h = pairs ? m.cols / 2 : m.cols;
  Doubles y(static_cast<size_t>(m.rows * h));
  for (int64_t i = 0; i < m.rows * h; ++i) {
    const double* row = m.v.data() + i / h * m.cols + i % h;
    y[i] = activated(row[0], kind) * (pairs ? row[h] : 1);  // of a pair the first is activated
  }
  return y;
}
// One layer: (x w + bias) deqScale, with weights dequantised where parameters say how.
Matrices layer(const Call& c, int which, const Matrices& x, int64_t g, int64_t groups) {
  using P = params::FFN;

  const Weights weights{members(c, P::weight1 + which)};
  Matrices w = weights.get(g, x.cols, kNoLimit);
  if (given(c.maybe(P::antiquantOffset1 + which)))
    shift_blocks(w, over_columns(slice_of(members(c, P::antiquantOffset1 + which), g, groups)), 1);
  if (given(c.maybe(P::antiquantScale1 + which)))
    scale_blocks(w, over_columns(slice_of(members(c, P::antiquantScale1 + which), g, groups)),
                 true);
  Matrices m = product(x, w);
  const Tensor* bias = c.maybe(P::bias1 + which);
  const Tensor* deq = c.maybe(P::deqScale1 + which);
  const Floats add =
      given(bias) ? floats(slice_of(members(c, P::bias1 + which), g, groups)) : Floats();
  Floats factor;
  if (given(deq)) {
    const Tensor s = slice_of(members(c, P::deqScale1 + which), g, groups);
    factor = packed_scales(&s);
  }
  for (size_t i = 0; i < m.v.size(); ++i) {
    const size_t j = i % static_cast<size_t>(m.cols);
    m.v[i] = (m.v[i] + (add.empty() ? 0 : add[j])) *
             (factor.empty() ? 1 : factor[factor.size() == 1 ? 0 : j]);
  }
  return m;
}
Matrices requantised(const Call& c, Matrices m, int64_t g, int64_t groups) {
  using P = params::FFN;

  const Floats scale = floats(slice_of(members(c, P::scale), g, groups));
  const Floats offset =
      given(c.maybe(P::offset)) ? floats(slice_of(members(c, P::offset), g, groups)) : Floats();
  for (size_t i = 0; i < m.v.size(); ++i) {
    const size_t j = i % static_cast<size_t>(m.cols);
    const double v = m.v[i] * scale[scale.size() == 1 ? 0 : j] +
                     (offset.empty() ? 0 : offset[offset.size() == 1 ? 0 : j]);
    m.v[i] = std::min(std::max(std::nearbyint(v), -128.0), 127.0);
  }
  return m;
}
template <int Out>
aclError run_ffn(Call& c) {
  using P = params::FFNV2;

  Matrices x = matrices_of(c.tensor(P::x), false, true);
  x.rows *= x.batch, x.batch = 1;
  Ints list = group_list(c, P::expertTokens);
  const bool ends = Out == 17 && c.flag(P::tokensIndexFlag);
  if (list.empty()) list = {x.rows};
  const Ints bounds = bounds_of(list, ends ? 0 : 1);
  const auto groups = static_cast<int64_t>(bounds.size()) - 1;
  if (!within(bounds, x.rows)) return c.trap(507015, "expertTokens end past the rows of x.");
  Doubles y;
  for (int64_t g = 0; g < groups; ++g) {
    const Matrices first = layer(c, 0, part_of(x, bounds[g], bounds[g + 1], false), g, groups);
    Matrices between = {gated(first, c.text(P::activation)), 1, first.rows, 0};
    between.cols = first.rows ? static_cast<int64_t>(between.v.size()) / first.rows
                              : matrices_like(c.tensor(P::weight2), false, true).rows;
    if (given(c.maybe(P::scale))) between = requantised(c, between, g, groups);
    const Matrices last = layer(c, 1, between, g, groups);
    y.insert(y.end(), last.v.begin(), last.v.end());
  }
  y.resize(static_cast<size_t>(c.tensor(Out).numel()));
  write(c.tensor(Out), y);
  return ACL_SUCCESS;
}

// (y, x, weightB [w, l, h2, r], indices, weightA [w, l, r, h1], layerIdx, scale, yOffset,
// ySliceSize, out): out = y with (x A' B') scale added to a slice of each row's columns.
aclnnStatus check_lora(Call& c) {
  using P = params::AddLora;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::y, P::x, P::weightB, P::indices, P::out}));
  const Tensor &b = c.tensor(P::weightB), &y = c.tensor(P::y);
  const int64_t in = width_of(c.tensor(P::x)), rank = c.null(P::weightAOptional) ? in
                                                      : c.tensor(P::weightAOptional).rank == 4
                                                          ? c.tensor(P::weightAOptional).dims[2]
                                                          : -1;
  const bool fits =
      b.rank == 4 && y.rank == 2 && b.dims[3] == rank && c.integer(P::layerIdx) >= 0 &&
      c.integer(P::layerIdx) < b.dims[1] && c.integer(P::yOffset) >= 0 &&
      c.integer(P::yOffset) + c.integer(P::ySliceSize) <= y.dims[1] &&
      b.dims[2] == c.integer(P::ySliceSize) && rows_of(c.tensor(P::x)) == y.dims[0] &&
      c.integer(P::ySliceSize) >= 0 &&
      (c.null(P::weightAOptional) || (c.tensor(P::weightAOptional).dims[3] == in &&
                                      c.tensor(P::weightAOptional).dims[0] == b.dims[0] &&
                                      c.tensor(P::weightAOptional).dims[1] == b.dims[1]));
  if (!fits)
    return refuse_group(c, "y, x, weightA, weightB and the slice are not of matching sizes");
  ACL_RETURN_IF_FAILED(expect_numel(c, P::indices, y.dims[0]));
  return expect_same_shape(c, P::out, P::y);
}
void run_lora(Call& c) {
  using P = params::AddLora;

  Doubles y = doubles(c.tensor(P::y));
  const Doubles x = doubles(c.tensor(P::x)), b = doubles(c.tensor(P::weightB)),
                a = doubles(c.maybe(P::weightAOptional));
  const Ints indices = integers(c.tensor(P::indices));
  const Tensor& tb = c.tensor(P::weightB);
  const int64_t h1 = width_of(c.tensor(P::x)), r = tb.dims[3], h2 = tb.dims[2],
                wide = width_of(c.tensor(P::y));
  for (size_t t = 0; t < indices.size(); ++t) {
    if (indices[t] < 0 || indices[t] >= tb.dims[0]) continue;
    const int64_t at = indices[t] * tb.dims[1] + c.integer(P::layerIdx);
    Doubles low(static_cast<size_t>(r));
    for (int64_t i = 0; i < r; ++i) {
      if (a.empty()) low[i] = x[t * h1 + i];
      for (int64_t k = 0; k < h1 && !a.empty(); ++k)
        low[i] += x[t * h1 + k] * a[(at * r + i) * h1 + k];
    }
    for (int64_t j = 0; j < h2; ++j) {
      double sum = 0;
      for (int64_t i = 0; i < r; ++i) sum += low[i] * b[(at * h2 + j) * r + i];
      y[t * wide + c.integer(P::yOffset) + j] += c.number(P::scale) * sum;
    }
  }
  write(c.tensor(P::out), y);
}

}  // namespace
}  // namespace aclsim

ACLNN_OWN(aclnnGroupedMatmul, check_grouped<kFirst>, run_grouped<kFirst>)
ACLNN_OWN(aclnnGroupedMatmulV2, check_grouped<kV2>, run_grouped<kV2>)
ACLNN_OWN(aclnnGroupedMatmulV3, check_grouped<kV2>, run_grouped<kV2>)
ACLNN_OWN(aclnnGroupedMatmulV4, check_grouped<kV4>, run_grouped<kV4>)
ACLNN_OWN(aclnnGroupedMatmulV5, check_grouped<kV5>, run_grouped<kV5>)
ACLNN_OWN(aclnnGroupedMatmulWeightNz, check_grouped<kInner>, run_grouped<kInner>)
ACLNN_OWN(aclnnGroupedMatmulAdd, check_add<false>, run_add<false>)
ACLNN_OWN(aclnnGroupedMatmulAddV2, check_add<true>, run_add<true>)
ACLNN_OWN(aclnnGroupedMatmulSwigluQuant, check_swiglu<kSwiglu>, run_swiglu<kSwiglu>)
ACLNN_OWN(aclnnGroupedMatmulSwigluQuantWeightNZ, check_swiglu<kSwiglu>, run_swiglu<kSwiglu>)
ACLNN_OWN(aclnnGroupedMatmulSwigluQuantV2, check_swiglu<kSwigluV2>, run_swiglu<kSwigluV2>)
ACLNN_OWN(aclnnGroupedMatmulSwigluQuantWeightNzV2, check_swiglu<kSwigluV2>,
              run_swiglu<kSwigluV2>)
ACLNN_OWN(aclnnGroupedMatmulFinalizeRouting,
              (check_finalize<params::GroupedMatmulFinalizeRouting::pertokenScaleOptional,
                              params::GroupedMatmulFinalizeRouting::y>),
              (run_finalize<params::GroupedMatmulFinalizeRouting::pertokenScaleOptional,
                            params::GroupedMatmulFinalizeRouting::y>))
ACLNN_OWN(aclnnGroupedMatmulFinalizeRoutingWeightNz,
              (check_finalize<params::GroupedMatmulFinalizeRoutingWeightNz::pertokenScaleOptional,
                              params::GroupedMatmulFinalizeRoutingWeightNz::out>),
              (run_finalize<params::GroupedMatmulFinalizeRoutingWeightNz::pertokenScaleOptional,
                            params::GroupedMatmulFinalizeRoutingWeightNz::out>))
ACLNN_OWN(aclnnGroupedMatmulFinalizeRoutingV2,
              (check_finalize<params::GroupedMatmulFinalizeRoutingV2::pertokenScaleOptional,
                              params::GroupedMatmulFinalizeRoutingV2::out>),
              (run_finalize<params::GroupedMatmulFinalizeRoutingV2::pertokenScaleOptional,
                            params::GroupedMatmulFinalizeRoutingV2::out>))
ACLNN_OWN(aclnnGroupedMatmulFinalizeRoutingV3,
              (check_finalize<params::GroupedMatmulFinalizeRoutingV3::pertokenScaleOptional,
                              params::GroupedMatmulFinalizeRoutingV3::out>),
              (run_finalize<params::GroupedMatmulFinalizeRoutingV3::pertokenScaleOptional,
                            params::GroupedMatmulFinalizeRoutingV3::out>))
ACLNN_OWN(aclnnGroupedMatmulFinalizeRoutingWeightNzV2,
              (check_finalize<params::GroupedMatmulFinalizeRoutingWeightNzV2::pertokenScaleOptional,
                              params::GroupedMatmulFinalizeRoutingWeightNzV2::out>),
              (run_finalize<params::GroupedMatmulFinalizeRoutingWeightNzV2::pertokenScaleOptional,
                            params::GroupedMatmulFinalizeRoutingWeightNzV2::out>))
ACLNN_OWN(aclnnFFN, check_ffn<params::FFN::y>, run_ffn<params::FFN::y>)
ACLNN_OWN(aclnnFFNV2, check_ffn<params::FFNV2::y>, run_ffn<params::FFNV2::y>)
ACLNN_OWN(aclnnFFNV3, check_ffn<params::FFNV3::y>, run_ffn<params::FFNV3::y>)
ACLNN_OWN(aclnnAddLora, check_lora, run_lora)
