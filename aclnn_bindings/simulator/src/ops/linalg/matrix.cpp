// Small dense linear algebra, batched over leading dims: triangles, inverses, factors, products.
#include "params/linalg.h"
#include "loops/promote.h"
#include "loops/rows.h"

#include <cmath>

namespace aclsim {
namespace {

// The last two dims of a tensor at one place of the leading ones, in double.
template <class T>
class MatrixOf {
 public:
  MatrixOf(const Tensor& t, const Walker& at)
      : rows_(t.dims[t.rank - 2]), cols_(t.dims[t.rank - 1]), data_(rows_ * cols_) {
    const int64_t base = t.offset + at.offset(t.strides);
    for (int64_t i = 0; i < rows_; ++i) {
      load(&data_[i * cols_], t.data, t.dtype, base + i * t.strides[t.rank - 2],
           t.strides[t.rank - 1], cols_);
    }
  }
  MatrixOf(int64_t rows, int64_t cols) : rows_(rows), cols_(cols), data_(rows * cols) {
    std::fill_n(data_.get(), rows * cols, T(0));
  }
  void put(const Tensor& t, const Walker& at) {
    const int64_t base = t.offset + at.offset(t.strides);
    for (int64_t i = 0; i < rows_; ++i) {
      store(&data_[i * cols_], t.data, t.dtype, base + i * t.strides[t.rank - 2],
            t.strides[t.rank - 1], cols_);
    }
  }
  T& operator()(int64_t i, int64_t j) { return data_[i * cols_ + j]; }
  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }

 private:
  int64_t rows_, cols_;
  Buffer<T> data_;
};
using Matrix2 = MatrixOf<double>;

// Calls f(walker) for every place of the leading dims; f's error ends it.
template <class F>
aclError each_matrix(const Tensor& t, F f) {
  int64_t count = 1;
  for (int i = 0; i < t.rank - 2; ++i) count *= t.dims[i];
  Walker at(t.rank - 2, t.dims);
  for (int64_t i = 0; i < count; ++i, at.next()) {
    if (aclError error = f(at)) return error;
  }
  return ACL_SUCCESS;
}

aclnnStatus expect_square(const Call& c, int arg) {
  const Tensor& t = c.tensor(arg);
  if (t.rank >= 2 && t.dims[t.rank - 1] == t.dims[t.rank - 2]) return ACLNN_SUCCESS;
  return c.fail(ACLNN_ERR_PARAM_INVALID, "%s should hold square matrices, but its shape is %s.",
                c.name(arg), shape_text(t));
}

// LU with partial pivoting in place; the permutation's sign, or 0 where singular.
template <class T>
int factorise(MatrixOf<T>& m, Buffer<int64_t>& pivot) {
  int sign = 1;
  const int64_t n = m.rows();
  for (int64_t k = 0; k < n; ++k) {
    int64_t best = k;
    for (int64_t i = k + 1; i < n; ++i) {
      if (std::abs(m(i, k)) > std::abs(m(best, k))) best = i;
    }
    pivot[k] = best;
    if (m(best, k) == T(0)) return 0;
    if (best != k) {
      sign = -sign;
      for (int64_t j = 0; j < n; ++j) std::swap(m(k, j), m(best, j));
    }
    for (int64_t i = k + 1; i < n; ++i) {
      m(i, k) /= m(k, k);
      for (int64_t j = k + 1; j < n; ++j) m(i, j) -= m(i, k) * m(k, j);
    }
  }
  return sign;
}

aclnnStatus check_inverse(Call& c) {
  using P = params::Inverse;

  ACL_RETURN_IF_FAILED(expect_square(c, P::self));
  return expect_same_shape(c, P::out, P::self);
}
aclError run_inverse(Call& c) {
  using P = params::Inverse;

  return each_matrix(c.tensor(P::self), [&](const Walker& at) {
    Matrix2 lu(c.tensor(P::self), at);
    const int64_t n = lu.rows();
    Buffer<int64_t> pivot(n);
    if (n > 0 && factorise(lu, pivot) == 0) return c.trap(507018, "a matrix is singular");
    Matrix2 result(n, n);
    for (int64_t column = 0; column < n; ++column) {
      Buffer<double> x(n);
      for (int64_t i = 0; i < n; ++i) x[i] = i == column;
      for (int64_t k = 0; k < n; ++k) std::swap(x[k], x[pivot[k]]);
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < i; ++j) x[i] -= lu(i, j) * x[j];
      }
      for (int64_t i = n - 1; i >= 0; --i) {
        for (int64_t j = i + 1; j < n; ++j) x[i] -= lu(i, j) * x[j];
        x[i] /= lu(i, i);
      }
      for (int64_t i = 0; i < n; ++i) result(i, column) = x[i];
    }
    result.put(c.tensor(P::out), at);
    return aclError{ACL_SUCCESS};
  });
}

