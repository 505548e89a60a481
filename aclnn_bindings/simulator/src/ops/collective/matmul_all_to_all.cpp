// Products whose operands or results go from all ranks to all, evenly and by counts of tokens per
// expert, plain and quantised; quantised sums over ranks. Formulas: the "npu_alltoallv_gmm",
// "npu_gmm_alltoallv", "npu_alltoallv_quant_gmm", "npu_all_to_all_matmul" and "npu_matmul_all_to_all"
// pages of torch_npu and its tests of their quantised forms, and the operator documents of
// aclnnAlltoAllAllGatherBatchMatMul, aclnnBatchMatMulReduceScatterAlltoAll and aclnnQuantAllReduce.
#include "params/collective.h"

#include "loops/group.h"
#include "loops/matrices.h"

namespace aclsim {
namespace {

const Tensor* part(const Call& c, const char* name) { return at_or_null(c, named(c, name)); }
bool set(const Call& c, const char* name) {
  const int at = named(c, name);
  return at != kNone && c.flag(at);
}
int64_t setting(const Call& c, const char* name) {
  const int at = named(c, name);
  return at == kNone ? 0 : c.integer(at);
}
aclnnStatus expect_none(const Call& c, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (part(c, name))
      return c.fail(ACLNN_ERR_PARAM_INVALID, "%s is not supported by the simulator.", name);
  }
  return ACLNN_SUCCESS;
}
bool by_powers(const Tensor* scale) { return scale && scale->dtype == ACL_FLOAT8_E8M0; }

// Scales of an operand of `rows` by `cols`: one; one for each row (`rowwise`) or column; powers of two
// in pairs for 64 elements of the inner dim, as the operand lies in memory.
aclnnStatus expect_scale(const Call& c, const char* name, const Matrices& m, bool transposed,
                         bool rowwise) {
  const Tensor* scale = part(c, name);
  if (!scale) return ACLNN_SUCCESS;
  const int64_t lines = rowwise ? m.rows : m.cols, inner = rowwise ? m.cols : m.rows;
  const int64_t n = scale->numel(), powers = m.batch * lines * ((inner + 63) / 64) * 2;
  const bool paired = scale->rank >= 3 && scale->dims[scale->rank - 1] == 2;
  if (by_powers(scale) ? paired && n == powers : n == 1 || n == m.batch || n == m.batch * lines)
    return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID, "%s %s does not fit an operand of %lld x %lld%s.", name,
                shape_text(*scale), static_cast<long long>(m.rows), static_cast<long long>(m.cols),
                transposed ? ", transposed" : "");
}
Matrices scaled(const Tensor& t, const Tensor* scale, bool transposed, bool rowwise) {
  if (by_powers(scale)) {
    Matrices m = matrices_of(t, false, false);
    scale_blocks(m, *scale, !rowwise && !transposed);
    return transposed ? transposed_of(m) : m;
  }
  Matrices m = matrices_of(t, transposed, false);
  const Floats s = floats(scale);
  const auto n = static_cast<int64_t>(s.size()), each = m.rows * m.cols;
  for (int64_t i = 0; i < m.batch * each && n; ++i) {
    const int64_t b = i / each, line = rowwise ? i % each / m.cols : i % m.cols,
                  lines = rowwise ? m.rows : m.cols;
    m.v[i] *= s[n == 1 ? 0 : n == m.batch && m.batch > 1 ? b : (b * lines + line) % n];
  }
  return m;
}
void add_bias(Matrices& m, const Tensor* bias) {
  const Floats add = floats(bias);
  for (size_t i = 0; i < m.v.size() && !add.empty(); ++i) m.v[i] += add[i % add.size()];
}

// Rows go to the ranks, whose columns come side by side.
aclError all_to_all_columns(Call& c, const Matrices& x, Matrices& out) {
  const int64_t ranks = c.get<Group>().ranks, h = x.cols, rows = x.rows / ranks;
  Floats mine(x.v.begin(), x.v.end()), parts(mine.size());
  const aclError code = exchange(c, kAllToAll, mine, static_cast<uint32_t>(ranks), parts,
                                 static_cast<uint32_t>(ranks));
  out = {Doubles(parts.size()), 1, rows, ranks * h};
  for (int64_t i = 0; i < ranks * rows * h; ++i)
    out.v[(i / h % rows * ranks + i / h / rows) * h + i % h] = parts[i];
  return code;
}
// Columns go to the ranks, whose rows come one after the other.
aclError all_to_all_rows(Call& c, const Matrices& m, Floats& get) {
  const int64_t ranks = c.get<Group>().ranks, wide = m.cols / ranks;
  Floats give(m.v.size());
  get.resize(give.size());
  for (int64_t i = 0; i < m.rows * m.cols; ++i) {
    const int64_t r = i / m.cols, j = i % m.cols;
    give[(j / wide * m.rows + r) * wide + j % wide] = static_cast<float>(m.v[i]);
  }
  return exchange(c, kAllToAll, give, static_cast<uint32_t>(ranks), get,
                  static_cast<uint32_t>(ranks));
}

