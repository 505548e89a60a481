// Elements read and written by their flat index.
#include "params/indexing.h"
#include "loops/indices.h"
#include "loops/promote.h"

namespace aclsim {
namespace {

// Resolves the flat positions at argument `arg` of a tensor into element offsets, in the workspace.
aclError resolve_positions(const Call& c, int arg, const Tensor& self) {
  int64_t* at = static_cast<int64_t*>(c.workspace);
  IndexFault fault(Index::FromEither);
  if (!read_indices(at, c.tensor(arg), self.numel(), fault)) return fault.report(c, arg);
  for (int64_t i = 0, n = c.tensor(arg).numel(); i < n; ++i) {
    at[i] = self.offset + Walker(self.rank, self.dims, at[i]).offset(self.strides);
  }
  return ACL_SUCCESS;
}

// (self, index, out): out[...] = flattened self[index[...]].
aclnnStatus check_take(Call& c) {
  using P = params::Take;

  ACL_RETURN_IF_FAILED(expect_same_dtype(c, P::out, P::self));
  if (c.tensor(P::self).numel() == 0 && c.tensor(P::index).numel() != 0) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "self is empty, but index is not; its shape is %s.",
                  shape_text(c.tensor(P::index)));
  }
  c.workspace_size = c.tensor(P::index).numel() * sizeof(int64_t);
  return expect_same_shape(c, P::out, P::index);
}
aclError run_take(Call& c) {
  using P = params::Take;

  const Tensor &self = c.tensor(P::self), &out = c.tensor(P::out);
  if (const aclError error = resolve_positions(c, P::index, self)) return error;
  const int64_t* at = static_cast<const int64_t*>(c.workspace);
  const size_t bytes = dtype_size(self.dtype);
  parallel_for(out.numel(), 16384, [&](int64_t begin, int64_t end) {
    Walker to(out.rank, out.dims, begin);
    for (int64_t i = begin; i < end; ++i, to.next()) {
      std::memcpy(static_cast<char*>(out.data) + (out.offset + to.offset(out.strides)) * bytes,
                  static_cast<const char*>(self.data) + at[i] * bytes, bytes);
    }
  });
  return ACL_SUCCESS;
}

// (selfRef, index, source, accumulate): flattened selfRef[index[i]] = source[i], or +=.
aclnnStatus check_put(Call& c) {
  using P = params::InplacePut;

  ACL_RETURN_IF_FAILED(expect_same_dtype(c, P::source, P::selfRef));
  if (c.tensor(P::index).numel() != c.tensor(P::source).numel()) {
    return c.fail(ACLNN_ERR_PARAM_INVALID,
                  "source of shape %s should have as many elements as "
                  "index of shape %s.",
                  shape_text(c.tensor(P::source)), shape_text(c.tensor(P::index)));
  }
  if (c.tensor(P::selfRef).numel() == 0 && c.tensor(P::index).numel() != 0) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "selfRef is empty, but index is not; its shape is %s.",
                  shape_text(c.tensor(P::index)));
  }
  c.workspace_size = c.tensor(P::index).numel() * sizeof(int64_t);
  return ACLNN_SUCCESS;
}
template <class C>
void put(const Tensor& self, const int64_t* at, const Tensor& source, bool accumulate) {
  Walker from(source.rank, source.dims);
  for (int64_t i = 0, n = source.numel(); i < n; ++i, from.next()) {
    C value = load_one<C>(source.data, source.dtype, source.offset + from.offset(source.strides));
    if (accumulate) value += load_one<C>(self.data, self.dtype, at[i]);
    store_one(value, self.data, self.dtype, at[i]);
  }
}
aclError run_put(Call& c) {
  using P = params::InplacePut;

  const Tensor &self = c.tensor(P::selfRef), &source = c.tensor(P::source);
  if (const aclError error = resolve_positions(c, P::index, self)) return error;
  const int64_t* at = static_cast<const int64_t*>(c.workspace);
  if (is_complex(self.dtype)) {
    put<c128>(self, at, source, c.flag(P::accumulate));
  } else {
    with_real(self.dtype, [&](auto tag) {
      put<typename decltype(tag)::type>(self, at, source, c.flag(P::accumulate));
    });
  }
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnTake, check_take, run_take)
ACLNN_OP(aclnnInplacePut, check_put, run_put)
