// Many copies in one call: all of its arguments are checked before the first byte moves
// (aclrtMemcpyBatch and aclrtMemcpyBatchAsync documents, CANN 9.1).
#include <algorithm>

#include "ascendcl/memory.h"

namespace aclsim {
namespace {

constexpr size_t kMostAtOnce = 4096;  // of aclrtMemcpyBatch: the driver takes no more

struct Batch {
  const char* function;
  void** dsts;
  size_t* maxs;
  void** srcs;
  size_t* sizes;
  size_t count;
  aclrtMemcpyBatchAttr* attributes;
  size_t* firsts;  // the copy from which on each attribute counts
  size_t attribute_count;
  size_t* failed_at;  // may be null

  aclError refuse(const char* why) const {
    return failed(ACL_ERROR_RT_PARAM_INVALID, "EE1017", "%s failed because %s.", function, why);
  }
};

aclError check_lists(const Batch& batch) {
  const std::pair<const void*, const char*> lists[] = {
      {batch.dsts, "dsts"}, {batch.maxs, "destMaxs"}, {batch.srcs, "srcs"},
      {batch.attributes, "attrs"}, {batch.firsts, "attrsIndexes"}};
  for (const auto& [list, name] : lists) {
    if (!list) return null_pointer(batch.function, name);
  }
  for (size_t i = 0; i < batch.count; ++i) {
    if (batch.sizes[i] <= batch.maxs[i]) continue;
    return failed(ACL_ERROR_INVALID_PARAM, "EH0013",
                  "%s failed because copy %zu has %zu bytes where destMaxs allows %zu.",
                  batch.function, i, batch.sizes[i], batch.maxs[i]);
  }
  return ACL_SUCCESS;
}

aclError check_attributes(const Batch& batch) {
  if (!batch.attribute_count || batch.attribute_count > batch.count) {
    return batch.refuse("numAttrs is not between 1 and numBatches");
  }
  for (size_t k = 0; k < batch.attribute_count; ++k) {
    const uint8_t* reserved = batch.attributes[k].rsv;
    if (!std::all_of(reserved, reserved + sizeof batch.attributes[k].rsv,
                     [](uint8_t byte) { return byte == 0; })) {
      return bad_value(batch.function, "attrs.rsv", "nonzero", "0");
    }
  }
  if (batch.firsts[0] != 0) return batch.refuse("attrsIndexes does not begin with 0");
  for (size_t k = 1; k < batch.attribute_count; ++k) {
    if (batch.firsts[k] <= batch.firsts[k - 1] || batch.firsts[k] >= batch.count) {
      return batch.refuse("attrsIndexes does not rise, or names a copy past the last");
    }
  }
  return ACL_SUCCESS;
}

// Whether `address` lies where the attribute says. Memory that the runtime does not know is the
// host's, and the host's nodes are not told apart.
bool lies_at(const void* address, const aclrtMemLocation& stated, bool* on_device) {
  std::shared_ptr<Allocation> block = find_allocation(address);
  *on_device = block && block->place == Place::Device;
  if (!*on_device) {
    return stated.type == ACL_MEM_LOCATION_TYPE_HOST ||
           stated.type == ACL_MEM_LOCATION_TYPE_HOST_NUMA;
  }
  return stated.type == ACL_MEM_LOCATION_TYPE_DEVICE &&
         static_cast<int32_t>(stated.id) == block->device;
}

// The check that says which copy failed.
aclError check_places(const Batch& batch) {
  size_t attribute = 0;
  for (size_t i = 0; i < batch.count; ++i) {
    if (attribute + 1 < batch.attribute_count && i >= batch.firsts[attribute + 1]) ++attribute;
    const aclrtMemcpyBatchAttr& stated = batch.attributes[attribute];
    bool to = false, from = false;
    bool right = lies_at(batch.dsts[i], stated.dstLoc, &to);
    right &= lies_at(batch.srcs[i], stated.srcLoc, &from);
    if (right && to != from && batch.dsts[i] && batch.srcs[i]) continue;
    if (batch.failed_at) *batch.failed_at = i;
    return batch.refuse(right ? "a copy is neither from host to device nor from device to host"
                              : "an address does not lie where its attribute says");
  }
  return ACL_SUCCESS;
}

bool fits(const void* address, size_t bytes) {
  const Extent extent = find_extent(address, bytes);
  return !extent.block || bytes <= extent.bytes;
}

aclError check_extents(const Batch& batch) {
  for (size_t i = 0; i < batch.count; ++i) {
    if (fits(batch.dsts[i], batch.sizes[i]) && fits(batch.srcs[i], batch.sizes[i])) continue;
    return batch.refuse("a copy reaches past its allocation");
  }
  return ACL_SUCCESS;
}

// `one` copies: (dst, destMax, src, bytes).
template <class One>
aclError run(const Batch& batch, size_t most, One one) {
  if (!batch.sizes) return null_pointer(batch.function, "sizes");
  if (!batch.count) return bad_value(batch.function, "numBatches", "0", "must be greater than 0");
  if (batch.failed_at) *batch.failed_at = ~size_t{0};
  const size_t* first = batch.sizes;
  if (std::all_of(first, first + batch.count, [](size_t bytes) { return bytes == 0; })) {
    return ACL_SUCCESS;
  }
  aclError code = check_lists(batch);
  if (code == ACL_SUCCESS) code = check_attributes(batch);
  if (code == ACL_SUCCESS && batch.count > most) code = batch.refuse("there are too many copies");
  if (code == ACL_SUCCESS) code = check_places(batch);
  if (code == ACL_SUCCESS) code = check_extents(batch);
  for (size_t i = 0; code == ACL_SUCCESS && i < batch.count; ++i) {
    code = one(batch.dsts[i], batch.maxs[i], batch.srcs[i], batch.sizes[i]);
  }
  return code;
}

aclError run_now(const Batch& batch) {
  return run(batch, kMostAtOnce, [](void* dst, size_t max, void* src, size_t bytes) {
    return aclrtMemcpy(dst, max, src, bytes, ACL_MEMCPY_DEFAULT);
  });
}
aclError run_on(const Batch& batch, aclrtStream stream) {
  return run(batch, ~size_t{0}, [=](void* dst, size_t max, void* src, size_t bytes) {
    return aclrtMemcpyAsync(dst, max, src, bytes, ACL_MEMCPY_DEFAULT, stream);
  });
}

}  // namespace
}  // namespace aclsim

