// Reductions over ranks: see fold.h.
#include "hccl/fold.h"

#include "ascendcl/dtype.h"

namespace aclsim {
namespace {

constexpr uint64_t kRun = 512;

template <class T>
struct Wide {
  using type = T;
};
template <>
struct Wide<half> {
  using type = float;
};
template <>
struct Wide<bfloat> {
  using type = float;
};

// Integers wrap, which signed C++ arithmetic may not.
template <class C>
C add(C a, C b) {
  if constexpr (std::is_integral<C>::value) {
    return static_cast<C>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else {
    return a + b;
  }
}
template <class C>
C multiply(C a, C b) {
  if constexpr (std::is_integral<C>::value) {
    return static_cast<C>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  } else {
    return a * b;
  }
}

template <class C>
void join(C* acc, const C* next, uint64_t n, HcclReduceOp op) {
  for (uint64_t i = 0; i < n; ++i) {
    switch (op) {
      case HCCL_REDUCE_SUM: acc[i] = add(acc[i], next[i]); break;
      case HCCL_REDUCE_PROD: acc[i] = multiply(acc[i], next[i]); break;
      case HCCL_REDUCE_MAX: acc[i] = acc[i] < next[i] ? next[i] : acc[i]; break;
      default: acc[i] = next[i] < acc[i] ? next[i] : acc[i];
    }
  }
}

template <class T>
void fold_as(void* out, const void* const* in, uint32_t inputs, uint64_t count, HcclReduceOp op) {
  using C = typename Wide<T>::type;
  C acc[kRun], next[kRun];
  for (uint64_t begin = 0; begin < count; begin += kRun) {
    uint64_t n = count - begin < kRun ? count - begin : kRun;
    for (uint32_t r = 0; r < inputs; ++r) {
      const T* from = static_cast<const T*>(in[r]) + begin;
      C* to = r ? next : acc;
      for (uint64_t i = 0; i < n; ++i) to[i] = Convert<C>::of(from[i]);
      if (r) join(acc, next, n, op);
    }
    T* to = static_cast<T*>(out) + begin;
    for (uint64_t i = 0; i < n; ++i) to[i] = Convert<T>::of(acc[i]);
  }
}

}  // namespace

size_t element_bytes(HcclDataType dtype) {
  switch (dtype) {
    case HCCL_DATA_TYPE_INT8:
    case HCCL_DATA_TYPE_UINT8:
    case HCCL_DATA_TYPE_HIF8:
    case HCCL_DATA_TYPE_FP8E4M3:
    case HCCL_DATA_TYPE_FP8E5M2:
    case HCCL_DATA_TYPE_FP8E8M0: return 1;
    case HCCL_DATA_TYPE_INT16:
    case HCCL_DATA_TYPE_UINT16:
    case HCCL_DATA_TYPE_FP16:
    case HCCL_DATA_TYPE_BFP16: return 2;
    case HCCL_DATA_TYPE_INT32:
    case HCCL_DATA_TYPE_UINT32:
    case HCCL_DATA_TYPE_FP32: return 4;
    case HCCL_DATA_TYPE_INT64:
    case HCCL_DATA_TYPE_UINT64:
    case HCCL_DATA_TYPE_FP64: return 8;
    case HCCL_DATA_TYPE_INT128: return 16;
    default: return 0;
  }
}

bool can_reduce(HcclDataType dtype) {
  switch (dtype) {
    case HCCL_DATA_TYPE_INT8:
    case HCCL_DATA_TYPE_INT16:
    case HCCL_DATA_TYPE_INT32:
    case HCCL_DATA_TYPE_INT64:
    case HCCL_DATA_TYPE_UINT64:
    case HCCL_DATA_TYPE_FP16:
    case HCCL_DATA_TYPE_BFP16:
    case HCCL_DATA_TYPE_FP32:
    case HCCL_DATA_TYPE_FP64: return true;
    default: return false;
  }
}

void fold(void* out, const void* const* in, uint32_t inputs, uint64_t count, HcclDataType dtype,
          HcclReduceOp op) {
  switch (dtype) {
    case HCCL_DATA_TYPE_INT8: return fold_as<int8_t>(out, in, inputs, count, op);
    case HCCL_DATA_TYPE_INT16: return fold_as<int16_t>(out, in, inputs, count, op);
    case HCCL_DATA_TYPE_INT32: return fold_as<int32_t>(out, in, inputs, count, op);
    case HCCL_DATA_TYPE_INT64: return fold_as<int64_t>(out, in, inputs, count, op);
    case HCCL_DATA_TYPE_UINT64: return fold_as<uint64_t>(out, in, inputs, count, op);
    case HCCL_DATA_TYPE_FP16: return fold_as<half>(out, in, inputs, count, op);
    case HCCL_DATA_TYPE_BFP16: return fold_as<bfloat>(out, in, inputs, count, op);
    case HCCL_DATA_TYPE_FP32: return fold_as<float>(out, in, inputs, count, op);
    case HCCL_DATA_TYPE_FP64: return fold_as<double>(out, in, inputs, count, op);
    default: return;
  }
}

}  // namespace aclsim
