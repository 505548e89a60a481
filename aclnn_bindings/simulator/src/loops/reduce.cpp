// The reduction loops: see reduce.h.
#include "loops/reduce.h"

#include "loops/cascade.h"

#include <algorithm>

namespace aclsim {
namespace {

constexpr int64_t kPiece = 1 << 16;  // elements joined in one go when one result is split
constexpr int64_t kGrain = 32768;
constexpr int kFlush = 64;  // rows added in float before they go to double

struct Space {
  int rank = 0;
  int64_t dims[kMaxRank] = {};
  Operand in, out;  // strides over these dims; `out` is unused for the reduced space
  int64_t numel() const {
    int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= dims[i];
    return n;
  }
  void push(int64_t dim, int64_t in_stride, int64_t out_stride) {
    if (dim == 1) return;
    if (rank > 0 && in.strides[rank - 1] == dim * in_stride &&
        out.strides[rank - 1] == dim * out_stride) {
      dims[rank - 1] *= dim;
      in.strides[rank - 1] = in_stride;
      out.strides[rank - 1] = out_stride;
      return;
    }
    dims[rank] = dim;
    in.strides[rank] = in_stride;
    out.strides[rank++] = out_stride;
  }
};

template <class C>
class Reduction {
 public:
  Reduction(const Tensor& out, const Tensor& self, uint32_t axes, const Reducer<C>& fn) : fn_(fn) {
    for (Space* s : {&kept_, &gone_}) {
      s->in.data = self.data;
      s->in.offset = self.offset;
      s->in.dtype = s->in.rounded = self.dtype;
      s->out.data = out.data;
      s->out.offset = out.offset;
      s->out.dtype = s->out.rounded = out.dtype;
    }
    split(out, self, axes);
    count_ = gone_.numel();
  }

  void run() const {
    const int64_t results = kept_.numel();
    if (results == 0) return;
    if (columns_) {
      run_columns();
    } else if (results == 1 && count_ > kPiece) {
      run_pieces();
    } else {
      parallel_for(results, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, count_)),
                   [&](int64_t begin, int64_t end) {
                     Buffer<C> buffer(kBlock);
                     Walker at(kept_.rank, kept_.dims, begin);
                     for (int64_t i = begin; i < end; ++i, at.next()) {
                       finish(at, reduce(at.offset(kept_.in.strides), 0, count_, buffer));
                     }
                   });
    }
  }

 private:
  void split(const Tensor& out, const Tensor& self, uint32_t axes) {
    const bool keeps = out.rank == self.rank;
    int to = 0, order[kMaxRank];
    int64_t out_strides[kMaxRank] = {};
    for (int i = 0; i < self.rank; ++i) {
      order[i] = i;
      if (axes >> i & 1) {
        to += keeps;
      } else {
        out_strides[i] = out.strides[to++];
      }
    }
    // Reduced axes in memory order: sums don't depend on the layout's permutation then.
    std::stable_sort(order, order + self.rank,
                     [&](int a, int b) { return self.strides[a] > self.strides[b]; });
    int64_t inner_kept = INT64_MAX, inner_gone = INT64_MAX;
    for (int k = 0; k < self.rank; ++k) {
      const int i = order[k];
      const bool gone = axes >> i & 1;
      (gone ? gone_ : kept_).push(self.dims[i], self.strides[i], gone ? 0 : out_strides[i]);
      if (self.dims[i] > 1) (gone ? inner_gone : inner_kept) = self.strides[i];
    }
    columns_ = gone_.rank > 0 && kept_.rank > 0 && inner_kept < inner_gone &&
               kept_.dims[kept_.rank - 1] >= 8;
  }

  Wide<C> reduce(int64_t base, int64_t begin, int64_t end, C* buffer) const {
    Operand in = gone_.in;
    in.offset += base;
    Wide<C> acc = Wide<C>(fn_.first);
    for (int64_t i = begin; i < end; i += kBlock) {
      const int64_t n = std::min(kBlock, end - i);
      acc = fn_.join(acc, fn_.row(view_or_load(buffer, in, gone_.rank, gone_.dims, i, n), n));
    }
    return acc;
  }

