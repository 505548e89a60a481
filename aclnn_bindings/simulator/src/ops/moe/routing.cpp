// Rows gathered by expert and brought back: init and finalize routing, permutation of tokens, and
// their gradients. Formulas: the "npu_moe_init_routing", "npu_moe_init_routing_v2" and
// "npu_moe_finalize_routing" pages of torch_npu; of the permutations, Megatron-LM's moe_utils
// (permute, unpermute), as the tests of torch_npu state them.
#include "params/moe.h"
#include "loops/values.h"
#include "loops/versions.h"

#include <limits>
#include <numeric>

namespace aclsim {
namespace {

Ints sorted_order(const Ints& keys) {
  Ints order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return keys[a] < keys[b]; });
  return order;
}
Ints inverse(const Ints& order) {
  Ints at(order.size());
  for (size_t i = 0; i < order.size(); ++i) at[order[i]] = static_cast<int64_t>(i);
  return at;
}
// Where the ops find their arguments; -1 where a version lacks one.
struct Init {
  int experts, scale, offset, active, capacity, expert_num, drop, tokens, tokens_flag, before_flag,
      quant, range, row_type, x_out, row_out, tokens_out, before_out, scale_out;
  bool pairs;  // counts as the tokens argument says: 0 sums, 1 counts, 2 pairs; else 1 sums, 2
               // counts
};
#define AT(name) ACLSIM_AT(P, name)
#define AT_OPTIONAL(name) either(AT(name), AT(name##Optional))
template <typename P>
constexpr Init kInit = {
    P::expertIdx, AT(scaleOptional), AT(offsetOptional), AT_OPTIONAL(activeNum),
    AT_OPTIONAL(expertCapacity), AT_OPTIONAL(expertNum), AT_OPTIONAL(dropPadMode),
    either(AT_OPTIONAL(expertTokensCountOrCumsumFlag), AT(expertTokensNumType)),
    AT(expertTokensNumFlag), AT_OPTIONAL(expertTokensBeforeCapacityFlag), AT(quantMode),
    AT(activeExpertRangeOptional), AT(rowIdxType), P::expandedXOut, P::expandedRowIdxOut,
    AT_OPTIONAL(expertTokensCountOrCumsumOut), AT(expertTokensBeforeCapacityOutOptional),
    either(AT(dynamicQuantScaleOutOptional), AT(expandedScaleOut)),
    AT(activeExpertRangeOptional) != kNone};
#undef AT_OPTIONAL
#undef AT

int64_t number_or(const Call& c, int arg, int64_t otherwise) {
  return arg < 0 ? otherwise : c.integer(arg);
}
const Tensor* tensor_or_null(const Call& c, int arg) { return arg < 0 ? nullptr : c.maybe(arg); }

