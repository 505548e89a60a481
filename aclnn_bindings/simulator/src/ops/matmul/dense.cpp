// The matrix product family: products of vectors, matrices and batches, and their sums with a bias.
#include "params/matmul.h"
#include "loops/bfloat_gemm.h"
#include "loops/pointwise.h"
#include "loops/thin.h"

#include <algorithm>

namespace aclsim {
namespace {

ACL_FN(Axpby, Arith, (T self, T product, T beta, T alpha), beta * self + alpha * product)
ACL_FN(Scaled, Arith, (T product, T alpha), alpha * product)

// Both operands seen as [batch..., rows, cols], batch dims broadcast to one shape.
struct Side {
  int arg;
  bool converts;  // to the compute type, densely, in the workspace
  int64_t row_stride, col_stride;
  int64_t batch_strides[kMaxRank];
};
struct Plan {
  aclDataType common;
  int batch_rank;
  int64_t batch[kMaxRank];
  int64_t m, n, k;
  Side a, b;
  bool direct;            // the product goes straight to out
  bool thin;              // few rows by halves: b is read as it stands
  bool bfloats;           // both are read as they stand
  size_t a_at, b_at, product_at;
  int self_arg, alpha_arg, beta_arg, out_arg;  // -1: none
  Shape out_shape;        // of the product as the op shows it
};

struct View {
  Shape shape;
  int64_t strides[kMaxRank];
};

size_t element_bytes(aclDataType common) {
  const Domain d = domain_of(common);
  return d == Domain::Complex ? 16 : d == Domain::Float ? 4 : 8;
}
aclDataType compute_dtype(aclDataType common) {
  switch (domain_of(common)) {
    case Domain::Float: return ACL_FLOAT;
    case Domain::Double: return ACL_DOUBLE;
    case Domain::Integer: return ACL_INT64;
    default: return ACL_COMPLEX128;
  }
}

// A dense tensor of t's dims that lies in the order of t's strides, so that converting into it runs
// along both.
Tensor dense_as(void* data, aclDataType dtype, const Tensor& t) {
  Tensor v = dense(data, dtype, t.dims, t.rank);
  int order[kMaxRank];
  for (int i = 0; i < t.rank; ++i) order[i] = i;
  std::stable_sort(order, order + t.rank,
                   [&](int a, int b) { return t.strides[a] > t.strides[b]; });
  int64_t step = 1;
  for (int i = t.rank - 1; i >= 0; --i) {
    v.strides[order[i]] = step;
    step *= t.dims[order[i]];
  }
  return v;
}

// An operand's view in the compute type; a vector becomes a row (a) or a column (b).
View operand_view(const Tensor& t, bool converts, bool left) {
  View v;
  const Tensor seen = converts ? dense_as(nullptr, t.dtype, t) : t;
  v.shape = shape_of(t);
  std::copy(seen.strides, seen.strides + seen.rank, v.strides);
  if (t.rank == 1) {
    v.shape.rank = 2;
    v.shape.dims[left ? 1 : 0] = t.dims[0];
    v.shape.dims[left ? 0 : 1] = 1;
    v.strides[left ? 1 : 0] = seen.strides[0];
    v.strides[left ? 0 : 1] = 0;
  }
  return v;
}

void place(Side& side, const View& v, const Plan& p) {
  const int r = v.shape.rank;
  side.row_stride = v.strides[r - 2];
  side.col_stride = v.strides[r - 1];
  for (int i = 0; i < p.batch_rank; ++i) {
    const int from = i - (p.batch_rank - (r - 2));
    side.batch_strides[i] = from >= 0 && v.shape.dims[from] != 1 ? v.strides[from] : 0;
  }
}

aclnnStatus refuse_shapes(const Call& c, int a, int b) {
  return c.fail(ACLNN_ERR_PARAM_INVALID, "Shapes %s of %s and %s of %s can't be multiplied.",
                shape_text(c.tensor(a)), c.name(a), shape_text(c.tensor(b)), c.name(b));
}

// [batch, m, k] x [k, n] with evenly spaced rows is one tall product.
void fold_batch(Plan& p) {
  for (int i = 0; i < p.batch_rank; ++i) {
    if (p.b.batch_strides[i] != 0 && p.batch[i] != 1) return;
  }
  int64_t rows = p.m;
  for (int i = p.batch_rank - 1; i >= 0; --i) {
    if (p.batch[i] != 1 && p.a.batch_strides[i] != rows * p.a.row_stride) return;
    rows *= p.batch[i];
  }
  p.m = rows;
  p.batch_rank = 0;
}

bool is_plain(const Tensor& t) {
  return t.format == ACL_FORMAT_ND || t.format == ACL_FORMAT_NCHW;
}
bool is_bfloat(const Tensor& t) { return t.dtype == ACL_BF16 && is_plain(t); }

// One product of few rows with a plain matrix of halves, whose rows or columns are dense.
bool is_thin(const Tensor& a, const Tensor& b) {
  const bool halves = b.dtype == ACL_FLOAT16 || b.dtype == ACL_BF16;
  if (!halves || domain_of(a.dtype) != Domain::Float || b.rank != 2 || a.rank < 1) return false;
  if (!is_plain(b)) return false;
  const int64_t depth = a.dims[a.rank - 1];
  return depth > 0 && a.numel() <= kThinRows * depth && (b.strides[0] == 1 || b.strides[1] == 1);
}

aclnnStatus plan_product(Call& c, Plan& p, int a_arg, int b_arg) {
  const Tensor &a = c.tensor(a_arg), &b = c.tensor(b_arg);
  p.common = promote(a.dtype, b.dtype);
  if (p.common == ACL_DT_UNDEFINED) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "%s dtype %s and %s dtype %s can't promote.",
                  c.name(a_arg), dtype_name(a.dtype), c.name(b_arg), dtype_name(b.dtype));
  }
  if (a.rank == 0 || b.rank == 0) return refuse_shapes(c, a_arg, b_arg);
  const aclDataType compute = compute_dtype(p.common);
  p.thin = is_thin(a, b);
  p.bfloats = !p.thin && multiplies_bfloat() && is_bfloat(a) && is_bfloat(b);
  // Rows of a thin product are dense: converted, or copied where they are not.
  p.a = {a_arg, (a.dtype != compute && !p.bfloats) || (p.thin && !a.contiguous()), 0, 0, {}};
  p.b = {b_arg, b.dtype != compute && !p.thin && !p.bfloats, 0, 0, {}};
  const View va = operand_view(a, p.a.converts, true), vb = operand_view(b, p.b.converts, false);
  const int ra = va.shape.rank, rb = vb.shape.rank;
  p.m = va.shape.dims[ra - 2];
  p.k = va.shape.dims[ra - 1];
  p.n = vb.shape.dims[rb - 1];
  if (vb.shape.dims[rb - 2] != p.k) return refuse_shapes(c, a_arg, b_arg);
  Shape batch;
  for (const View* v : {&va, &vb}) {
    if (!broadcast(batch, dense(nullptr, compute, v->shape.dims, v->shape.rank - 2))) {
      return refuse_shapes(c, a_arg, b_arg);
    }
  }
  p.batch_rank = batch.rank;
  std::copy(batch.dims, batch.dims + batch.rank, p.batch);
  place(p.a, va, p);
  place(p.b, vb, p);
  p.out_shape = batch;
  if (a.rank > 1) p.out_shape.dims[p.out_shape.rank++] = p.m;
  if (b.rank > 1) p.out_shape.dims[p.out_shape.rank++] = p.n;
  return ACLNN_SUCCESS;
}

