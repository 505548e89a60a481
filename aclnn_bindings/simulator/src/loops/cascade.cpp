// The order is that of torch's aten/src/ATen/native/cpu/SumKernel.cpp (cascade_sum) over the planes
// that aten/src/ATen/TensorIterator.cpp (reorder_dimensions, coalesce_dimensions) walks.
#include "loops/cascade.h"

#include "loops/iterate.h"
#include "loops/lanes.h"
#include "loops/stage.h"

#include <algorithm>
#include <memory>

// Vectors are returned by what is inlined alone.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace aclsim {
namespace cascade {

constexpr int kRows = 4;    // partial sums that advance together
constexpr int kLevels = 4;  // of chunks
constexpr int64_t kGrain = 32768;  // elements from which threads share a sum

// A vector of 32 bytes, loaded from any address.
template <class C>
struct Pack {
  typedef C V __attribute__((vector_size(32)));
  static constexpr int64_t size = 32 / sizeof(C);
};

template <class C, bool SkipsNan>
struct Load {
  static ACL_INLINE C one(const C* p) { return SkipsNan && *p != *p ? C(0) : *p; }
  static ACL_INLINE typename Pack<C>::V pack(const C* p) {
    typename Pack<C>::V v;
    __builtin_memcpy(&v, p, sizeof v);
    return SkipsNan ? (v == v ? v : typename Pack<C>::V{}) : v;
  }
};

int ceil_log2(int64_t x) { return x <= 2 ? 1 : 64 - __builtin_clzll(static_cast<uint64_t>(x - 1)); }

// N sums side by side of `size` terms each; term(i, k) is the i-th of sum k.
template <class V, int N, class Term>
ACL_INLINE void many_sums(V (&sums)[N], int64_t size, Term term) {
  const int power = std::max(4, ceil_log2(size) / kLevels);
  const int64_t step = int64_t{1} << power;
  V upper[kLevels - 1][N] = {};
  for (int k = 0; k < N; ++k) sums[k] = V{};
  int64_t i = 0;
  while (i + step <= size) {
    for (int64_t end = i + step; i < end; ++i) {
      for (int k = 0; k < N; ++k) sums[k] += term(i, k);
    }
    for (int k = 0; k < N; ++k) upper[0][k] += sums[k], sums[k] = V{};
    for (int level = 1; level < kLevels - 1; ++level) {
      if (i & ((step - 1) << (level * power))) break;
      for (int k = 0; k < N; ++k) upper[level][k] += upper[level - 1][k], upper[level - 1][k] = V{};
    }
  }
  for (; i < size; ++i) {
    for (int k = 0; k < N; ++k) sums[k] += term(i, k);
  }
  for (int level = 0; level < kLevels - 1; ++level) {
    for (int k = 0; k < N; ++k) sums[k] += upper[level][k];
  }
}

// One sum, of every fourth term first.
template <class V, class Term>
ACL_INLINE V one_sum(int64_t size, Term term) {
  V sums[kRows];
  const int64_t quarter = size / kRows;
  many_sums(sums, quarter, [&](int64_t i, int k) ACL_LAMBDA { return term(i * kRows + k); });
  for (int64_t i = quarter * kRows; i < size; ++i) sums[0] += term(i);
  for (int k = 1; k < kRows; ++k) sums[0] += sums[k];
  return sums[0];
}

// Reduced elements lie `in` apart, results `in_next` and `out` apart.
struct Plane {
  int64_t terms, results, in, in_next, out;
};

template <class C, bool SkipsNan>
struct Sums {
  using V = typename Pack<C>::V;
  using L = Load<C, SkipsNan>;
  static constexpr int64_t W = Pack<C>::size;