using namespace aclsim;

ACLSIM_API aclError aclrtMemcpyBatch(void** dsts, size_t* destMaxs, void** srcs, size_t* sizes,
                                     size_t numBatches, aclrtMemcpyBatchAttr* attrs,
                                     size_t* attrsIndexes, size_t numAttrs, size_t* failIndex) {
  return run_now({__func__, dsts, destMaxs, srcs, sizes, numBatches, attrs, attrsIndexes, numAttrs,
                  failIndex});
}
ACLSIM_API aclError aclrtMemcpyBatchV2(void** dsts, size_t* destMaxs, void** srcs, size_t* sizes,
                                       size_t numBatches, aclrtMemcpyBatchAttr* attrs,
                                       size_t* attrsIndexes, size_t numAttrs) {
  return run_now({__func__, dsts, destMaxs, srcs, sizes, numBatches, attrs, attrsIndexes, numAttrs,
                  nullptr});
}
ACLSIM_API aclError aclrtMemcpyBatchAsync(void** dsts, size_t* destMaxs, void** srcs,
                                          size_t* sizes, size_t numBatches,
                                          aclrtMemcpyBatchAttr* attrs, size_t* attrsIndexes,
                                          size_t numAttrs, size_t* failIndex, aclrtStream stream) {
  return run_on({__func__, dsts, destMaxs, srcs, sizes, numBatches, attrs, attrsIndexes, numAttrs,
                 failIndex}, stream);
}
ACLSIM_API aclError aclrtMemcpyBatchAsyncV2(void** dsts, size_t* destMaxs, void** srcs,
                                            size_t* sizes, size_t numBatches,
                                            aclrtMemcpyBatchAttr* attrs, size_t* attrsIndexes,
                                            size_t numAttrs, aclrtStream stream) {
  return run_on({__func__, dsts, destMaxs, srcs, sizes, numBatches, attrs, attrsIndexes, numAttrs,
                 nullptr}, stream);
}
