// Rotary position embeddings. They ask for no workspace: clients give memory back to their pools before the
// launch that still writes to it (ggml's rotation of a part of the heads), and a workspace would be that.
#include "params/rotary.h"
#include <memory>

#include "loops/pointwise.h"
#include "loops/rows.h"

namespace aclsim {

ACL_FN(Rotated, FloatingReal, (T x, T turned, T cos, T sin, T sign), x * cos + sign * turned * sin)

namespace {

// How an axis pairs up: halves (0), neighbours (1), halves of each half (2), or neighbours that come out
// as halves (3).
enum Mode : int64_t { kHalf = 0, kInterleave = 1, kQuarter = 2, kInterleaveHalf = 3 };

// One member of the pairs of the last axis: `second` says which, `part` counts quarters' halves.
Tensor member(const Tensor& t, int64_t mode, bool second, int part) {
  Tensor v = t;
  const int last = t.rank - 1;
  const int64_t n = t.dims[last], step = t.strides[last];
  if (n == 1) return v;  // a broadcast angle
  const int64_t split = mode == kQuarter ? 4 : 2;
  v.dims[last] = n / split;
  if (mode == kInterleave) {
    v.strides[last] = 2 * step;
    v.offset += second ? step : 0;
  } else {
    v.offset += (part * 2 + second) * v.dims[last] * step;
  }
  return v;
}

// out = x cos + turn(x) sin, turn((a, b)) = (-b, a) for each pair.
void rotate(const Tensor& out, const Tensor& x, const Tensor& cos, const Tensor& sin,
            int64_t pairing) {
  static double minus = -1, plus = 1;
  static constexpr Bodies bodies = bodies_of<Rotated, 5>();
  const int64_t from = pairing == kInterleaveHalf ? kInterleave : pairing;
  const int64_t mode = pairing == kInterleaveHalf ? kHalf : pairing;
  for (int part = 0; part < (mode == kQuarter ? 2 : 1); ++part) {
    for (bool second : {false, true}) {
      Loop loop = loop_over(member(out, mode, second, part));
      loop.add(member(x, from, second, part));
      loop.add(member(x, from, !second, part));
      loop.add(member(cos, mode, second, part));
      loop.add(member(sin, mode, second, part));
      loop.add(dense(second ? &plus : &minus, ACL_DOUBLE, nullptr, 0));
      loop.coalesce();
      run_bodies(loop, ACL_FLOAT, bodies);
    }
  }
}

aclnnStatus expect_angles(const Call& c, int x, int cos, int64_t mode) {
  const Tensor& t = c.tensor(x);
  const int64_t split = mode == kQuarter ? 4 : 2;
  if (t.rank == 0 || t.dims[t.rank - 1] % split || mode < kHalf || mode > kInterleaveHalf) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "mode %lld doesn't fit the shape %s of %s.",
                  static_cast<long long>(mode), shape_text(t), c.name(x));
  }
  for (int i : {cos, cos + 1}) {
    Shape s = shape_of(t);
    if (c.tensor(i).rank == 0 || c.tensor(i).dims[c.tensor(i).rank - 1] != t.dims[t.rank - 1] ||
        !broadcast(s, c.tensor(i)) || s.rank != t.rank ||
        !std::equal(s.dims, s.dims + s.rank, t.dims)) {
      return c.fail(ACLNN_ERR_PARAM_INVALID, "Shape %s of %s doesn't broadcast to %s of %s.",
                    shape_text(c.tensor(i)), c.name(i), shape_text(t), c.name(x));
    }
  }
  return ACLNN_SUCCESS;
}

// First and last byte that a tensor's elements lie between.
struct Span {
  const char *first, *last;
};
Span span_of(const Tensor& t) {
  const auto size = static_cast<int64_t>(dtype_size(t.dtype));
  int64_t low = t.offset, high = t.offset;
  for (int i = 0; i < t.rank; ++i) (t.strides[i] < 0 ? low : high) += (t.dims[i] - 1) * t.strides[i];
  const auto* base = static_cast<const char*>(t.data);
  return {base + low * size, base + (high + 1) * size};
}
// Both members of a pair are read after one is written: an input that may lie where the output does is
// copied first.
void rotate_apart(const Tensor& out, const Tensor& x, const Tensor& cos, const Tensor& sin,
                  int64_t mode) {
  if (x.numel() == 0) return;
  const Span from = span_of(x), to = span_of(out);
  if (from.last <= to.first || to.last <= from.first) return rotate(out, x, cos, sin, mode);
  const std::unique_ptr<char[]> room(new char[x.numel() * dtype_size(x.dtype)]);
  const Tensor copy = dense(room.get(), x.dtype, x.dims, x.rank);
  copy_tensor(copy, x);
  rotate(out, copy, cos, sin, mode);
}

template <int Out>
aclnnStatus check_rope(Call& c) {
  using P = params::RotaryPositionEmbedding;

  ACL_RETURN_IF_FAILED(expect_angles(c, P::x, P::cos, c.integer(P::mode)));
  return expect_same_shape(c, Out, P::x);
}
template <int Out>
void run_rope(Call& c) {
  using P = params::RotaryPositionEmbedding;

  rotate_apart(c.tensor(Out), c.tensor(P::x), c.tensor(P::cos), c.tensor(P::sin),
               c.integer(P::mode));
}

// (queryRef, keyRef, cos, sin, layout[, rotaryMode]): in place.
int64_t text_mode(const Call& c) {
  using P = params::ApplyRotaryPosEmbV2;

  const char* text = c.count > 5 ? c.text(P::rotaryMode) : nullptr;
  if (!text || std::strcmp(text, "half") == 0) return kHalf;
  if (std::strcmp(text, "interleave") == 0) return kInterleave;
  return std::strcmp(text, "quarter") == 0 ? int64_t{kQuarter} : -1;
}
aclnnStatus check_apply(Call& c) {
  using P = params::ApplyRotaryPosEmb;

  for (int i : {P::queryRef, P::keyRef})
    ACL_RETURN_IF_FAILED(expect_angles(c, i, P::cos, text_mode(c)));
  return ACLNN_SUCCESS;
}
void run_apply(Call& c) {
  using P = params::ApplyRotaryPosEmb;

  for (int i : {P::queryRef, P::keyRef})
    rotate_apart(c.tensor(i), c.tensor(i), c.tensor(P::cos), c.tensor(P::sin), text_mode(c));
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnRotaryPositionEmbedding, check_rope<params::RotaryPositionEmbedding::out>,
         run_rope<params::RotaryPositionEmbedding::out>)
ACLNN_OP(aclnnRotaryPositionEmbeddingV2, check_rope<params::RotaryPositionEmbeddingV2::out>,
         run_rope<params::RotaryPositionEmbeddingV2::out>)
ACLNN_OP(aclnnApplyRotaryPosEmb, check_apply, run_apply)
ACLNN_OP(aclnnApplyRotaryPosEmbV2, check_apply, run_apply)
