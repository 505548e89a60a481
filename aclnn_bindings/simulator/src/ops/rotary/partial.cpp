// Rotary embeddings of parts of rows, by position, and their gradients. Formulas: the "npu_rotary_mul",
// "npu_interleave_rope" and "npu_mrope" pages of torch_npu and its tests.
#include "params/rotary.h"
#include "loops/values.h"

#include "loops/rotation.h"

namespace aclsim {
namespace {

bool fits_mode(int64_t mode, int64_t n) {
  return mode >= kHalf && mode <= kInterleaveHalf && n % (mode == kQuarter ? 4 : 2) == 0;
}
// Angles spread over x by dims of one.
Floats spread(const Tensor& angle, const Tensor& x) {
  Floats v(static_cast<size_t>(x.numel()));
  copy_tensor(dense(v.data(), ACL_FLOAT, x.dims, x.rank), angle);
  return v;
}
bool spreads(const Tensor& angle, const Tensor& x) {
  Shape s = shape_of(x);
  return broadcast(s, angle) && s.rank == x.rank && std::equal(s.dims, s.dims + s.rank, x.dims);
}
aclnnStatus expect_partial_angles(const Call& c, int x, int cos, int64_t mode) {
  if (!fits_mode(mode, width_of(c.tensor(x)))) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "mode %lld does not fit the shape %s of %s.",
                  static_cast<long long>(mode), shape_text(c.tensor(x)), c.name(x));
  }
  for (int i : {cos, cos + 1}) {
    if (!spreads(c.tensor(i), c.tensor(x))) return refuse_fit(c, i, x);
  }
  return ACLNN_SUCCESS;
}

