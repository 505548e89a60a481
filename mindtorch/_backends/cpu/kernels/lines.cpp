// Inner loops of numpy's generalized universal functions: what reads whole lines or matrices.
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <vector>

#include "ascendcl/dtype.h"
#include "lines.h"
#include "universal.h"

namespace {

template <class T>
T conjugate(T x) {
  return x;
}
template <class T>
std::complex<T> conjugate(std::complex<T> x) {
  return std::conj(x);
}

template <class T>
void add_row(T* sums, const Plane<T>& from, intptr_t i, intptr_t n, T factor) {
  if (from.across == sizeof(T)) {
    const T* row = &from(i, 0);
    for (intptr_t j = 0; j < n; ++j) sums[j] += factor * row[j];
  } else {
    for (intptr_t j = 0; j < n; ++j) sums[j] += factor * from(i, j);
  }
}
template <class T>
void take_row(const Plane<T>& to, intptr_t i, intptr_t n, T factor, const T* sums) {
  if (to.across == sizeof(T)) {
    T* row = &to(i, 0);
    for (intptr_t j = 0; j < n; ++j) row[j] -= factor * sums[j];
  } else {
    for (intptr_t j = 0; j < n; ++j) to(i, j) -= factor * sums[j];
  }
}

// (m,n),(k),(m,p),()->(m,p): LAPACK's reflections H1 … Hk, or by the flag their adjoint, times a
// matrix. Hi is 1 - tau v vᴴ, v the i-th column below its diagonal with a one there.
template <class T>
void reflected(char** args, const intptr_t* sizes, const intptr_t* steps, void*) {
  const intptr_t m = sizes[1], k = sizes[3], p = sizes[4];
  const intptr_t* s = steps + 5;
  each<5>(args, sizes, steps, [&] {
    const Plane<T> a{args[0], s[0], s[1]}, given{args[2], s[3], s[4]}, out{args[4], s[5], s[6]};
    const Line<T> tau{args[1], s[2]};
    const bool adjoint = number<bool>(args[3]);
    for (intptr_t i = 0; i < m; ++i)
      for (intptr_t j = 0; j < p; ++j) out(i, j) = given(i, j);
    // Along rows of the result: what a reflection takes of each column at once.
    std::vector<T> sums(p);
    for (intptr_t step = 0; step < k; ++step) {
      const intptr_t r = adjoint ? step : k - 1 - step;
      const T factor = adjoint ? conjugate(tau[r]) : tau[r];
      for (intptr_t j = 0; j < p; ++j) sums[j] = out(r, j);
      for (intptr_t i = r + 1; i < m; ++i) add_row(sums.data(), out, i, p, conjugate(a(i, r)));
      for (intptr_t j = 0; j < p; ++j) out(r, j) -= sums[j] *= factor;
      for (intptr_t i = r + 1; i < m; ++i) take_row(out, i, p, a(i, r), sums.data());
    }
  });
}

// (n),(),()->(): the first place whose element is not below a value, or by the flag above it, by
// halves: what is not sorted, NaN too, ends where torch's search ends.
template <class T>
void search(char** args, const intptr_t* sizes, const intptr_t* steps, void*) {
  each<4>(args, sizes, steps, [&] {
    const Line<T> line{args[0], steps[4]};
    const T value = number<T>(args[1]);
    const bool right = number<bool>(args[2]);
    intptr_t low = 0, size = sizes[1];
    while (size > 0) {
      const intptr_t half = size / 2;
      const T seen = line[low + half];
      const bool up = !(right ? seen > value : seen >= value);
      low = up ? low + half + 1 : low;
      size = up ? size - half - 1 : half;
    }
    number<int64_t>(args[3]) = low;
  });
}

// The sum of what `add` adds for the gaps of two rows, as torch's vectors of 32 bytes add them for
// pdist: a lane for each place, then halves of four bytes' lanes, or lanes of eight bytes in order.
template <class T, class Add>
ACL_INLINE T sum_by_lanes(const T* a, const T* b, intptr_t d, Add add) {
  constexpr intptr_t L = 32 / sizeof(T);
  T lanes[L] = {};
  for (intptr_t i = 0; i < d; ++i) lanes[i % L] = add(lanes[i % L], std::abs(a[i] - b[i]));
  if (d >= L && sizeof(T) == 4)
    for (intptr_t half = L / 2; half > 1; half /= 2)
      for (intptr_t k = 0; k < half; ++k) lanes[k] += lanes[k + half];
  const intptr_t left = d >= L && sizeof(T) == 4 ? 2 : d < L ? d : L;
  T sum = 0;
  for (intptr_t k = 0; k < left; ++k) sum += lanes[k];
  return sum;
}

// The same for cdist, one after another; squares after the last 16 bytes are not rounded before.
template <class T, class Add>
ACL_INLINE T sum_in_order(const T* a, const T* b, intptr_t d, Add add, bool squares) {
  const intptr_t whole = squares ? d - d % static_cast<intptr_t>(16 / sizeof(T)) : d;
  T sum = 0;
  for (intptr_t i = 0; i < whole; ++i) sum = add(sum, std::abs(a[i] - b[i]));
  for (intptr_t i = whole; i < d; ++i) sum = std::fma(a[i] - b[i], a[i] - b[i], sum);
  return sum;
}

template <class T>
T distance(const T* a, const T* b, intptr_t d, double p, bool lanes) {
  const auto sum = [&](auto add) {
    return lanes ? sum_by_lanes(a, b, d, add) : sum_in_order(a, b, d, add, p == 2);
  };
  if (p == 2) return std::sqrt(sum([](T total, T gap) { return total + gap * gap; }));
  if (p == 1) return sum([](T total, T gap) { return total + gap; });
  if (p == 0) return sum([](T total, T gap) { return total + (gap != 0 ? T{1} : T{0}); });
  if (!std::isinf(p)) {
    const auto power = [p](T total, T gap) {
      return total + static_cast<T>(std::pow(static_cast<double>(gap), p));
    };
    return static_cast<T>(std::pow(static_cast<double>(sum(power)), 1 / p));
  }
  T most = 0;  // of which torch's cdist leaves NaN out
  for (intptr_t i = 0; i < d; ++i) {
    const T gap = std::abs(a[i] - b[i]);
    most = gap > most || (lanes && gap != gap) ? gap : most;
  }
  return most;
}

// The rows of a matrix one after another, copied where they are not.
template <class T>
const T* dense(const Plane<T>& from, intptr_t n, intptr_t d, std::vector<T>& copy) {
  if (from.across == sizeof(T) && from.down == static_cast<intptr_t>(d * sizeof(T))) return &from(0, 0);
  copy.resize(n * d);
  for (intptr_t i = 0; i < n; ++i)
    for (intptr_t j = 0; j < d; ++j) copy[i * d + j] = from(i, j);
  return copy.data();
}

// (n,d),()->(k): the distances of every two rows.
template <class T>
void pairs(char** args, const intptr_t* sizes, const intptr_t* steps, void*) {
  const intptr_t n = sizes[1], d = sizes[2];
  std::vector<T> copy;
  each<3>(args, sizes, steps, [&] {
    const T* rows = dense(Plane<T>{args[0], steps[3], steps[4]}, n, d, copy);
    const Line<T> out{args[2], steps[5]};
    intptr_t at = 0;
    for (intptr_t i = 0; i < n; ++i)
      for (intptr_t j = i + 1; j < n; ++j)
        out[at++] = distance(rows + i * d, rows + j * d, d, number<double>(args[1]), true);
  });
}

// (n,d),(m,d),()->(n,m): the distances of each row from each of another matrix.
template <class T>
void distances(char** args, const intptr_t* sizes, const intptr_t* steps, void*) {
  const intptr_t n = sizes[1], d = sizes[2], m = sizes[3];
  std::vector<T> first, second;
  each<4>(args, sizes, steps, [&] {
    const T* a = dense(Plane<T>{args[0], steps[4], steps[5]}, n, d, first);
    const T* b = dense(Plane<T>{args[1], steps[6], steps[7]}, m, d, second);
    const Plane<T> out{args[3], steps[8], steps[9]};
    for (intptr_t i = 0; i < n; ++i)
      for (intptr_t j = 0; j < m; ++j)
        out(i, j) = distance(a + i * d, b + j * d, d, number<double>(args[2]), false);
  });
}

// (c),(),(c),(),()->(): the hinges of the classes against the right one, of power 1 or 2.
template <class T>
void hinges(char** args, const intptr_t* sizes, const intptr_t* steps, void*) {
  const intptr_t c = sizes[1];
  each<6>(args, sizes, steps, [&] {
    const Line<T> x{args[0], steps[6]}, weight{args[2], steps[7]};
    const int64_t right = number<int64_t>(args[1]);
    const bool squared = number<T>(args[3]) == 2;
    T sum = 0;
    for (intptr_t i = 0; i < c; ++i) {
      const T z = number<T>(args[4]) - x[right] + x[i];
      if (i != right && !(z <= 0)) sum += (squared ? z * z : z) * weight[right];
    }
    number<T>(args[5]) = sum / static_cast<T>(c);
  });
}

// (c),(c)->(),(c): the hinges of every label, up to the first below 0, against what is no label.
template <class T>
void label_hinges(char** args, const intptr_t* sizes, const intptr_t* steps, void*) {
  const intptr_t c = sizes[1];
  each<4>(args, sizes, steps, [&] {
    const Line<T> x{args[0], steps[4]}, chosen{args[3], steps[6]};
    const Line<int64_t> labels{args[1], steps[5]};
    for (intptr_t i = 0; i < c; ++i) chosen[i] = 0;
    intptr_t count = 0;
    for (; count < c && labels[count] >= 0; ++count) chosen[labels[count]] = 1;
    T sum = 0;
    for (intptr_t k = 0; k < count; ++k)
      for (intptr_t i = 0; i < c; ++i) {
        const T z = 1 - x[labels[k]] + x[i];
        if (chosen[i] == 0 && !(z <= 0)) sum += z;
      }
    number<T>(args[2]) = sum / static_cast<T>(c);
  });
}

// (c),(c),()->(c): what those hinges, of a gradient each, take of the classes and give the labels.
template <class T>
void label_slopes(char** args, const intptr_t* sizes, const intptr_t* steps, void*) {
  const intptr_t c = sizes[1];
  std::vector<char> chosen(c);
  each<4>(args, sizes, steps, [&] {
    const Line<T> x{args[0], steps[4]}, out{args[3], steps[6]};
    const Line<int64_t> labels{args[1], steps[5]};
    const T share = number<T>(args[2]) / static_cast<T>(c);
    for (intptr_t i = 0; i < c; ++i) out[i] = 0, chosen[i] = 0;
    intptr_t count = 0;
    for (; count < c && labels[count] >= 0; ++count) chosen[labels[count]] = 1;
    for (intptr_t k = 0; k < count; ++k)
      for (intptr_t i = 0; i < c; ++i)
        if (!chosen[i] && 1 - x[labels[k]] + x[i] > 0) out[i] += share, out[labels[k]] -= share;
  });
}

// Where windows of a pool start, by Graham's sequence (arXiv 1412.6071).
template <class T>
std::vector<intptr_t> starts(T u, intptr_t size, intptr_t out, intptr_t window) {
  std::vector<intptr_t> at(out, size - window);
  if (out < 2) return at;
  const T alpha = static_cast<T>(static_cast<double>(size - window) / (out - 1));
  for (intptr_t i = 0; i < out - 1; ++i)
    at[i] = static_cast<intptr_t>((static_cast<T>(i) + u) * alpha) - static_cast<intptr_t>(u * alpha);
  return at;
}

// (t,h,w),(s),(s)->(a,b,c),(a,b,c): maxima of windows and their places, by samples and sizes of
// windows along each of the three dimensions.
template <class T>
void fractional(char** args, const intptr_t* sizes, const intptr_t* steps, void*) {
  const intptr_t *in = sizes + 1, *to = sizes + 5, *s = steps + 5;
  each<5>(args, sizes, steps, [&] {
    std::vector<intptr_t> first[3];
    intptr_t window[3];
    for (int d = 0; d < 3; ++d) {
      window[d] = number<int64_t>(args[2] + d * s[4]);
      first[d] = starts(number<T>(args[1] + d * s[3]), in[d], to[d], window[d]);
    }
    const auto at = [&](intptr_t i, intptr_t j, intptr_t k) -> T {
      return number<T>(args[0] + i * s[0] + j * s[1] + k * s[2]);
    };
    for (intptr_t a = 0; a < to[0]; ++a)
      for (intptr_t b = 0; b < to[1]; ++b)
        for (intptr_t c = 0; c < to[2]; ++c) {
          const intptr_t i0 = first[0][a], j0 = first[1][b], k0 = first[2][c];
          T best = at(i0, j0, k0);
          intptr_t place = (i0 * in[1] + j0) * in[2] + k0;
          for (intptr_t i = i0; i < i0 + window[0]; ++i)
            for (intptr_t j = j0; j < j0 + window[1]; ++j)
              for (intptr_t k = k0; k < k0 + window[2]; ++k) {
                const T value = at(i, j, k);
                if (!(value > best || (value != value && best == best))) continue;
                best = value;
                place = (i * in[1] + j) * in[2] + k;
              }
          number<T>(args[3] + a * s[5] + b * s[6] + c * s[7]) = best;
          number<int64_t>(args[4] + a * s[8] + b * s[9] + c * s[10]) = place;
        }
  });
}

// (n),(),()->(): where the first index is below a bound, or not below another; -1 where none is.
void outside(char** args, const intptr_t* sizes, const intptr_t* steps, void*) {
  const intptr_t n = sizes[1];
  each<4>(args, sizes, steps, [&] {
    const Line<int64_t> line{args[0], steps[4]};
    const int64_t low = number<int64_t>(args[1]), high = number<int64_t>(args[2]);
    intptr_t i = 0;
    while (i < n && low <= line[i] && line[i] < high) ++i;
    number<int64_t>(args[3]) = i < n ? i : -1;
  });
}

// (d),(d)->(d): the vector product of three elements each.
template <class T>
void cross(char** args, const intptr_t* sizes, const intptr_t* steps, void*) {
  each<3>(args, sizes, steps, [&] {
    const Line<T> a{args[0], steps[3]}, b{args[1], steps[4]}, out{args[2], steps[5]};
    for (int i = 0; i < 3; ++i) {
      const int j = (i + 1) % 3, k = (i + 2) % 3;
      out[i] = a[j] * b[k] - a[k] * b[j];
    }
  });
}

// (k),(m)->(m): rows in the order that LAPACK's exchanges, counted from one, leave them in.
void exchanged(char** args, const intptr_t* sizes, const intptr_t* steps, void*) {
  const intptr_t k = sizes[1], m = sizes[2];
  each<3>(args, sizes, steps, [&] {
    const Line<int64_t> other{args[0], steps[3]}, rows{args[1], steps[4]}, out{args[2], steps[5]};
    for (intptr_t i = 0; i < m; ++i) out[i] = rows[i];
    for (intptr_t i = 0; i < k; ++i)
      if (i < m && other[i] > 0 && other[i] <= m) std::swap(out[i], out[other[i] - 1]);
  });
}

// Partial sums that torch's losses of labels add to by place (aten/src/ATen/native/LossNLL.cpp,
// nll_loss_out_frame): each is added to the next one when its places are full.
template <class T>
struct Cascade {
  static constexpr int LEVELS = 8;
  int power;
  T sums[LEVELS] = {};

