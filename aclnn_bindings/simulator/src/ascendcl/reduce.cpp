// aclrtReduceAsync: joins one device array into another on a stream's time.
#include "ascendcl/dtype.h"
#include "ascendcl/memory.h"

namespace aclsim {
namespace {

uint32_t bit(aclDataType dtype) { return 1u << dtype; }

// The dtypes that the aclrtReduceAsync document gives each product.
bool reduces(Soc soc, aclDataType dtype) {
  if (dtype < 0 || dtype > ACL_BF16) return false;
  uint32_t small = bit(ACL_FLOAT) | bit(ACL_FLOAT16) | bit(ACL_INT16);
  uint32_t middle = small | bit(ACL_INT8) | bit(ACL_INT32);
  uint32_t all = middle | bit(ACL_UINT32) | bit(ACL_BF16);
  switch (soc) {
    case Soc::Ascend910: return dtype == ACL_FLOAT;
    case Soc::Ascend310P: return small & bit(dtype);
    case Soc::Ascend310B: return middle & bit(dtype);
    default: return all & bit(dtype);
  }
}

// 16-bit floats are joined in float and rounded once; integers wrap.
template <class T>
void join(T* to, const T* from, uint64_t count, aclrtReduceKind kind) {
  using Real = typename std::conditional<std::is_arithmetic<T>::value, T, float>::type;
  using C = typename std::conditional<std::is_integral<Real>::value, uint64_t, Real>::type;
  for (uint64_t i = 0; i < count; ++i) {
    Real a = Convert<Real>::of(to[i]), b = Convert<Real>::of(from[i]);
    Real joined = kind == ACL_RT_MEMCPY_SDMA_AUTOMATIC_MAX   ? (a < b ? b : a)
                  : kind == ACL_RT_MEMCPY_SDMA_AUTOMATIC_MIN ? (b < a ? b : a)
                                                             : static_cast<Real>(
                                                                   static_cast<C>(a) + static_cast<C>(b));
    to[i] = Convert<T>::of(joined);
  }
}

aclError check_range(const char* what, const void* address, uint64_t count) {
  Extent extent = find_extent(address, count);
  if (extent.block && extent.block->place == Place::Device && count <= extent.bytes) {
    return ACL_SUCCESS;
  }
  return failed(ACL_ERROR_RT_PARAM_INVALID, "EE1003",
                "aclrtReduceAsync failed because %s %p with %llu bytes is no device memory of that "
                "length.", what, address, static_cast<unsigned long long>(count));
}

}  // namespace
}  // namespace aclsim

using namespace aclsim;

// `count` is the source's size in bytes.
ACLSIM_API aclError aclrtReduceAsync(void* dst, const void* src, uint64_t count,
                                     aclrtReduceKind kind, aclDataType type, aclrtStream stream,
                                     void* reserve) {
  ACLSIM_REQUIRE(dst);
  ACLSIM_REQUIRE(src);
  if (reserve) return bad_value(__func__, "reserve", "an address", "NULL");
  ACLSIM_STREAM(on, stream);
  if (kind < ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM || kind > ACL_RT_MEMCPY_SDMA_AUTOMATIC_MIN) {
    return bad_value(__func__, "kind", "unknown", "sum, max or min");
  }
  if (!reduces(config().soc->soc, type)) {
    return failed(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "EE1006",
                  "%s does not support dtype %d on %s.", __func__, static_cast<int>(type),
                  config().soc->name);
  }
  if (count % dtype_size(type)) {
    return bad_value(__func__, "count", "no multiple of the dtype's size", "bytes of whole elements");
  }
  aclError code = check_range("dst", dst, count);
  if (code == ACL_SUCCESS) code = check_range("src", src, count);
  if (code != ACL_SUCCESS) return code;
  return submit(on, make_task([=](Stream*) -> aclError {
    visit(type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (!std::is_same<T, c64>::value && !std::is_same<T, c128>::value) {
        join(static_cast<T*>(dst), static_cast<const T*>(src), count / sizeof(T), kind);
      }
    });
    return ACL_SUCCESS;
  }), "REDUCE_ASYNC");
}