struct Range {
  int64_t begin, end;
};
Range expert_range(const Call& c, const Init& at) {
  if (at.range >= 0 && c.ints(at.range).size == 2)
    return {c.ints(at.range)[0], c.ints(at.range)[1]};
  const int64_t n = c.integer(at.expert_num);
  return {0, n > 0 ? n : int64_t{1} << 31};
}
template <const Init& at>
aclnnStatus check_init(Call& c) {
  using P = params::MoeInitRoutingV2;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::x, at.experts, at.x_out, at.row_out}));
  const int64_t mode = number_or(c, at.quant, -1);
  if (mode < -1 || mode > 1) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "quantMode %lld is not supported by the simulator, only -1 "
                  "(none), 0 (static) and 1 (dynamic).",
                  static_cast<long long>(mode));
  }
  if (rows_of(c.tensor(P::x)) != rows_of(c.tensor(at.experts)))
    return refuse_fit(c, at.experts, P::x);
  const bool padded = c.integer(at.drop) == 1;
  if (padded && (c.integer(at.capacity) < 1 || c.integer(at.expert_num) < 1)) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "expertCapacity %lld and expertNum %lld should be positive "
                  "where dropPadMode is 1.",
                  static_cast<long long>(c.integer(at.capacity)),
                  static_cast<long long>(c.integer(at.expert_num)));
  }
  const int64_t h = width_of(c.tensor(P::x));
  const Range range = expert_range(c, at);
  if (range.begin < 0 || range.end <= range.begin) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "%s should be a first and a last expert behind it.",
                  c.name(at.range));
  }
  if (mode == 0) {
    ACL_RETURN_IF_FAILED(expect_given(c, {at.scale, at.offset}));
    ACL_RETURN_IF_FAILED(expect_numel(c, at.scale, 1));
    ACL_RETURN_IF_FAILED(expect_numel(c, at.offset, 1));
  } else if (const Tensor* scale = tensor_or_null(c, at.scale); given(scale)) {
    // One of each column, of all experts or of each; not quantised, one of each row.
    const bool each = mode == 1 && scale->numel() == (range.end - range.begin) * h;
    if (!each)
      ACL_RETURN_IF_FAILED(expect_numel(c, at.scale, mode == 1 ? h : rows_of(c.tensor(P::x))));
  }
  if (padded) {
    ACL_RETURN_IF_FAILED(
        expect_numel(c, at.x_out, c.integer(at.expert_num) * c.integer(at.capacity) * h));
  } else if (width_of(c.tensor(at.x_out)) != h && c.tensor(at.x_out).dtype != ACL_INT4) {
    return refuse_fit(c, at.x_out, P::x);
  }
  return expect_numel(c, at.row_out, c.tensor(at.experts).numel());
}
// Which entry of the expert table fills each row of the output, -1 for padding.
struct Plan {
  Ints sources, slots;  // per output row; per entry of the table
  Ints experts;         // per output row
  Ints counts, before;
};
Plan plan_rows(const Call& c, const Init& at) {
  Ints keys = integers(c.tensor(at.experts));
  const Range range = expert_range(c, at);
  const int64_t capacity = c.integer(at.capacity);
  const bool padded = c.integer(at.drop) == 1;
  const int64_t active = c.integer(at.active), all = static_cast<int64_t>(keys.size());
  Plan p;
  p.slots.assign(keys.size(), -1);
  const int64_t kinds =
      std::min(range.end, std::max<int64_t>(c.integer(at.expert_num), range.end)) - range.begin;
  p.counts.assign(static_cast<size_t>(std::min<int64_t>(kinds, 1 << 20)), 0);
  if (padded) {
    p.sources.assign(static_cast<size_t>(c.integer(at.expert_num) * capacity), -1);
    p.experts.assign(p.sources.size(), -1);
  }
  for (int64_t e : sorted_order(keys)) {
    const int64_t expert = keys[e];
    if (expert < range.begin || expert >= range.end) continue;
    const int64_t place = static_cast<size_t>(expert - range.begin) < p.counts.size()
                              ? p.counts[expert - range.begin]++
                              : 0;
    if (padded) {
      if (place >= capacity) continue;
      p.slots[e] = expert * capacity + place;
      p.sources[p.slots[e]] = e, p.experts[p.slots[e]] = expert;
    } else {
      p.slots[e] = static_cast<int64_t>(p.sources.size());
      p.sources.push_back(e), p.experts.push_back(expert);
    }
  }
  if (!padded && active > 0 && active<all&& static_cast<int64_t>(p.sources.size())> active) {
    p.sources.resize(static_cast<size_t>(active));
  }
  return p;
}
// The rows of x that the plan names, scaled as quantisation asks, zero for padding.
Floats gathered(const Call& c, const Init& at, const Plan& p, int64_t first_expert) {
  using P = params::MoeInitRoutingV2;

  const Floats x = floats(c.tensor(P::x)), scale = floats(tensor_or_null(c, at.scale));
  const int64_t h = width_of(c.tensor(P::x)), k = width_of(c.tensor(at.experts));
  const int64_t mode = number_or(c, at.quant, -1);
  const bool per_expert = mode == 1 && static_cast<int64_t>(scale.size()) > h;
  const float offset = mode == 0 ? floats(c.tensor(at.offset))[0] : 0;
  Floats out(p.sources.size() * h);
  for (size_t r = 0; r < p.sources.size(); ++r) {
    if (p.sources[r] < 0) continue;
    const float* row = x.data() + p.sources[r] / k * h;
    for (int64_t i = 0; i < h; ++i) {
      float v = row[i];
      if (mode == 0) v = v * scale[0] + offset;
      if (mode == 1 && !scale.empty())
        v *= scale[per_expert ? (p.experts[r] - first_expert) * h + i : i];
      out[r * h + i] = v;
    }
  }
  return out;
}
void write_head_quantized(const Tensor& t, Floats v) {
  const int64_t packed = t.dtype == ACL_INT32 ? kPacked : 1;
  v.resize(static_cast<size_t>(t.numel() * packed));
  write_quantized(&t, v);
}
void write_counts(const Call& c, const Init& at, Plan& p) {
  const Range range = expert_range(c, at);
  if (at.before_out >= 0 && c.flag(at.before_flag)) write_head(c.maybe(at.before_out), p.counts);
  const int64_t kind = c.integer(at.tokens);
  const bool wanted = at.tokens_flag >= 0 ? c.flag(at.tokens_flag) : kind != 0;
  if (!wanted || c.null(at.tokens_out)) return;
  if (at.pairs && kind == 2) {
    Ints pairs;
    for (size_t e = 0; e < p.counts.size(); ++e) {
      if (p.counts[e])
        pairs.push_back(range.begin + static_cast<int64_t>(e)), pairs.push_back(p.counts[e]);
    }
    write_head(c.maybe(at.tokens_out), pairs);
    return;
  }
  if (kind == (at.pairs ? 0 : 1))
    std::partial_sum(p.counts.begin(), p.counts.end(), p.counts.begin());
  write_head(c.maybe(at.tokens_out), p.counts);
}
template <const Init& at>
void run_init(Call& c) {
  using P = params::MoeInitRoutingV2;

  Plan p = plan_rows(c, at);
  const int64_t mode = number_or(c, at.quant, -1), h = width_of(c.tensor(P::x));
  Floats rows = gathered(c, at, p, expert_range(c, at).begin);
  if (mode == 1) {
    QuantizedRows q = quantize_rows(rows, h, 127);
    write_head_quantized(c.tensor(at.x_out), q.values);
    write_head(tensor_or_null(c, at.scale_out), q.scales);
  } else if (mode == 0) {
    write_head_quantized(c.tensor(at.x_out), rows);
  } else {
    write_head(c.maybe(at.x_out), rows);
    const Floats scale = floats(tensor_or_null(c, at.scale));
    Floats carried;
    for (int64_t e : p.sources) {
      if (!scale.empty()) carried.push_back(e < 0 ? 0 : scale[e / width_of(c.tensor(at.experts))]);
    }
    if (!scale.empty()) write_head(tensor_or_null(c, at.scale_out), carried);
  }
  if (number_or(c, at.row_type, 0) == 1 && c.integer(at.drop) == 0) {
    // Slots of experts in front of this rank's come last.
    Ints keys = integers(c.tensor(at.experts));
    const int64_t first = expert_range(c, at).begin;
    for (int64_t& key : keys) {
      if (key < first) key = std::numeric_limits<int64_t>::max();
    }
    p.slots = sorted_order(keys);
  }
  write(c.tensor(at.row_out), p.slots);
  write_counts(c, at, p);
}