  // Terms side by side. Halves come as pairs of vectors.
  template <bool Pairs>
  static ACL_VECTOR C inner(const C* x, int64_t n) {
    constexpr int64_t wide = Pairs ? 2 * W : W;
    const int64_t vectors = n / wide;
    const V sums = one_sum<V>(vectors, [=](int64_t i) ACL_LAMBDA {
      const C* p = x + i * wide;
      return Pairs ? L::pack(p) + L::pack(p + W) : L::pack(p);
    });
    C total = 0;
    for (int64_t i = vectors * wide; i < n; ++i) total += L::one(x + i);
    for (int64_t l = 0; l < W; ++l) total += sums[l];
    return total;
  }
  static ACL_VECTOR C strided(const C* x, int64_t n, int64_t step) {
    return one_sum<C>(n, [=](int64_t i) ACL_LAMBDA { return L::one(x + i * step); });
  }
  static ACL_VECTOR void four_packs(C* to, const C* x, int64_t n, int64_t step) {
    V sums[kRows];
    many_sums(sums, n, [=](int64_t i, int k) ACL_LAMBDA { return L::pack(x + i * step + k * W); });
    __builtin_memcpy(to, sums, sizeof sums);
  }
  static ACL_VECTOR void one_pack(C* to, const C* x, int64_t n, int64_t step) {
    const V sum = one_sum<V>(n, [=](int64_t i) ACL_LAMBDA { return L::pack(x + i * step); });
    __builtin_memcpy(to, &sum, sizeof sum);
  }
  static ACL_VECTOR void four(C* to, const C* x, int64_t n, int64_t step, int64_t next) {
    C sums[kRows];
    many_sums(sums, n, [=](int64_t i, int k) ACL_LAMBDA { return L::one(x + i * step + k * next); });
    for (int k = 0; k < kRows; ++k) to[k] = sums[k];
  }

  // Results side by side.
  static void outer(C* out, const C* x, const Plane& p) {
    C sums[kRows * W];
    int64_t j = 0;
    const auto put = [&](int64_t n) {
      for (int64_t k = 0; k < n; ++k) out[(j + k) * p.out] += sums[k];
    };
    for (; j + kRows * W <= p.results; j += kRows * W) {
      four_packs(sums, x + j, p.terms, p.in);
      put(kRows * W);
    }
    for (; j + W <= p.results; j += W) {
      one_pack(sums, x + j, p.terms, p.in);
      put(W);
    }
    for (; j < p.results; ++j) out[j * p.out] += strided(x + j, p.terms, p.in);
  }
  static void scattered(C* out, const C* x, const Plane& p) {
    int64_t j = 0;
    for (; p.in >= p.in_next && j + kRows <= p.results; j += kRows) {
      C sums[kRows];
      four(sums, x + j * p.in_next, p.terms, p.in, p.in_next);
      for (int k = 0; k < kRows; ++k) out[(j + k) * p.out] += sums[k];
    }
    for (; j < p.results; ++j) out[j * p.out] += strided(x + j * p.in_next, p.terms, p.in);
  }
  static void plane(C* out, const C* x, const Plane& p, bool pairs) {
    // Of many short rows, whose sums torch adds in turn and is off by as much.
    if (p.out == 0 && p.results > kLongSum) {
      double total = 0;
      for (int64_t j = 0; j < p.results; ++j) {
        C row = 0;
        plane(&row, x + j * p.in_next, Plane{p.terms, 1, p.in, 0, 0}, pairs);
        total += row;
      }
      *out += static_cast<C>(total);
      return;
    }
    const int64_t least = pairs ? 2 * W : W;
    if (p.in == 1 && p.terms >= least) {
      for (int64_t j = 0; j < p.results; ++j) {
        const C* row = x + j * p.in_next;
        out[j * p.out] += pairs ? inner<true>(row, p.terms) : inner<false>(row, p.terms);
      }
    } else if (p.in_next == 1 && p.results >= least) {
      outer(out, x, p);
    } else {
      scattered(out, x, p);
    }
  }
};

// The dims as TensorIterator orders and joins them, the innermost first; `out` is 0 where reduced.
struct Walk {
  int rank = 0;
  int64_t dims[kMaxRank], in[kMaxRank], out[kMaxRank];