// (self, signOut, logOut) and (self, out): sign and log|det|.
Shape leading(const Tensor& t) {
  Shape s = shape_of(t);
  s.rank -= 2;
  return s;
}
template <bool Sign>
aclnnStatus check_logdet(Call& c) {
  using P = params::Slogdet;

  ACL_RETURN_IF_FAILED(expect_square(c, P::self));
  if (Sign) ACL_RETURN_IF_FAILED(expect_shape(c, P::logOut, leading(c.tensor(P::self))));
  return expect_shape(c, P::signOut, leading(c.tensor(P::self)));
}
// The logarithm of a determinant from its sign and logarithm: no real one has a negative sign.
double logarithm(double sign, double log) {
  return sign < 0 ? std::numeric_limits<double>::quiet_NaN() : log;
}
c128 logarithm(c128 sign, double log) { return {log, std::arg(sign)}; }

// A number of size 1 in the direction of x.
double phase(double x) { return x < 0 ? -1 : 1; }
c128 phase(c128 x) { return x / std::abs(x); }

template <bool Sign, class T>
aclError logdet(Call& c) {
  using P = params::Slogdet;

  return each_matrix(c.tensor(P::self), [&](const Walker& at) {
    MatrixOf<T> lu(c.tensor(P::self), at);
    Buffer<int64_t> pivot(lu.rows());
    T sign = factorise(lu, pivot);
    double log = 0;
    for (int64_t i = 0; sign != T(0) && i < lu.rows(); ++i) {
      log += std::log(std::abs(lu(i, i)));
      sign *= phase(lu(i, i));
    }
    if (sign == T(0)) log = -std::numeric_limits<double>::infinity();
    const auto put = [&](const Tensor& t, auto value) {
      store_one(value, t.data, t.dtype, t.offset + at.offset(t.strides));
    };
    if (Sign) {
      put(c.tensor(P::signOut), sign);
      put(c.tensor(P::logOut), log);
    } else {
      put(c.tensor(P::signOut), logarithm(sign, log));
    }
    return aclError{ACL_SUCCESS};
  });
}
template <bool Sign>
aclError run_logdet(Call& c) {
  using P = params::Logdet;

  const bool complex = domain_of(c.tensor(P::self).dtype) == Domain::Complex;
  return complex ? logdet<Sign, c128>(c) : logdet<Sign, double>(c);
}

aclnnStatus check_cholesky(Call& c) {
  using P = params::LinalgCholesky;

  ACL_RETURN_IF_FAILED(expect_square(c, P::self));
  return expect_same_shape(c, P::out, P::self);
}
aclError run_cholesky(Call& c) {
  using P = params::LinalgCholesky;

  return each_matrix(c.tensor(P::self), [&](const Walker& at) {
    Matrix2 a(c.tensor(P::self), at);
    const int64_t n = a.rows();
    Matrix2 l(n, n);
    const bool upper = c.flag(P::upper);
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = j; i < n; ++i) {
        double sum = upper ? a(j, i) : a(i, j);
        const auto at_l = [&](int64_t r, int64_t k) { return upper ? l(k, r) : l(r, k); };
        for (int64_t k = 0; k < j; ++k) sum -= at_l(i, k) * at_l(j, k);
        if (i == j && !(sum > 0)) return c.trap(507018, "a matrix is not positive definite");
        (upper ? l(j, i) : l(i, j)) = i == j ? std::sqrt(sum) : sum / at_l(j, j);
      }
    }
    l.put(c.tensor(P::out), at);
    return aclError{ACL_SUCCESS};
  });
}