template <bool Quant>
aclnnStatus check_init_first(Call& c) {
  using P = params::MoeInitRouting;

  constexpr int kOut = Quant ? P::expandedExpertIdxOut : P::expandedXOut;
  ACL_RETURN_IF_FAILED(expect_given(c, {P::x, P::rowIdx, P::expertIdx, kOut, kOut + 1, kOut + 2}));
  ACL_RETURN_IF_FAILED(expect_same_shape(c, P::rowIdx, P::expertIdx));
  const int64_t rows = rows_of(c.tensor(P::x)), k = width_of(c.tensor(P::expertIdx));
  for (int i : {kOut + 1, kOut + 2}) ACL_RETURN_IF_FAILED(expect_numel(c, i, rows * k));
  return expect_numel(c, kOut,
                      std::min(rows, c.integer(P::activeNum)) * k * width_of(c.tensor(P::x)));
}
template <bool Quant>
void run_init_first(Call& c) {
  using P = params::MoeInitRoutingQuant;

  constexpr int kOut = Quant ? P::expandedXOut : params::MoeInitRouting::expandedXOut;
  const Floats x = floats(c.tensor(P::x));
  const Ints numbers = integers(c.tensor(P::rowIdx)), experts = integers(c.tensor(P::expertIdx));
  const int64_t h = width_of(c.tensor(P::x)), rows = rows_of(c.tensor(P::x));
  const int64_t kept = h ? c.tensor(kOut).numel() / h : 0;
  Floats out;
  Ints slots(experts.size()), sorted;
  const Ints order = sorted_order(experts);
  for (size_t i = 0; i < order.size(); ++i) {
    const int64_t number = numbers[order[i]];
    slots[number] = static_cast<int64_t>(i);
    sorted.push_back(experts[order[i]]);
    if (static_cast<int64_t>(i) >= kept) continue;
    const float* row = x.data() + number % rows * h;
    out.insert(out.end(), row, row + h);
  }
  if (Quant) {
    for (float& v : out) v = static_cast<float>(v * c.number(P::scale) + c.number(P::offset));
    write_quantized(c.maybe(kOut), out);
  } else {
    write(c.tensor(kOut), out);
  }
  write(c.tensor(kOut + 1), slots);
  write(c.tensor(kOut + 2), sorted);
}

aclnnStatus check_init_grad(Call& c) {
  using P = params::MoeInitRoutingV2Grad;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::gradExpandedX, P::expandedRowIdx, P::out}));
  return expect_numel(c, P::expandedRowIdx, rows_of(c.tensor(P::out)) * c.integer(P::topK));
}
// out[t] = sum of the rows that t's `k` slots name; slots of no row count nothing.
Floats summed_rows(const Tensor& like, const Floats& rows, const Ints& slots, int64_t k,
                   int64_t limit) {
  const int64_t h = width_of(like);
  Floats out(like.numel());
  for (size_t s = 0; k > 0 && s < slots.size(); ++s) {
    if (slots[s] < 0 || slots[s] >= limit) continue;
    for (int64_t i = 0; i < h; ++i) out[s / k * h + i] += rows[slots[s] * h + i];
  }
  return out;
}
void run_init_grad(Call& c) {
  using P = params::MoeInitRoutingV2Grad;

  const Floats dy = floats(c.tensor(P::gradExpandedX));
  const int64_t h = width_of(c.tensor(P::out)), rows = h ? static_cast<int64_t>(dy.size()) / h : 0;
  const bool cut = c.integer(P::dropPadMode) == 0 && c.integer(P::activeNum) > 0;
  write(c.tensor(P::out),
        summed_rows(c.tensor(P::out), dy, integers(c.tensor(P::expandedRowIdx)), c.integer(P::topK),
                    cut ? std::min(rows, c.integer(P::activeNum)) : rows));
}

// Finalize: out = x1 + x2 + sum over k of scales (expandedX[slot] + bias[expert]).
struct Final {
  int x1, x2, bias, scales, slots, experts, mode, out;
  int special = -1;  // x, a1, a2, v, and five on the ranges of experts that no row is kept of
};
constexpr Final kFinalV3 =
                    [] {
                      using P = params::MoeFinalizeRoutingV3;
                      return Final{P::x1Optional,     P::x2Optional,
                                   P::biasOptional,   P::scalesOptional,
                                   P::expandedRowIdx, P::expertIdxOptional,
                                   P::dropPadMode,    P::out,
                                   P::xOptional};
                    }(),
                kFinalV4 = [] {
                  using P = params::MoeFinalizeRoutingV4;
                  return Final{
                      P::x1Optional,     P::x2Optional,        P::biasOptional, P::scalesOptional,
                      P::expandedRowIdx, P::expertIdxOptional, P::dropPadMode,  P::out,
                      P::xOptional};
                }();
