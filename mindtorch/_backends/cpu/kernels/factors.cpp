// Inner loops of numpy's generalized universal functions that factor small matrices as torch's wheels do.
//
// Factors and solutions: rows are exchanged and subtracted in the order in which MKL's getrf and getrs
// round them, up to 16 rows. Eigenvectors: LAPACK's sytd2 and steqr (reference LAPACK 3.9), whose
// rotations decide the signs; from 3.10 on, lartg gives other signs.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "universal.h"

namespace {

template <typename T>
struct Square {
  int64_t n;
  std::vector<T> cells;
  explicit Square(int64_t n) : n(n), cells(n * n) {}
  T* operator[](int64_t row) { return cells.data() + row * n; }
};

template <typename T>
T& at(char* data, intptr_t offset) {
  return *reinterpret_cast<T*>(data + offset);
}

template <typename T>
Square<T> read(char* data, int64_t n, const intptr_t* steps) {
  Square<T> matrix(n);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) matrix[i][j] = at<T>(data, i * steps[0] + j * steps[1]);
  return matrix;
}

template <typename T>
void write(Square<T>& matrix, char* data, const intptr_t* steps) {
  for (int64_t i = 0; i < matrix.n; ++i)
    for (int64_t j = 0; j < matrix.n; ++j) at<T>(data, i * steps[0] + j * steps[1]) = matrix[i][j];
}

// A column by the reciprocal of its pivot; by the pivot itself in the last but one of up to 4.
template <typename T>
void eliminate(Square<T>& a, int32_t* pivots) {
  const int64_t n = a.n;
  for (int64_t k = 0; k < n; ++k) {
    int64_t best = k;
    for (int64_t i = k + 1; i < n; ++i)
      if (std::abs(a[i][k]) > std::abs(a[best][k])) best = i;
    pivots[k] = static_cast<int32_t>(best + 1);
    if (best != k) std::swap_ranges(a[k], a[k] + n, a[best]);
    const T head = a[k][k];
    if (head == 0) continue;
    const T inverse = 1 / head;
    const bool divides = n < 5 && k == n - 2;
    for (int64_t i = k + 1; i < n; ++i) {
      const T factor = a[i][k] = divides ? a[i][k] / head : a[i][k] * inverse;
      for (int64_t j = k + 1; j < n; ++j) a[i][j] -= factor * a[k][j];
    }
  }
}

// (n,n)->(n,n),(n): L below U, and the rows exchanged, from 1.
template <typename T>
void lu_factors(char** args, const intptr_t* sizes, const intptr_t* steps, void*) {
  const int64_t n = sizes[1];
  std::vector<int32_t> pivots(n);
  for (intptr_t b = 0; b < sizes[0]; ++b) {
    Square<T> a = read<T>(args[0] + b * steps[0], n, steps + 3);
    eliminate(a, pivots.data());
    write(a, args[1] + b * steps[1], steps + 5);
    for (int64_t i = 0; i < n; ++i) at<int32_t>(args[2], b * steps[2] + i * steps[7]) = pivots[i];
  }
}

template <typename T>
T dot(const T* row, const T* x, int64_t begin, int64_t end) {
  T sum = 0;
  for (int64_t j = begin; j < end; ++j) sum += row[j] * x[j];
  return sum;
}

// Row i, `place` rows above the end of its block of four, where the sum of later blocks is `rest`.
template <typename T>
T in_block(const T* u, const T* x, int64_t i, int64_t place, T rest) {
  const auto term = [&](int64_t k) { return u[i + k] * x[i + k]; };
  if (place == 0) return x[i] - rest;
  const T near = x[i] - term(1);
  if (place == 1) return near - rest;
  if (place == 2) return near - (rest + term(2));
  return near - ((rest + term(3)) + term(2));
}

// One column of L U X = B; `alone`: it is the only one.
template <typename T>
void solve(Square<T>& lu, T* x, bool alone) {
  const int64_t n = lu.n;
  if (n == 8 || (alone && n > 8)) {
    for (int64_t k = 0; k < n; ++k)
      for (int64_t i = k + 1; i < n; ++i) x[i] -= lu[i][k] * x[k];
    for (int64_t k = n - 1; k >= 0; --k) {
      x[k] /= lu[k][k];
      for (int64_t i = 0; i < k; ++i) x[i] -= lu[i][k] * x[k];
    }
    return;
  }
  for (int64_t i = 0; i < n; ++i) x[i] -= dot(lu[i], x, 0, i);
  for (int64_t i = n - 1; i >= 0; --i) {
    const int64_t place = (n - 1 - i) % 4, end = i + place + 1;
    T value;
    if (n > 8) {
      value = in_block(lu[i], x, i, place, dot(lu[i], x, end, n));
    } else {
      T sum = 0;
      for (int64_t j = n - 1; j > i; --j) sum += lu[i][j] * x[j];
      value = x[i] - sum;
    }
    x[i] = value * (1 / lu[i][i]);
  }
}