  explicit Cascade(intptr_t count) {
    int bits = 0;
    while ((intptr_t{1} << bits) < count) ++bits;
    power = std::max(4, bits / LEVELS);
  }
  void add(intptr_t place, T value) {
    sums[0] += value;
    for (int level = 0; level + 1 < LEVELS; ++level) {
      if (place & (((intptr_t{1} << power) - 1) << (level * power))) break;
      sums[level + 1] += sums[level];
      sums[level] = 0;
    }
  }
  T total() const {
    T total = 0;
    for (T sum : sums) total += sum;
    return total;
  }
};

// (n,c),(n),(c),()->(),(),(): the weighted sum of what labels choose, less those to be ignored, of
// the weights, and the first place of a label that is no class, -1 where there is none.
template <class T>
void picked(char** args, const intptr_t* sizes, const intptr_t* steps, void*) {
  const intptr_t n = sizes[1], c = sizes[2];
  const intptr_t* s = steps + 7;
  each<7>(args, sizes, steps, [&] {
    const Plane<T> x{args[0], s[0], s[1]};
    const Line<int64_t> labels{args[1], s[2]};
    const Line<T> weights{args[2], s[3]};
    const int64_t ignored = number<int64_t>(args[3]);
    Cascade<T> sum(n), total(n);
    int64_t bad = -1;
    for (intptr_t i = 0; i < n && bad < 0; ++i) {
      const int64_t label = labels[i];
      if (label == ignored) continue;
      if (label < 0 || label >= c) {
        bad = i;
        break;
      }
      sum.add(i, -(x(i, label) * weights[label]));
      total.add(i, weights[label]);
    }
    number<T>(args[4]) = sum.total();
    number<T>(args[5]) = total.total();
    number<int64_t>(args[6]) = bad;
  });
}

// (n),(),(),()->(b): how many elements lie in each of the even parts of a range.
template <class T>
void counts(char** args, const intptr_t* sizes, const intptr_t* steps, void*) {
  const intptr_t n = sizes[1], bins = sizes[2];
  each<5>(args, sizes, steps, [&] {
    const Line<T> x{args[0], steps[5]}, out{args[4], steps[6]};
    const T low = number<T>(args[1]), high = number<T>(args[2]), scale = number<T>(args[3]);
    for (intptr_t i = 0; i < bins; ++i) out[i] = 0;
    for (intptr_t i = 0; i < n; ++i) {
      if (!(x[i] >= low && x[i] <= high)) continue;
      const auto at = static_cast<intptr_t>((x[i] - low) * scale);
      out[std::min(at, bins - 1)] += 1;
    }
  });
}

struct Sum {
  template <class T> static T of(T a, T b) { return static_cast<T>(a + b); }
};
struct Product {
  template <class T> static T of(T a, T b) { return static_cast<T>(a * b); }
};
struct Most {
  template <class T> static T of(T a, T b) { return (a > b) | (a != a) ? a : b; }
};
struct Least {
  template <class T> static T of(T a, T b) { return (a < b) | (a != a) ? a : b; }
};

template <class How, class T>
void put_row(const T* __restrict from, T* __restrict to, intptr_t m) {
  for (intptr_t j = 0; j < m; ++j) to[j] = How::of(to[j], from[j]);
}

// (k),(k,m)->(n,m): slices put together with those that the result has at their indices.
template <class How, class T>
void put_together(char** args, const intptr_t* sizes, const intptr_t* steps, void*) {
  const intptr_t k = sizes[1], m = sizes[2];
  const intptr_t* s = steps + 3;
  each<3>(args, sizes, steps, [&] {
    for (intptr_t i = 0; i < k; ++i) {
      const int64_t to = number<int64_t>(args[0] + i * s[0]);
      char *from = args[1] + i * s[1], *out = args[2] + to * s[3];
      if (s[2] == sizeof(T) && s[4] == sizeof(T)) {
        put_row<How>(reinterpret_cast<const T*>(from), reinterpret_cast<T*>(out), m);
      } else {
        for (intptr_t j = 0; j < m; ++j)
          number<T>(out + j * s[4]) = How::of(number<T>(out + j * s[4]), number<T>(from + j * s[2]));
      }
    }
  });
}

using Float = std::complex<float>;
using Double = std::complex<double>;

}  // namespace