constexpr Final kFinal = [] {
  using P = params::MoeFinalizeRouting;
  return Final{P::x1, P::x2Optional, P::bias, P::scales, P::expandedRowIdx, P::expandedExpertIdx,
               -1,    P::out};
}();
constexpr Final kFinalV2 = [] {
  using P = params::MoeFinalizeRoutingV2;
  return Final{P::x1Optional,     P::x2Optional,        P::biasOptional, P::scalesOptional,
               P::expandedRowIdx, P::expertIdxOptional, P::dropPadMode,  P::out};
}();

// The slot of a token's k-th expert: tables lie by columns in modes 0 and 1, by rows in 2 and 3.
int64_t slot_place(int64_t mode, int64_t token, int64_t k, int64_t tokens, int64_t width) {
  return mode < 2 ? k * tokens + token : token * width + k;
}
// Experts of three ranges [first, last) give nothing, the token, or a1 x + a2 v.
struct Special {
  int64_t first, last;
  bool has(int64_t expert) const { return expert >= first && expert < last; }
};
Special special_of(const Call& c, const Final& at, int which) {
  const Span<const int64_t> range = c.ints(at.special + 5 + which);
  return range.size == 2 ? Special{range[0], range[1]} : Special{0, 0};
}
aclnnStatus check_special(const Call& c, const Final& at, int64_t tokens, int64_t h) {
  bool any = false;
  for (int k = 0; k < 3; ++k) {
    const Special r = special_of(c, at, k);
    const bool some = r.last > r.first;
    any = any || some;
    if (c.ints(at.special + 5 + k).size % 2 != 0 || c.ints(at.special + 5 + k).size > 2 || r.first < 0)
      return c.fail(ACLNN_ERR_PARAM_INVALID, "%s should have a first and a last expert.",
                    c.name(at.special + 5 + k));
    if (some && k > 0) ACL_RETURN_IF_FAILED(expect_given(c, {at.special}));
    for (int i = 1; some && k == 2 && i < 4; ++i) {
      ACL_RETURN_IF_FAILED(expect_given(c, {at.special + i}));
      ACL_RETURN_IF_FAILED(expect_numel(c, at.special + i, (r.last - r.first) * h));
    }
  }
  if (any) ACL_RETURN_IF_FAILED(expect_given(c, {at.experts}));
  return expect_numel(c, at.special, tokens * h);
}
template <const Final& at>
aclnnStatus check_final(Call& c) {
  using P = params::MoeFinalizeRouting;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::expandedX, at.slots, at.out}));
  const int64_t tokens = rows_of(c.tensor(at.out)), h = width_of(c.tensor(at.out));
  const int64_t slots = c.tensor(at.slots).numel();
  if (width_of(c.tensor(P::expandedX)) != h || (tokens && slots % tokens))
    return refuse_fit(c, P::expandedX, at.out);
  for (int i : {at.x1, at.x2}) ACL_RETURN_IF_FAILED(expect_numel(c, i, tokens * h));
  ACL_RETURN_IF_FAILED(expect_numel(c, at.scales, slots));
  if (!c.null(at.bias)) {
    ACL_RETURN_IF_FAILED(expect_given(c, {at.experts}));
    if (c.tensor(at.bias).rank < 1 || width_of(c.tensor(at.bias)) != h)
      return c.fail(ACLNN_ERR_PARAM_INVALID, "%s %s should have rows of %lld.", c.name(at.bias),
                    shape_text(c.tensor(at.bias)), static_cast<long long>(h));
  }
  if (at.special >= 0) ACL_RETURN_IF_FAILED(check_special(c, at, tokens, h));
  return expect_numel(c, at.experts, slots);
}
template <const Final& at>
aclError run_final(Call& c) {
  using P = params::MoeFinalizeRouting;

  const Floats rows = floats(c.tensor(P::expandedX)), x1 = floats(c.maybe(at.x1)),
               x2 = floats(c.maybe(at.x2)), bias = floats(c.maybe(at.bias)),
               scales = floats(c.maybe(at.scales));
  const Ints slots = integers(c.tensor(at.slots)), experts = integers(c.maybe(at.experts));
  const int64_t h = width_of(c.tensor(at.out)), tokens = rows_of(c.tensor(at.out));
  const int64_t width = tokens ? static_cast<int64_t>(slots.size()) / tokens : 0;
  const int64_t limit = h ? static_cast<int64_t>(rows.size()) / h : 0;
  Floats out(static_cast<size_t>(tokens * h));
  for (int64_t i = 0; i < tokens * h; ++i)
    out[i] = (x1.empty() ? 0 : x1[i]) + (x2.empty() ? 0 : x2[i]);
  const int64_t biased = h ? static_cast<int64_t>(bias.size()) / h : 0;
  Floats token, a1, a2, v;
  Special ranges[3] = {{0, 0}, {0, 0}, {0, 0}};
  if (at.special >= 0) {
    token = floats(c.maybe(at.special)), a1 = floats(c.maybe(at.special + 1));
    a2 = floats(c.maybe(at.special + 2)), v = floats(c.maybe(at.special + 3));
    for (int k = 0; k < 3; ++k) ranges[k] = special_of(c, at, k);
  }
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t k = 0; k < width; ++k) {
      const int64_t slot = slots[slot_place(number_or(c, at.mode, 0), t, k, tokens, width)];
      const float scale = scales.empty() ? 1 : scales[t * width + k];
      const bool kept = slot >= 0 && slot < limit;
      const int64_t expert = experts.empty() ? -1 : experts[t * width + k];
      if (ranges[0].has(expert)) continue;
      if (ranges[1].has(expert) || ranges[2].has(expert)) {
        const bool copied = ranges[1].has(expert);
        const int64_t row = copied ? 0 : (expert - ranges[2].first) * h;
        for (int64_t i = 0; i < h; ++i) {
          const float x = token[t * h + i];
          out[t * h + i] += scale * (copied ? x : a1[row + i] * x + a2[row + i] * v[row + i]);
        }
        continue;
      }
      if (biased && (expert < 0 || expert >= biased))
        return c.trap(507015, "expert %lld has no row in %s", static_cast<long long>(expert),
                      c.name(at.bias));
      for (int64_t i = 0; i < h; ++i) {
        const float b = bias.empty() ? 0 : bias[expert * h + i];
        out[t * h + i] += scale * ((kept ? rows[slot * h + i] : 0) + b);
      }
    }
  }
  write(c.tensor(at.out), out);
  return ACL_SUCCESS;
}
aclnnStatus check_final_grad(Call& c) {
  using P = params::MoeFinalizeRoutingV2Grad;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::gradY, P::expandedRowIdx, P::gradExpandedXOut}));
  if (!c.null(P::scalesOptional))
    ACL_RETURN_IF_FAILED(expect_given(c, {P::expandedXOptional, P::gradScalesOut}));
  const int64_t slots = c.tensor(P::expandedRowIdx).numel(), h = width_of(c.tensor(P::gradY)),
                tokens = rows_of(c.tensor(P::gradY));
  if (width_of(c.tensor(P::gradExpandedXOut)) != h || (tokens ? slots % tokens : slots) != 0)
    return c.fail(ACLNN_ERR_PARAM_INVALID, "gradY %s and expandedRowIdx %s do not fit %s %s.",
                  shape_text(c.tensor(P::gradY)), shape_text(c.tensor(P::expandedRowIdx)),
                  c.name(P::gradExpandedXOut), shape_text(c.tensor(P::gradExpandedXOut)));
  if (!c.null(P::expandedXOptional))
    ACL_RETURN_IF_FAILED(
        expect_numel(c, P::expandedXOptional, c.tensor(P::gradExpandedXOut).numel()));
  if (!c.null(P::scalesOptional)) ACL_RETURN_IF_FAILED(expect_numel(c, P::gradScalesOut, slots));
  if (!c.null(P::biasOptional)) {
    ACL_RETURN_IF_FAILED(expect_given(c, {P::expertIdxOptional}));
    if (c.tensor(P::biasOptional).rank < 1 || width_of(c.tensor(P::biasOptional)) != h)
      return c.fail(ACLNN_ERR_PARAM_INVALID, "%s %s should have rows of %lld.",
                    c.name(P::biasOptional), shape_text(c.tensor(P::biasOptional)),
                    static_cast<long long>(h));
  }
  ACL_RETURN_IF_FAILED(expect_numel(c, P::expertIdxOptional, slots));
  return expect_numel(c, P::scalesOptional, slots);
}
aclError run_final_grad(Call& c) {
  using P = params::MoeFinalizeRoutingV2Grad;

  const Floats dy = floats(c.tensor(P::gradY)), rows = floats(c.maybe(P::expandedXOptional)),
               scales = floats(c.maybe(P::scalesOptional)), bias = floats(c.maybe(P::biasOptional));
  const Ints slots = integers(c.tensor(P::expandedRowIdx)),
             experts = integers(c.maybe(P::expertIdxOptional));
  const int64_t h = width_of(c.tensor(P::gradY)), tokens = rows_of(c.tensor(P::gradY));
  const int64_t width = tokens ? static_cast<int64_t>(slots.size()) / tokens : 0;
  const int64_t limit = h ? c.tensor(P::gradExpandedXOut).numel() / h : 0;
  Floats dx(static_cast<size_t>(limit * h)), ds(slots.size());
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t k = 0; k < width; ++k) {
      const int64_t slot = slots[slot_place(c.integer(P::dropPadMode) + 2, t, k, tokens, width)];
      const bool kept = slot >= 0 && slot < limit;
      const int64_t expert = bias.empty() ? 0 : experts[t * width + k];
      if (expert < 0 || (!bias.empty() && (expert + 1) * h > static_cast<int64_t>(bias.size())))
        return c.trap(507015, "expert %lld has no row in %s", static_cast<long long>(expert),
                      c.name(P::biasOptional));
      double dot = 0;
      for (int64_t i = 0; i < h; ++i) {
        const float g = dy[t * h + i], b = bias.empty() ? 0 : bias[expert * h + i];
        if (kept) dx[slot * h + i] = g * (scales.empty() ? 1 : scales[t * width + k]);
        if (!rows.empty()) dot += static_cast<double>(g) * ((kept ? rows[slot * h + i] : 0) + b);
      }
      ds[t * width + k] = static_cast<float>(dot);
    }
  }
  write(c.tensor(P::gradExpandedXOut), dx);
  if (!c.null(P::scalesOptional)) write(c.maybe(P::gradScalesOut), ds);
  return ACL_SUCCESS;
}