// (self, A, upper, transpose, unitriangular, xOut, mOut): solves op(A) x = self; mOut copies A.
aclnnStatus check_solve(Call& c) {
  using P = params::TriangularSolve;

  ACL_RETURN_IF_FAILED(expect_square(c, P::A));
  const Tensor &b = c.tensor(P::self), &a = c.tensor(P::A);
  Shape shape;
  Tensor lead_b = b, lead_a = a;
  bool fits = b.rank >= 2 && b.dims[b.rank - 2] == a.dims[a.rank - 1];
  if (fits) {
    lead_b.rank -= 2, lead_a.rank -= 2;
    shape = shape_of(lead_b);
    fits = broadcast(shape, lead_a);
  }
  if (!fits) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "Shapes %s of self and %s of A don't fit.",
                  shape_text(b), shape_text(a));
  }
  // The second result is A: as it is, or for each of the systems.
  Shape whole = shape;
  const int64_t n = a.dims[a.rank - 1], columns = b.dims[b.rank - 1];
  whole.dims[shape.rank] = n, whole.dims[shape.rank + 1] = n, whole.rank = shape.rank + 2;
  if (!c.tensor(P::mOut).same_shape(a)) ACL_RETURN_IF_FAILED(expect_shape(c, P::mOut, whole));
  whole.dims[shape.rank + 1] = columns;
  return expect_shape(c, P::xOut, whole);
}
// A tensor repeated, without copies, for the leading dims of another.
Tensor led_by(const Tensor& t, const Tensor& out) {
  Tensor wide = t;
  const int more = out.rank - t.rank;
  wide.rank = out.rank;
  for (int i = 0; i < out.rank; ++i) {
    const bool own = i >= more && (i >= out.rank - 2 || t.dims[i - more] == out.dims[i]);
    wide.dims[i] = own ? t.dims[i - more] : out.dims[i];
    wide.strides[i] = own ? t.strides[i - more] : 0;
  }
  return wide;
}
template <class T>
aclError solve(Call& c) {
  using P = params::TriangularSolve;

  const Tensor right = led_by(c.tensor(P::self), c.tensor(P::xOut)),
               left = led_by(c.tensor(P::A), c.tensor(P::xOut));
  return each_matrix(c.tensor(P::xOut), [&](const Walker& at) {
    MatrixOf<T> x(right, at), a(left, at);
    const bool transpose = c.flag(P::transpose), unit = c.flag(P::unitriangular),
               backward = c.flag(P::upper) != transpose;
    const int64_t n = a.rows();
    for (int64_t step = 0; step < n; ++step) {
      const int64_t i = backward ? n - 1 - step : step;
      for (int64_t done = 0; done < step; ++done) {
        const int64_t j = backward ? n - 1 - done : done;
        const T factor = transpose ? a(j, i) : a(i, j);
        for (int64_t k = 0; k < x.cols(); ++k) x(i, k) -= factor * x(j, k);
      }
      for (int64_t k = 0; !unit && k < x.cols(); ++k) x(i, k) /= a(i, i);
    }
    x.put(c.tensor(P::xOut), at);
    return aclError{ACL_SUCCESS};
  });
}
aclError run_solve(Call& c) {
  using P = params::TriangularSolve;

  copy_tensor(c.tensor(P::mOut), led_by(c.tensor(P::A), c.tensor(P::mOut)));
  const bool complex = domain_of(c.tensor(P::xOut).dtype) == Domain::Complex;
  return complex ? solve<c128>(c) : solve<double>(c);
}