// Lays out the workspace: converted operands, then the product where it isn't written directly.
void plan_workspace(Call& c, Plan& p) {
  const Tensor& out = c.tensor(p.out_arg);
  p.direct = p.self_arg < 0 && out.contiguous() && out.dtype == compute_dtype(p.common);
  const size_t bytes = element_bytes(p.common);
  size_t at = 0;
  const auto take = [&](bool needed, int64_t n) {
    const size_t from = at;
    if (needed) at += (n * bytes + 63) / 64 * 64;
    return from;
  };
  p.a_at = take(p.a.converts, c.tensor(p.a.arg).numel());
  p.b_at = take(p.b.converts, c.tensor(p.b.arg).numel());
  p.product_at = take(!p.direct, out.numel());
  c.workspace_size = at;
  fold_batch(p);
}

template <class C>
const C* operand_data(const Call& c, const Side& side, size_t at) {
  const Tensor& t = c.tensor(side.arg);
  if (!side.converts) return t.ptr<C>();
  C* to = reinterpret_cast<C*>(static_cast<char*>(c.workspace) + at);
  copy_tensor(dense_as(to, dtype_of<C>(), t), t);
  return to;
}

template <class Narrow>
void multiply_thin(const Call& c, const Plan& p, float* out, const float* a) {
  const Tensor& b = c.tensor(p.b.arg);
  thin_product<Narrow>(out, a, c.tensor(p.a.arg).numel() / p.k,
                       {b.ptr<Narrow>(), p.k, p.n, b.strides[0], b.strides[1]});
}

