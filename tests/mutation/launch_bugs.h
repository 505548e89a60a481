// Defects at the launch, whatever the operator: what a kernel does that misreads strides or
// offsets, forgets a part of a large result, caches a scalar or loses a property of values. Each
// changes the call before phase 1 looks at it, or its results afterwards.
#pragma once

#include "mutants.h"

#include "ascendcl/dtype.h"
#include "nnopbase/executor.h"
#include "nnopbase/op.h"

#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace aclsim_mutants {

using aclsim::Arg;
using aclsim::ArgKind;
using aclsim::Call;
using aclsim::Tensor;

inline bool named(const Call& call, const char* op) {
  return !*op || std::strstr(call.op->name, op) != nullptr;
}
inline bool is_output(const Call& call, int i) {
  return call.executor->entry->spec->params[i].output;
}
template <class F>
void each_tensor(Call& call, bool outputs, F f) {
  for (int i = 0; i < call.count; ++i) {
    if (call.args[i].kind != ArgKind::Tensor || !call.maybe(i)) continue;
    if (is_output(call, i) == outputs) f(call.tensor(i));
  }
}
inline Tensor* result(Call& call) {
  Tensor* found = nullptr;
  each_tensor(call, true, [&](Tensor& t) { found = found ? found : &t; });
  return found;
}

inline void lay_out(Tensor& t) {
  int64_t step = 1;
  for (int i = t.rank - 1; i >= 0; --i) {
    t.strides[i] = step;
    step *= t.dims[i];
  }
}
inline bool overlaps(const Tensor& t) {
  for (int i = 0; i < t.rank; ++i) {
    if (t.dims[i] > 1 && t.strides[i] == 0) return true;
  }
  return false;
}
inline bool strided(const Tensor& t) { return t.numel() > 1 && !t.contiguous() && !overlaps(t); }

// Whether `how` goes wrong with this view; `t` becomes what the kernel takes it for.
inline bool misread(const std::string& how, Tensor& t) {
  const int last = t.rank - 1;
  if (how == "rank 3" || how == "rank 4" || how == "rank 5") {
    if (t.rank != how.back() - '0' || !strided(t)) return false;
    lay_out(t);
  } else if (how == "transposed") {
    if (t.rank != 2 || !strided(t) || t.strides[0] != 1) return false;
    lay_out(t);
  } else if (how == "stepped") {
    if (t.rank < 1 || t.dims[last] < 2 || t.strides[last] < 2 || t.strides[last] > 4) return false;
    t.strides[last] = 1;
  } else if (how == "offset") {
    if (t.offset == 0 || t.numel() == 0) return false;
    t.offset = 0;
  } else if (how == "stride 0 in the middle" || how == "stride 0 in front") {
    const int at = how == "stride 0 in front" ? 0 : 1;
    if (t.rank < at + 2 || t.dims[at] < 2 || t.strides[at] != 0 || t.dims[last] < 2) return false;
    t.strides[last] = 0;
  } else if (how == "gaps") {  // rows further apart than they are long
    if (t.rank != 2 || t.dims[0] < 2 || t.strides[1] != 1 || t.strides[0] <= t.dims[1]) return false;
    t.strides[0] = t.dims[1];
  }
  return true;
}
// A tensor that broadcasts with a dim of one between others, against a larger result.
inline bool broadcasts_middle(Call& call, Tensor& t) {
  const Tensor* out = result(call);
  if (!out || t.rank != out->rank || t.rank < 3 || t.dims[t.rank - 1] < 2) return false;
  bool found = false;
  for (int i = 1; i < t.rank - 1; ++i) found = found || (t.dims[i] == 1 && out->dims[i] > 1);
  if (found) t.strides[t.rank - 1] = 0;
  return found;
}
inline bool lower_rank(Call& call, Tensor& t) {
  const Tensor* out = result(call);
  if (!out || t.rank == 0 || t.rank >= out->rank || t.dims[t.rank - 1] < 2) return false;
  t.strides[t.rank - 1] = 0;
  return true;
}