// (self, other, dim, out): vectors of three along dim.
aclnnStatus check_cross(Call& c) {
  using P = params::LinalgCross;

  int64_t& axis = c.make<int64_t>();
  axis = c.integer(P::dim);
  Shape shape = shape_of(c.tensor(P::self));
  if (!broadcast(shape, c.tensor(P::other))) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "Shapes %s and %s can't broadcast.",
                  shape_text(c.tensor(P::self)), shape_text(c.tensor(P::other)));
  }
  ACL_RETURN_IF_FAILED(expect_axis(c, P::dim, axis, shape.rank));
  if (shape.rank == 0 || shape.dims[axis] != 3) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "self and other should have size 3 along dim.");
  }
  return expect_shape(c, P::out, shape);
}
void run_cross(Call& c) {
  using P = params::LinalgCross;

  const Tensor& out = c.tensor(P::out);
  const int axis = static_cast<int>(c.get<int64_t>());
  Loop loop = loop_over(out);
  loop.add(c.tensor(P::self));
  loop.add(c.tensor(P::other));
  Tensor a = out, b = out;
  for (Tensor* t : {&a, &b}) {
    const Operand& op = loop.operands[t == &a ? 1 : 2];
    t->data = const_cast<void*>(op.data);
    t->offset = op.offset;
    t->dtype = op.dtype;
    std::copy(op.strides, op.strides + out.rank, t->strides);
  }
  const Rows rows({&out, &a, &b}, axis);
  const auto go = [&](auto tag) {
    using C = typename decltype(tag)::type;
    rows.run(3, [&](const int64_t* o) {
      C x[3], y[3];
      load(x, a.data, a.dtype, o[1], a.strides[axis], 3);
      load(y, b.data, b.dtype, o[2], b.strides[axis], 3);
      const C z[3] = {x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2],
                      x[0] * y[1] - x[1] * y[0]};
      store(z, out.data, out.dtype, o[0], out.strides[axis], 3);
    });
  };
  with_number(out.dtype, go);
}

// (self, p, dim, maxNorm, out): slices along dim whose p-norm is larger are scaled down to it.
template <int Out>
aclnnStatus check_renorm(Call& c) {
  using P = params::Renorm;

  int64_t& axis = c.make<int64_t>();
  axis = c.integer(P::dim);
  if (c.tensor(P::self).rank < 2)
    return c.fail(ACLNN_ERR_PARAM_INVALID, "self should have 2 dims or more.");
  ACL_RETURN_IF_FAILED(expect_axis(c, P::dim, axis, c.tensor(P::self).rank));
  return expect_same_shape(c, Out, P::self);
}
template <int Out>
void run_renorm(Call& c) {
  using P = params::Renorm;

  const Tensor &self = c.tensor(P::self), &out = c.tensor(Out);
  const int axis = static_cast<int>(c.get<int64_t>());
  const double p = c.scalar(P::p).real(), limit = c.scalar(P::maxNorm).real();
  for (int64_t k = 0; k < self.dims[axis]; ++k) {
    Tensor from = self, to = out;
    from.offset += k * self.strides[axis];
    to.offset += k * out.strides[axis];
    from.dims[axis] = to.dims[axis] = 1;
    double sum = 0;
    const int64_t n = from.numel();
    const auto each = [&](auto f) {
      Walker at(from.rank, from.dims);
      for (int64_t i = 0; i < n; ++i, at.next()) {
        f(at, load_one<double>(from.data, from.dtype, from.offset + at.offset(from.strides)));
      }
    };
    each([&](const Walker&, double x) {
      const double term = p == 0 ? x != 0 : std::pow(std::fabs(x), p);  // p = 0 counts
      const double size = std::fabs(x);
      // NaN stays: nothing is larger.
      sum = !std::isinf(p) ? sum + term : (size > sum || x != x ? size : sum);
    });
    const double norm = std::isinf(p) || p == 0 ? sum : std::pow(sum, 1 / p);
    const double scale = norm > limit ? limit / (norm + 1e-7) : 1;
    each([&](const Walker& at, double x) {
      store_one(x * scale, to.data, to.dtype, to.offset + at.offset(to.strides));
    });
  }
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnInverse, check_inverse, run_inverse)
ACLNN_OP(aclnnSlogdet, check_logdet<true>, run_logdet<true>)
ACLNN_OP(aclnnLogdet, check_logdet<false>, run_logdet<false>)
ACLNN_OP(aclnnLinalgCholesky, check_cholesky, run_cholesky)
ACLNN_OP(aclnnTriangularSolve, check_solve, run_solve)
ACLNN_OP(aclnnLinalgCross, check_cross, run_cross)
ACLNN_OP(aclnnRenorm, check_renorm<params::Renorm::out>, run_renorm<params::Renorm::out>)
ACLNN_OP(aclnnInplaceRenorm, check_renorm<params::InplaceRenorm::selfRef>,
         run_renorm<params::InplaceRenorm::selfRef>)
