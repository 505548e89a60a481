// Tokens sent to the ranks of their experts and back, over the simulated collectives. Formulas: the
// "npu_moe_distribute_dispatch_v2", "npu_moe_distribute_combine_v2" and
// "npu_moe_distribute_combine_add_rms_norm" pages of torch_npu; the order of received rows and of
// counts: its tests of npu_moe_distribute_dispatch and npu_moe_distribute_combine. Every rank reads
// what all give and takes its part.
#include "params/moe.h"
#include <cmath>

#include "loops/group.h"

namespace aclsim {
namespace {

constexpr int64_t kAssist = 128;  // words about a received row, of which three are used

const Tensor* part(const Call& c, const char* name) { return at_or_null(c, named(c, name)); }
int64_t setting(const Call& c, const char* name) {
  const int at = named(c, name);
  return at == kNone ? 0 : c.integer(at);
}

// Who has which expert: ranks of shared experts come first, the others have `local` experts each.
struct Experts {
  int64_t ranks, shared_ranks, shared, experts, local, zero, copy, constant;
  int64_t on(int64_t rank) const { return rank < shared_ranks ? 1 : local; }
  // The rank of shared expert `s` that serves `rank`.
  int64_t shared_rank(int64_t s, int64_t rank) const {
    const int64_t each = shared_ranks / std::max<int64_t>(1, shared);
    return s * each + rank % each;
  }
  bool serves(int64_t server, int64_t rank) const {
    for (int64_t s = 0; s < shared; ++s) {
      if (shared_rank(s, rank) == server) return true;
    }
    return false;
  }
};
struct Distribution {
  Group ep, tp;
  bool pairs;  // a group of tensor-parallel ranks shares rows
  Experts e;
};

aclnnStatus find_ranks(Call& c) {
  Distribution& d = c.make<Distribution>();
  ACL_RETURN_IF_FAILED(find_group(c, named(c, "groupEp"), d.ep));
  d.pairs = setting(c, "tpWorldSize") > 1;
  if (d.pairs) ACL_RETURN_IF_FAILED(find_group(c, named(c, "groupTp"), d.tp));
  Experts& e = d.e;
  e.ranks = d.ep.ranks, e.experts = setting(c, "moeExpertNum");
  e.shared_ranks = setting(c, "sharedExpertRankNum");
  e.shared = e.shared_ranks ? std::max<int64_t>(1, setting(c, "sharedExpertNum")) : 0;
  e.zero = setting(c, "zeroExpertNum"), e.copy = setting(c, "copyExpertNum");
  e.constant = setting(c, "constExpertNum");
  const int64_t others = e.ranks - e.shared_ranks;
  if (setting(c, "epWorldSize") != e.ranks || setting(c, "epRankId") != d.ep.rank || others < 1 ||
      e.shared_ranks < 0 || e.experts < 1 || e.experts % others != 0 ||
      (e.shared && e.shared_ranks % e.shared != 0)) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "epWorldSize %lld, epRankId %lld, moeExpertNum %lld and sharedExpertRankNum %lld do "
                  "not fit rank %u of the %u of groupEp.",
                  static_cast<long long>(setting(c, "epWorldSize")),
                  static_cast<long long>(setting(c, "epRankId")), static_cast<long long>(e.experts),
                  static_cast<long long>(e.shared_ranks), d.ep.rank, d.ep.ranks);
  }
  e.local = e.experts / others;
  if (d.pairs && (setting(c, "tpWorldSize") != 2 || d.tp.ranks != 2 ||
                  setting(c, "tpRankId") != d.tp.rank)) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "tpWorldSize %lld should be that of groupTp, and at most 2.",
                  static_cast<long long>(setting(c, "tpWorldSize")));
  }
  return ACLNN_SUCCESS;
}
aclnnStatus expect_least(const Call& c, const char* name, int64_t n) {
  const Tensor* t = part(c, name);
  if (!t || t->numel() >= n) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID, "%s should have %lld elements or more, but its shape is %s.",
                c.name(named(c, name)), static_cast<long long>(n), shape_text(*t));
}
// Tokens, their experts, and which of them take part.
aclnnStatus expect_tokens(const Call& c, int64_t rows) {
  const Tensor* ids = part(c, "expertIds");
  if (!ids || ids->rank != 2 || (rows >= 0 && ids->dims[0] != rows)) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "expertIds should have the shape [BS, K].");
  }
  for (const char* name : {"expertScales"}) {
    if (part(c, name)) ACL_RETURN_IF_FAILED(expect_numel(c, named(c, name), ids->numel()));
  }
  const Tensor* mask = part(c, "xActiveMask");
  if (mask && mask->numel() != ids->dims[0] && mask->numel() != ids->numel()) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "xActiveMask %s should be [BS] or [BS, K].",
                  shape_text(*mask));
  }
  return ACLNN_SUCCESS;
}
Ints active(const Call& c, int64_t rows, int64_t top) {
  const Ints mask = integers(part(c, "xActiveMask"));
  Ints all(static_cast<size_t>(rows * top), 1);
  for (int64_t i = 0; i < rows * top && !mask.empty(); ++i) {
    all[i] = mask[static_cast<int64_t>(mask.size()) == rows ? i / top : i];
  }
  return all;
}
// What one rank tells the others of its tokens.
struct Told {
  int64_t rows = 0, top = 0, width = 0;
  Ints ids;  // -1: does not take part
  Floats scales, x;
  bool present(int64_t t) const {
    for (int64_t k = 0; k < top; ++k) {
      if (ids[t * top + k] >= 0) return true;
    }
    return false;
  }
  // Which of this rank's tokens for that expert, in order, a token is; the order of `expandIdx`.
  Ints places() const {
    Ints place(ids.size());
    for (size_t i = 0; i < ids.size(); ++i) {
      for (size_t j = 0; j < i; ++j) place[i] += ids[j] == ids[i];
    }
    return place;
  }
};
Told own_tokens(const Call& c, int64_t width) {
  const Tensor& ids = *part(c, "expertIds");
  Told told;
  told.rows = ids.dims[0], told.top = ids.dims[1], told.width = width;
  told.ids = integers(ids);
  const Ints mask = active(c, told.rows, told.top);
  for (size_t i = 0; i < mask.size(); ++i) told.ids[i] = mask[i] ? told.ids[i] : -1;
  return told;
}
Floats packed(const Told& t) {
  Floats all = {static_cast<float>(t.rows), static_cast<float>(t.top)};
  all.insert(all.end(), t.ids.begin(), t.ids.end());
  all.insert(all.end(), t.scales.begin(), t.scales.end());
  all.insert(all.end(), t.x.begin(), t.x.end());
  return all;
}
Told unpacked(const Floats& all, int64_t width) {
  Told t;
  t.rows = static_cast<int64_t>(all[0]), t.top = static_cast<int64_t>(all[1]), t.width = width;
  const auto ids = all.begin() + 2, scales = ids + t.rows * t.top, x = scales + t.rows * t.top;
  t.ids.assign(ids, scales);
  t.scales.assign(scales, x);
  t.x.assign(x, all.end());
  return t;
}

