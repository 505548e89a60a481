// TensorFlow's strided slice, chunks put together, a transposition with a reshape.
#include "params/shape.h"
#include "loops/numbers.h"

namespace aclsim {
namespace {

// TensorFlow's strided slice as a view of self and the shape it shows.
struct Sliced {
  Tensor view;
  Shape shape;
};
bool bit(const Call& c, int arg, int64_t i) { return c.integer(arg) >> i & 1; }
// The range of one dim with `strides` step: begin and how many.
void clip(int64_t size, int64_t step, bool open_begin, bool open_end, int64_t& begin, int64_t end,
          int64_t& count) {
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
  const auto bound = [&](int64_t v) {
    return std::min(std::max(v < 0 ? v + size : v, low), high);
  };
  begin = open_begin ? (step > 0 ? low : high) : bound(begin);
  end = open_end ? (step > 0 ? high : low) : bound(end);
  const int64_t span = step > 0 ? end - begin : begin - end, pace = step > 0 ? step : -step;
  count = span > 0 ? (span + pace - 1) / pace : 0;
}
aclnnStatus bad_slice(const Call& c) {
  using P = params::StridedSlice;

  return c.fail(ACLNN_ERR_PARAM_INVALID,
                "begin, end and strides don't fit self, whose shape is %s.",
                shape_text(c.tensor(P::self)));
}
aclnnStatus slice_strided(const Call& c, Sliced& s) {
  using P = params::StridedSlice;

  const Tensor& self = c.tensor(P::self);
  const int64_t n = c.ints(P::begin).size;
  if (c.ints(P::end).size != n || c.ints(P::strides).size != n || n > kMaxRank) return bad_slice(c);
  int64_t named = 0;  // dims that entries other than new axes and the ellipsis take
  for (int64_t i = 0; i < n; ++i)
    named += !bit(c, P::ellipsisMask, i) && !bit(c, P::newAxisMask, i);
  s.view = self;
  s.shape = {};
  Tensor from = self;
  int d = 0;
  const auto show = [&](int64_t dim, int64_t stride) {
    if (s.shape.rank >= kMaxRank) return false;
    s.view.strides[s.shape.rank] = stride;
    s.shape.dims[s.shape.rank++] = dim;
    return true;
  };
  const auto rest = [&](int64_t count) {
    for (; count > 0 && d < self.rank; --count, ++d) show(self.dims[d], from.strides[d]);
  };
  for (int64_t i = 0; i < n; ++i) {
    if (bit(c, P::ellipsisMask, i)) {
      rest(self.rank - named);
      continue;
    }
    if (bit(c, P::newAxisMask, i)) {
      if (!show(1, 0)) return bad_slice(c);
      continue;
    }
    if (d >= self.rank || c.ints(P::strides)[i] == 0) return bad_slice(c);
    int64_t begin = c.ints(P::begin)[i], count = 0;
    const int64_t step = c.ints(P::strides)[i];
    if (bit(c, P::shrinkAxisMask, i)) {
      if (begin < 0) begin += self.dims[d];
      if (begin < 0 || begin >= self.dims[d]) return bad_slice(c);
    } else {
      clip(self.dims[d], step, bit(c, P::beginMask, i), bit(c, P::endMask, i), begin,
           c.ints(P::end)[i], count);
      if (!show(count, from.strides[d] * step)) return bad_slice(c);
    }
    if (count > 0 || bit(c, P::shrinkAxisMask, i)) s.view.offset += begin * from.strides[d];
    ++d;
  }
  rest(self.rank);
  s.view.rank = s.shape.rank;
  std::copy_n(s.shape.dims, s.shape.rank, s.view.dims);
  return ACLNN_SUCCESS;
}
aclnnStatus check_strided_slice(Call& c) {
  using P = params::StridedSlice;

  Sliced& s = c.make<Sliced>();
  ACL_RETURN_IF_FAILED(slice_strided(c, s));
  ACL_RETURN_IF_FAILED(expect_same_dtype(c, P::out, P::self));
  return expect_shape(c, P::out, s.shape);
}
void run_strided_slice(Call& c) {
  using P = params::StridedSlice;

  Tensor view = c.get<Sliced>().view;
  view.data = c.tensor(P::self).data;
  if (view.numel() > 0) copy_tensor(c.tensor(P::out), view);
}

// (tensors, dim, numChunks, out): torch's _chunk_cat. Every tensor is padded to whole chunks along
// dim, and what follows dim is flattened.
aclnnStatus check_chunk_cat(Call& c) {
  using P = params::ChunkCat;

  const Span<Tensor*> all = c.tensors(P::tensors);
  const int64_t dim = c.integer(P::dim), chunks = c.integer(P::numChunks);
  Shape shape;
  shape.rank = static_cast<int>(dim) + 2;
  bool fits = all.size > 0 && dim >= 0 && chunks > 0 && shape.rank <= kMaxRank;
  int64_t width = 0;
  for (const Tensor* t : all) {
    fits = fits && t && t->rank > dim && t->dtype == all[0]->dtype && t->numel() > 0;
    for (int64_t d = 0; fits && d < dim; ++d) fits = t->dims[d] == all[0]->dims[d];
    if (!fits) break;
    const Around a(*t, static_cast<int>(dim));
    width += (a.size + chunks - 1) / chunks * a.inner;
  }
  if (!fits) return c.fail(ACLNN_ERR_PARAM_INVALID, "tensors, dim and numChunks don't fit.");
  std::copy_n(all[0]->dims, dim, shape.dims);
  shape.dims[dim] = chunks;
  shape.dims[dim + 1] = width;
  return expect_shape(c, P::out, shape);
}
void run_chunk_cat(Call& c) {
  using P = params::ChunkCat;

  const int dim = static_cast<int>(c.integer(P::dim));
  const Tensor& out = c.tensor(P::out);
  const int64_t chunks = c.integer(P::numChunks), width = out.dims[dim + 1];
  Numbers to(static_cast<size_t>(out.numel()));
  int64_t column = 0;
  for (const Tensor* t : c.tensors(P::tensors)) {
    const Around a(*t, dim);
    const int64_t piece = (a.size + chunks - 1) / chunks * a.inner, row = a.size * a.inner;
    const Numbers x = numbers(*t);
    for (int64_t i = 0; i < a.outer * row; ++i) {
      const int64_t at = i % row;
      to[(i / row * chunks + at / piece) * width + column + at % piece] = x[i];
    }
    column += piece;
  }
  put(out, to);
}

// (x, perm, shape, transposeFirst, out): a transposition and a reshape, in the order told.
aclnnStatus check_confusion(Call& c) {
  using P = params::ConfusionTranspose;

  const Span<const int64_t> perm = c.ints(P::perm), shape = c.ints(P::shape);
  const int64_t rank = c.flag(P::transpose_first) ? c.tensor(P::x).rank : shape.size;
  bool fits = perm.size == rank && rank <= kMaxRank && shape.size <= kMaxRank;
  uint32_t seen = 0;
  int64_t n = 1;
  for (int64_t d : perm) fits = fits && d >= 0 && d < rank && !(seen >> d & 1) && (seen |= 1u << d);
  for (int64_t d : shape) fits = fits && d >= 0 && !__builtin_mul_overflow(n, d, &n);
  if (!fits || n != c.tensor(P::x).numel()) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "perm and shape don't fit x, whose shape is %s.",
                  shape_text(c.tensor(P::x)));
  }
  Shape out;
  out.rank = static_cast<int>(shape.size);
  for (int i = 0; i < out.rank; ++i) out.dims[i] = shape[c.flag(P::transpose_first) ? i : perm[i]];
  ACL_RETURN_IF_FAILED(expect_same_dtype(c, P::out, P::x));
  return expect_shape(c, P::out, out);
}
Tensor permuted(const Tensor& t, Span<const int64_t> perm) {
  Tensor v = t;
  for (int i = 0; i < t.rank; ++i) {
    v.dims[i] = t.dims[perm[i]];
    v.strides[i] = t.strides[perm[i]];
  }
  return v;
}
void run_confusion(Call& c) {
  using P = params::ConfusionTranspose;

  const Tensor& x = c.tensor(P::x);
  std::vector<char> bytes = bytes_of(c.flag(P::transpose_first) ? permuted(x, c.ints(P::perm)) : x);
  if (bytes.empty()) return;
  const Span<const int64_t> shape = c.ints(P::shape);
  const Tensor flat = dense(bytes.data(), x.dtype, shape.data, static_cast<int>(shape.size));
  copy_tensor(c.tensor(P::out),
              c.flag(P::transpose_first) ? flat : permuted(flat, c.ints(P::perm)));
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnStridedSlice, check_strided_slice, run_strided_slice)
ACLNN_OP(aclnnChunkCat, check_chunk_cat, run_chunk_cat)
ACLNN_OP(aclnnConfusionTranspose, check_confusion, run_confusion)