// (x1, x2, bias, ..., output, allToAllOut): rows split among the ranks, then times x2. Quantised
// forms round the rows of x1 by their peaks where x1 is not small already, and scale after the bias.
template <bool Quantised>
aclnnStatus check_columns(Call& c) {
  using P = params::AlltoAllMatmul;

  const int out = named(c, "output");
  ACL_RETURN_IF_FAILED(expect_given(c, {P::x1, P::x2, out}));
  ACL_RETURN_IF_FAILED(expect_none(c, {"commScale", "x1Offset", "x2Offset"}));
  ACL_RETURN_IF_FAILED(find_group(c, named(c, "group"), kNone));
  const int64_t ranks = c.get<Group>().ranks;
  const Tensor& x = c.tensor(P::x1);
  const bool turned = set(c, "transposeX2");
  const Matrices w = matrices_like(c.tensor(P::x2), turned, false);
  if (x.rank != 2 || set(c, "transposeX1") || x.dims[0] % ranks != 0 ||
      w.rows != x.dims[1] * ranks || w.batch != 1) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "x1 %s and x2 %s do not fit %lld ranks, or x1 is transposed.", shape_text(x),
                  shape_text(c.tensor(P::x2)), static_cast<long long>(ranks));
  }
  if (Quantised) {
    const auto to = static_cast<aclDataType>(setting(c, "x1QuantDtype"));
    const bool small = is_narrow_float(x.dtype) || x.dtype == ACL_INT8;
    if (!small && largest(to) == 0)
      return c.fail(ACLNN_ERR_PARAM_INVALID, "x1QuantDtype %d is no dtype to quantise to.", to);
    if (small && part(c, "x1Scale") && part(c, "x1Scale")->numel() != 1)
      return c.fail(ACLNN_ERR_PARAM_INVALID, "x1Scale of a quantised x1 should have one element.");
    if (!small) ACL_RETURN_IF_FAILED(expect_numel(c, named(c, "x1Scale"), w.rows));
    ACL_RETURN_IF_FAILED(expect_given(c, {named(c, "x2Scale")}));
    ACL_RETURN_IF_FAILED(expect_scale(c, "x2Scale", w, turned, false));
  }
  if (part(c, "bias")) ACL_RETURN_IF_FAILED(expect_numel(c, named(c, "bias"), w.cols));
  if (part(c, "alltoAllOut"))
    ACL_RETURN_IF_FAILED(expect_numel(c, named(c, "alltoAllOut"), x.numel()));
  return expect_numel(c, out, x.dims[0] / ranks * w.cols);
}
// Rounds rows by their peaks, times `smooth`; the scales of rows.
Floats round_rows(Matrices& m, aclDataType to, const Floats& smooth) {
  Floats x(m.v.begin(), m.v.end());
  for (size_t i = 0; i < x.size() && !smooth.empty(); ++i) x[i] *= smooth[i % smooth.size()];
  const QuantizedRows q = quantize_rows(x, m.cols, largest(to));
  Floats small = q.values;
  if (is_narrow_float(to)) {
    std::vector<uint8_t> codes(small.size());
    for (size_t i = 0; i < small.size(); ++i) {
      store_narrow(small[i], codes.data(), to, static_cast<int64_t>(i));
      small[i] = load_narrow(codes.data(), to, static_cast<int64_t>(i));
    }
  } else {
    for (float& v : small) v = rounded(v, Rounding::Even);
  }
  m.v.assign(small.begin(), small.end());
  return q.scales;
}
template <bool Quantised>
aclError run_columns(Call& c) {
  using P = params::AlltoAllMatmul;

  Matrices a;
  const aclError code = all_to_all_columns(c, matrices_of(c.tensor(P::x1), false, false), a);
  if (code != ACL_SUCCESS) return code;
  write(part(c, "alltoAllOut"), a.v);
  const bool turned = set(c, "transposeX2");
  const Tensor *scale = Quantised ? part(c, "x2Scale") : nullptr, *first = part(c, "x1Scale");
  Floats rows;
  if (Quantised && !is_narrow_float(c.tensor(P::x1).dtype) && c.tensor(P::x1).dtype != ACL_INT8) {
    rows = round_rows(a, static_cast<aclDataType>(setting(c, "x1QuantDtype")), floats(first));
    first = nullptr;
  }
  const bool powers = by_powers(scale);
  Matrices m = product(a, scaled(c.tensor(P::x2), powers ? scale : nullptr, turned, false));
  add_bias(m, part(c, "bias"));
  const Floats wide = powers ? Floats() : floats(scale), one = Quantised ? floats(first) : Floats();
  for (size_t i = 0; i < m.v.size(); ++i) {
    const size_t r = i / static_cast<size_t>(m.cols), j = i % static_cast<size_t>(m.cols);
    m.v[i] *= (rows.empty() ? 1.0 : rows[r]) * (wide.empty() ? 1.0 : wide[j % wide.size()]) *
              (one.empty() ? 1.0 : one[0]);
  }
  write(c.tensor(named(c, "output")), m.v);
  return ACL_SUCCESS;
}