  Walk(const Tensor& self, uint32_t axes) {
    int64_t step = 1;
    for (int i = self.rank - 1; i >= 0; --i, ++rank) {
      const bool reduced = axes >> i & 1;
      dims[rank] = self.dims[i];
      in[rank] = self.strides[i];
      out[rank] = reduced ? 0 : step;
      if (!reduced) step *= self.dims[i];
    }
    order();
    join();
  }

 private:
  // 1: b goes before a; -1: it does not; 0: undecided.
  int compared(int a, int b) const {
    if ((out[a] == 0) != (out[b] == 0)) return out[b] == 0 ? 1 : -1;
    for (const int64_t* steps : {out, in}) {
      if (steps[a] == 0 || steps[b] == 0) continue;
      if (steps[a] != steps[b]) return steps[a] < steps[b] ? -1 : 1;
      if (dims[a] > dims[b]) return 1;
    }
    return 0;
  }
  void exchange(int a, int b) {
    for (int64_t* list : {dims, in, out}) std::swap(list[a], list[b]);
  }
  void order() {
    for (int i = 1; i < rank; ++i) {
      for (int from = i, to = i - 1; to >= 0; --to) {
        const int way = compared(to, from);
        if (way < 0) break;
        if (way == 0) continue;
        exchange(to, from);
        from = to;
      }
    }
  }
  void join() {
    int last = 0;
    for (int i = 1; i < rank; ++i) {
      const bool fits = dims[last] == 1 || dims[i] == 1 ||
                        (dims[last] * in[last] == in[i] && dims[last] * out[last] == out[i]);
      if (!fits || dims[last] == 1) {
        if (!fits) ++last;
        in[last] = in[i];
        out[last] = out[i];
      }
      dims[last] = fits ? dims[last] * dims[i] : dims[i];
    }
    rank = std::min(rank, last + 1);
  }
};

template <class C, bool SkipsNan>
class Run {
 public:
  Run(C* out, const C* in, const Walk& walk, bool pairs)
      : out_(out), in_(in), walk_(walk), pairs_(pairs) {}

  void run() {
    int64_t total = 1;
    for (int i = 0; i < walk_.rank; ++i) total *= walk_.dims[i];
    if (total < kGrain || kernel_threads() == 1) {
      planes(walk_, 0, 0);
    } else if (walk_.rank == 1 && walk_.out[0] == 0) {
      pieces(total);
    } else {
      split();
    }
  }