aclnnStatus check_interleave(Call& c) {
  using P = params::InterleaveRope;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::x, P::cos, P::sin, P::out}));
  ACL_RETURN_IF_FAILED(expect_partial_angles(c, P::x, P::cos, kInterleaveHalf));
  return expect_same_shape(c, P::out, P::x);
}
Floats turned(const Tensor& x, const Tensor& cos, const Tensor& sin, int64_t mode) {
  const Floats v = floats(x), a = spread(cos, x), b = spread(sin, x);
  const int64_t n = width_of(x);
  const Turn t = turn_of(mode, n);
  Floats out(v.size());
  for (size_t at = 0; at < v.size(); at += static_cast<size_t>(n))
    turn_row(t, &v[at], &a[at], &b[at], &out[at]);
  return out;
}
void run_interleave(Call& c) {
  using P = params::InterleaveRope;

  write(c.tensor(P::out),
        turned(c.tensor(P::x), c.tensor(P::cos), c.tensor(P::sin), kInterleaveHalf));
}
// dx of the rotation: each output passes to the two elements that it reads.
Floats turned_back(const Floats& dy, const Floats& cos, const Floats& sin, int64_t mode,
                   int64_t n) {
  const Turn t = turn_of(mode, n);
  Floats dx(dy.size());
  for (size_t at = 0; at < dy.size(); at += static_cast<size_t>(n)) {
    for (int64_t i = 0; i < n; ++i) {
      dx[at + t.from[i]] += dy[at + i] * cos[at + i];
      dx[at + t.partner[i]] += t.sign[i] * dy[at + i] * sin[at + i];
    }
  }
  return dx;
}
// Sums what `t` repeats of values laid out as `like`.
Floats folded(const Floats& v, const Tensor& t, const Tensor& like) {
  Doubles sums(static_cast<size_t>(t.numel()));
  int64_t strides[kMaxRank] = {}, step = 1;
  for (int i = t.rank - 1; i >= 0; --i) {
    strides[like.rank - t.rank + i] = t.dims[i] == 1 ? 0 : step;
    step *= t.dims[i];
  }
  Walker w(like.rank, like.dims);
  for (size_t i = 0; i < v.size(); ++i, w.next()) sums[w.offset(strides)] += v[i];
  return Floats(sums.begin(), sums.end());
}
aclnnStatus check_grad(Call& c) {
  using P = params::RotaryPositionEmbeddingGrad;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::dy, P::cos, P::sin, P::dxOut}));
  ACL_RETURN_IF_FAILED(expect_partial_angles(c, P::dy, P::cos, c.integer(P::mode)));
  if (at_or_null(c, P::xOptional)) {
    ACL_RETURN_IF_FAILED(expect_given(c, {P::dcosOut, P::dsinOut}));
    ACL_RETURN_IF_FAILED(expect_same_shape(c, P::xOptional, P::dy));
    for (int i : {P::dcosOut, P::dsinOut}) ACL_RETURN_IF_FAILED(expect_same_shape(c, i, P::cos));
  }
  return expect_same_shape(c, P::dxOut, P::dy);
}
void run_grad(Call& c) {
  using P = params::RotaryPositionEmbeddingGrad;

  const Tensor& t = c.tensor(P::dy);
  const Floats dy = floats(t);
  const int64_t n = width_of(t), mode = c.integer(P::mode);
  write(c.tensor(P::dxOut),
        turned_back(dy, spread(c.tensor(P::cos), t), spread(c.tensor(P::sin), t), mode, n));
  if (!at_or_null(c, P::xOptional)) return;
  const Floats x = floats(c.tensor(P::xOptional));
  const Turn turn = turn_of(mode, n);
  Floats by_cos(dy.size()), by_sin(dy.size());
  for (size_t i = 0; i < dy.size(); ++i) {
    const size_t row = i / static_cast<size_t>(n) * n, j = i % static_cast<size_t>(n);
    by_cos[i] = dy[i] * x[row + turn.from[j]];
    by_sin[i] = dy[i] * turn.sign[j] * x[row + turn.partner[j]];
  }
  write(c.tensor(P::dcosOut), folded(by_cos, c.tensor(P::dcosOut), t)),
      write(c.tensor(P::dsinOut), folded(by_sin, c.tensor(P::dsinOut), t));
}
// (xRef, cos, sin, mode, [begin, end)): a slice of the last dim, in place, forward or back.
Tensor slice_of(const Call& c) {
  using P = params::InplacePartialRotaryMul;

  Tensor t = c.tensor(P::xRef);
  const Span<const int64_t> range = c.ints(P::partialSlice);
  if (range.size != 2) return t;
  const int last = t.rank - 1;
  t.offset += range[0] * t.strides[last], t.dims[last] = range[1] - range[0];
  return t;
}
aclnnStatus check_partial(Call& c) {
  using P = params::InplacePartialRotaryMul;

  ACL_RETURN_IF_FAILED(expect_given(c, {P::xRef, P::cos, P::sin}));
  const Span<const int64_t> range = c.ints(P::partialSlice);
  const int64_t n = width_of(c.tensor(P::xRef));
  const bool fits =
      range.size == 0 || (range.size == 2 && c.tensor(P::xRef).rank > 0 && range[0] >= 0 &&
                          range[0] <= range[1] && range[1] <= n);
  const Tensor part = fits ? slice_of(c) : c.tensor(P::xRef);
  if (!fits || !fits_mode(c.integer(P::rotary_mode), width_of(part)) ||
      !spreads(c.tensor(P::cos), part) || !spreads(c.tensor(P::sin), part)) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "The slice of %s, its mode and the shapes %s and %s of cos and sin do not "
                  "fit.",
                  shape_text(c.tensor(P::xRef)), shape_text(c.tensor(P::cos)),
                  shape_text(c.tensor(P::sin)));
  }
  return ACLNN_SUCCESS;
}
template <bool Back>
void run_partial(Call& c) {
  using P = params::InplacePartialRotaryMul;

  const Tensor t = slice_of(c);
  if (Back) {
    write(t, turned_back(floats(t), spread(c.tensor(P::cos), t), spread(c.tensor(P::sin), t),
                         c.integer(P::rotary_mode), width_of(t)));
  } else {
    write(t, turned(t, c.tensor(P::cos), c.tensor(P::sin), c.integer(P::rotary_mode)));
  }
}