// (x1, x2, bias, ..., output): the product's columns go to the ranks.
template <bool Quantised>
aclnnStatus check_rows(Call& c) {
  using P = params::MatmulAlltoAll;

  const int out = named(c, "output");
  ACL_RETURN_IF_FAILED(expect_given(c, {P::x1, P::x2, out}));
  ACL_RETURN_IF_FAILED(expect_none(c, {"commScale", "x1Offset", "x2Offset"}));
  ACL_RETURN_IF_FAILED(find_group(c, named(c, "group"), kNone));
  const int64_t ranks = c.get<Group>().ranks;
  const Tensor& x = c.tensor(P::x1);
  const bool turned = set(c, "transposeX2");
  const Matrices a = matrices_like(x, false, false),
                 w = matrices_like(c.tensor(P::x2), turned, false);
  if (x.rank != 2 || set(c, "transposeX1") || w.rows != a.cols || w.batch != 1 ||
      w.cols % ranks != 0) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "x1 %s and x2 %s do not fit %lld ranks, or x1 is transposed.", shape_text(x),
                  shape_text(c.tensor(P::x2)), static_cast<long long>(ranks));
  }
  if (Quantised) {
    ACL_RETURN_IF_FAILED(expect_given(c, {named(c, "x1Scale"), named(c, "x2Scale")}));
    ACL_RETURN_IF_FAILED(expect_scale(c, "x1Scale", a, false, true));
    ACL_RETURN_IF_FAILED(expect_scale(c, "x2Scale", w, turned, false));
  }
  if (part(c, "bias")) ACL_RETURN_IF_FAILED(expect_numel(c, named(c, "bias"), w.cols));
  return expect_numel(c, out, a.rows * w.cols);
}
template <bool Quantised>
aclError run_rows(Call& c) {
  using P = params::MatmulAlltoAll;

  const Tensor *s1 = Quantised ? part(c, "x1Scale") : nullptr,
               *s2 = Quantised ? part(c, "x2Scale") : nullptr, *bias = part(c, "bias");
  const bool powers = by_powers(s1);
  Matrices m =
      product(scaled(c.tensor(P::x1), powers ? s1 : nullptr, false, true),
              scaled(c.tensor(P::x2), powers ? s2 : nullptr, set(c, "transposeX2"), false));
  add_bias(m, bias);
  const Floats rows = powers ? Floats() : floats(s1), cols = powers ? Floats() : floats(s2);
  for (size_t i = 0; i < m.v.size(); ++i) {
    const size_t r = i / static_cast<size_t>(m.cols), j = i % static_cast<size_t>(m.cols);
    m.v[i] *= (rows.empty() ? 1.0 : rows[r % rows.size()]) *
              (cols.empty() ? 1.0 : cols[j % cols.size()]);
  }
  Floats get;
  const aclError code = all_to_all_rows(c, m, get);
  if (code == ACL_SUCCESS) write(c.tensor(named(c, "output")), get);
  return code;
}