// Permutation of tokens by expert: slots[j] says which permuted row holds entry j of the table.
// The permuted rows in [begin, end) are there; an expert-parallel rank keeps no others.
struct Permute {
  int probs, range, out_tokens, padded, x_out, slots_out, probs_out;
};
constexpr Permute kPermute = [] {
  using P = params::MoeTokenPermute;
  return Permute{-1, -1, P::numOutTokens, P::paddedMode, P::permuteTokensOut, P::sortedIndicesOut,
                 -1};
}();
constexpr Permute kPermuteEp = [] {
  using P = params::MoeTokenPermuteWithEp;
  return Permute{P::probsOptional,    P::rangeOptional,    P::numOutTokens,   P::paddedMode,
                 P::permuteTokensOut, P::sortedIndicesOut, P::permuteProbsOut};
}();

aclnnStatus refuse_padded(const Call& c, int arg) {
  if (!c.flag(arg)) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID, "%s is true, only false is documented.", c.name(arg));
}
Range kept_rows(const Call& c, int range, int64_t all) {
  if (range < 0 || c.ints(range).size != 2) return {0, all};
  return {std::max<int64_t>(0, c.ints(range)[0]), std::min(all, c.ints(range)[1])};
}
template <const Permute& at>
aclnnStatus check_permute(Call& c) {
  using P = params::MoeTokenPermute;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::tokens, P::indices, at.x_out, at.slots_out}));
  ACL_RETURN_IF_FAILED(refuse_padded(c, at.padded));
  const int64_t all = c.tensor(P::indices).numel(), tokens = rows_of(c.tensor(P::tokens));
  if (tokens == 0 ? all != 0 : all % tokens != 0) return refuse_fit(c, P::indices, P::tokens);
  if (width_of(c.tensor(at.x_out)) != width_of(c.tensor(P::tokens)))
    return refuse_fit(c, at.x_out, P::tokens);
  return expect_numel(c, at.slots_out, all);
}
template <const Permute& at>
void run_permute(Call& c) {
  using P = params::MoeTokenPermute;

  const Floats x = floats(c.tensor(P::tokens)), probs = floats(tensor_or_null(c, at.probs));
  const Ints order = sorted_order(integers(c.tensor(P::indices)));
  const int64_t h = width_of(c.tensor(P::tokens)), all = static_cast<int64_t>(order.size());
  const int64_t tokens = rows_of(c.tensor(P::tokens)), k = tokens ? all / tokens : 1;
  int64_t wanted = c.integer(at.out_tokens);
  wanted = wanted <= 0 ? all + wanted : std::min(wanted, all);
  const Range kept =
      at.range >= 0 && c.ints(at.range).size == 2 ? kept_rows(c, at.range, all) : Range{0, wanted};
  Floats out, kept_probs;
  for (int64_t i = kept.begin; i < kept.end; ++i) {
    const float* row = x.data() + order[i] / k * h;
    out.insert(out.end(), row, row + h);
    if (!probs.empty()) kept_probs.push_back(probs[order[i]]);
  }
  write_head(c.maybe(at.x_out), out);
  write(c.tensor(at.slots_out), inverse(order));
  if (!probs.empty()) write_head(tensor_or_null(c, at.probs_out), kept_probs);
}
// Slots relative to the kept rows; -1 outside of them.
Ints slots_in(const Ints& slots, Range kept) {
  Ints out = slots;
  for (int64_t& s : out) s = s >= kept.begin && s < kept.end ? s - kept.begin : -1;
  return out;
}
template <bool Ep>
aclnnStatus check_permute_grad(Call& c) {
  using P = params::MoeTokenPermuteWithEpGrad;

  constexpr int kOut = Ep ? P::tokenGradOut : params::MoeTokenPermuteGrad::out;
  ACL_RETURN_IF_FAILED(expect_given(c, {P::permutedTokensOutputGrad, P::sortedIndices, kOut}));
  ACL_RETURN_IF_FAILED(refuse_padded(c, kOut - 1));
  if (Ep && !c.null(P::permutedProbsOutputGradOptional))
    ACL_RETURN_IF_FAILED(expect_given(c, {P::probsGradOut}));
  return expect_numel(
      c, P::sortedIndices,
      rows_of(c.tensor(kOut)) * c.integer(Ep ? P::numTopk : params::MoeTokenPermuteGrad::numTopk));
}
template <bool Ep>
void run_permute_grad(Call& c) {
  using P = params::MoeTokenPermuteWithEpGrad;

  constexpr int kOut = Ep ? P::tokenGradOut : params::MoeTokenPermuteGrad::out;
  const Floats dy = floats(c.tensor(P::permutedTokensOutputGrad));
  const int64_t rows = rows_of(c.tensor(P::permutedTokensOutputGrad));
  const Ints all = integers(c.tensor(P::sortedIndices));
  const Ints slots =
      slots_in(all, kept_rows(c, Ep ? P::rangeOptional : -1, static_cast<int64_t>(all.size())));
  write(c.tensor(kOut),
        summed_rows(c.tensor(kOut), dy, slots,
                    c.integer(Ep ? P::numTopk : params::MoeTokenPermuteGrad::numTopk), rows));
  if (!Ep || c.null(P::permutedProbsOutputGradOptional)) return;
  const Floats dp = floats(c.tensor(P::permutedProbsOutputGradOptional));
  Floats out(slots.size());
  for (size_t i = 0; i < slots.size(); ++i)
    out[i] = slots[i] < 0 || slots[i] >= rows ? 0 : dp[slots[i]];
  write_head(c.maybe(P::probsGradOut), out);
}

