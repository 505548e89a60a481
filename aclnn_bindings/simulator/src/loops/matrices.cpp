// Reading and multiplying matrices: see matrices.h.
#include "loops/matrices.h"

#include <cmath>

#include "loops/gemm.h"

namespace aclsim {
namespace {

bool packed_dtype(const Tensor& t, bool packs) {
  return packs && (t.dtype == ACL_INT32 || t.dtype == ACL_FLOAT);
}
// How many elements are in a row of the inner format's tiles, where the format says it.
int64_t told_width(const Tensor& t) {
  switch (t.format) {
    case ACL_FORMAT_FRACTAL_NZ_C0_2: return 2;
    case ACL_FORMAT_FRACTAL_NZ_C0_4: return 4;
    case ACL_FORMAT_FRACTAL_NZ_C0_8: return 8;
    case ACL_FORMAT_FRACTAL_NZ_C0_16: return 16;
    case ACL_FORMAT_FRACTAL_NZ_C0_32: return 32;
    default: return 0;
  }
}
bool inner_format(const Tensor& t) {
  return t.format == ACL_FORMAT_FRACTAL_NZ || told_width(t) != 0;
}
// Tiles are sixteen rows, of 32 bytes where the format does not say otherwise.
bool tiled(const Tensor& t) { return inner_format(t) && t.rank >= 4; }
int64_t tile_width(const Tensor& t) {
  if (const int64_t told = told_width(t)) return told;
  const size_t bytes = dtype_size(t.dtype);
  return bytes ? 32 / static_cast<int64_t>(bytes) : 64;
}
int64_t lead(const Tensor& t, int inner) {
  int64_t n = 1;
  for (int i = 0; i < t.rank - inner; ++i) n *= t.dims[i];
  return n;
}
// Is the matrix a transposed view, which packs along its rows?
bool packs_rows(const Tensor& t) {
  return t.rank >= 2 && t.strides[t.rank - 2] == 1 && t.strides[t.rank - 1] != 1;
}
}  // namespace

Matrices transposed_of(const Matrices& m) {
  Matrices r = {Doubles(m.v.size()), m.batch, m.cols, m.rows};
  for (int64_t b = 0; b < m.batch; ++b) {
    for (int64_t i = 0; i < m.rows; ++i) {
      for (int64_t j = 0; j < m.cols; ++j) r.at(b)[j * m.rows + i] = m.at(b)[i * m.cols + j];
    }
  }
  return r;
}

namespace {

// [.., columns of tiles, rows of tiles, rows in a tile, columns in it].
Matrices untiled(const Tensor& t, bool packs) {
  const int64_t* d = t.dims + t.rank - 4;
  const int64_t wide = d[3] * (packed_dtype(t, packs) ? kPacked : 1);
  const Doubles all = unpacked(t, packs);
  Matrices m = {Doubles(all.size()), lead(t, 4), d[1] * d[2], d[0] * wide};
  size_t from = 0;
  for (int64_t b = 0; b < m.batch; ++b) {
    for (int64_t c = 0; c < d[0]; ++c) {
      for (int64_t i = 0; i < m.rows; ++i) {
        for (int64_t j = 0; j < wide; ++j) m.at(b)[i * m.cols + c * wide + j] = all[from++];
      }
    }
  }
  return m;
}
// A plain view over inner storage: the element of row r and column c lies in tile (c / w, r / 16).
struct Tiling {
  bool turned;
  int64_t batch, rows, cols, w, high, across;
  explicit Tiling(const Tensor& t)
      : turned(packs_rows(t)), batch(lead(t, 2)), rows(t.dims[t.rank - 2]), cols(t.dims[t.rank - 1]),
        w(tile_width(t)), high(((turned ? cols : rows) + 15) / 16 * 16),
        across(((turned ? rows : cols) + w - 1) / w) {}
  int64_t elements() const { return batch * across * high * w; }
  int64_t at(int64_t b, int64_t i, int64_t j) const {
    const int64_t r = turned ? j : i, c = turned ? i : j;
    return ((b * across + c / w) * high + r) * w + c % w;
  }
};
Matrices view_of_tiles(const Tensor& t) {
  const Tiling tiles(t);
  Matrices m = {Doubles(), tiles.batch, tiles.rows, tiles.cols};
  m.v.resize(static_cast<size_t>(m.batch * m.rows * m.cols));
  for (int64_t b = 0; b < m.batch; ++b) {
    for (int64_t i = 0; i < m.rows; ++i) {
      for (int64_t j = 0; j < m.cols; ++j)
        m.at(b)[i * m.cols + j] = load_one<double>(t.data, t.dtype, t.offset + tiles.at(b, i, j));
    }
  }
  return m;
}
Matrices plain(const Tensor& t, bool packs) {
  if (!packed_dtype(t, packs) || !packs_rows(t)) {
    const int64_t times = packed_dtype(t, packs) ? kPacked : 1;
    return {unpacked(t, packs), lead(t, 2), t.dims[t.rank - 2], t.dims[t.rank - 1] * times};
  }
  Tensor turned = t;
  std::swap(turned.dims[t.rank - 1], turned.dims[t.rank - 2]);
  std::swap(turned.strides[t.rank - 1], turned.strides[t.rank - 2]);
  return transposed_of(plain(turned, packs));
}
Matrices cut(const Matrices& m, int64_t rows, int64_t cols) {
  const int64_t r = rows == kNoLimit ? m.rows : std::min(rows, m.rows),
                k = cols == kNoLimit ? m.cols : std::min(cols, m.cols);
  if (r == m.rows && k == m.cols) return m;
  Matrices out = {Doubles(), m.batch, r, k};
  for (int64_t b = 0; b < m.batch; ++b) {
    for (int64_t i = 0; i < r; ++i) {
      const double* row = m.at(b) + i * m.cols;
      out.v.insert(out.v.end(), row, row + k);
    }
  }
  return out;
}

}  // namespace

Matrices matrices_like(const Tensor& t, bool transposed, bool packs) {
  Matrices m;
  const int last = t.rank - 1;
  const int64_t times = packed_dtype(t, packs) ? kPacked : 1;
  if (t.rank < 2) return m;
  if (tiled(t)) {
    m.batch = lead(t, 4), m.rows = t.dims[last - 2] * t.dims[last - 1];
    m.cols = t.dims[last - 3] * t.dims[last] * times;
  } else {
    const bool rows = packs_rows(t);
    m.batch = lead(t, 2), m.rows = t.dims[last - 1] * (rows ? times : 1);
    m.cols = t.dims[last] * (rows ? 1 : times);
  }
  if (transposed) std::swap(m.rows, m.cols);
  return m;
}
bool in_tiles(const Tensor& t) { return tiled(t); }
bool stands_for_tiles(const Tensor& t) {
  if (!inner_format(t) || t.offset != 0 || (t.rank != 2 && t.rank != 3)) return false;
  Tensor whole = t;
  if (packs_rows(t)) {
    std::swap(whole.dims[t.rank - 1], whole.dims[t.rank - 2]);
    std::swap(whole.strides[t.rank - 1], whole.strides[t.rank - 2]);
  }
  return whole.contiguous() && t.storage_numel >= Tiling(t).elements();
}
void write_tiles(const Tensor& t, const Matrices& m) {
  if (tiled(t)) {
    const int64_t *d = t.dims + t.rank - 4, high = d[1] * d[2], each = d[0] * high * d[3];
    Doubles v(static_cast<size_t>(t.numel()));
    for (int64_t b = 0; b < m.batch; ++b) {
      for (int64_t i = 0; i < m.rows * m.cols; ++i) {
        const int64_t r = i / m.cols, k = i % m.cols;
        v[b * each + (k / d[3] * high + r) * d[3] + k % d[3]] = m.at(b)[i];
      }
    }
    write(t, v);
    return;
  }
  const Tiling tiles(t);
  Doubles v(static_cast<size_t>(tiles.elements()));
  for (int64_t b = 0; b < m.batch; ++b) {
    for (int64_t i = 0; i < m.rows * m.cols; ++i)
      v[tiles.at(b, i / m.cols, i % m.cols)] = m.at(b)[i];
  }
  Tensor flat = t;
  flat.rank = 1, flat.dims[0] = tiles.elements(), flat.strides[0] = 1;
  write(flat, v);
}
Matrices matrices_of(const Tensor& t, bool transposed, bool packs, int64_t rows, int64_t cols) {
  const bool inside = !packed_dtype(t, packs) && stands_for_tiles(t);
  Matrices m = tiled(t) ? untiled(t, packs) : inside ? view_of_tiles(t) : plain(t, packs);
  if (transposed) m = transposed_of(m);
  return cut(m, rows, cols);
}

namespace {

// f(element, its block's value).
template <class F>
void over_blocks(Matrices& m, const Tensor& scale, bool by_rows, F f) {
  const Floats words = packed_scales(&scale);
  const Doubles s(words.begin(), words.end());
  if (s.empty()) return;
  const bool pairs =
      scale.rank >= 3 && scale.dims[scale.rank - 1] == 2 && scale.dtype == ACL_FLOAT8_E8M0;
  const int last = scale.rank - 1 - (pairs ? 1 : 0);
  const int64_t high = last > 0 ? scale.dims[last - 1] : 1, wide = last >= 0 ? scale.dims[last] : 1;
  const int64_t each = high * wide * (pairs ? 2 : 1);
  const bool one = static_cast<int64_t>(s.size()) == each;  // for all batches
  const int64_t gr = pairs ? (by_rows ? 32 : 1) : (m.rows + high - 1) / high,
                gc = pairs ? (by_rows ? 1 : 32) : (m.cols + wide - 1) / wide;
  for (int64_t b = 0; b < m.batch; ++b) {
    const double* base = s.data() + (one ? 0 : b * each);
    for (int64_t i = 0; i < m.rows; ++i) {
      for (int64_t j = 0; j < m.cols; ++j) {
        const int64_t r = i / gr, k = j / gc;
        int64_t at = r * wide + k;
        if (pairs) at = by_rows ? (r / 2 * wide + k) * 2 + r % 2 : r * wide * 2 + k;
        f(m.at(b)[i * m.cols + j], base[at]);
      }
    }
  }
}

}  // namespace

void scale_blocks(Matrices& m, const Tensor& scale, bool by_rows) {
  over_blocks(m, scale, by_rows, [](double& x, double s) { x *= s; });
}
void shift_blocks(Matrices& m, const Tensor& offset, double sign) {
  over_blocks(m, offset, false, [=](double& x, double o) { x += sign * o; });
}

Matrices product(const Matrices& a, const Matrices& b) {
  // One matrix serves all of the other side, of which there may be none.
  Matrices c = {Doubles(), a.batch == 1 ? b.batch : a.batch, a.rows, b.cols};
  c.v.resize(static_cast<size_t>(c.batch * c.rows * c.cols));
  if (c.v.empty() || a.cols == 0) return c;
  for (int64_t i = 0; i < c.batch; ++i) {
    gemm<double>({c.at(i), c.rows, c.cols, c.cols, 1},
                 {a.at(a.batch == 1 ? 0 : i), a.rows, a.cols, a.cols, 1},
                 {b.at(b.batch == 1 ? 0 : i), b.rows, b.cols, b.cols, 1}, false);
  }
  return c;
}

Floats packed_scales(const Tensor* t) {
  if (!t || (t->dtype != ACL_UINT64 && t->dtype != ACL_INT64)) return floats(t);
  Floats f;
  for (int64_t word : integers(t)) f.push_back(float_of(static_cast<uint32_t>(word)));
  return f;
}
Floats packed_offsets(const Tensor* t) {
  if (!t || (t->dtype != ACL_UINT64 && t->dtype != ACL_INT64)) return {};
  Floats f;
  for (int64_t word : integers(t)) {
    const int64_t nine = word >> 37 & 0x1FF;
    f.push_back(static_cast<float>(nine > 255 ? nine - 512 : nine));
  }
  return f;
}

double activated(double x, Activation activation) {
  switch (activation) {
    case Activation::Relu: return std::max(x, 0.0);
    case Activation::GeluTanh:
      return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
    case Activation::GeluErf: return 0.5 * x * (1 + std::erf(x * 0.7071067811865476));
    case Activation::FastGelu: return x / (1 + std::exp(-1.702 * x));
    case Activation::Silu: return x / (1 + std::exp(-x));
    default: return x;
  }
}

}  // namespace aclsim