float* thin(const Call& c, const Plan& p) {
  const Tensor& rows = c.tensor(p.a.arg);
  const float* a = rows.ptr<float>();
  if (p.a.converts) {
    auto* to = reinterpret_cast<float*>(static_cast<char*>(c.workspace) + p.a_at);
    copy_tensor(dense(to, ACL_FLOAT, rows.dims, rows.rank), rows);
    a = to;
  }
  float* out = p.direct ? c.tensor(p.out_arg).ptr<float>()
                        : reinterpret_cast<float*>(static_cast<char*>(c.workspace) + p.product_at);
  c.tensor(p.b.arg).dtype == ACL_BF16 ? multiply_thin<bfloat>(c, p, out, a)
                                      : multiply_thin<half>(c, p, out, a);
  return out;
}

// f(batch, where it begins in a, in b): in threads where a batch does not fill them by itself.
template <class F>
void each_batch(const Plan& p, F f) {
  constexpr int64_t kWork = 1 << 19;
  int64_t batches = 1;
  for (int i = 0; i < p.batch_rank; ++i) batches *= p.batch[i];
  const int64_t grain = std::max(batches / (4 * kernel_threads()), kWork / (p.m * p.n * p.k + 1));
  parallel_for(batches, std::max<int64_t>(1, grain), [&](int64_t begin, int64_t end) {
    Walker at(p.batch_rank, p.batch, begin);
    for (int64_t i = begin; i < end; ++i, at.next()) {
      f(i, at.offset(p.a.batch_strides), at.offset(p.b.batch_strides));
    }
  });
}

// `From`: what the operands are read as.
template <class C, class From = C>
C* product(const Call& c, const Plan& p) {
  const From* a = operand_data<From>(c, p.a, p.a_at);
  const From* b = operand_data<From>(c, p.b, p.b_at);
  C* out = p.direct ? c.tensor(p.out_arg).ptr<C>()
                    : reinterpret_cast<C*>(static_cast<char*>(c.workspace) + p.product_at);
  each_batch(p, [&](int64_t i, int64_t from_a, int64_t from_b) {
    gemm({out + i * p.m * p.n, p.m, p.n, p.n, 1},
         Matrix<const From>{a + from_a, p.m, p.k, p.a.row_stride, p.a.col_stride},
         Matrix<const From>{b + from_b, p.k, p.n, p.b.row_stride, p.b.col_stride}, false);
  });
  return out;
}
float* float_product(const Call& c, const Plan& p) {
  if (p.thin) return thin(c, p);
  return p.bfloats ? product<float, bfloat>(c, p) : product<float>(c, p);
}