// (n,n),(n),(n,k)->(n,k): solutions of A X = B by the factors and exchanges of A.
template <typename T>
void lu_solutions(char** args, const intptr_t* sizes, const intptr_t* steps, void*) {
  const int64_t n = sizes[1], columns = sizes[2];
  std::vector<T> x(n);
  for (intptr_t b = 0; b < sizes[0]; ++b) {
    Square<T> lu = read<T>(args[0] + b * steps[0], n, steps + 4);
    for (int64_t c = 0; c < columns; ++c) {
      for (int64_t i = 0; i < n; ++i) x[i] = at<T>(args[2], b * steps[2] + i * steps[7] + c * steps[8]);
      for (int64_t i = 0; i < n; ++i)
        std::swap(x[i], x[at<int32_t>(args[1], b * steps[1] + i * steps[6]) - 1]);
      solve(lu, x.data(), columns == 1);
      for (int64_t i = 0; i < n; ++i) at<T>(args[3], b * steps[3] + i * steps[9] + c * steps[10]) = x[i];
    }
  }
}

template <typename T>
struct RealOf {
  using type = T;
};
template <typename T>
struct RealOf<std::complex<T>> {
  using type = T;
};
template <typename T>
using Real = typename RealOf<T>::type;

template <typename T>
T conj_of(T x) {
  return x;
}
template <typename T>
std::complex<T> conj_of(std::complex<T> x) {
  return std::conj(x);
}
template <typename T>
T scalar_of(T real, T) {
  return real;
}
template <typename T>
std::complex<T> scalar_of(T real, std::complex<T> imag_from) {
  return {real, imag_from.imag()};
}

// larfg: the reflection that leaves `beta` of a column, whose rest becomes its vector.
template <typename T>
T reflection(std::vector<T>& v, Real<T>& beta) {
  using R = Real<T>;
  R rest = 0;
  for (size_t i = 1; i < v.size(); ++i) rest += std::norm(v[i]);
  rest = std::sqrt(rest);
  const T alpha = v[0];
  beta = std::real(alpha);
  v[0] = 1;
  if (rest == 0 && std::imag(alpha) == 0) return T(0);
  const R size = std::hypot(static_cast<R>(std::abs(alpha)), rest);
  beta = std::real(alpha) < 0 ? size : -size;  // Fortran's sign: -0 is positive
  const T scale = T(1) / (alpha - T(beta));
  for (size_t i = 1; i < v.size(); ++i) v[i] *= scale;
  return scalar_of((beta - std::real(alpha)) / beta, -alpha / T(beta));
}

template <typename T>
struct Eigen {
  using R = Real<T>;
  int64_t n;
  Square<T> z;
  std::vector<R> d, e;

  explicit Eigen(Square<T> a) : n(a.n), z(a.n), d(a.n), e(a.n) { tridiagonal(a); }

  // hetd2 with the lower triangle, and the product of its reflections.
  void tridiagonal(Square<T>& a) {
    std::vector<std::vector<T>> vectors(n);
    std::vector<T> taus(n);
    for (int64_t i = 0; i + 1 < n; ++i) {
      const int64_t first = i + 1, m = n - first;
      std::vector<T>& v = vectors[i];
      for (int64_t k = first; k < n; ++k) v.push_back(a[k][i]);
      const T tau = taus[i] = reflection(v, e[i]);
      d[i] = std::real(a[i][i]);
      if (tau == T(0)) continue;
      std::vector<T> x(m);
      T overlap = 0;
      for (int64_t r = 0; r < m; ++r) {
        T sum = T(std::real(a[first + r][first + r])) * v[r];
        for (int64_t c = 0; c < m; ++c)
          if (c != r)
            sum += (c < r ? a[first + r][first + c] : conj_of(a[first + c][first + r])) * v[c];
        x[r] = tau * sum;
        overlap += conj_of(x[r]) * v[r];
      }
      const T shift = T(R(-0.5)) * tau * overlap;
      for (int64_t r = 0; r < m; ++r) x[r] += shift * v[r];
      for (int64_t r = 0; r < m; ++r)
        for (int64_t c = 0; c <= r; ++c)
          a[first + r][first + c] -= v[r] * conj_of(x[c]) + x[r] * conj_of(v[c]);
    }
    d[n - 1] = std::real(a[n - 1][n - 1]);
    for (int64_t i = 0; i < n; ++i) z[i][i] = 1;
    for (int64_t i = n - 2; i >= 0; --i) reflect(vectors[i], taus[i], i + 1);
  }

