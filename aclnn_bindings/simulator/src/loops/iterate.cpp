// The strided loops: see iterate.h.
#include "loops/iterate.h"

#include <algorithm>

namespace aclsim {
namespace {

constexpr int64_t kGrain = 32768;  // elements that pay for waking a thread

template <class C>
C* element(const Operand& op, int64_t at) {
  return static_cast<C*>(const_cast<void*>(op.data)) + op.offset + at;
}

bool all_zero(const Operand& op, int rank) {
  for (int i = 0; i < rank; ++i) {
    if (op.strides[i] != 0) return false;
  }
  return true;
}

bool needs_rounding(const Operand& op) {
  return op.rounded != op.dtype && (op.rounded == ACL_FLOAT16 || op.rounded == ACL_BF16);
}

// Moves `n` elements, row-major from the walker's place, between a buffer and an operand.
template <class C, class Move>
void walk(const Operand& op, Walker at, int64_t n, C* buffer, Move move) {
  const int last = at.rank - 1;
  while (n > 0) {
    const int64_t run = std::min(n, at.dims[last] - at.index[last]);
    move(buffer, op.offset + at.offset(op.strides), op.strides[last], run);
    buffer += run;
    n -= run;
    at.index[last] += run - 1;
    at.next();
  }
}

template <class C>
class Runner {
 public:
  Runner(const Loop& loop, Body<C> body) : loop_(loop), body_(body) {
    const int last = loop.rank - 1;
    rows_ = loop.rank == 1 || loop.dims[last] >= 128;
    for (int i = 0; i < loop.count; ++i) {
      const Operand& op = loop.operands[i];
      constant_[i] = i > 0 && all_zero(op, loop.rank);
      direct_[i] = rows_ && op.strides[last] == 1 && op.dtype == dtype_of<C>() &&
                   !needs_rounding(op);
      whole_ = whole_ && direct_[i];
    }
  }

  void operator()(int64_t begin, int64_t end) const {
    Buffer<C> space(whole_ ? 1 : loop_.count * kBlock);
    C* buffers[kMaxOperands];
    for (int i = 0; i < loop_.count; ++i) {
      buffers[i] = space + (whole_ ? 0 : i * kBlock);
      if (constant_[i]) fetch(i, buffers[i], Walker(0, nullptr), std::min(end - begin, kBlock));
    }
    const int last = loop_.rank - 1;
    Walker at(loop_.rank, loop_.dims, begin);
    while (begin < end) {
      int64_t n = end - begin;
      if (!whole_) n = std::min(n, kBlock);
      if (rows_) n = std::min(n, loop_.dims[last] - at.index[last]);
      block(at, n, buffers);
      begin += n;
      advance(at, n);
    }
  }

 private:
  void advance(Walker& at, int64_t n) const {
    const int last = loop_.rank - 1;
    at.index[last] += n;
    for (int i = last; i > 0 && at.index[i] >= loop_.dims[i]; --i) {
      at.index[i - 1] += at.index[i] / loop_.dims[i];
      at.index[i] %= loop_.dims[i];
    }
  }

  void fetch(int i, C* buffer, const Walker& at, int64_t n) const {
    const Operand& op = loop_.operands[i];
    if (constant_[i]) {
      load(buffer, op.data, op.dtype, op.offset, 0, n);
    } else {
      walk(op, at, n, buffer, [&](C* to, int64_t offset, int64_t stride, int64_t run) {
        load(to, op.data, op.dtype, offset, stride, run);
      });
    }
    if constexpr (std::is_same<C, float>::value) {
      if (needs_rounding(op)) round_to(buffer, op.rounded, n);
    }
  }