inline bool cached_scalar(Call& call) {
  static std::map<std::string, aclsim::Scalar> before;
  bool found = false;
  for (int i = 0; i < call.count; ++i) {
    if (call.args[i].kind != ArgKind::Scalar || call.null(i)) continue;
    aclsim::Scalar& now = *call.args[i].scalar;
    const std::string key = std::string(call.op->name) + std::to_string(i);
    const auto old = before.find(key);
    const aclsim::Scalar given = now;
    if (old != before.end() && old->second.dtype == now.dtype) {
      found = found || std::memcmp(old->second.bytes, now.bytes, 16) != 0;
      now = old->second;
    } else {
      before[key] = given;
    }
  }
  return found;
}

inline bool change_call(const std::string& how, Call& call) {
  if (how == "cached scalar") return cached_scalar(call);
  const bool outputs = how.rfind("out ", 0) == 0;
  const std::string what = outputs ? how.substr(4) : how;
  bool found = false;
  each_tensor(call, outputs, [&](Tensor& t) {
    if (what == "broadcast middle") {
      found = broadcasts_middle(call, t) || found;
    } else if (what == "lower rank") {
      found = lower_rank(call, t) || found;
    } else {
      found = misread(what, t) || found;
    }
  });
  return found;
}
// Undoes what looking at a call for the record changed.
class Kept {
 public:
  explicit Kept(Call& call) : call_(call) {
    for (int i = 0; i < call.count; ++i) {
      if (call.args[i].kind == ArgKind::Tensor && call.maybe(i)) tensors_[i] = call.tensor(i);
      if (call.args[i].kind == ArgKind::Scalar && !call.null(i)) scalars_[i] = call.scalar(i);
    }
  }
  void restore() {
    for (const auto& [i, t] : tensors_) call_.tensor(i) = t;
    for (const auto& [i, s] : scalars_) *call_.args[i].scalar = s;
  }

 private:
  Call& call_;
  std::map<int, Tensor> tensors_;
  std::map<int, aclsim::Scalar> scalars_;
};
inline void before(int id, const char* how, const char* op, Call& call) {
  if (is(id)) {
    if (named(call, op)) met(change_call(how, call));
  } else if (board->recording && named(call, op)) {
    Kept kept(call);
    if (change_call(how, call)) reach(id);
    kept.restore();
  }
}