bool scalar_is_zero(const Call& c, int arg) {
  return arg >= 0 && !c.null(arg) && !c.scalar(arg).truth();
}
void add_scalar(Loop& loop, const Call& c, int arg) {
  static const Scalar one = {ACL_INT64, {1}};
  const Scalar& s = arg < 0 || c.null(arg) ? one : c.scalar(arg);
  loop.add(dense(const_cast<unsigned char*>(s.bytes), s.dtype, nullptr, 0));
}

// out = beta * self + alpha * product; a zero beta leaves self unread, NaN or not.
void epilogue(const Call& c, const Plan& p, const Tensor& product) {
  Loop loop = loop_over(c.tensor(p.out_arg));
  const bool adds = p.self_arg >= 0 && !scalar_is_zero(c, p.beta_arg);
  if (adds) loop.add(c.tensor(p.self_arg));
  loop.add(product);
  if (adds) add_scalar(loop, c, p.beta_arg);
  add_scalar(loop, c, p.alpha_arg);
  loop.coalesce();
  static constexpr Bodies both = bodies_of<Axpby, 4>(), alone = bodies_of<Scaled, 2>();
  run_bodies(loop, p.common, adds ? both : alone);
}

void run_product(Call& c) {
  const Plan& p = c.get<Plan>();
  if (c.tensor(p.out_arg).numel() == 0) return;
  const Shape& s = p.out_shape;
  const auto finish = [&](void* data, aclDataType dtype) {
    if (!p.direct) epilogue(c, p, dense(data, dtype, s.dims, s.rank));
  };
  switch (domain_of(p.common)) {
    case Domain::Float: finish(float_product(c, p), ACL_FLOAT); break;
    case Domain::Double: finish(product<double>(c, p), ACL_DOUBLE); break;
    case Domain::Integer: finish(product<int64_t>(c, p), ACL_INT64); break;
    case Domain::Complex: finish(product<c128>(c, p), ACL_COMPLEX128); break;
  }
}

aclnnStatus refuse_rank(const Call& c, int arg, int rank) {
  return c.fail(ACLNN_ERR_PARAM_INVALID, "%s should have %d dims, but its shape is %s.",
                c.name(arg), rank, shape_text(c.tensor(arg)));
}

// (a, b, out): RankA, RankB 0 accept any rank.
template <int RankA, int RankB>
aclnnStatus check_product(Call& c) {
  using P = params::Mm;

  if (RankA && c.tensor(P::self).rank != RankA) return refuse_rank(c, P::self, RankA);
  if (RankB && c.tensor(P::mat2).rank != RankB) return refuse_rank(c, P::mat2, RankB);
  Plan& p = c.make<Plan>();
  ACL_RETURN_IF_FAILED(plan_product(c, p, P::self, P::mat2));
  p.self_arg = p.alpha_arg = p.beta_arg = -1;
  p.out_arg = 2;
  ACL_RETURN_IF_FAILED(expect_castable(c, p.common, P::out));
  ACL_RETURN_IF_FAILED(expect_shape(c, P::out, p.out_shape));
  plan_workspace(c, p);
  return ACLNN_SUCCESS;
}