// (x, scales, group, reduceOp, output): the sum over ranks of x by its scales, or a rank's rows of it.
template <bool Scattered>
aclnnStatus check_sum(Call& c) {
  using P = params::QuantAllReduce;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::x, P::scales, P::output}));
  ACL_RETURN_IF_FAILED(find_group(c, P::group, P::reduceOp));
  const int64_t ranks = Scattered ? c.get<Group>().ranks : 1;
  const Tensor &x = c.tensor(P::x), &scale = c.tensor(P::scales);
  const Matrices m = matrices_like(x, false, false);
  const int64_t rows = m.batch * m.rows, n = scale.numel(),
                blocks = rows ? n / rows / (by_powers(&scale) ? 2 : 1) : 0;
  if (x.rank < 2 || rows % ranks != 0 || rows == 0 || blocks < 1 || n % rows != 0 ||
      (by_powers(&scale) && (scale.rank < 3 || blocks != (m.cols + 63) / 64)) || blocks > m.cols) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "x %s, scales %s and %lld ranks do not fit.",
                  shape_text(x), shape_text(scale), static_cast<long long>(ranks));
  }
  return expect_numel(c, P::output, x.numel() / ranks);
}
template <bool Scattered>
aclError run_sum(Call& c) {
  using P = params::QuantAllReduce;

  Matrices m = matrices_of(c.tensor(P::x), false, false);
  m.rows *= m.batch, m.batch = 1;
  if (by_powers(c.maybe(P::scales))) {
    scale_blocks(m, c.tensor(P::scales), false);
  } else {
    const Floats scale = floats(c.tensor(P::scales));
    const auto blocks = static_cast<int64_t>(scale.size()) / m.rows,
               wide = (m.cols + blocks - 1) / blocks;
    for (int64_t i = 0; i < m.rows * m.cols; ++i)
      m.v[i] *= scale[i / m.cols * blocks + i % m.cols / wide];
  }
  Floats give(m.v.begin(), m.v.end()), get(static_cast<size_t>(c.tensor(P::output).numel()));
  const aclError code = exchange(c, Scattered ? kReduceScatter : kAllReduce, give,
                                 Scattered ? c.get<Group>().ranks : 1, get, 1);
  if (code == ACL_SUCCESS) write(c.tensor(P::output), get);
  return code;
}

// Counts of tokens by rank and expert: counts[rank * experts + expert].
struct Shares {
  Span<const int64_t> give, get;
  int64_t experts, ranks;
  int64_t rows(const Span<const int64_t>& counts) const {
    int64_t sum = 0;
    for (int64_t n : counts) sum += n;
    return sum;
  }
};
Shares shares_of(const Call& c) {
  const int64_t ranks = c.get<Group>().ranks;
  return {c.ints(named(c, "sendCounts")), c.ints(named(c, "recvCounts")),
          c.ints(named(c, "sendCounts")).size / ranks, ranks};
}
aclnnStatus expect_shares(Call& c) {
  ACL_RETURN_IF_FAILED(expect_none(c, {"sendCountsTensor", "recvCountsTensor", "commQuantScale"}));
  ACL_RETURN_IF_FAILED(find_group(c, named(c, "group"), kNone));
  const Shares s = shares_of(c);
  bool fits = s.experts > 0 && s.give.size == s.experts * s.ranks && s.get.size == s.give.size &&
              setting(c, "epWorldSize") == s.ranks;
  for (int64_t n : s.give) fits = fits && n >= 0;
  for (int64_t n : s.get) fits = fits && n >= 0;
  if (fits) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID,
                "sendCounts and recvCounts should have e * epWorldSize counts for the %lld ranks of "
                "the group.",
                static_cast<long long>(s.ranks));
}
// The shared expert: mmX mmWeight, if there is one.
aclnnStatus expect_shared(const Call& c) {
  const Tensor *x = part(c, "mmX"), *w = part(c, "mmWeight");
  if (!x && !w) return ACLNN_SUCCESS;
  const Matrices b = w ? matrices_like(*w, set(c, "transMmWeight"), false) : Matrices();
  if (!x || !w || x->rank != 2 || b.rows != x->dims[1] || b.batch != 1) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "mmX and mmWeight are not two matrices to multiply.");
  }
  const Matrices a = matrices_like(*x, false, false);
  ACL_RETURN_IF_FAILED(expect_scale(c, "mmXScale", a, false, true));
  ACL_RETURN_IF_FAILED(expect_scale(c, "mmWeightScale", b, set(c, "transMmWeight"), false));
  ACL_RETURN_IF_FAILED(expect_given(c, {named(c, "mmY")}));
  return expect_numel(c, named(c, "mmY"), x->dims[0] * b.cols);
}
void multiply_shared(const Call& c) {
  const Tensor *x = part(c, "mmX"), *w = part(c, "mmWeight");
  if (!x) return;
  const Matrices a = scaled(*x, part(c, "mmXScale"), false, true),
                 b = scaled(*w, part(c, "mmWeightScale"), set(c, "transMmWeight"), false);
  write(part(c, "mmY"), product(a, b).v);
}
aclnnStatus expect_experts(const Call& c, int64_t rows, int y, int64_t out_rows) {
  using P = params::AlltoAllvGroupedMatMul;

  const Shares s = shares_of(c);
  const Tensor &x = c.tensor(P::gmmX), &w = c.tensor(P::gmmWeight);
  const bool turned = set(c, "transGmmWeight");
  const Matrices b = matrices_like(w, turned, false), a = matrices_like(x, false, false);
  if (x.rank != 2 || w.rank != 3 || b.batch != s.experts || b.rows != a.cols || a.rows != rows) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "gmmX %s and gmmWeight %s do not fit %lld rows of %lld experts.", shape_text(x),
                  shape_text(w), static_cast<long long>(rows), static_cast<long long>(s.experts));
  }
  ACL_RETURN_IF_FAILED(expect_scale(c, "gmmXScale", a, false, true));
  ACL_RETURN_IF_FAILED(expect_scale(c, "gmmWeightScale", b, turned, false));
  return expect_numel(c, y, out_rows * b.cols);
}
// Rows expert by expert, each times its expert's matrix.
Matrices multiply_experts(const Call& c, const Matrices& x, const Ints& counts) {
  using P = params::AlltoAllvGroupedMatMul;

  const Matrices w =
      scaled(c.tensor(P::gmmWeight), part(c, "gmmWeightScale"), set(c, "transGmmWeight"), false);
  Matrices y = {{}, 1, x.rows, w.cols};
  int64_t row = 0;
  for (size_t e = 0; e < counts.size(); row += counts[e++]) {
    if (counts[e] == 0) continue;
    const auto each = w.rows * w.cols, first = static_cast<int64_t>(e) * each;
    const Matrices a = {Doubles(x.v.begin() + row * x.cols, x.v.begin() + (row + counts[e]) * x.cols),
                        1, counts[e], x.cols},
                   b = {Doubles(w.v.begin() + first, w.v.begin() + first + each), 1, w.rows, w.cols};
    const Matrices m = product(a, b);
    y.v.insert(y.v.end(), m.v.begin(), m.v.end());
  }
  return y;
}
Ints per_expert(const Shares& s, const Span<const int64_t>& counts) {
  Ints sum(static_cast<size_t>(s.experts));
  for (int64_t i = 0; i < counts.size; ++i) sum[i % s.experts] += counts[i];
  return sum;
}