aclnnStatus check_dispatch(Call& c) {
  const Tensor *x = part(c, "x"), *out = part(c, "expandX");
  if (!x || x->rank != 2 || !out || out->rank != 2 || out->dims[1] != x->dims[1]) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "x should have the shape [BS, H], and expandX [A, H].");
  }
  ACL_RETURN_IF_FAILED(expect_tokens(c, x->dims[0]));
  ACL_RETURN_IF_FAILED(find_ranks(c));
  const Distribution& d = c.get<Distribution>();
  const int64_t mode = setting(c, "quantMode"), local = d.e.on(d.ep.rank);
  const bool quantised = out->dtype == ACL_INT8;
  if (mode < 0 || mode > 2 || quantised != (mode > 0) || (!quantised && out->dtype != x->dtype) ||
      x->dtype == ACL_INT32) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "quantMode %lld from %s to %s is not supported by the simulator: 0 keeps the dtype, 1 "
                  "and 2 give DT_INT8.",
                  static_cast<long long>(mode), dtype_name(x->dtype), dtype_name(out->dtype));
  }
  const Tensor* scales = part(c, "scales");
  const int64_t kinds = d.e.shared + d.e.experts, n = scales ? scales->numel() : 0;
  if ((mode == 1 && !scales) || (scales && n != 1 && n != x->dims[1] && n != kinds &&
                                 n != kinds * x->dims[1])) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "scales should have the shape [%lld, %lld].",
                  static_cast<long long>(kinds), static_cast<long long>(x->dims[1]));
  }
  const int64_t ids = part(c, "expertIds")->numel();
  ACL_RETURN_IF_FAILED(expect_least(c, "expandIdx", ids));
  ACL_RETURN_IF_FAILED(expect_least(c, "assistInfoForCombine", out->dims[0] * kAssist));
  ACL_RETURN_IF_FAILED(expect_least(c, "expertTokenNums", local));
  ACL_RETURN_IF_FAILED(expect_least(c, "epRecvCounts", local * d.e.ranks));
  ACL_RETURN_IF_FAILED(expect_least(c, "tpRecvCounts", d.pairs ? 2 : 0));
  if (mode == 2) ACL_RETURN_IF_FAILED(expect_least(c, "dynamicScales", out->dims[0]));
  return expect_least(c, "expandScales", part(c, "expertScales") ? out->dims[0] : 0);
}