inline char* at(const Tensor& t, int64_t i) {
  int64_t place = t.offset;
  for (int d = t.rank - 1; d >= 0; --d) {
    place += i % t.dims[d] * t.strides[d];
    i /= t.dims[d];
  }
  return static_cast<char*>(t.data) + place * static_cast<int64_t>(aclsim::dtype_size(t.dtype));
}
// From which element on the result stays as it was, by the defect; numel: nowhere.
inline int64_t stale_from(const std::string& how, const Tensor& t) {
  const int64_t n = t.numel();
  if (how == "last part above 4096") return n > 4096 ? n - n / 8 : n;
  if (how == "last part above 65536") return n > 65536 ? n - n / 8 : n;
  if (how == "last part above 1048576") return n > 1048576 ? n - n / 8 : n;
  if (how == "tail of 16") return n > 16 ? n - n % 16 : n;
  if (how == "tail of 256") return n > 256 ? n - n % 256 : n;
  if (how == "one element") return n == 1 ? 0 : n;
  return n;
}
template <class T, class F>
bool rewrite(const Tensor& t, F f) {
  bool found = false;
  for (int64_t i = 0, n = t.numel(); i < n; ++i) {
    T value;
    std::memcpy(&value, at(t, i), sizeof value);
    const T other = f(value);
    found = found || std::memcmp(&value, &other, sizeof value) != 0;
    std::memcpy(at(t, i), &other, sizeof value);
  }
  return found;
}
inline bool change_result(const std::string& how, const Tensor& t) {
  if (how == "int64 as float" && t.dtype == ACL_INT64) {
    return rewrite<int64_t>(t, [](int64_t x) { return coarse(x); });
  }
  if (how == "int64 as double" && t.dtype == ACL_INT64) {
    return rewrite<int64_t>(t, [](int64_t x) {
      const double near = static_cast<double>(x);
      return near >= 9.2e18 ? x : static_cast<int64_t>(near);
    });
  }
  if (how == "int64 as int32" && t.dtype == ACL_INT64) {
    return rewrite<int64_t>(t, [](int64_t x) -> int64_t { return static_cast<int32_t>(x); });
  }
  if (how == "-0 lost" && t.dtype == ACL_FLOAT) {
    return rewrite<float>(t, [](float x) { return x == 0 ? 0.0f : x; });
  }
  if (how == "-0 lost" && (t.dtype == ACL_FLOAT16 || t.dtype == ACL_BF16)) {
    return rewrite<uint16_t>(t, [](uint16_t x) -> uint16_t { return x == 0x8000u ? 0 : x; });
  }
  if (how == "NaN as 0" && t.dtype == ACL_FLOAT) {
    return rewrite<float>(t, [](float x) { return x != x ? 0.0f : x; });
  }
  if (how == "inf as largest" && t.dtype == ACL_FLOAT) {
    return rewrite<float>(t, [](float x) {
      constexpr float most = std::numeric_limits<float>::max();
      return x > most ? most : (x < -most ? -most : x);
    });
  }
  if (how == "one ulp up" && (t.dtype == ACL_FLOAT16 || t.dtype == ACL_BF16)) {
    return rewrite<uint16_t>(t, [](uint16_t x) -> uint16_t {
      const uint16_t magnitude = x & 0x7FFFu;  // leave zero, infinities and NaN
      return magnitude == 0 || magnitude >= 0x7B00u ? x : static_cast<uint16_t>(x + 1);
    });
  }
  return false;
}

template <class F>
aclError after_run(int id, const char* how, const char* op, Call& call, F run) {
  const bool on = is(id), looks = board->recording && !on;
  if ((!on && !looks) || !named(call, op)) return run();
  std::vector<std::pair<char*, std::string>> kept;
  bool found = false;
  each_tensor(call, true, [&](Tensor& t) {
    const size_t size = aclsim::dtype_size(t.dtype);
    const int64_t n = t.numel(), from = stale_from(how, t);
    found = found || from < n;
    for (int64_t i = from; on && i < n; ++i) kept.emplace_back(at(t, i), std::string(at(t, i), size));
  });
  const bool aliased = std::strcmp(how, "aliased") == 0;
  const aclError code = run();
  if (code != ACL_SUCCESS) return code;
  for (const auto& [to, bytes] : kept) std::memcpy(to, bytes.data(), bytes.size());
  each_tensor(call, true, [&](Tensor& t) {
    if (aliased) {
      int same = 0;
      for (int i = 0; i < call.count; ++i) {
        const bool tensor = call.args[i].kind == ArgKind::Tensor && call.maybe(i);
        same += tensor && call.tensor(i).data == t.data;
      }
      if (same < 2 || t.numel() == 0) return;
      found = true;
      if (on) std::memset(at(t, t.numel() - 1), 0x35, aclsim::dtype_size(t.dtype));
    } else if (on) {
      found = change_result(how, t) || found;
    } else if (!found) {
      std::vector<char> copy(static_cast<size_t>(t.numel()) * aclsim::dtype_size(t.dtype));
      Tensor view = t;
      lay_out(view);
      view.data = copy.data();
      view.offset = 0;
      for (int64_t i = 0; i < t.numel(); ++i) {
        std::memcpy(at(view, i), at(t, i), aclsim::dtype_size(t.dtype));
      }
      found = change_result(how, view);
    }
  });
  if (looks && found) reach(id);
  if (on) met(found);
  return code;
}

}  // namespace aclsim_mutants
