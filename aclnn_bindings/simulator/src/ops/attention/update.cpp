// Partial results of attention from several devices, joined. Formulas: the "npu_attention_update" page of
// torch_npu and its test of npu_ring_attention_update.
#include "params/attention.h"
#include "loops/values.h"

#include <cmath>
#include <cstring>

namespace aclsim {
namespace {

// (lse list, out list, updateType, out, lseOut): partial attentions weighed by their sums.
aclnnStatus check_update(Call& c) {
  using P = params::AttentionUpdate;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::lse, P::localOut, P::out}));
  const Span<Tensor*> lse = c.tensors(P::lse), parts = c.tensors(P::localOut);
  bool fits = lse.size > 0 && lse.size == parts.size;
  for (int64_t i = 0; fits && i < lse.size; ++i)
    fits = lse[i] && parts[i] && rows_of(*parts[i]) == lse[0]->numel() &&
           parts[i]->same_shape(*parts[0]);
  if (!fits)
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "lse and localOut should have as many members of matching shapes.");
  if (c.integer(P::updateType) == 1) {
    ACL_RETURN_IF_FAILED(expect_given(c, {P::lseOut}));
    ACL_RETURN_IF_FAILED(expect_numel(c, P::lseOut, lse[0]->numel()));
  }
  return expect_numel(c, P::out, parts[0]->numel());
}
void run_update(Call& c) {
  using P = params::AttentionUpdate;

  const Span<Tensor*> lse = c.tensors(P::lse), parts = c.tensors(P::localOut);
  const int64_t rows = lse[0]->numel(), h = width_of(*parts[0]);
  std::vector<Floats> sums, values;
  for (int64_t i = 0; i < lse.size; ++i)
    sums.push_back(floats(lse[i])), values.push_back(floats(parts[i]));
  Floats out(static_cast<size_t>(rows * h)), joined;
  for (int64_t r = 0; r < rows; ++r) {
    double top = -INFINITY, total = 0;
    // An infinite sum marks a part that saw nothing.
    for (const Floats& s : sums) top = s[r] == INFINITY ? top : std::max<double>(top, s[r]);
    for (const Floats& s : sums) total += s[r] == INFINITY ? 0 : std::exp(s[r] - top);
    const double whole = top + std::log(total);
    joined.push_back(total > 0 ? static_cast<float>(whole) : INFINITY);
    for (size_t i = 0; i < sums.size(); ++i) {
      const double w = sums[i][r] == INFINITY ? 0 : std::exp(sums[i][r] - whole);
      for (int64_t j = 0; j < h; ++j)
        out[r * h + j] += static_cast<float>(w * values[i][r * h + j]);
    }
  }
  write(c.tensor(P::out), out);
  if (c.integer(P::updateType) == 1) write(c.maybe(P::lseOut), joined);
}
// (prevOut, prevMax, prevSum, curOut, curMax, curSum, lengths, layout, [softmaxLayout,] out, max,
// sum); statistics have eight equal elements a row.
template <int Out>
aclnnStatus check_ring(Call& c) {
  using P = params::RingAttentionUpdate;

  ACL_RETURN_IF_FAILED(
      expect_given(c, {P::prevAttnOut, P::prevSoftmaxMax, P::prevSoftmaxSum, P::curAttnOut,
                       P::curSoftmaxMax, P::curSoftmaxSum, Out, Out + 1, Out + 2}));
  for (int i : std::initializer_list<int>{P::prevSoftmaxSum, P::curSoftmaxMax, P::curSoftmaxSum,
                                          Out + 1, Out + 2})
    ACL_RETURN_IF_FAILED(expect_same_shape(c, i, P::prevSoftmaxMax));
  for (int i : std::initializer_list<int>{P::curAttnOut, Out})
    ACL_RETURN_IF_FAILED(expect_same_shape(c, i, P::prevAttnOut));
  const char* layout = c.text(P::inputLayoutOptional) ? c.text(P::inputLayoutOptional) : "SBH";
  const Tensor &x = c.tensor(P::prevAttnOut), &s = c.tensor(P::prevSoftmaxMax);
  const bool packed = std::strcmp(layout, "TND") == 0;
  const bool fits = (packed || std::strcmp(layout, "SBH") == 0) && x.rank == 3 &&
                    s.numel() % 8 == 0 && s.rank >= 3 &&
                    (packed ? s.numel() == x.dims[0] * x.dims[1] * 8
                            : s.rank == 4 && s.numel() == x.dims[0] * x.dims[1] * s.dims[1] * 8);
  if (fits) return ACLNN_SUCCESS;
  return c.fail(
      ACLNN_ERR_PARAM_INVALID,
      "The attention %s and its statistics %s do not fit the layout %s; SBH and TND are known.",
      shape_text(x), shape_text(s), layout);
}
template <int Out>
void run_ring(Call& c) {
  using P = params::RingAttentionUpdate;

  const Tensor &x = c.tensor(P::prevAttnOut), &s = c.tensor(P::prevSoftmaxMax);
  Floats a = floats(x), top = floats(s), sum = floats(c.tensor(P::prevSoftmaxSum));
  const Floats b = floats(c.tensor(P::curAttnOut)), top_b = floats(c.tensor(P::curSoftmaxMax)),
               sum_b = floats(c.tensor(P::curSoftmaxSum));
  const bool packed =
      c.text(P::inputLayoutOptional) && std::strcmp(c.text(P::inputLayoutOptional), "TND") == 0;
  const int64_t heads = packed ? x.dims[1] : s.dims[1], d = packed ? x.dims[2] : x.dims[2] / heads;
  for (int64_t at = 0; at * d < static_cast<int64_t>(a.size()); ++at) {
    const int64_t n = at % heads, row = at / heads;
    // Of SBH statistics lie [batch, heads, rows].
    const int64_t place =
        packed ? at : ((row % x.dims[1]) * heads + n) * x.dims[0] + row / x.dims[1];
    const double most = std::max(top[place * 8], top_b[place * 8]);
    const double wa = sum[place * 8] * std::exp(top[place * 8] - most),
                 wb = sum_b[place * 8] * std::exp(top_b[place * 8] - most);
    for (int64_t j = at * d; j < (at + 1) * d; ++j)
      a[j] = static_cast<float>((a[j] * wa + b[j] * wb) / (wa + wb));
    for (int64_t j = place * 8; j < (place + 1) * 8; ++j)
      top[j] = static_cast<float>(most), sum[j] = static_cast<float>(wa + wb);
  }
  write(c.tensor(Out), a), write(c.tensor(Out + 1), top), write(c.tensor(Out + 2), sum);
}

}  // namespace
}  // namespace aclsim

ACLNN_OWN(aclnnAttentionUpdate, check_update, run_update)
ACLNN_OWN(aclnnRingAttentionUpdate, check_ring<params::RingAttentionUpdate::attnOutOut>,
            run_ring<params::RingAttentionUpdate::attnOutOut>)
ACLNN_OWN(aclnnRingAttentionUpdateV2, check_ring<params::RingAttentionUpdateV2::attnOutOut>,
            run_ring<params::RingAttentionUpdateV2::attnOutOut>)