  void run_pieces() const {
    const int64_t pieces = (count_ + kPiece - 1) / kPiece;
    Buffer<Wide<C>> partial(pieces);
    parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
      Buffer<C> buffer(kBlock);
      for (int64_t p = begin; p < end; ++p) {
        partial[p] = reduce(0, p * kPiece, std::min(count_, (p + 1) * kPiece), buffer);
      }
    });
    Wide<C> acc = partial[0];
    for (int64_t p = 1; p < pieces; ++p) acc = fn_.join(acc, partial[p]);
    finish(Walker(kept_.rank, kept_.dims), acc);
  }

  void finish(const Walker& at, Wide<C> acc) const {
    store_one(fn_.finish(acc, count_), const_cast<void*>(kept_.out.data), kept_.out.dtype,
              kept_.out.offset + at.offset(kept_.out.strides));
  }

  // The kept axis lies inner: whole runs of results advance together, one reduced element a step.
  void run_columns() const {
    const int last = kept_.rank - 1;
    const int64_t width = kept_.dims[last], chunks = (width + kBlock - 1) / kBlock;
    const int64_t rows = kept_.numel() / width;
    const int64_t cost = std::min(width, kBlock) * count_;
    parallel_for(rows * chunks, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, cost)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     const Walker at(last, kept_.dims, i / chunks);
                     const int64_t first = i % chunks * kBlock;
                     column(at, first, std::min(kBlock, width - first));
                   }
                 });
  }

  void column(const Walker& at, int64_t first, int64_t n) const {
    const int last = kept_.rank - 1;
    Buffer<C> acc(kBlock), buffer(kBlock);
    Buffer<Wide<C>> wide(kBlock);
    std::fill_n(acc.get(), n, fn_.first);
    std::fill_n(wide.get(), n, Wide<C>(fn_.first));
    Operand in = kept_.in;
    const int64_t base = in.offset + at.offset(in.strides) + first * in.strides[last];
    in.strides[0] = in.strides[last];
    Walker gone(gone_.rank, gone_.dims);
    for (int64_t r = 0; r < count_; ++r, gone.next()) {
      in.offset = base + gone.offset(gone_.in.strides);
      fn_.column(acc, view_or_load(buffer.get(), in, 1, &n, 0, n), n);
      if (r % kFlush == kFlush - 1 || r == count_ - 1) flush(acc, wide, n);
    }
    for (int64_t i = 0; i < n; ++i) wide[i] = fn_.finish(wide[i], count_);
    store(wide.get(), const_cast<void*>(kept_.out.data), kept_.out.dtype,
          kept_.out.offset + at.offset(kept_.out.strides) + first * kept_.out.strides[last],
          kept_.out.strides[last], n);
  }
  void flush(C* acc, Wide<C>* wide, int64_t n) const {
    for (int64_t i = 0; i < n; ++i) {
      wide[i] = fn_.join(wide[i], acc[i]);
      acc[i] = fn_.first;
    }
  }

  const Reducer<C>& fn_;
  Space kept_, gone_;
  int64_t count_ = 0;
  bool columns_ = false;
};

}  // namespace

aclnnStatus axes_of(const Call& c, const Tensor& self, At<ArgKind::IntArray> dims_arg, uint32_t& axes) {
  const Span<const int64_t> dims = c.ints(dims_arg);
  axes = 0;
  for (int64_t given : dims) {
    int64_t axis = given;
    ACL_RETURN_IF_FAILED(expect_axis(c, dims_arg, axis, self.rank));
    if (axes >> axis & 1) {
      return c.fail(ACLNN_ERR_PARAM_INVALID, "%s names axis %lld twice.", c.name(dims_arg),
                    static_cast<long long>(axis));
    }
    axes |= 1u << axis;
  }
  if (dims.size == 0) axes = (1u << self.rank) - 1;
  return ACLNN_SUCCESS;
}

aclnnStatus expect_reduced(const Call& c, TensorAt out, const Tensor& self, uint32_t axes, bool keep) {
  Shape shape;
  for (int i = 0; i < self.rank; ++i) {
    const bool gone = axes >> i & 1;
    if (!gone || keep) shape.dims[shape.rank++] = gone ? 1 : self.dims[i];
  }
  return expect_shape(c, out, shape);
}

template <class C>
void add_up(const Tensor& out, const Tensor& self, uint32_t axes, aclDataType domain,
            const Reducer<C>& fn, Adds adds) {
  Buffer<C> space(out.numel());
  const bool direct = out.dtype == dtype_of<C>() && out.contiguous();
  C* sums = direct ? out.ptr<C>() : space.get();
  const bool halves = domain == self.dtype && dtype_size(domain) == 2;
  cascade_sum(sums, self, axes, adds == Adds::Numbers, halves && adds != Adds::AsFloat);
  int64_t count = 1;
  for (int i = 0; i < self.rank; ++i) count *= axes >> i & 1 ? self.dims[i] : 1;
  for (int64_t i = 0; i < out.numel(); ++i) sums[i] = static_cast<C>(fn.finish(sums[i], count));
  if (!direct) copy_tensor(out, dense(sums, dtype_of<C>(), out.dims, out.rank));
}

void reduce_tensor(const Tensor& out, const Tensor& self, uint32_t axes, aclDataType domain,
                   const Reducers& reducers) {
  // Halves are converted first, which pays while they are few.
  const bool few = dtype_size(self.dtype) != 2 || self.numel() <= 8192;
  if (reducers.adds != Adds::Never && !is_complex(self.dtype) && few) {
    switch (domain_of(domain)) {
      case Domain::Float: return add_up(out, self, axes, domain, reducers.f32, reducers.adds);
      case Domain::Double: return add_up(out, self, axes, domain, reducers.f64, reducers.adds);
      default: break;
    }
  }
  switch (domain_of(domain)) {
    case Domain::Float: Reduction<float>(out, self, axes, reducers.f32).run(); break;
    case Domain::Double: Reduction<double>(out, self, axes, reducers.f64).run(); break;
    case Domain::Integer: Reduction<int64_t>(out, self, axes, reducers.i64).run(); break;
    case Domain::Complex: Reduction<c128>(out, self, axes, reducers.complex).run(); break;
  }
}

}  // namespace aclsim