  void block(const Walker& at, int64_t n, C* const* buffers) const {
    const C* in[kMaxOperands];
    for (int i = 1; i < loop_.count; ++i) {
      const Operand& op = loop_.operands[i];
      if (direct_[i]) {
        in[i - 1] = element<C>(op, at.offset(op.strides));
      } else {
        if (!constant_[i]) fetch(i, buffers[i], at, n);
        in[i - 1] = buffers[i];
      }
    }
    const Operand& out = loop_.operands[0];
    if (direct_[0]) {
      body_(n, element<C>(out, at.offset(out.strides)), in);
      return;
    }
    body_(n, buffers[0], in);
    walk(out, at, n, buffers[0], [&](C* from, int64_t offset, int64_t stride, int64_t run) {
      store(from, const_cast<void*>(out.data), out.dtype, offset, stride, run);
    });
  }

  const Loop& loop_;
  Body<C> body_;
  bool rows_ = false, whole_ = true;
  bool constant_[kMaxOperands], direct_[kMaxOperands];
};

bool mergeable(const Loop& loop, int outer, int inner) {
  for (int i = 0; i < loop.count; ++i) {
    const int64_t* s = loop.operands[i].strides;
    if (s[outer] != s[inner] * loop.dims[inner]) return false;
  }
  return true;
}

void swap_dims(Loop& loop, int a, int b) {
  std::swap(loop.dims[a], loop.dims[b]);
  for (int i = 0; i < loop.count; ++i) {
    std::swap(loop.operands[i].strides[a], loop.operands[i].strides[b]);
  }
}

void move_dim(Loop& loop, int from, int to) {
  loop.dims[to] = loop.dims[from];
  for (int i = 0; i < loop.count; ++i) {
    loop.operands[i].strides[to] = loop.operands[i].strides[from];
  }
}

}  // namespace

Loop loop_over(const Tensor& out) {
  Loop loop;
  loop.rank = out.rank;
  std::copy(out.dims, out.dims + out.rank, loop.dims);
  loop.add(out);
  return loop;
}

void Loop::add(const Tensor& t) {
  Operand& op = operands[count++];
  op.data = t.data;
  op.offset = t.offset;
  op.dtype = op.rounded = t.dtype;
  const int shift = rank - t.rank;
  for (int i = 0; i < rank; ++i) {
    const bool walks = i >= shift && t.dims[i - shift] != 1;
    op.strides[i] = walks ? t.strides[i - shift] : 0;
  }
}

void Loop::coalesce() {
  int kept = 0;
  for (int i = 0; i < rank; ++i) {
    if (dims[i] != 1) move_dim(*this, i, kept++);
  }
  rank = kept;
  const int64_t* out = operands[0].strides;
  for (int i = 1; i < rank; ++i) {
    for (int j = i; j > 0 && out[j - 1] < out[j]; --j) swap_dims(*this, j - 1, j);
  }
  kept = 0;
  for (int i = 1; i < rank; ++i) {
    if (mergeable(*this, kept, i)) {
      const int64_t merged = dims[kept] * dims[i];
      move_dim(*this, i, kept);
      dims[kept] = merged;
    } else {
      move_dim(*this, i, ++kept);
    }
  }
  if (rank > 0) rank = kept + 1;
  if (rank == 0) {
    rank = 1;
    dims[0] = 1;
    for (int i = 0; i < count; ++i) operands[i].strides[0] = 1;
  }
}

template <class C>
void run_loop(const Loop& loop, Body<C> body) {
  const int64_t n = loop.numel();
  if (n == 0) return;
  const Runner<C> runner(loop, body);
  if (n <= kGrain) {
    runner(0, n);
  } else {
    parallel_for(n, kGrain, runner);
  }
}

template void run_loop(const Loop&, Body<float>);
template void run_loop(const Loop&, Body<double>);
template void run_loop(const Loop&, Body<int64_t>);
template void run_loop(const Loop&, Body<c128>);

template <class C>
const C* view_or_load(C* buffer, const Operand& op, int rank, const int64_t* dims, int64_t start,
                      int64_t n) {
  if (rank == 0) {
    load(buffer, op.data, op.dtype, op.offset, 1, 1);
    return buffer;
  }
  if (rank == 1) {
    const int64_t at = start * op.strides[0];
    if (op.strides[0] == 1 && op.dtype == dtype_of<C>()) return element<C>(op, at);
    load(buffer, op.data, op.dtype, op.offset + at, op.strides[0], n);
    return buffer;
  }
  walk(op, Walker(rank, dims, start), n, buffer,
       [&](C* to, int64_t offset, int64_t stride, int64_t run) {
         load(to, op.data, op.dtype, offset, stride, run);
       });
  return buffer;
}
template const float* view_or_load(float*, const Operand&, int, const int64_t*, int64_t, int64_t);
template const double* view_or_load(double*, const Operand&, int, const int64_t*, int64_t, int64_t);
template const int64_t* view_or_load(int64_t*, const Operand&, int, const int64_t*, int64_t,
                                     int64_t);
template const c128* view_or_load(c128*, const Operand&, int, const int64_t*, int64_t, int64_t);

namespace {

template <class C>
void copy_body(int64_t n, C* out, const C* const* in) {
  if (out != in[0]) std::memcpy(out, in[0], sizeof(C) * n);
}
// Casts: of an operand that lies densely in the compute type in one step.
template <class C>
void copy_cast(const Loop& loop) {
  const Operand &out = loop.operands[0], &in = loop.operands[1];
  const int last = loop.rank - 1;
  const bool from = in.dtype == dtype_of<C>() && in.strides[last] == 1;
  const bool to = out.dtype == dtype_of<C>() && out.strides[last] == 1;
  const int64_t run = loop.dims[last];
  if ((!from && !to) || (loop.rank > 1 && run < 64)) return run_loop<C>(loop, copy_body<C>);
  const int64_t pieces = (run + kGrain - 1) / kGrain;
  parallel_for(loop.numel() / run * pieces, std::max<int64_t>(1, kGrain / run),
               [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      Walker at(loop.rank, loop.dims, i / pieces * run + i % pieces * kGrain);
      const int64_t n = std::min(kGrain, run - at.index[last]);
      const int64_t target = out.offset + at.offset(out.strides);
      const int64_t source = in.offset + at.offset(in.strides);
      if (from) {
        store(static_cast<const C*>(in.data) + source, const_cast<void*>(out.data), out.dtype,
              target, out.strides[last], n);
      } else {
        load(static_cast<C*>(const_cast<void*>(out.data)) + target, in.data, in.dtype, source,
             in.strides[last], n);
      }
    }
  });
}

constexpr int64_t kTile = 32;

// The dim in which the input lies densely where the output does so in the last one; -1 where there
// is none, or too little to gain.
int transposed_dim(const Loop& loop) {
  const Operand &out = loop.operands[0], &in = loop.operands[1];
  const int last = loop.rank - 1;
  if (last < 1 || out.strides[last] != 1 || in.strides[last] == 1) return -1;
  if (loop.dims[last] < kTile / 2) return -1;
  for (int d = 0; d < last; ++d) {
    if (in.strides[d] == 1 && loop.dims[d] >= kTile / 2) return d;
  }
  return -1;
}

// A tile of rows and columns, read along one and written along the other.
template <class T>
ACL_VECTOR void transpose_tile(T* out, int64_t row, const T* in, int64_t column, int64_t rows,
                               int64_t columns) {
  T tile[kTile][kTile];
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t r = 0; r < rows; ++r) tile[r][c] = in[c * column + r];
  }
  for (int64_t r = 0; r < rows; ++r) std::memcpy(out + r * row, tile[r], sizeof(T) * columns);
}