  void reflect(const std::vector<T>& v, T tau, int64_t first) {
    for (int64_t c = first; c < n; ++c) {
      T sum = 0;
      for (int64_t r = first; r < n; ++r) sum += conj_of(v[r - first]) * z[r][c];
      for (int64_t r = first; r < n; ++r) z[r][c] -= tau * v[r - first] * sum;
    }
  }

  void rotate(int64_t j, R c, R s) {
    for (int64_t i = 0; i < n; ++i) {
      const T right = z[i][j + 1], left = z[i][j];
      z[i][j + 1] = c * right - s * left;
      z[i][j] = s * right + c * left;
    }
  }

  // lartg of LAPACK 3.9: c f + s g = r, c > 0 where |f| > |g|.
  static void rotation(R f, R g, R& c, R& s, R& r) {
    if (g == 0) {
      c = 1, s = 0, r = f;
    } else if (f == 0) {
      c = 0, s = 1, r = g;
    } else {
      r = std::hypot(f, g), c = f / r, s = g / r;
      if (std::abs(f) > std::abs(g) && c < 0) c = -c, s = -s, r = -r;
    }
  }

  // laev2: eigenvalues and the first vector of [[a, b], [b, c]].
  static void pair(R a, R b, R c, R& large, R& small, R& cs, R& sn) {
    const R sum = a + c, gap = a - c, twice = b + b, root = std::hypot(gap, twice);
    const R more = std::abs(a) > std::abs(c) ? a : c, less = std::abs(a) > std::abs(c) ? c : a;
    const bool below = sum < 0;
    large = sum == 0 ? root / 2 : (sum + (below ? -root : root)) / 2;
    small = sum == 0 ? -root / 2 : (more / large) * less - (b / large) * b;
    const bool falls = gap < 0;
    const R lean = gap + (falls ? -root : root);
    if (std::abs(lean) > std::abs(twice)) {
      const R ct = -twice / lean;
      sn = 1 / std::sqrt(1 + ct * ct), cs = ct * sn;
    } else if (twice == 0) {
      cs = 1, sn = 0;
    } else {
      const R tn = -lean / twice;
      cs = 1 / std::sqrt(1 + tn * tn), sn = tn * cs;
    }
    if (below == falls) {
      const R tn = cs;
      cs = -sn, sn = tn;
    }
  }

  // steqr's sweeps over [begin, last]: towards `last` (step 1: QL) or towards `begin` (step -1: QR).
  bool sweep(int64_t from, int64_t to, int64_t step, int64_t& left) {
    constexpr R eps = std::numeric_limits<R>::epsilon() / 2, tiny = std::numeric_limits<R>::min();
    const auto between = [&](int64_t i) -> R& { return e[step > 0 ? i : i - 1]; };
    for (int64_t l = from; step * (to - l) >= 0;) {
      int64_t m = l;
      for (; m != to; m += step)
        if (between(m) * between(m) <= (eps * eps * std::abs(d[m])) * std::abs(d[m + step]) + tiny) break;
      if (m != to) between(m) = 0;
      if (m == l) {
        l += step;
        continue;
      }
      R c, s;
      if (m == l + step) {
        R large, small;
        const int64_t low = std::min(l, m);
        pair(d[low], e[low], d[low + 1], large, small, c, s);
        rotate(low, c, s);
        d[low] = large, d[low + 1] = small, e[low] = 0;
        l += 2 * step;
        continue;
      }
      if (!left--) return false;
      R p = d[l], g = (d[l + step] - p) / (2 * between(l)), r = std::hypot(g, R(1));
      g = d[m] - p + between(l) / (g + std::copysign(r, g));
      s = c = 1, p = 0;
      for (int64_t i = m - step; step * (i - l) >= 0; i -= step) {
        const R f = s * between(i), b = c * between(i);
        rotation(g, f, c, s, r);
        if (i != m - step) between(i + step) = r;
        g = d[i + step] - p;
        r = (d[i] - g) * s + 2 * c * b;
        p = s * r;
        d[i + step] = g + p;
        g = c * r - b;
        rotate(step > 0 ? i : i - 1, c, step > 0 ? -s : s);
      }
      d[l] -= p;
      between(l) = g;
    }
    return true;
  }

