// Einstein sums of one or two operands.
#include "params/matmul.h"
#include "loops/numbers.h"

#include <string>

namespace aclsim {
namespace {

// (tensors, equation, output): numpy's einsum with an arrow and without an ellipsis.
struct Labels {
  int64_t size[128];
  const char* terms[16];
  int64_t lengths[16];
  int count;  // of operands; the result's term follows them
};
aclnnStatus bad_equation(const Call& c) {
  using P = params::Einsum;

  return c.fail(ACLNN_ERR_PARAM_INVALID, "equation %s doesn't fit the tensors.",
                c.text(P::equation) ? c.text(P::equation) : "(null)");
}
aclnnStatus check_einsum(Call& c) {
  using P = params::Einsum;

  if (!c.text(P::equation)) return c.fail(ACLNN_ERR_PARAM_NULLPTR, "Parameter equation is null.");
  Labels& l = c.make<Labels>();
  std::fill_n(l.size, 128, int64_t{-1});
  const Span<Tensor*> all = c.tensors(P::tensors);
  const char *arrow = std::strstr(c.text(P::equation), "->"), *at = c.text(P::equation);
  if (!arrow || all.size < 1 || all.size > 14) return bad_equation(c);
  for (const char* p = at; *p; ++p) {
    if (!std::strchr(" ,->", *p) && !((*p | 32) >= 'a' && (*p | 32) <= 'z')) return bad_equation(c);
  }
  for (l.count = 0; l.count <= all.size; ++l.count) {
    const bool last = l.count == all.size;
    const Tensor* t = last ? &c.tensor(P::output) : all[l.count];
    const char* end = last ? arrow + std::strlen(arrow) : std::strpbrk(at, ",-");
    if (last) at = arrow + 2;
    if (!t || !end) return bad_equation(c);
    l.terms[l.count] = at;
    l.lengths[l.count] = end - at;
    int d = 0;
    for (const char* p = at; p < end; ++p) {
      if (*p == ' ') continue;
      int64_t& size = l.size[static_cast<int>(*p)];
      if (d >= t->rank || (size >= 0 && size != t->dims[d]) || (last && size < 0)) {
        return bad_equation(c);
      }
      size = t->dims[d++];
    }
    if (d != t->rank || (!last && (end == arrow) != (l.count + 1 == all.size))) return bad_equation(c);
    at = end + 1;
  }
  --l.count;
  return ACLNN_SUCCESS;
}
template <class T>
void einsum(const Call& c, const Labels& l) {
  using P = params::Einsum;

  std::string order;  // labels of the result first
  for (int k : {l.count, -1}) {
    for (int i = k < 0 ? 0 : k; i < (k < 0 ? l.count : k + 1); ++i) {
      for (int64_t p = 0; p < l.lengths[i]; ++p) {
        const char label = l.terms[i][p];
        if (label != ' ' && order.find(label) == std::string::npos) order += label;
      }
    }
  }
  const size_t n = order.size();
  std::vector<std::vector<T>> data;
  std::vector<Integers> steps(static_cast<size_t>(l.count) + 1, Integers(n));
  for (int i = 0; i <= l.count; ++i) {
    const Tensor& t = i < l.count ? *c.tensors(P::tensors)[i] : c.tensor(P::output);
    data.push_back(i < l.count ? values_of<T>(t) : std::vector<T>(static_cast<size_t>(t.numel())));
    int d = 0;
    const Tensor flat = dense(nullptr, ACL_INT64, t.dims, t.rank);
    for (int64_t p = 0; p < l.lengths[i]; ++p) {
      if (l.terms[i][p] != ' ') steps[i][order.find(l.terms[i][p])] += flat.strides[d++];
    }
  }
  Integers index(n);
  int64_t total = 1;
  for (char label : order) total *= l.size[static_cast<int>(label)];
  for (int64_t k = 0; k < total; ++k) {
    T product = 1;
    int64_t to = 0;
    for (int i = 0; i <= l.count; ++i) {
      int64_t at = 0;
      for (size_t d = 0; d < n; ++d) at += index[d] * steps[i][d];
      if (i < l.count) product *= data[i][at];
      to = at;
    }
    data[l.count][to] += product;
    for (size_t d = n; d-- > 0;) {
      if (++index[d] < l.size[static_cast<int>(order[d])]) break;
      index[d] = 0;
    }
  }
  put(c.tensor(P::output), data[l.count]);
}
void run_einsum(Call& c) {
  using P = params::Einsum;

  const Labels& l = c.get<Labels>();
  if (domain_of(c.tensor(P::output).dtype) == Domain::Integer) {
    einsum<int64_t>(c, l);
  } else {
    einsum<double>(c, l);
  }
}

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnEinsum, check_einsum, run_einsum)
