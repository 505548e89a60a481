#include "nnopbase/rules.h"
#include "nnopbase/precision.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "ascendcl/strict.h"
#include "nnopbase/limits.h"

namespace aclsim {
namespace {

// What an operator has beside masks: rows of limits, modes of precision.
constexpr uint64_t kLimited = 1, kModes = 2;


// Only the newest product computes in them.
constexpr uint64_t kNarrowFloats =
    dtype_bit(ACL_HIFLOAT8) | dtype_bit(ACL_FLOAT8_E5M2) | dtype_bit(ACL_FLOAT8_E4M3FN) |
    dtype_bit(ACL_FLOAT8_E8M0) | dtype_bit(ACL_FLOAT4_E2M1) | dtype_bit(ACL_FLOAT4_E1M2);

// What stands for an absent optional tensor: clients give an empty vector of any dtype.
bool placeholder(const Executor* x, int i, const Tensor& t) {
  const bool optional = x->entry->row->flags & kOwnNulls || !x->entry->spec->params[i].required;
  return optional && t.rank == 1 && t.dims[0] == 0;
}

// Products before A2 have no bfloat16: no kernel of theirs takes it where its document, with the
// product's exceptions, does not list it.
bool lacks_bfloat(aclDataType dtype, uint64_t documented) {
  return dtype == ACL_BF16 && !config().soc->bfloat16 && documented &&
         !(documented & dtype_bit(ACL_BF16));
}

const LimitRow* limits_of(const char* op) {
  const LimitRow* end = limit_rows + limit_row_count;
  const LimitRow* row = std::lower_bound(
      limit_rows, end, op, [](const LimitRow& a, const char* name) { return strcmp(a.op, name) < 0; });
  return row != end && strcmp(row->op, op) == 0 ? row : nullptr;
}

// A parameter's documented dtypes less those that its document excepts for this product.
uint64_t with_exceptions(const OpSpec& spec, int i, uint64_t mask) {
  const auto here = uint8_t(1u << static_cast<int>(config().soc->soc));
  for (int r = 0; r < spec.rule_count; ++r) {
    const SocRule& rule = spec.rules[r];
    if (!(rule.socs & here) || (rule.params && !(i < 32 && rule.params >> i & 1))) continue;
    mask &= rule.only ? rule.dtypes : ~rule.dtypes;
  }
  return mask;
}

// The documented dtype masks with this product's exceptions applied; the last word says whether
// the operator has further limits.
ACLSIM_NOINLINE const uint64_t* resolve(Entry& entry) {
  const OpSpec& spec = *entry.spec;
  auto* masks = new uint64_t[spec.param_count + 1];
  for (int i = 0; i < spec.param_count; ++i) {
    masks[i] = spec.params[i].dtypes;
    if (!masks[i]) continue;
    const uint64_t here_alone = with_exceptions(spec, i, masks[i]);
    if (entry.row->flags & kOwnLimits) {
      if (config().soc->soc != Soc::Ascend950) masks[i] &= ~kNarrowFloats;
      if (lacks_bfloat(ACL_BF16, here_alone)) masks[i] &= ~dtype_bit(ACL_BF16);
    } else {
      masks[i] = here_alone;
    }
    // A document that leaves nothing was misread: then only the row's own check speaks.
  }
  masks[spec.param_count] = (limits_of(spec.name) ? kLimited : 0) | (has_modes(spec) ? kModes : 0);
  const uint64_t* expected = nullptr;
  if (!entry.dtypes.compare_exchange_strong(expected, masks)) {
    delete[] masks;
    return expected;
  }
  return masks;
}

const char* noun(ArgKind kind) {
  switch (kind) {
    case ArgKind::Tensor: return "Tensor";
    case ArgKind::TensorList: return "TensorList";
    case ArgKind::Scalar: return "Scalar";
    case ArgKind::ScalarList: return "ScalarList";
    case ArgKind::IntArray: return "IntArray";
    case ArgKind::BoolArray: return "BoolArray";
    default: return "value";
  }
}

ACLSIM_NOINLINE aclnnStatus refuse_null(Executor* x, int i) {
  return x->call.fail(ACLNN_ERR_PARAM_NULLPTR, "Parameter %s is null; a %s is expected.",
                      x->call.name(i), noun(x->call.args[i].kind));
}

ACLSIM_NOINLINE aclnnStatus refuse_dtype(Executor* x, int i, aclDataType dtype, uint64_t mask) {
  std::string list;
  for (int value = 0; value < 64; ++value) {
    if (mask >> value & 1) {
      list += list.empty() ? "" : ",";
      list += dtype_name(static_cast<aclDataType>(value));
    }
  }
  return x->call.fail(ACLNN_ERR_PARAM_INVALID,
                      "%s not implemented for %s, should be in dtype support list [%s] (%s).",
                      x->call.name(i), dtype_name(dtype), list.c_str(), config().soc->name);
}

ACLSIM_NOINLINE aclnnStatus refuse_rank(Executor* x, int i, int rank) {
  return x->call.fail(ACLNN_ERR_PARAM_INVALID,
                      "The %s tensor cannot be larger than %d dimensions, but it has %d.",
                      x->call.name(i), kMaxRank, rank);
}

ACLSIM_NOINLINE aclnnStatus refuse_product(Executor* x) {
  return x->call.fail(ACLNN_ERR_RUNTIME_ERROR, "%s is not documented for %s (CANN 9.1).",
                      x->entry->spec->name, config().soc->name);
}

aclnnStatus check_tensor(Executor* x, int i, const Tensor& t, uint64_t mask) {
  if (ACLSIM_UNLIKELY(mask && !(mask & dtype_bit(t.dtype))) && !placeholder(x, i, t)) {
    return refuse_dtype(x, i, t.dtype, mask);
  }
  if (ACLSIM_UNLIKELY(t.rank > kMaxRank)) return refuse_rank(x, i, t.rank);
  return ACL_SUCCESS;
}

aclnnStatus check_storage(Executor* x, int i, const Tensor& t) {
  int64_t low = t.offset, high = t.offset;
  for (int d = 0; d < t.rank; ++d) {
    if (t.dims[d] == 0) return ACL_SUCCESS;
    int64_t reach = (t.dims[d] - 1) * t.strides[d];
    (reach < 0 ? low : high) += reach;
  }
  if (low >= 0 && high < t.storage_numel) return ACL_SUCCESS;
  char remedy[256];
  snprintf(remedy, sizeof remedy,
           "Parameter %s of %s: the view %s covers elements %lld to %lld of a storage of %lld. "
           "Correct its strides, offset or storage shape.", x->call.name(i), x->entry->spec->name,
           shape_text(t), static_cast<long long>(low), static_cast<long long>(high),
           static_cast<long long>(t.storage_numel));
  report_misuse("view-past-storage", x->entry->spec->name, t.origin, Kind::Tensor, remedy);
  return strict_fails() ? x->call.fail(ACLNN_ERR_PARAM_INVALID, "%s", remedy) : ACL_SUCCESS;
}

ACLSIM_NOINLINE aclnnStatus refuse_format(Executor* x, const Limit& limit) {
  return x->call.fail(limit.code, "Format of %s should be in [%s], but current is ND (rank %d).",
                      x->call.name(limit.param), limit.formats,
                      x->call.args[limit.param].tensor->rank);
}

ACLSIM_NOINLINE aclnnStatus refuse_value(Executor* x, const Limit& limit, aclDataType dtype) {
  return x->call.fail(limit.code, "%s not support under keep dtype mode: %s is %lld (%s).",
                      dtype_name(dtype), x->call.name(limit.param),
                      static_cast<long long>(limit.value), config().soc->name);
}

aclnnStatus check_limit(Executor* x, const Limit& limit) {
  const Arg& arg = x->call.args[limit.param];
  if (limit.kind == Limit::kValue) {
    if (arg.integer != limit.value) return ACL_SUCCESS;
    for (int i = 0; i < x->call.count; ++i) {
      const Arg& other = x->call.args[i];
      if (other.kind != ArgKind::Tensor || !other.tensor) continue;
      const aclDataType dtype = other.tensor->dtype;
      if (dtype_bit(dtype) & limit.dtypes) return refuse_value(x, limit, dtype);
    }
    return ACL_SUCCESS;
  }
  if (arg.kind != ArgKind::Tensor || !arg.tensor) return ACL_SUCCESS;
  const Tensor& t = *arg.tensor;
  if (limit.kind == Limit::kDtype) {
    const bool taken = dtype_bit(t.dtype) & limit.dtypes;
    return taken ? ACL_SUCCESS : refuse_dtype(x, limit.param, t.dtype, limit.dtypes);
  }
  const bool ranked = limit.rank ? t.rank == limit.rank : t.rank >= 3 && t.rank <= 5;
  return ranked && t.format == ACL_FORMAT_ND ? refuse_format(x, limit) : ACL_SUCCESS;
}

ACLSIM_NOINLINE aclnnStatus check_limits(Executor* x) {
  const LimitRow& row = *limits_of(x->entry->spec->name);
  for (size_t i = 0; i < row.count; ++i) {
    const Limit& limit = row.limits[i];
    if (!(limit.socs >> static_cast<int>(x->call.soc) & 1)) continue;
    const aclnnStatus code = check_limit(x, limit);
    if (ACLSIM_UNLIKELY(code != ACL_SUCCESS)) return code;
  }
  return ACL_SUCCESS;
}

template <class Each>
aclnnStatus each_tensor(Executor* x, Each each) {
  for (int i = 0; i < x->call.count; ++i) {
    const Arg& arg = x->call.args[i];
    if (arg.kind == ArgKind::Tensor && arg.tensor) {
      aclnnStatus code = each(i, *arg.tensor);
      if (ACLSIM_UNLIKELY(code != ACL_SUCCESS)) return code;
    } else if (arg.kind == ArgKind::TensorList && arg.tensors) {
      for (int64_t m = 0; m < arg.size; ++m) {
        // An empty member stands for an absent one, whatever its dtype: clients index x[:, i] so.
        const bool given = arg.tensors[m] && arg.tensors[m]->numel() != 0;
        aclnnStatus code = given ? each(i, *arg.tensors[m]) : ACL_SUCCESS;
        if (ACLSIM_UNLIKELY(code != ACL_SUCCESS)) return code;
      }
    }
  }
  return ACL_SUCCESS;
}

}  // namespace

aclnnStatus check_rules(Executor* x) {
  const OpSpec& spec = *x->entry->spec;
  const uint32_t flags = x->entry->row->flags;
  if (!(flags & kOwnNulls)) {
    for (int i = 0; i < x->call.count; ++i) {
      if (ACLSIM_UNLIKELY(spec.params[i].required && x->call.null(i))) return refuse_null(x, i);
    }
  }
  if (ACLSIM_UNLIKELY(spec.socs && !(spec.socs >> static_cast<int>(x->call.soc) & 1))) {
    return refuse_product(x);
  }
  const uint64_t* masks = x->entry->dtypes.load(std::memory_order_acquire);
  if (ACLSIM_UNLIKELY(!masks)) masks = resolve(*x->entry);
  bool own = flags & kOwnDtypes;
  const aclnnStatus code = each_tensor(x, [&](int i, const Tensor& t) {
    return check_tensor(x, i, t, own && !lacks_bfloat(t.dtype, masks[i]) ? 0 : masks[i]);
  });
  if (ACLSIM_UNLIKELY(code != ACL_SUCCESS)) return code;
  const uint64_t further = masks[spec.param_count];
  if (ACLSIM_LIKELY(!further)) return ACL_SUCCESS;
  const aclnnStatus limited = further & kLimited ? check_limits(x) : ACL_SUCCESS;
  return limited == ACL_SUCCESS && further & kModes ? check_precision(x) : limited;
}

aclnnStatus check_views(Executor* x) {
  return each_tensor(x, [&](int i, const Tensor& t) { return check_storage(x, i, t); });
}

}  // namespace aclsim