struct Unpermute {
  int slots, probs, topk, range, padded, out;
};
constexpr Unpermute kUnpermute = [] {
  using P = params::MoeTokenUnpermute;
  return Unpermute{P::sortedIndices, P::probsOptional, -1, -1, P::paddedMode, P::out};
}();
constexpr Unpermute kUnpermuteEp = [] {
  using P = params::MoeTokenUnpermuteWithEp;
  return Unpermute{P::sortedIndices, P::probsOptional, 3, P::rangeOptional, P::paddedMode, P::out};
}();
template <const Unpermute& at>
aclnnStatus check_unpermute(Call& c) {
  using P = params::MoeTokenUnpermute;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::permutedTokens, at.slots, at.out}));
  ACL_RETURN_IF_FAILED(refuse_padded(c, at.padded));
  const int64_t all = c.tensor(at.slots).numel(), tokens = rows_of(c.tensor(at.out));
  if (width_of(c.tensor(P::permutedTokens)) != width_of(c.tensor(at.out)) ||
      (tokens ? all % tokens : all)) {
    return refuse_fit(c, at.out, P::permutedTokens);
  }
  return expect_numel(c, at.probs, all);
}
template <const Unpermute& at>
void run_unpermute(Call& c) {
  using P = params::MoeTokenUnpermute;

  const Floats x = floats(c.tensor(P::permutedTokens)), probs = floats(c.maybe(at.probs));
  const Ints all = integers(c.tensor(at.slots));
  const Ints slots = slots_in(all, kept_rows(c, at.range, static_cast<int64_t>(all.size())));
  const int64_t h = width_of(c.tensor(P::permutedTokens)),
                rows = rows_of(c.tensor(P::permutedTokens)), tokens = rows_of(c.tensor(at.out));
  const int64_t k = tokens ? static_cast<int64_t>(slots.size()) / tokens : 1;
  Floats out(static_cast<size_t>(tokens * h));
  for (size_t s = 0; s < slots.size(); ++s) {
    if (slots[s] < 0 || slots[s] >= rows) continue;
    const float p = probs.empty() ? 1 : probs[s];
    for (int64_t i = 0; i < h; ++i) out[s / k * h + i] += p * x[slots[s] * h + i];
  }
  write(c.tensor(at.out), out);
}
struct UnpermuteGrad {
  int x, dy, slots, probs, padded, range, dx, dp;
};
constexpr UnpermuteGrad kUnpermuteGrad = [] {
  using P = params::MoeTokenUnpermuteGrad;
  return UnpermuteGrad{P::permuteTokensOptional, P::unpermutedTokensGrad, P::sortedIndices,
                       P::probsOptional,         P::paddedMode,           -1,
                       P::permutedTokensGradOut, P::probsGradOut};
}();
constexpr UnpermuteGrad kUnpermuteEpGrad = [] {
  using P = params::MoeTokenUnpermuteWithEpGrad;
  return UnpermuteGrad{P::permutedTokensOptional, P::unpermutedTokensGrad, P::sortedIndices,
                       P::probsOptional,          P::paddedMode,           P::rangeOptional,
                       P::permutedTokensGradOut,  P::probsGradOut};
}();
template <const UnpermuteGrad& at>
aclnnStatus check_unpermute_grad(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {at.dy, at.slots, at.dx}));
  ACL_RETURN_IF_FAILED(refuse_padded(c, at.padded));
  const int64_t all = c.tensor(at.slots).numel(), tokens = rows_of(c.tensor(at.dy));
  if (width_of(c.tensor(at.dx)) != width_of(c.tensor(at.dy)) || (tokens ? all % tokens : all))
    return refuse_fit(c, at.dx, at.dy);
  if (!c.null(at.probs)) {
    ACL_RETURN_IF_FAILED(expect_given(c, {at.x, at.dp}));
    ACL_RETURN_IF_FAILED(expect_numel(c, at.x, c.tensor(at.dx).numel()));
    ACL_RETURN_IF_FAILED(expect_numel(c, at.dp, all));
  }
  return expect_numel(c, at.probs, all);
}
template <const UnpermuteGrad& at>
void run_unpermute_grad(Call& c) {
  const Floats x = floats(c.maybe(at.x)), dy = floats(c.tensor(at.dy)),
               probs = floats(c.maybe(at.probs));
  const Ints all = integers(c.tensor(at.slots));
  const Ints slots = slots_in(all, kept_rows(c, at.range, static_cast<int64_t>(all.size())));
  const int64_t h = width_of(c.tensor(at.dy)), tokens = rows_of(c.tensor(at.dy));
  const int64_t k = tokens ? static_cast<int64_t>(slots.size()) / tokens : 1,
                rows = rows_of(c.tensor(at.dx));
  Floats dx(static_cast<size_t>(rows * h)), dp(slots.size());
  for (size_t s = 0; s < slots.size(); ++s) {
    if (slots[s] < 0 || slots[s] >= rows) continue;
    const float* g = dy.data() + static_cast<int64_t>(s) / k * h;
    double dot = 0;
    for (int64_t i = 0; i < h; ++i) {
      dx[slots[s] * h + i] = g[i] * (probs.empty() ? 1 : probs[s]);
      if (!probs.empty()) dot += static_cast<double>(g[i]) * x[slots[s] * h + i];
    }
    dp[s] = static_cast<float>(dot);
  }
  write(c.tensor(at.dx), dx);
  if (!probs.empty()) write(c.maybe(at.dp), dp);
}