aclnnStatus check_to_experts(Call& c) {
  using P = params::AlltoAllvGroupedMatMul;

  const int y = named(c, "gmmY");
  ACL_RETURN_IF_FAILED(expect_given(c, {P::gmmX, P::gmmWeight, y}));
  ACL_RETURN_IF_FAILED(expect_shares(c));
  const Shares s = shares_of(c);
  ACL_RETURN_IF_FAILED(expect_experts(c, s.rows(s.give), y, s.rows(s.get)));
  if (set(c, "permuteOutFlag")) {
    ACL_RETURN_IF_FAILED(expect_given(c, {named(c, "permuteOut")}));
    ACL_RETURN_IF_FAILED(
        expect_numel(c, named(c, "permuteOut"), s.rows(s.get) * c.tensor(P::gmmX).dims[1]));
  }
  return expect_shared(c);
}
// Rows go to the ranks of their experts, where those of one expert come together.
aclError to_experts(const Call& c, const Matrices& x, Matrices& sorted) {
  const Shares s = shares_of(c);
  std::vector<Floats> give(static_cast<size_t>(s.ranks)), get;
  auto at = x.v.begin();
  for (int64_t i = 0; i < s.give.size; ++i) {
    const auto end = at + s.give[i] * x.cols;
    give[i / s.experts].insert(give[i / s.experts].end(), at, end);
    at = end;
  }
  const aclError code = scatter(c, c.get<Group>(), give, get);
  if (code != ACL_SUCCESS) return code;
  sorted = {{}, 1, s.rows(s.get), x.cols};
  for (int64_t e = 0; e < s.experts; ++e) {
    for (int64_t r = 0; r < s.ranks; ++r) {
      int64_t first = 0, rows = 0;
      for (int64_t k = 0; k < s.experts; ++k) {
        if (k < e) first += s.get[r * s.experts + k];
        rows += s.get[r * s.experts + k];
      }
      if (static_cast<int64_t>(get[r].size()) != rows * x.cols)
        return c.trap(507018, "recvCounts says %lld rows of rank %lld, which sent others",
                      static_cast<long long>(rows), static_cast<long long>(r));
      const auto from = get[r].begin() + first * x.cols;
      sorted.v.insert(sorted.v.end(), from, from + s.get[r * s.experts + e] * x.cols);
    }
  }
  return code;
}
aclError run_to_experts(Call& c) {
  using P = params::AlltoAllvGroupedMatMul;

  const Shares s = shares_of(c);
  Matrices plain = matrices_of(c.tensor(P::gmmX), false, false), sorted;
  aclError code = ACL_SUCCESS;
  if (set(c, "permuteOutFlag")) {
    code = to_experts(c, plain, sorted);
    if (code == ACL_SUCCESS) write(part(c, "permuteOut"), sorted.v);
  }
  if (code == ACL_SUCCESS)
    code = to_experts(c, scaled(c.tensor(P::gmmX), part(c, "gmmXScale"), false, true), sorted);
  if (code != ACL_SUCCESS) return code;
  write(c.tensor(named(c, "gmmY")), multiply_experts(c, sorted, per_expert(s, s.get)).v);
  multiply_shared(c);
  return ACL_SUCCESS;
}