 private:
  void planes(const Walk& w, int64_t in, int64_t out) const {
    const int64_t outer = w.rank > 2 ? w.dims[w.rank - 1] : 1;
    if (w.rank <= 2) {
      plane(w, in, out);
      return;
    }
    Walk inner = w;
    --inner.rank;
    for (int64_t i = 0; i < outer; ++i) {
      planes(inner, in + i * w.in[w.rank - 1], out + i * w.out[w.rank - 1]);
    }
  }
  void plane(const Walk& w, int64_t in, int64_t out) const {
    Plane p{w.rank > 0 ? w.dims[0] : 1, w.rank > 1 ? w.dims[1] : 1, w.rank > 0 ? w.in[0] : 0,
            w.rank > 1 ? w.in[1] : 0, w.rank > 1 ? w.out[1] : 0};
    const int64_t first_out = w.rank > 0 ? w.out[0] : 0;
    if (first_out != 0 && p.out != 0) {  // nothing is reduced here
      for (int64_t j = 0; j < p.results; ++j) copy_row(w, p, in + j * p.in_next, out + j * p.out);
      return;
    }
    if (first_out != 0) {
      std::swap(p.in, p.in_next);
      std::swap(p.terms, p.results);
      p.out = first_out;
    }
    Sums<C, SkipsNan>::plane(out_ + out, in_ + in, p, pairs_);
  }
  void copy_row(const Walk& w, const Plane& p, int64_t in, int64_t out) const {
    for (int64_t i = 0; i < p.terms; ++i) {
      out_[out + i * w.out[0]] += Load<C, SkipsNan>::one(in_ + in + i * p.in);
    }
  }
  // One result of elements in a row: a thread sums a part, then their sums are summed.
  void pieces(int64_t total) const {
    const int64_t parts = std::min<int64_t>(kernel_threads(), (total + kGrain - 1) / kGrain);
    const int64_t part = (total + parts - 1) / parts;
    Buffer<C> sums(kernel_threads());
    std::fill_n(sums.get(), kernel_threads(), C(0));
    parallel_for(parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const Plane p{std::min(part, total - i * part), 1, walk_.in[0], 0, 0};
        Sums<C, SkipsNan>::plane(sums.get() + i, in_ + i * part * walk_.in[0], p, pairs_);
      }
    });
    Sums<C, SkipsNan>::plane(out_, sums.get(), Plane{kernel_threads(), 1, 1, 0, 0}, pairs_);
  }
  // The outermost dim that is long enough of those that stay, in runs of whole cache lines.
  void split() const {
    int dim = walk_.rank - 1;
    for (int i = dim; i >= 0 && walk_.out[i] != 0; --i) {
      if (walk_.dims[i] > walk_.dims[dim]) dim = i;
      if (walk_.dims[i] >= kernel_threads()) {
        dim = i;
        break;
      }
    }
    if (walk_.out[dim] == 0) {
      planes(walk_, 0, 0);
      return;
    }
    const int64_t run = walk_.in[dim] == 1 ? 128 / static_cast<int64_t>(sizeof(C)) : 1;
    const int64_t runs = (walk_.dims[dim] + run - 1) / run;
    parallel_for(runs, 1, [&](int64_t begin, int64_t end) {
      Walk mine = walk_;
      mine.dims[dim] = std::min(walk_.dims[dim], end * run) - begin * run;
      planes(mine, begin * run * walk_.in[dim], begin * run * walk_.out[dim]);
    });
  }

  C* out_;
  const C* in_;
  const Walk& walk_;
  bool pairs_;
};

// The same elements side by side in memory, dims in the order of their strides.
template <class C>
Tensor packed(C* space, const Tensor& self) {
  Tensor t = dense(space, dtype_of<C>(), self.dims, self.rank);
  int order[kMaxRank];
  for (int i = 0; i < self.rank; ++i) order[i] = i;
  std::stable_sort(order, order + self.rank,
                   [&](int a, int b) { return self.strides[a] > self.strides[b]; });
  int64_t step = 1;
  for (int i = self.rank - 1; i >= 0; --i) {
    t.strides[order[i]] = step;
    step *= self.dims[order[i]];
  }
  copy_tensor(t, self);
  return t;
}

}  // namespace cascade

template <class C>
void cascade_sum(C* out, const Tensor& self, uint32_t axes, bool skips_nan, bool pairs) {
  int64_t results = 1;
  for (int i = 0; i < self.rank; ++i) {
    if (!(axes >> i & 1)) results *= self.dims[i];
  }
  std::fill_n(out, results, C(0));
  if (self.numel() == 0) return;
  std::unique_ptr<C[]> space;
  Tensor from = self;
  if (self.dtype != dtype_of<C>()) {
    space.reset(new C[static_cast<size_t>(self.numel())]);
    from = cascade::packed(space.get(), self);
  }
  const cascade::Walk walk(from, axes);
  const C* in = static_cast<const C*>(from.data) + from.offset;
  if (skips_nan) {
    cascade::Run<C, true>(out, in, walk, pairs).run();
  } else {
    cascade::Run<C, false>(out, in, walk, pairs).run();
  }
}
template void cascade_sum<float>(float*, const Tensor&, uint32_t, bool, bool);
template void cascade_sum<double>(double*, const Tensor&, uint32_t, bool, bool);

}  // namespace aclsim