template <class T>
void copy_transposed(const Loop& loop, int across) {
  const Operand &out = loop.operands[0], &in = loop.operands[1];
  const int last = loop.rank - 1;
  int64_t dims[kMaxRank], out_strides[kMaxRank], in_strides[kMaxRank];
  for (int d = 0; d < last; ++d) {
    const int64_t step = d == across ? kTile : 1;
    dims[d] = (loop.dims[d] + step - 1) / step;
    out_strides[d] = out.strides[d] * step;
    in_strides[d] = in.strides[d] * step;
  }
  const int64_t columns = loop.dims[last];
  int64_t bands = 1;
  for (int d = 0; d < last; ++d) bands *= dims[d];
  const int64_t grain = std::max<int64_t>(1, kGrain / (columns * kTile));
  parallel_for(bands, grain, [&](int64_t begin, int64_t end) {
    Walker at(last, dims, begin);
    for (int64_t b = begin; b < end; ++b, at.next()) {
      const int64_t rows = std::min(kTile, loop.dims[across] - at.index[across] * kTile);
      T* to = static_cast<T*>(const_cast<void*>(out.data)) + out.offset + at.offset(out_strides);
      const T* from = static_cast<const T*>(in.data) + in.offset + at.offset(in_strides);
      for (int64_t c = 0; c < columns; c += kTile) {
        transpose_tile(to + c, out.strides[across], from + c * in.strides[last], in.strides[last],
                       rows, std::min(kTile, columns - c));
      }
    }
  });
}