extern const Universal LINES[] = {
    {"reflected", "(m,n),(k),(m,p),()->(m,p)", 4, 1, 4,
     {f, f, f, b, f, d, d, d, b, d, F, F, F, b, F, D, D, D, b, D},
     {reflected<float>, reflected<double>, reflected<Float>, reflected<Double>}},
    {"search", "(n),(),()->()", 3, 1, 3, {q, q, b, q, f, f, b, q, d, d, b, q},
     {search<int64_t>, search<float>, search<double>}},
    {"pairs", "(n,d),()->(k)", 2, 1, 2, {f, d, f, d, d, d}, {pairs<float>, pairs<double>}},
    {"distances", "(n,d),(m,d),()->(n,m)", 3, 1, 2, {f, f, d, f, d, d, d, d},
     {distances<float>, distances<double>}},
    {"hinges", "(c),(),(c),(),()->()", 5, 1, 2, {f, q, f, f, f, f, d, q, d, d, d, d},
     {hinges<float>, hinges<double>}},
    {"label_hinges", "(c),(c)->(),(c)", 2, 2, 2, {f, q, f, f, d, q, d, d},
     {label_hinges<float>, label_hinges<double>}},
    {"label_slopes", "(c),(c),()->(c)", 3, 1, 2, {f, q, f, f, d, q, d, d},
     {label_slopes<float>, label_slopes<double>}},
    {"fractional", "(t,h,w),(s),(s)->(a,b,c),(a,b,c)", 3, 2, 2, {f, f, q, f, q, d, d, q, d, q},
     {fractional<float>, fractional<double>}},
    {"cross", "(d),(d)->(d)", 2, 1, 4, {q, q, q, f, f, f, d, d, d, F, F, F},
     {cross<int64_t>, cross<float>, cross<double>, cross<Float>}},
    {"exchanged", "(k),(m)->(m)", 2, 1, 1, {q, q, q}, {exchanged}},
    {"picked", "(n,c),(n),(c),()->(),(),()", 4, 3, 2, {f, q, f, q, f, f, q, d, q, d, q, d, d, q},
     {picked<float>, picked<double>}},
    {"counts", "(n),(),(),()->(b)", 4, 1, 2, {f, f, f, f, f, d, d, d, d, d},
     {counts<float>, counts<double>}},
    {"outside", "(n),(),()->()", 3, 1, 1, {q, q, q, q}, {outside}},
#define TOGETHER(NAME, HOW)                                                       \
  {NAME, "(k),(k,m)->(n,m)", 2, 1, 3, {q, f, f, q, d, d, q, q, q},                \
   {put_together<HOW, float>, put_together<HOW, double>, put_together<HOW, int64_t>}}
    TOGETHER("together_sum", Sum),
    TOGETHER("together_prod", Product),
    TOGETHER("together_amax", Most),
    TOGETHER("together_amin", Least),
    {}};