// The rows that a rank received, in the order of its experts, of the ranks they came from, and of
// the tokens there.
struct Received {
  Floats rows, dynamic, weights;
  Ints assist, counts, of_expert;
  int64_t count() const { return static_cast<int64_t>(dynamic.size()); }
};
void take_row(Received& r, const Call& c, const Told& from, int64_t t, int64_t kind,
              const Floats& scales) {
  const int64_t mode = setting(c, "quantMode"), h = from.width;
  const auto n = static_cast<int64_t>(scales.size());
  float peak = 0;
  const auto first = static_cast<int64_t>(r.rows.size());
  for (int64_t i = 0; i < h; ++i) {
    float v = from.x[t * h + i];
    if (n == 1) v *= scales[0];
    else if (n > h) v *= scales[kind * h + i];
    else if (n == h) v *= scales[i];
    else if (n > 0) v *= scales[kind];
    peak = std::max(peak, std::fabs(v));
    r.rows.push_back(v);
  }
  if (mode == 2 && peak > 0) {
    for (int64_t i = first; i < first + h; ++i) r.rows[i] *= 127.0f / peak;
  }
  r.dynamic.push_back(peak / 127.0f);
}
Received received(const Call& c, const Distribution& d, const std::vector<Told>& all) {
  Received r;
  const Experts& e = d.e;
  const int64_t me = d.ep.rank;
  const Floats scales = floats(part(c, "scales"));
  for (int64_t local = 0; local < e.on(me); ++local) {
    const int64_t expert = (me - e.shared_ranks) * e.local + local, before = r.count();
    for (int64_t rank = 0; rank < e.ranks; ++rank) {
      const Told& told = all[rank];
      for (int64_t i = 0; i < told.rows * told.top; ++i) {
        const bool shared = me < e.shared_ranks;
        const int64_t t = i / told.top, k = i % told.top;
        if (shared ? k > 0 || !told.present(t) || !e.serves(me, rank) : told.ids[i] != expert) continue;
        take_row(r, c, told, t, shared ? me / (e.shared_ranks / e.shared) : e.shared + expert, scales);
        r.weights.push_back(shared ? 1 : told.scales[i]);
        r.assist.insert(r.assist.end(), {rank, t, k});
      }
      r.counts.push_back(r.count());
    }
    r.of_expert.push_back(r.count() - before);
  }
  return r;
}
// What `name` holds from its first element on; the rest stays.
template <class C>
void put_first(const Call& c, const char* name, const std::vector<C>& v) {
  const Tensor* t = part(c, name);
  if (!t || v.empty()) return;
  std::vector<C> all = values_of<C>(t);
  std::copy(v.begin(), v.end(), all.begin());
  write(t, all);
}