aclnnStatus check_from_experts(Call& c) {
  using P = params::GroupedMatMulAlltoAllv;

  const int y = named(c, "y");
  ACL_RETURN_IF_FAILED(expect_given(c, {P::gmmX, P::gmmWeight, y}));
  ACL_RETURN_IF_FAILED(expect_shares(c));
  const Shares s = shares_of(c);
  ACL_RETURN_IF_FAILED(expect_experts(c, s.rows(s.give), y, s.rows(s.get)));
  return expect_shared(c);
}
// The way back: each expert's rows, by the ranks they came from, go home in the order they had.
aclError run_from_experts(Call& c) {
  using P = params::GroupedMatMulAlltoAllv;

  const Shares s = shares_of(c);
  const Matrices m = multiply_experts(
      c, scaled(c.tensor(P::gmmX), part(c, "gmmXScale"), false, true), per_expert(s, s.give));
  std::vector<Floats> give(static_cast<size_t>(s.ranks)), get;
  auto at = m.v.begin();
  for (int64_t e = 0; e < s.experts; ++e) {
    for (int64_t r = 0; r < s.ranks; ++r) {
      const auto end = at + s.give[r * s.experts + e] * m.cols;
      give[r].insert(give[r].end(), at, end);
      at = end;
    }
  }
  const aclError code = scatter(c, c.get<Group>(), give, get);
  if (code != ACL_SUCCESS) return code;
  Floats all;
  for (const Floats& one : get) all.insert(all.end(), one.begin(), one.end());
  const Tensor& y = c.tensor(named(c, "y"));
  if (static_cast<int64_t>(all.size()) != y.numel())
    return c.trap(507018, "recvCounts does not count what the other ranks sent");
  write(y, all);
  multiply_shared(c);
  return ACL_SUCCESS;
}

// Two groups: the ranks of experts, and those that share each of them.
struct Sharded {
  Group ep, tp;
};
aclnnStatus find_both(Call& c) {
  Sharded& s = c.make<Sharded>();
  ACL_RETURN_IF_FAILED(find_group(c, named(c, "groupEp"), s.ep));
  ACL_RETURN_IF_FAILED(find_group(c, named(c, "groupTp"), s.tp));
  if (setting(c, "epWorldSize") == s.ep.ranks && setting(c, "tpWorldSize") == s.tp.ranks)
    return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID, "epWorldSize and tpWorldSize should be %u and %u.",
                s.ep.ranks, s.tp.ranks);
}
aclnnStatus expect_shard(const Call& c, const char* name) {
  if (setting(c, name) == 0 || setting(c, name) == 1) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID, "%s %lld should be 0 or 1.", name,
                static_cast<long long>(setting(c, name)));
}
aclnnStatus expect_expert_bias(const Call& c, int64_t experts, int64_t cols) {
  return part(c, "bias") ? expect_numel(c, named(c, "bias"), experts * cols) : ACLNN_SUCCESS;
}
void add_expert_bias(Matrices& m, const Tensor* bias) {
  const Floats add = floats(bias);
  for (size_t i = 0; i < m.v.size() && !add.empty(); ++i) {
    const size_t each = static_cast<size_t>(m.rows * m.cols), cols = static_cast<size_t>(m.cols);
    m.v[i] += add[i / each * cols + i % cols];
  }
}