  // Whether it converged: eigenvalues in `d`, rising, and vectors in the columns of `z`.
  bool run() {
    constexpr R eps = std::numeric_limits<R>::epsilon() / 2;
    int64_t left = 30 * n;
    for (int64_t begin = 0; begin < n;) {
      if (begin) e[begin - 1] = 0;
      int64_t m = begin;
      for (; m + 1 < n; ++m) {
        const R size = std::abs(e[m]);
        if (size == 0) break;
        if (size <= std::sqrt(std::abs(d[m])) * std::sqrt(std::abs(d[m + 1])) * eps) {
          e[m] = 0;
          break;
        }
      }
      const int64_t first = begin, last = m;
      begin = m + 1;
      if (first == last) continue;
      const bool upwards = std::abs(d[last]) < std::abs(d[first]);
      if (!scaled_sweep(first, last, upwards, left)) return false;
    }
    sort();
    return true;
  }

  bool scaled_sweep(int64_t first, int64_t last, bool upwards, int64_t& left) {
    constexpr R eps = std::numeric_limits<R>::epsilon() / 2, tiny = std::numeric_limits<R>::min();
    R norm = 0, scale = 1;
    for (int64_t i = first; i <= last; ++i) norm = std::max({norm, std::abs(d[i]), i < last ? std::abs(e[i]) : R(0)});
    const R low = std::sqrt(tiny) / (eps * eps), high = std::sqrt(1 / tiny) / 3;
    if (norm > high) scale = high / norm;
    if (norm < low) scale = low / norm;
    for (int64_t i = first; i <= last; ++i) d[i] *= scale, e[i] *= i < last ? scale : 1;
    const bool well = upwards ? sweep(last, first, -1, left) : sweep(first, last, 1, left);
    for (int64_t i = first; i <= last; ++i) d[i] /= scale;
    return well;
  }

  void sort() {
    for (int64_t i = 0; i + 1 < n; ++i) {
      const int64_t k = std::min_element(d.begin() + i, d.end()) - d.begin();
      if (k == i) continue;
      std::swap(d[i], d[k]);
      for (int64_t r = 0; r < n; ++r) std::swap(z[r][i], z[r][k]);
    }
  }
};

// (n,n)->(n),(n,n): eigenvalues and vectors of a Hermitian matrix, by its lower triangle; NaN: none.
template <typename T>
void hermitian_eigen(char** args, const intptr_t* sizes, const intptr_t* steps, void*) {
  const int64_t n = sizes[1];
  for (intptr_t b = 0; b < sizes[0]; ++b) {
    Eigen<T> eigen(read<T>(args[0] + b * steps[0], n, steps + 3));
    const bool well = eigen.run();
    for (int64_t i = 0; i < n; ++i)
      at<Real<T>>(args[1], b * steps[1] + i * steps[5]) = well ? eigen.d[i] : std::nan("");
    write(eigen.z, args[2] + b * steps[2], steps + 6);
  }
}

const char i = 5, f = 11, d = 12, F = 14, D = 15;  // numpy's numbers of int, float, double, complex

}  // namespace

extern const Universal FACTORS[] = {
    {"lu_factors", "(n,n)->(n,n),(n)", 1, 2, 2, {f, f, i, d, d, i}, {lu_factors<float>, lu_factors<double>}},
    {"lu_solutions", "(n,n),(n),(n,k)->(n,k)", 3, 1, 2, {f, i, f, f, d, i, d, d}, {lu_solutions<float>, lu_solutions<double>}},
    {"hermitian_eigen", "(n,n)->(n),(n,n)", 1, 2, 4, {f, f, f, d, d, d, F, f, F, D, d, D},
     {hermitian_eigen<float>, hermitian_eigen<double>, hermitian_eigen<std::complex<float>>,
      hermitian_eigen<std::complex<double>>}},
    {}};