// (positions, query, key, cosSinCache, mropeSection, headSize, isNeoxStyle, [cacheMode,] queryOut,
// keyOut): angles of each token from a table of [positions, cos | sin].
template <int Out>
aclnnStatus check_positions(Call& c) {
  using P = params::RopeWithSinCosCache;

  ACL_RETURN_IF_FAILED(
      expect_given(c, {P::positions, P::queryIn, P::keyIn, P::cosSinCache, Out, Out + 1}));
  const Tensor &p = c.tensor(P::positions), &table = c.tensor(P::cosSinCache);
  const int64_t tokens = rows_of(c.tensor(P::queryIn)), head = c.integer(P::headSize),
                wide = width_of(table);
  int64_t sum = 0;
  for (int64_t n : c.ints(P::mropeSection)) sum += n;
  const bool many = p.rank == 2 && p.dims[0] > 1;
  if (width_of(p) != tokens || head <= 0 || wide % 2 != 0 || wide > head ||
      (many && (sum * 2 != wide || c.ints(P::mropeSection).size != p.dims[0]))) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "positions %s, the table %s, headSize %lld and mropeSection do not fit.",
                  shape_text(p), shape_text(table), static_cast<long long>(head));
  }
  for (int i : {0, 1}) {
    if (width_of(c.tensor(P::queryIn + i)) % head != 0) return refuse_fit(c, P::keyIn, P::queryIn);
    ACL_RETURN_IF_FAILED(expect_same_shape(c, Out + i, P::queryIn + i));
  }
  return ACLNN_SUCCESS;
}
// Which row of positions column i of the angles follows.
int64_t section_of(Span<const int64_t> sections, int64_t i, bool interleaved) {
  if (interleaved) return i % 3 != 0 && i < sections[i % 3] * 3 ? i % 3 : 0;
  int64_t s = 0;
  for (int64_t end = sections[0]; i >= end && s + 1 < sections.size; end += sections[s]) ++s;
  return s;
}
template <int Out>
aclError run_positions(Call& c) {
  using P = params::RopeWithSinCosCacheV2;

  const Ints positions = integers(c.tensor(P::positions));
  const Floats table = floats(c.tensor(P::cosSinCache));
  const int64_t tokens = rows_of(c.tensor(P::queryIn)), head = c.integer(P::headSize),
                wide = width_of(c.tensor(P::cosSinCache)), half = wide / 2;
  const bool many = c.tensor(P::positions).rank == 2 && c.tensor(P::positions).dims[0] > 1,
             neox = c.flag(P::isNeoxStyle);
  for (int which : {0, 1}) {
    Floats x = floats(c.tensor(P::queryIn + which));
    const int64_t heads = width_of(c.tensor(P::queryIn + which)) / head;
    for (int64_t t = 0; t < tokens; ++t) {
      for (int64_t i = 0; i < half; ++i) {
        const int64_t s = many ? section_of(c.ints(P::mropeSection), i,
                                            Out == 8 && c.integer(P::cacheMode) == 1)
                               : 0,
                      p = positions[s * tokens + t];
        if (p < 0 || p >= rows_of(c.tensor(P::cosSinCache)))
          return c.trap(507015, "A position lies outside the table of angles.");
        const float cos = table[p * wide + i], sin = table[p * wide + half + i];
        for (int64_t n = 0; n < heads; ++n) {
          float* row = x.data() + (t * heads + n) * head;
          float &a = row[neox ? i : 2 * i], &b = row[neox ? half + i : 2 * i + 1];
          const float u = a * cos - b * sin, v = b * cos + a * sin;
          a = u, b = v;
        }
      }
    }
    write(c.tensor(Out + which), x);
  }
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

ACLNN_OWN(aclnnInterleaveRope, check_interleave, run_interleave)
ACLNN_OWN(aclnnRotaryPositionEmbeddingGrad, check_grad, run_grad)
ACLNN_OWN(aclnnInplacePartialRotaryMul, check_partial, run_partial<false>)
ACLNN_OWN(aclnnInplacePartialRotaryMulGrad, check_partial, run_partial<true>)
ACLNN_OWN(aclnnRopeWithSinCosCache, check_positions<params::RopeWithSinCosCache::queryOut>,
           run_positions<params::RopeWithSinCosCache::queryOut>)
ACLNN_OWN(aclnnRopeWithSinCosCacheV2, check_positions<params::RopeWithSinCosCacheV2::queryOut>,
           run_positions<params::RopeWithSinCosCacheV2::queryOut>)