// x [E, C, H / tp] or [E, C / tp, H]: every expert's tokens come to its ranks and are joined there
// along the dim that is split; times weight [E / ep, H, M / tp].
aclnnStatus check_gather_products(Call& c) {
  using P = params::AlltoAllAllGatherBatchMatMul;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::x, P::weight, named(c, "y1")}));
  ACL_RETURN_IF_FAILED(find_both(c));
  ACL_RETURN_IF_FAILED(expect_shard(c, "xShardType"));
  const Sharded& s = c.get<Sharded>();
  const Tensor &x = c.tensor(P::x), &w = c.tensor(P::weight);
  const int64_t act = setting(c, "actType"), joined = setting(c, "xShardType") == 0 ? s.tp.ranks : 1;
  if (x.rank != 3 || w.rank != 3 || x.dims[0] != w.dims[0] * s.ep.ranks ||
      x.dims[2] * joined != w.dims[1] || act < 0 || act > 4) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "x %s, weight %s and actType %lld do not fit the groups.",
                  shape_text(x), shape_text(w), static_cast<long long>(act));
  }
  const int64_t rows = w.dims[0] * s.ep.ranks * x.dims[1] * (s.tp.ranks / joined);
  ACL_RETURN_IF_FAILED(expect_expert_bias(c, w.dims[0], w.dims[2]));
  for (const char* name : {"y1", "y3"}) {
    if (part(c, name)) ACL_RETURN_IF_FAILED(expect_numel(c, named(c, name), rows * w.dims[2]));
  }
  return part(c, "y2") ? expect_numel(c, named(c, "y2"), rows * w.dims[1]) : ACLNN_SUCCESS;
}
aclError run_gather_products(Call& c) {
  using P = params::AlltoAllAllGatherBatchMatMul;

  const Sharded& s = c.get<Sharded>();
  const Tensor &x = c.tensor(P::x), &w = c.tensor(P::weight);
  const int64_t experts = w.dims[0], tokens = x.dims[1], h = x.dims[2], ep = s.ep.ranks,
                tp = s.tp.ranks;
  const bool wide = setting(c, "xShardType") == 0;
  Floats mine = floats(x), parts(mine.size()), all(mine.size() * s.tp.ranks);
  aclError code = exchange(c, s.ep, kAllToAll, mine, s.ep.ranks, parts, s.ep.ranks);
  if (code == ACL_SUCCESS) code = exchange(c, s.tp, kAllGather, parts, 1, all, s.tp.ranks);
  if (code != ACL_SUCCESS) return code;
  Matrices a = {Doubles(all.size()), experts, wide ? ep * tokens : ep * tp * tokens, wide ? tp * h : h};
  size_t i = 0;  // over [tp, ep, expert, token, h]
  for (int64_t t = 0; t < tp; ++t) {
    for (int64_t r = 0; r < ep; ++r) {
      for (int64_t e = 0; e < experts; ++e) {
        for (int64_t k = 0; k < tokens; ++k) {
          const int64_t row = wide ? r * tokens + k : (r * tp + t) * tokens + k;
          for (int64_t j = 0; j < h; ++j)
            a.v[(e * a.rows + row) * a.cols + (wide ? t * h : 0) + j] = all[i++];
        }
      }
    }
  }
  write(part(c, "y2"), a.v);
  Matrices m = product(a, matrices_of(w, false, false));
  add_expert_bias(m, part(c, "bias"));
  write(part(c, "y3"), m.v);
  constexpr Activation kKinds[] = {Activation::None, Activation::GeluTanh, Activation::Silu,
                                   Activation::Relu, Activation::FastGelu};
  for (double& v : m.v) v = activated(v, kKinds[setting(c, "actType")]);
  write(part(c, "y1"), m.v);
  return ACL_SUCCESS;
}
// The way back: x [E / ep, ep C, M / tp] times weight [E / ep, M / tp, H], summed over the ranks that
// share an expert, each of which keeps its part of H or of C.
aclnnStatus check_scatter_products(Call& c) {
  using P = params::BatchMatMulReduceScatterAlltoAll;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::x, P::weight, named(c, "out")}));
  ACL_RETURN_IF_FAILED(find_both(c));
  ACL_RETURN_IF_FAILED(expect_shard(c, "yShardType"));
  const Sharded& s = c.get<Sharded>();
  const Tensor &x = c.tensor(P::x), &w = c.tensor(P::weight);
  const bool wide = setting(c, "yShardType") == 0;
  if (x.rank != 3 || w.rank != 3 || x.dims[0] != w.dims[0] || x.dims[2] != w.dims[1] ||
      x.dims[1] % (s.ep.ranks * (wide ? 1 : s.tp.ranks)) != 0 ||
      w.dims[2] % (wide ? s.tp.ranks : 1) != 0) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "x %s and weight %s do not fit the groups.", shape_text(x),
                  shape_text(w));
  }
  ACL_RETURN_IF_FAILED(expect_expert_bias(c, w.dims[0], w.dims[2] / (wide ? s.tp.ranks : 1)));
  return expect_numel(c, named(c, "out"), x.dims[0] * x.dims[1] * w.dims[2] / s.tp.ranks);
}
aclError run_scatter_products(Call& c) {
  using P = params::BatchMatMulReduceScatterAlltoAll;

  const Sharded& s = c.get<Sharded>();
  const Matrices m = product(matrices_of(c.tensor(P::x), false, false),
                             matrices_of(c.tensor(P::weight), false, false));
  const bool wide = setting(c, "yShardType") == 0;
  const int64_t ep = s.ep.ranks, tp = s.tp.ranks, h = wide ? m.cols / tp : m.cols,
                tokens = m.rows / ep / (wide ? 1 : tp);
  Floats give(m.v.size()), part_of(m.v.size() / s.tp.ranks), out(part_of.size());
  const Floats add = floats(part(c, "bias"));
  size_t i = 0;  // over [tp, ep, expert, token, h]
  for (int64_t t = 0; t < tp; ++t) {
    for (int64_t r = 0; r < ep; ++r) {
      for (int64_t e = 0; e < m.batch; ++e) {
        for (int64_t k = 0; k < tokens; ++k) {
          const int64_t row = wide ? r * tokens + k : (r * tp + t) * tokens + k;
          for (int64_t j = 0; j < h; ++j)
            give[i++] = static_cast<float>(m.at(e)[row * m.cols + (wide ? t * h : 0) + j]);
        }
      }
    }
  }
  aclError code = exchange(c, s.tp, kReduceScatter, give, s.tp.ranks, part_of, 1);
  for (size_t k = 0; k < part_of.size() && !add.empty(); ++k) {
    const size_t each = static_cast<size_t>(tokens * h), e = k / each % static_cast<size_t>(m.batch);
    part_of[k] += add[e * static_cast<size_t>(h) + k % static_cast<size_t>(h)];
  }
  if (code == ACL_SUCCESS) code = exchange(c, s.ep, kAllToAll, part_of, s.ep.ranks, out, s.ep.ranks);
  if (code == ACL_SUCCESS) write(c.tensor(named(c, "out")), out);
  return code;
}

}  // namespace
}  // namespace aclsim