// (gradY, groupIdx, [groupIdxType,] out): sums of groups of rows.
template <int Out>
aclnnStatus check_bias_grad(Call& c) {
  using P = params::GroupedBiasAddGrad;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::gradY, Out}));
  const Tensor& dy = c.tensor(P::gradY);
  const int64_t groups = c.null(P::groupIdxOptional) ? (dy.rank == 3 ? dy.dims[0] : -1)
                                                     : c.tensor(P::groupIdxOptional).numel();
  return expect_numel(c, Out, groups * width_of(dy));
}
template <int Out>
void run_bias_grad(Call& c) {
  using P = params::GroupedBiasAddGradV2;

  const Tensor& t = c.tensor(P::gradY);
  const Floats dy = floats(t);
  const int64_t h = width_of(t), rows = rows_of(t);
  Ints ends = integers(c.maybe(P::groupIdxOptional));
  const bool listed = !c.null(P::groupIdxOptional);
  for (int64_t g = 1; !listed && g <= t.dims[0]; ++g) ends.push_back(g * t.dims[1]);
  const bool sizes = Out == 3 && listed && c.integer(P::groupIdxType) == 1;
  const Ints group = groups_of_rows(ends, rows, sizes);
  Doubles sums(static_cast<size_t>(c.tensor(Out).numel()));
  for (int64_t i = 0; i < rows * h; ++i) {
    if (group[i / h] >= 0) sums[group[i / h] * h + i % h] += dy[i];
  }
  write(c.tensor(Out), sums);
}

}  // namespace
}  // namespace aclsim