void copy_same_width(const Loop& loop, size_t bytes) {
  const int across = transposed_dim(loop);
  if (across >= 0) {
    with_width(bytes, [&](auto unit) { copy_transposed<decltype(unit)>(loop, across); });
    return;
  }
  const Operand &out = loop.operands[0], &in = loop.operands[1];
  const int last = loop.rank - 1;
  const int64_t inner = loop.dims[last], rows = loop.numel() / inner;
  parallel_for(rows, std::max<int64_t>(1, kGrain / inner), [&](int64_t begin, int64_t end) {
    Walker at(last, loop.dims, begin);
    for (int64_t r = begin; r < end; ++r, at.next()) {
      char* to = static_cast<char*>(const_cast<void*>(out.data)) +
                 (out.offset + at.offset(out.strides)) * static_cast<int64_t>(bytes);
      const char* from = static_cast<const char*>(in.data) +
                         (in.offset + at.offset(in.strides)) * static_cast<int64_t>(bytes);
      copy_elements(to, out.strides[last], from, in.strides[last], inner, bytes);
    }
  });
}

}  // namespace

void copy_tensor(const Tensor& dst, const Tensor& src) {
  Loop loop = loop_over(dst);
  loop.add(src);
  loop.coalesce();
  if (loop.numel() == 0) return;
  if (dst.dtype == src.dtype && dtype_size(dst.dtype) != 0) {
    copy_same_width(loop, dtype_size(dst.dtype));
    return;
  }
  switch (domain_of(src.dtype)) {
    case Domain::Float: copy_cast<float>(loop); break;
    case Domain::Double: copy_cast<double>(loop); break;
    case Domain::Integer: copy_cast<int64_t>(loop); break;
    case Domain::Complex: copy_cast<c128>(loop); break;
  }
}

void fill_tensor(const Tensor& dst, const Scalar& value) {
  alignas(16) unsigned char element[16] = {};
  switch (domain_of(value.dtype)) {
    case Domain::Integer: store_one(scalar_as<int64_t>(value), element, dst.dtype, 0); break;
    case Domain::Complex: store_one(scalar_as<c128>(value), element, dst.dtype, 0); break;
    default: store_one(scalar_as<double>(value), element, dst.dtype, 0); break;
  }
  Tensor one = dense(element, dst.dtype, nullptr, 0);
  copy_tensor(dst, one);
}

Tensor dense(void* data, aclDataType dtype, const int64_t* dims, int rank) {
  Tensor t = {};
  t.data = data;
  t.dtype = dtype;
  t.format = ACL_FORMAT_ND;
  t.rank = rank;
  int64_t step = 1;
  for (int i = rank - 1; i >= 0; --i) {
    t.dims[i] = dims[i];
    t.strides[i] = step;
    step *= dims[i];
  }
  t.storage_numel = step;
  return t;
}

}  // namespace aclsim