// (self, a, b, scalars, out): out = beta * self + alpha * a b.
template <int RankA, int RankB, int Beta, int Alpha, int Out>
aclnnStatus check_sum(Call& c) {
  using P = params::Addmm;

  if (c.tensor(P::mat1).rank != RankA) return refuse_rank(c, P::mat1, RankA);
  if (c.tensor(P::mat2).rank != RankB) return refuse_rank(c, P::mat2, RankB);
  Plan& p = c.make<Plan>();
  ACL_RETURN_IF_FAILED(plan_product(c, p, P::mat1, P::mat2));
  p.self_arg = 0;
  p.beta_arg = Beta;
  p.alpha_arg = Alpha;
  p.out_arg = Out;
  const Domain computes = domain_of(p.common);
  p.common = promote(p.common, c.tensor(P::self).dtype);
  if (p.common == ACL_DT_UNDEFINED || domain_of(p.common) != computes) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "%s dtype %s can't promote with the product's.",
                  c.name(P::self), dtype_name(c.tensor(P::self).dtype));
  }
  Shape shape = p.out_shape;
  if (!broadcast(shape, c.tensor(P::self))) {
    return c.fail(ACLNN_ERR_PARAM_INVALID, "%s %s can't broadcast to %s.", c.name(P::self),
                  shape_text(c.tensor(P::self)), shape_text(p.out_shape.dims, p.out_shape.rank));
  }
  ACL_RETURN_IF_FAILED(expect_castable(c, p.common, Out));
  ACL_RETURN_IF_FAILED(expect_shape(c, Out, p.out_shape));
  plan_workspace(c, p);
  return ACLNN_SUCCESS;
}

// sum over b of batch1[b] batch2[b] is one product of [m, b k] and [b k, n]; the operands are
// copied into that form in the workspace.
template <int Out>
aclnnStatus check_addbmm(Call& c) {
  using P = params::Addbmm;

  const Tensor &x = c.tensor(P::batch1), &y = c.tensor(P::batch2);
  if (x.rank != 3) return refuse_rank(c, P::batch1, 3);
  if (y.rank != 3) return refuse_rank(c, P::batch2, 3);
  if (x.dims[0] != y.dims[0] || x.dims[2] != y.dims[1])
    return refuse_shapes(c, P::batch1, P::batch2);
  const aclDataType common = promote(promote(x.dtype, y.dtype), c.tensor(P::self).dtype);
  if (common == ACL_DT_UNDEFINED) return refuse_shapes(c, P::batch1, P::batch2);
  Shape shape;
  shape.rank = 2;
  shape.dims[0] = x.dims[1];
  shape.dims[1] = y.dims[2];
  ACL_RETURN_IF_FAILED(expect_shape(c, Out, shape));
  Plan& p = c.make<Plan>();
  p.common = common;
  p.bfloats = multiplies_bfloat() && x.dtype == ACL_BF16 && y.dtype == ACL_BF16;
  p.self_arg = 0;
  p.beta_arg = 3;
  p.alpha_arg = 4;
  p.out_arg = Out;
  p.out_shape = shape;
  p.m = shape.dims[0];
  p.n = shape.dims[1];
  p.k = x.dims[0] * x.dims[2];
  c.workspace_size = (x.numel() + y.numel() + p.m * p.n) * element_bytes(common);
  return ACLNN_SUCCESS;
}
template <class C, class From = C>
void addbmm(const Call& c, const Plan& p) {
  using P = params::Addbmm;

  const Tensor &x = c.tensor(P::batch1), &y = c.tensor(P::batch2);
  C* out = static_cast<C*>(c.workspace);
  From* a = reinterpret_cast<From*>(out + p.m * p.n);
  From* b = a + x.numel();
  const int64_t dims[] = {x.dims[1], x.dims[0], x.dims[2]};
  Tensor swapped = x;
  std::swap(swapped.dims[0], swapped.dims[1]);
  std::swap(swapped.strides[0], swapped.strides[1]);
  copy_tensor(dense(a, dtype_of<From>(), dims, 3), swapped);
  copy_tensor(dense(b, dtype_of<From>(), y.dims, 3), y);
  gemm({out, p.m, p.n, p.n, 1}, Matrix<const From>{a, p.m, p.k, p.k, 1},
       Matrix<const From>{b, p.k, p.n, p.n, 1}, false);
  epilogue(c, p, dense(out, dtype_of<C>(), p.out_shape.dims, 2));
}
void run_addbmm(Call& c) {
  const Plan& p = c.get<Plan>();
  if (c.tensor(p.out_arg).numel() == 0) return;
  switch (domain_of(p.common)) {
    case Domain::Float: p.bfloats ? addbmm<float, bfloat>(c, p) : addbmm<float>(c, p); break;
    case Domain::Double: addbmm<double>(c, p); break;
    case Domain::Integer: addbmm<int64_t>(c, p); break;
    case Domain::Complex: addbmm<c128>(c, p); break;
  }
}