aclError run_dispatch(Call& c) {
  const Distribution& d = c.get<Distribution>();
  Told mine = own_tokens(c, part(c, "x")->dims[1]);
  mine.x = floats(part(c, "x"));
  mine.scales = floats(part(c, "expertScales"));
  mine.scales.resize(mine.ids.size(), 1);
  std::vector<Floats> texts;
  aclError code = gather(c, d.ep, packed(mine), texts);
  if (code != ACL_SUCCESS) return code;
  std::vector<Told> all;
  for (const Floats& text : texts) all.push_back(unpacked(text, mine.width));
  Received r = received(c, d, all);
  Ints pair = {r.count()};
  if (d.pairs) {
    std::vector<Floats> rows, dynamic;
    code = gather(c, d.tp, r.rows, rows);
    if (code == ACL_SUCCESS) code = gather(c, d.tp, r.dynamic, dynamic);
    if (code != ACL_SUCCESS) return code;
    const Floats &other = rows[1 - d.tp.rank], &peaks = dynamic[1 - d.tp.rank];
    r.rows.insert(r.rows.end(), other.begin(), other.end());
    r.dynamic.insert(r.dynamic.end(), peaks.begin(), peaks.end());
    pair = {static_cast<int64_t>(dynamic[0].size()), static_cast<int64_t>(dynamic[1].size())};
  }
  const Tensor& out = *part(c, "expandX");
  if (r.count() > out.dims[0]) {
    return c.trap(507015, "%lld rows come to this rank, and expandX has %lld",
                  static_cast<long long>(r.count()), static_cast<long long>(out.dims[0]));
  }
  Tensor filled = out;
  filled.dims[0] = r.count();
  write_quantized(&filled, r.rows);
  if (setting(c, "quantMode") == 2) put_first(c, "dynamicScales", r.dynamic);
  if (part(c, "expertScales")) put_first(c, "expandScales", r.weights);
  put_first(c, "expandIdx", mine.places());
  Ints assist(r.assist.size() / 3 * kAssist);
  for (size_t i = 0; i < r.assist.size(); ++i) assist[i / 3 * kAssist + i % 3] = r.assist[i];
  put_first(c, "assistInfoForCombine", assist);
  put_first(c, "epRecvCounts", r.counts);
  put_first(c, "tpRecvCounts", pair);
  if (setting(c, "expertTokenNumsType") == 0) {
    for (size_t i = 1; i < r.of_expert.size(); ++i) r.of_expert[i] += r.of_expert[i - 1];
  }
  put_first(c, "expertTokenNums", r.of_expert);
  return ACL_SUCCESS;
}

// The result is `x` or `xOut`; with a norm it is the sum with the residual.
int result_of(const Call& c) { return named(c, "x"); }

aclnnStatus check_combine(Call& c) {
  using P = params::MoeDistributeCombine;

  const Tensor *x = part(c, "expandX"), *ids = part(c, "expertIds"), *counts = part(c, "epSendCounts");
  ACL_RETURN_IF_FAILED(expect_given(c, {P::expandX, P::expertIds, named(c, "epSendCounts"),
                                        named(c, "expertScales"), result_of(c)}));
  if (!x || x->rank != 2 || !ids || !counts || !part(c, "expertScales")) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "expandX should have the shape [A, H], and there are no "
                                           "empty expertIds, epSendCounts or expertScales.");
  }
  ACL_RETURN_IF_FAILED(expect_tokens(c, -1));
  const int64_t n = ids->dims[0] * x->dims[1];
  ACL_RETURN_IF_FAILED(expect_numel(c, result_of(c), n));
  for (const char* name : {"sharedExpertX", "oriX", "residualX", "y"}) {
    if (part(c, name)) ACL_RETURN_IF_FAILED(expect_numel(c, named(c, name), n));
  }
  if (part(c, "gamma")) ACL_RETURN_IF_FAILED(expect_numel(c, named(c, "gamma"), x->dims[1]));
  if (part(c, "rstd")) ACL_RETURN_IF_FAILED(expect_numel(c, named(c, "rstd"), ids->dims[0]));
  ACL_RETURN_IF_FAILED(find_ranks(c));
  const Distribution& d = c.get<Distribution>();
  ACL_RETURN_IF_FAILED(expect_least(c, "epSendCounts", d.e.on(d.ep.rank) * d.e.ranks));
  if (d.pairs) {
    ACL_RETURN_IF_FAILED(expect_given(c, {named(c, "tpSendCounts")}));
    ACL_RETURN_IF_FAILED(expect_least(c, "tpSendCounts", 2));
  }
  for (const char* name : {"constExpertAlpha1", "constExpertAlpha2", "constExpertV"}) {
    const Tensor* t = part(c, name);
    if (d.e.constant && (!t || (t->numel() != d.e.constant && t->numel() != d.e.constant * x->dims[1])))
      return c.fail(ACLNN_ERR_PARAM_INVALID, "%s should have the shape [constExpertNum, H].", name);
  }
  if ((d.e.copy || d.e.constant) && !part(c, "oriX"))
    return c.fail(ACLNN_ERR_PARAM_NULLPTR, "Parameter oriX is null, which copied experts need.");
  if (setting(c, "commQuantMode") != 0) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "commQuantMode %lld is not supported by the simulator, only 0.",
                  static_cast<long long>(setting(c, "commQuantMode")));
  }
  return ACLNN_SUCCESS;
}