ACLNN_OWN(aclnnMoeInitRouting, check_init_first<false>, run_init_first<false>)
ACLNN_OWN(aclnnMoeInitRoutingQuant, check_init_first<true>, run_init_first<true>)
ACLNN_OWN(aclnnMoeInitRoutingV2, check_init<kInit<params::MoeInitRoutingV2>>, run_init<kInit<params::MoeInitRoutingV2>>)
ACLNN_OWN(aclnnMoeInitRoutingQuantV2, check_init<kInit<params::MoeInitRoutingQuantV2>>, run_init<kInit<params::MoeInitRoutingQuantV2>>)
ACLNN_OWN(aclnnMoeInitRoutingV3, check_init<kInit<params::MoeInitRoutingV3>>, run_init<kInit<params::MoeInitRoutingV3>>)
ACLNN_OWN(aclnnMoeInitRoutingV2Grad, check_init_grad, run_init_grad)
ACLNN_OWN(aclnnMoeFinalizeRouting, check_final<kFinal>, run_final<kFinal>)
ACLNN_OWN(aclnnMoeFinalizeRoutingV2, check_final<kFinalV2>, run_final<kFinalV2>)
ACLNN_OWN(aclnnMoeFinalizeRoutingV3, check_final<kFinalV3>, run_final<kFinalV3>)
ACLNN_OWN(aclnnMoeFinalizeRoutingV4, check_final<kFinalV4>, run_final<kFinalV4>)
ACLNN_OWN(aclnnMoeFinalizeRoutingV2Grad, check_final_grad, run_final_grad)
ACLNN_OWN(aclnnMoeTokenPermute, check_permute<kPermute>, run_permute<kPermute>)
ACLNN_OWN(aclnnMoeTokenPermuteGrad, check_permute_grad<false>, run_permute_grad<false>)
ACLNN_OWN(aclnnMoeTokenPermuteWithEp, check_permute<kPermuteEp>, run_permute<kPermuteEp>)
ACLNN_OWN(aclnnMoeTokenPermuteWithEpGrad, check_permute_grad<true>, run_permute_grad<true>)
ACLNN_OWN(aclnnMoeTokenUnpermute, check_unpermute<kUnpermute>, run_unpermute<kUnpermute>)
ACLNN_OWN(aclnnMoeTokenUnpermuteGrad, check_unpermute_grad<kUnpermuteGrad>,
          run_unpermute_grad<kUnpermuteGrad>)
ACLNN_OWN(aclnnMoeTokenUnpermuteWithEp, check_unpermute<kUnpermuteEp>, run_unpermute<kUnpermuteEp>)
ACLNN_OWN(aclnnMoeTokenUnpermuteWithEpGrad, check_unpermute_grad<kUnpermuteEpGrad>,
          run_unpermute_grad<kUnpermuteEpGrad>)
ACLNN_OWN(aclnnGroupedBiasAddGrad, check_bias_grad<params::GroupedBiasAddGrad::out>,
          run_bias_grad<params::GroupedBiasAddGrad::out>)
ACLNN_OWN(aclnnGroupedBiasAddGradV2, check_bias_grad<params::GroupedBiasAddGradV2::out>,
          run_bias_grad<params::GroupedBiasAddGradV2::out>)