ACLNN_OWN(aclnnAlltoAllMatmul, check_columns<false>, run_columns<false>)
ACLNN_OWN(aclnnAlltoAllMatmulV2, check_columns<false>, run_columns<false>)
ACLNN_OWN(aclnnAlltoAllQuantMatmul, check_columns<true>, run_columns<true>)
ACLNN_OWN(aclnnAlltoAllQuantMatmulV2, check_columns<true>, run_columns<true>)
ACLNN_OWN(aclnnMatmulAlltoAll, check_rows<false>, run_rows<false>)
ACLNN_OWN(aclnnMatmulAlltoAllV2, check_rows<false>, run_rows<false>)
ACLNN_OWN(aclnnQuantMatmulAlltoAll, check_rows<true>, run_rows<true>)
ACLNN_OWN(aclnnQuantMatmulAlltoAllV2, check_rows<true>, run_rows<true>)
ACLNN_OWN(aclnnQuantAllReduce, check_sum<false>, run_sum<false>)
ACLNN_OWN(aclnnQuantReduceScatter, check_sum<true>, run_sum<true>)
ACLNN_OWN(aclnnAlltoAllvGroupedMatMul, check_to_experts, run_to_experts)
ACLNN_OWN(aclnnAlltoAllvGroupedMatMulV2, check_to_experts, run_to_experts)
ACLNN_OWN(aclnnAlltoAllvQuantGroupedMatMul, check_to_experts, run_to_experts)
ACLNN_OWN(aclnnAlltoAllvQuantGroupedMatMulV2, check_to_experts, run_to_experts)
ACLNN_OWN(aclnnGroupedMatMulAlltoAllv, check_from_experts, run_from_experts)
ACLNN_OWN(aclnnGroupedMatMulAlltoAllvV2, check_from_experts, run_from_experts)
ACLNN_OWN(aclnnQuantGroupedMatMulAlltoAllv, check_from_experts, run_from_experts)
ACLNN_OWN(aclnnQuantGroupedMatMulAlltoAllvV2, check_from_experts, run_from_experts)
ACLNN_OWN(aclnnAlltoAllAllGatherBatchMatMul, check_gather_products, run_gather_products)
ACLNN_OWN(aclnnBatchMatMulReduceScatterAlltoAll, check_scatter_products, run_scatter_products)