// Rows of this rank's experts, the sum of what both ranks of a pair hold.
aclError expert_rows(const Call& c, const Distribution& d, Floats& rows) {
  rows = floats(part(c, "expandX"));
  if (!d.pairs) return ACL_SUCCESS;
  const auto h = static_cast<size_t>(part(c, "expandX")->dims[1]);
  const Ints counts = integers(part(c, "tpSendCounts"));
  const size_t mine = counts[d.tp.rank] * h, theirs = counts[1 - d.tp.rank] * h;
  if (counts[0] < 0 || counts[1] < 0 || mine + theirs > rows.size())
    return c.trap(507015, "tpSendCounts counts more rows than expandX has");
  rows.resize(mine + theirs);
  std::vector<Floats> both;
  const aclError code = gather(c, d.tp, rows, both);
  if (code != ACL_SUCCESS) return code;
  const Floats& other = both[1 - d.tp.rank];
  if (other.size() != rows.size()) return c.trap(507015, "tpSendCounts differs between ranks");
  for (size_t i = 0; i < mine; ++i) rows[i] += other[theirs + i];
  rows.resize(mine);
  return ACL_SUCCESS;
}
// One rank's results, and where those for each rank begin.
struct Results {
  Ints counts;
  Floats rows;
  // Row `place` of those of local expert `local` for `rank`; null where there are fewer.
  const float* at(int64_t local, int64_t ranks, int64_t rank, int64_t place, int64_t h) const {
    const size_t index = local * ranks + rank;
    const int64_t first = index ? counts[index - 1] : 0, row = first + place;
    if (place < 0 || row < 0 || row >= counts[index] ||
        (row + 1) * h > static_cast<int64_t>(rows.size()))
      return nullptr;
    return rows.data() + row * h;
  }
};
aclError all_results(const Call& c, const Distribution& d, std::vector<Results>& all) {
  Floats rows, text;
  aclError code = expert_rows(c, d, rows);
  Ints counts = integers(part(c, "epSendCounts"));
  counts.resize(static_cast<size_t>(d.e.on(d.ep.rank) * d.e.ranks));
  text.assign(counts.begin(), counts.end());
  const auto sent = static_cast<size_t>(std::max<int64_t>(0, counts.back()) * part(c, "expandX")->dims[1]);
  if (code == ACL_SUCCESS && sent > rows.size())
    return c.trap(507015, "epSendCounts counts more rows than expandX has");
  text.insert(text.end(), rows.begin(), rows.begin() + static_cast<int64_t>(sent));
  std::vector<Floats> texts;
  if (code == ACL_SUCCESS) code = gather(c, d.ep, text, texts);
  for (size_t r = 0; r < texts.size(); ++r) {
    const auto split = texts[r].begin() + d.e.on(static_cast<int64_t>(r)) * d.e.ranks;
    all.push_back({Ints(texts[r].begin(), split), Floats(split, texts[r].end())});
  }
  return code;
}
// scale * what expert `id` makes of the token, for experts that no rank has.
void add_special(const Call& c, const Experts& e, int64_t id, double scale, const Floats& token,
                 Doubles& sum) {
  const int64_t which = id - e.experts - e.zero;
  if (which < 0 || which >= e.copy + e.constant) return;
  const auto h = static_cast<int64_t>(token.size()), at = which - e.copy;
  const Floats a1 = floats(part(c, "constExpertAlpha1")), a2 = floats(part(c, "constExpertAlpha2")),
               v = floats(part(c, "constExpertV"));
  const auto of = [&](const Floats& table, int64_t i) {
    return table[static_cast<int64_t>(table.size()) == e.constant ? at : at * h + i];
  };
  for (int64_t i = 0; i < h; ++i) {
    sum[i] += scale * (at < 0 ? token[i] : of(a1, i) * token[i] + static_cast<double>(of(a2, i)) * of(v, i));
  }
}
aclError combined(const Call& c, Floats& out) {
  const Distribution& d = c.get<Distribution>();
  const Experts& e = d.e;
  std::vector<Results> all;
  const aclError code = all_results(c, d, all);
  if (code != ACL_SUCCESS) return code;
  const int64_t h = part(c, "expandX")->dims[1], me = d.ep.rank;
  const Told mine = own_tokens(c, h);
  const Tensor* index = part(c, "expandIdx");
  const Ints places = index && index->numel() == static_cast<int64_t>(mine.ids.size())
                          ? integers(index) : mine.places();
  const Floats scales = floats(part(c, "expertScales")), also = floats(part(c, "sharedExpertX")),
               tokens = floats(part(c, "oriX"));
  int64_t present = 0;
  for (int64_t t = 0; t < mine.rows; ++t) {
    Doubles sum(static_cast<size_t>(h));
    const auto add = [&](const float* row, double scale) {
      for (int64_t i = 0; row && i < h; ++i) sum[i] += scale * row[i];
      return row != nullptr;
    };
    for (int64_t k = 0; k < mine.top; ++k) {
      const int64_t id = mine.ids[t * mine.top + k];
      const double scale = scales[t * mine.top + k];
      if (id >= e.experts) {
        const auto token = tokens.begin() + (tokens.empty() ? 0 : t * h);
        add_special(c, e, id, scale, Floats(token, token + (tokens.empty() ? 0 : h)), sum);
      } else if (id >= 0 && !add(all[e.shared_ranks + id / e.local].at(
                                     id % e.local, e.ranks, me, places[t * mine.top + k], h), scale)) {
        return c.trap(507015, "expert %lld has no row for token %lld", static_cast<long long>(id),
                      static_cast<long long>(t));
      }
    }
    for (int64_t s = 0; s < e.shared && mine.present(t); ++s)
      add(all[e.shared_rank(s, me)].at(0, e.ranks, me, present, h), 1);
    present += mine.present(t);
    if (!also.empty()) add(also.data() + t * h, 1);
    out.insert(out.end(), sum.begin(), sum.end());
  }
  return ACL_SUCCESS;
}
aclError run_combine(Call& c) {
  Floats out;
  const aclError code = combined(c, out);
  if (code != ACL_SUCCESS) return code;
  if (const Tensor* residual = part(c, "residualX")) {
    const Floats more = floats(residual), gamma = floats(part(c, "gamma"));
    const size_t h = gamma.size();
    Floats norm(out.size()), rstds;
    for (size_t i = 0; i < out.size(); ++i) out[i] += more[i];
    for (size_t row = 0; row < out.size(); row += h) {
      double square = 0;
      for (size_t i = 0; i < h; ++i) square += static_cast<double>(out[row + i]) * out[row + i];
      const double rstd =
          1 / std::sqrt(square / static_cast<double>(h) + c.number(named(c, "normEps")));
      rstds.push_back(static_cast<float>(rstd));
      for (size_t i = 0; i < h; ++i) norm[row + i] = static_cast<float>(out[row + i] * rstd * gamma[i]);
    }
    write(part(c, "y"), norm);
    write(part(c, "rstd"), rstds);
  }
  write(c.maybe(result_of(c)), out);
  return ACL_SUCCESS;
}
aclnnStatus check_combine_norm(Call& c) {
  ACL_RETURN_IF_FAILED(expect_given(c, {named(c, "residualX"), named(c, "gamma"), named(c, "y")}));
  return check_combine(c);
}

}  // namespace
}  // namespace aclsim

ACLNN_OWN(aclnnMoeDistributeDispatch, check_dispatch, run_dispatch)
ACLNN_OWN(aclnnMoeDistributeDispatchV2, check_dispatch, run_dispatch)
ACLNN_OWN(aclnnMoeDistributeDispatchV3, check_dispatch, run_dispatch)
ACLNN_OWN(aclnnMoeDistributeDispatchV4, check_dispatch, run_dispatch)
ACLNN_OWN(aclnnMoeDistributeCombine, check_combine, run_combine)
ACLNN_OWN(aclnnMoeDistributeCombineV2, check_combine, run_combine)
ACLNN_OWN(aclnnMoeDistributeCombineV3, check_combine, run_combine)
ACLNN_OWN(aclnnMoeDistributeCombineV4, check_combine, run_combine)
ACLNN_OWN(aclnnMoeDistributeCombineAddRmsNorm, check_combine_norm, run_combine)
ACLNN_OWN(aclnnMoeDistributeCombineAddRmsNormV2, check_combine_norm, run_combine)