// Outer products, as pointwise work over [n, 1] and [1, m].
ACL_FN(Outer, Arith, (T a, T b), a * b)
ACL_FN(AddOuter, Arith, (T self, T a, T b, T beta, T alpha),
       beta == T(0) ? alpha * a * b : beta * self + alpha * a * b)
Tensor column_of(const Tensor& t) {
  Tensor v = t;
  v.rank = 2;
  v.dims[1] = 1;
  v.strides[1] = 0;
  return v;
}
template <int First, int Out>
aclnnStatus check_outer(Call& c) {
  for (int i : {First, First + 1}) {
    if (c.tensor(i).rank != 1) return refuse_rank(c, i, 1);
  }
  Shape shape;
  shape.rank = 2;
  shape.dims[0] = c.tensor(First).dims[0];
  shape.dims[1] = c.tensor(First + 1).dims[0];
  return expect_shape(c, Out, shape);
}
template <int First, int Out>
void run_outer(Call& c) {
  using P = params::Addr;

  Loop loop = loop_over(c.tensor(Out));
  aclDataType common = promote(c.tensor(First).dtype, c.tensor(First + 1).dtype);
  if (First == 1) {
    loop.add(c.tensor(P::self));
    common = promote(common, c.tensor(P::self).dtype);
  }
  loop.add(column_of(c.tensor(First)));
  loop.add(c.tensor(First + 1));
  if (First == 1) {
    add_scalar(loop, c, P::betaOptional);
    add_scalar(loop, c, P::alphaOptional);
  }
  loop.coalesce();
  static constexpr Bodies plain = bodies_of<Outer, 2>(), sum = bodies_of<AddOuter, 5>();
  run_bodies(loop, common, First == 1 ? sum : plain);
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnMatmul, (check_product<0, 0>), run_product)
ACLNN_OP(aclnnMm, (check_product<2, 2>), run_product)
ACLNN_OP(aclnnBatchMatMul, (check_product<3, 3>), run_product)
ACLNN_OP(aclnnMv, (check_product<2, 1>), run_product)
ACLNN_OP(aclnnDot, (check_product<1, 1>), run_product)
ACLNN_OP(aclnnAddmm, (check_sum<2, 2, 3, 4, params::Addmm::out>), run_product)
ACLNN_OP(aclnnInplaceAddmm, (check_sum<2, 2, 3, 4, params::InplaceAddmm::selfRef>), run_product)
ACLNN_OP(aclnnBaddbmm, (check_sum<3, 3, 3, 4, params::Baddbmm::out>), run_product)
ACLNN_OP(aclnnInplaceBaddbmm, (check_sum<3, 3, 3, 4, params::InplaceBaddbmm::selfRef>), run_product)
ACLNN_OP(aclnnAddmv, (check_sum<2, 1, 4, 3, params::Addmv::out>), run_product)
ACLNN_OP(aclnnAddbmm, check_addbmm<params::Addbmm::out>, run_addbmm)
ACLNN_OP(aclnnInplaceAddbmm, check_addbmm<params::InplaceAddbmm::selfRef>, run_addbmm)
ACLNN_OP(aclnnGer, (check_outer<params::Ger::self, params::Ger::out>),
         (run_outer<params::Ger::self, params::Ger::out>))
ACLNN_OP(aclnnAddr, (check_outer<params::Addr::vec1, params::Addr::out>),
         (run_outer<params::Addr::vec1, params::Addr::out>))
ACLNN_OP(aclnnInplaceAddr, (check_outer<params::InplaceAddr::vec1, params::InplaceAddr::selfRef>),
         (run_outer<params::InplaceAddr::vec1, params::InplaceAddr::selfRef>))
