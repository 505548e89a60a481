// Copies and fills, on the host's time or on a stream's.
#include <algorithm>

#include "ascendcl/capture.h"
#include "ascendcl/hardware_faults.h"
#include "ascendcl/memory.h"
#include "ascendcl/strict.h"

namespace aclsim {
namespace {

// Every copy and fill goes through these.
void move_bytes(void* dst, const void* src, uint64_t count) {
  memmove(dst, src, count);
  after_write(dst, count);
}

void fill_bytes(void* at, int value, uint64_t count) {
  memset(at, value, count);
  after_write(at, count);
}

void fill_words(void* ptr, uint32_t value, size_t count) {
  std::fill_n(static_cast<uint32_t*>(ptr), count, value);
  after_write(ptr, count * sizeof value);
}

struct Range {
  std::shared_ptr<Allocation> block;
  bool fits = true;
  bool device() const { return block && block->seen_by_device(); }
  bool host() const { return !block || block->place == Place::Host; }
  bool pageable() const { return !block; }
};

Range locate(const void* address, uint64_t count) {
  Extent extent = find_extent(address, count);
  Range range;
  range.fits = !extent.block || count <= extent.bytes;
  range.block = std::move(extent.block);
  return range;
}

ACLSIM_NOINLINE aclError past_end(const char* function, const char* parameter,
                                  const void* address, uint64_t count, const Range& range) {
  if (strict()) {
    report_memory("copy-past-allocation", function, range.block->base, range.block->asked,
                  range.block->origin, "Copy at most what was allocated.");
  }
  return failed(ACL_ERROR_RT_PARAM_INVALID, "EE1003",
                "%s failed because %s %p with %llu bytes reaches past its allocation.", function,
                parameter, address, static_cast<unsigned long long>(count));
}

struct Copy {
  void* dst;
  const void* src;
  uint64_t count;
  Range to, from;
};

// The checks that every copy shares (aclrtMemcpy document): null, size, kind, then ranges.
aclError check_copy(const char* function, void* dst, uint64_t dst_max, const void* src,
                    uint64_t count, aclrtMemcpyKind kind, Copy* copy) {
  ThreadState* state = thread();
  if (!dst) return null_pointer(function, "dst");
  if (!src) return null_pointer(function, "src");
  aclError code = ACL_SUCCESS;
  if (!current_context(state, function, &code)) return code;
  if (count > dst_max) {
    return failed(ACL_ERROR_RT_PARAM_INVALID, "EE1003",
                  "%s failed because count %llu is larger than destMax %llu.", function,
                  static_cast<unsigned long long>(count),
                  static_cast<unsigned long long>(dst_max));
  }
  if (kind < ACL_MEMCPY_HOST_TO_HOST || kind > ACL_MEMCPY_INTER_DEVICE_TO_DEVICE) {
    return bad_value(function, "kind", "unknown", "an aclrtMemcpyKind");
  }
  *copy = {dst, src, count, locate(dst, count), locate(src, count)};
  if (!copy->to.fits) return past_end(function, "dst", dst, count, copy->to);
  if (!copy->from.fits) return past_end(function, "src", src, count, copy->from);
  return ACL_SUCCESS;
}

// Asynchronous copies need the kind to say where the addresses are (aclrtMemcpyAsync document).
aclError check_kind(const char* function, aclrtMemcpyKind kind, const Copy& copy) {
  bool to = copy.to.device(), from = copy.from.device();
  bool right = true;
  switch (kind) {
    case ACL_MEMCPY_HOST_TO_HOST:
      return failed(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "EE1006",
                    "%s does not support copies from host to host.", function);
    case ACL_MEMCPY_HOST_TO_DEVICE:
    case ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE: right = to && copy.from.host(); break;
    case ACL_MEMCPY_DEVICE_TO_HOST: right = copy.to.host() && from; break;
    case ACL_MEMCPY_DEVICE_TO_DEVICE:
    case ACL_MEMCPY_INNER_DEVICE_TO_DEVICE:
    case ACL_MEMCPY_INTER_DEVICE_TO_DEVICE: right = to && from; break;
    default: break;
  }
  if (right) return ACL_SUCCESS;
  return failed(ACL_ERROR_RT_PARAM_INVALID, "EE1017",
                "%s failed because kind %d does not match the addresses: dst is on the %s, src on "
                "the %s.", function, static_cast<int>(kind), to ? "device" : "host",
                from ? "device" : "host");
}

Work work_of(const Copy& copy, uint64_t bytes, bool asynchronous) {
  const bool to = copy.to.device(), from = copy.from.device();
  aclrtMemcpyKind kind = to ? (from ? ACL_MEMCPY_DEVICE_TO_DEVICE : ACL_MEMCPY_HOST_TO_DEVICE)
                            : (from ? ACL_MEMCPY_DEVICE_TO_HOST : ACL_MEMCPY_HOST_TO_HOST);
  return {Work::Copy, static_cast<uint32_t>(kind), bytes, nullptr, asynchronous};
}

// Marks the allocations of a queued copy, so that strict mode sees a free that comes too early.
void hold(const Range& range, int change) {
  if (range.block) range.block->in_use.fetch_add(change);
}

aclError copy_on(const char* function, void* dst, uint64_t dst_max, const void* src,
                 uint64_t count, aclrtMemcpyKind kind, aclrtStream handle) {
  if (count == 0) return ACL_SUCCESS;
  CallSpan span(function);
  Copy copy;
  aclError code = check_copy(function, dst, dst_max, src, count, kind, &copy);
  if (code == ACL_SUCCESS) code = check_kind(function, kind, copy);
  if (code != ACL_SUCCESS) return code;
  Stream* stream = find_own_stream(thread(), handle, function, &code);
  if (!stream) return code;
  const Work work = work_of(copy, count, true);
  if (copy.to.pageable() || copy.from.pageable() || kind == ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE) {
    // Pageable memory, or a host buffer that may be reused at return: waits for the stream, then
    // copies at once.
    code = check_asynchronous(function, stream);
    if (code == ACL_SUCCESS) code = drain(stream);
    if (code != ACL_SUCCESS) return code;
    DoneAtOnce done(work, function);
    move_bytes(dst, src, count);
    return ACL_SUCCESS;
  }
  Doing doing(work);
  Allocation* to = copy.to.block.get();
  Allocation* from = copy.from.block.get();
  bool watched = strict();
  if (watched) hold(copy.to, 1), hold(copy.from, 1);
  return submit(stream, make_task([=](Stream*) -> aclError {
    move_bytes(dst, src, count);
    return ACL_SUCCESS;
  }, false, [=] {
    if (watched) to->in_use.fetch_sub(1), from->in_use.fetch_sub(1);
  }), "MEMCPY_ASYNC");
}

aclError check_fill(const char* function, void* at, uint64_t max, uint64_t count) {
  ThreadState* state = thread();
  if (!at) return null_pointer(function, "devPtr");
  aclError code = ACL_SUCCESS;
  if (!current_context(state, function, &code)) return code;
  if (count > max) {
    return failed(ACL_ERROR_RT_PARAM_INVALID, "EE1003",
                  "%s failed because count %llu is larger than maxCount %llu.", function,
                  static_cast<unsigned long long>(count), static_cast<unsigned long long>(max));
  }
  Range range = locate(at, count);
  if (range.pageable()) {
    return failed(ACL_ERROR_RT_PARAM_INVALID, "EE1017",
                  "%s failed because %p was not allocated by acl.", function, at);
  }
  return range.fits ? ACL_SUCCESS : past_end(function, "devPtr", at, count, range);
}

template <class Fill>
aclError fill_on(const char* function, void* at, uint64_t max, uint64_t count, uint32_t value,
                 aclrtStream handle, Fill fill) {
  if (count == 0) return ACL_SUCCESS;
  CallSpan span(function);
  aclError code = check_fill(function, at, max, count);
  if (code != ACL_SUCCESS) return code;
  Stream* stream = find_own_stream(thread(), handle, function, &code);
  if (!stream) return code;
  Doing doing({Work::Fill, value, count});
  return submit(stream, make_task([=](Stream*) -> aclError {
    fill();
    return ACL_SUCCESS;
  }), "MEMSET_ASYNC");
}

// Between places of one device by the document of aclrtMemcpy2dAsync for these products alone.
bool rows_kind(aclrtMemcpyKind kind) {
  const Soc soc = config().soc->soc;
  const bool modern = soc == Soc::Ascend910B || soc == Soc::Ascend910_93 || soc == Soc::Ascend950;
  return kind == ACL_MEMCPY_HOST_TO_DEVICE || kind == ACL_MEMCPY_DEVICE_TO_HOST ||
         kind == ACL_MEMCPY_DEFAULT || (kind == ACL_MEMCPY_DEVICE_TO_DEVICE && modern);
}

// Bytes from the first row's start to the last row's end; the largest number where they overflow.
uint64_t rows_span(uint64_t pitch, uint64_t width, uint64_t height) {
  const uint64_t most = ~uint64_t{0};
  if (height > 1 && pitch > (most - width) / (height - 1)) return most;
  return pitch * (height - 1) + width;
}

// A copy of at least one byte.
aclError check_rows(const char* function, void* dst, size_t dpitch, const void* src, size_t spitch,
                    size_t width, size_t height, aclrtMemcpyKind kind, Copy* copy) {
  if (!dst) return null_pointer(function, "dst");
  if (!src) return null_pointer(function, "src");
  if (width > dpitch || width > spitch) {
    return failed(ACL_ERROR_INVALID_PARAM, "EH0013",
                  "%s failed because width %zu is larger than a pitch (dpitch %zu, spitch %zu).",
                  function, width, dpitch, spitch);
  }
  if (!rows_kind(kind)) {
    return bad_value(function, "kind", "unsupported", "host to device or device to host");
  }
  const uint64_t written = rows_span(dpitch, width, height);
  const uint64_t read = rows_span(spitch, width, height);
  if (std::max(written, read) == ~uint64_t{0}) {
    return failed(ACL_ERROR_RT_PARAM_INVALID, "EE1003",
                  "%s failed because %zu rows are more than addresses reach.", function, height);
  }
  aclError code = check_copy(function, dst, written, src, written, ACL_MEMCPY_DEFAULT, copy);
  if (code != ACL_SUCCESS) return code;
  Range from = locate(src, read);
  return from.fits ? ACL_SUCCESS : past_end(function, "src", src, read, from);
}

void copy_rows(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width,
               size_t height) {
  for (size_t row = 0; row < height; ++row) {
    move_bytes(static_cast<char*>(dst) + row * dpitch,
               static_cast<const char*>(src) + row * spitch, width);
  }
}

}  // namespace
}  // namespace aclsim

using namespace aclsim;

// Synchronous with the host, and with nothing else: no stream is waited for (aclrtMemcpy
// document). The kind must be valid, but the addresses decide the direction.
ACLSIM_API aclError aclrtMemcpy(void* dst, size_t destMax, const void* src, size_t count,
                                aclrtMemcpyKind kind) {
  if (count == 0) return ACL_SUCCESS;
  CallSpan span(__func__);
  Copy copy;
  aclError code = check_copy(__func__, dst, destMax, src, count, kind, &copy);
  if (code == ACL_SUCCESS) code = check_synchronous(__func__);
  if (code != ACL_SUCCESS) return code;
  DoneAtOnce done(work_of(copy, count, false), __func__);
  if (dst != src) move_bytes(dst, src, count);
  return ACL_SUCCESS;
}

ACLSIM_API aclError aclrtMemcpyAsync(void* dst, size_t destMax, const void* src, size_t count,
                                     aclrtMemcpyKind kind, aclrtStream stream) {
  return copy_on(__func__, dst, destMax, src, count, kind, stream);
}

ACLSIM_API aclError aclrtMemcpyAsyncWithCondition(void* dst, size_t destMax, const void* src,
                                                  size_t count, aclrtMemcpyKind kind,
                                                  aclrtStream stream) {
  return copy_on(__func__, dst, destMax, src, count, kind, stream);
}

ACLSIM_API aclError aclrtMemcpy2d(void* dst, size_t dpitch, const void* src, size_t spitch,
                                  size_t width, size_t height, aclrtMemcpyKind kind) {
  if (width == 0 || height == 0) return ACL_SUCCESS;
  CallSpan span(__func__);
  Copy copy;
  aclError code = check_rows(__func__, dst, dpitch, src, spitch, width, height, kind, &copy);
  if (code == ACL_SUCCESS) code = check_synchronous(__func__);
  if (code != ACL_SUCCESS) return code;
  DoneAtOnce done(work_of(copy, width * height, false), __func__);
  copy_rows(dst, dpitch, src, spitch, width, height);
  return ACL_SUCCESS;
}

ACLSIM_API aclError aclrtMemcpy2dAsync(void* dst, size_t dpitch, const void* src, size_t spitch,
                                       size_t width, size_t height, aclrtMemcpyKind kind,
                                       aclrtStream stream) {
  if (width == 0 || height == 0) return ACL_SUCCESS;
  CallSpan span(__func__);
  constexpr size_t kWidest = 5000000, kHighest = 5 << 20;  // aclrtMemcpy2dAsync document
  if (width > kWidest || height > kHighest) {
    return failed(ACL_ERROR_RT_PARAM_INVALID, "EE1003",
                  "%s failed because width %zu or height %zu is larger than %zu and %zu.", __func__,
                  width, height, kWidest, kHighest);
  }
  Copy copy;
  aclError code = check_rows(__func__, dst, dpitch, src, spitch, width, height, kind, &copy);
  if (code != ACL_SUCCESS) return code;
  Stream* on = find_own_stream(thread(), stream, __func__, &code);
  if (!on) return code;
  const Work work = work_of(copy, width * height, true);
  if (copy.to.pageable() || copy.from.pageable()) {
    code = check_asynchronous(__func__, on);
    if (code == ACL_SUCCESS) code = drain(on);
    if (code != ACL_SUCCESS) return code;
    DoneAtOnce done(work, __func__);
    copy_rows(dst, dpitch, src, spitch, width, height);
    return ACL_SUCCESS;
  }
  Doing doing(work);
  return submit(on, make_task([=](Stream*) -> aclError {
    copy_rows(dst, dpitch, src, spitch, width, height);
    return ACL_SUCCESS;
  }), "MEMCPY_ASYNC");
}

ACLSIM_API aclError aclrtMemset(void* devPtr, size_t maxCount, int32_t value, size_t count) {
  if (count == 0) return ACL_SUCCESS;
  CallSpan span(__func__);
  aclError code = check_fill(__func__, devPtr, maxCount, count);
  if (code == ACL_SUCCESS) code = check_synchronous(__func__);
  if (code != ACL_SUCCESS) return code;
  DoneAtOnce done({Work::Fill, static_cast<uint32_t>(value), count, nullptr, false}, __func__);
  fill_bytes(devPtr, value, count);
  return ACL_SUCCESS;
}

ACLSIM_API aclError aclrtMemsetAsync(void* devPtr, size_t maxCount, int32_t value, size_t count,
                                     aclrtStream stream) {
  return fill_on(__func__, devPtr, maxCount, count, static_cast<uint32_t>(value), stream,
                 [=] { fill_bytes(devPtr, value, count); });
}

namespace {
// N words of 32 bits in at most memSize bytes (aclrtMemsetD32 document).
aclError check_words(const char* function, void* ptr, size_t memSize, size_t count) {
  if (!ptr) return null_pointer(function, "ptr");
  if (reinterpret_cast<uintptr_t>(ptr) % sizeof(uint32_t)) {
    return bad_value(function, "ptr", "unaligned", "a multiple of 4");
  }
  if (count <= memSize / sizeof(uint32_t)) return ACL_SUCCESS;
  return failed(ACL_ERROR_INVALID_PARAM, "EH0013",
                "%s failed because %zu words are more than memSize %zu holds.", function, count,
                memSize);
}
}  // namespace

ACLSIM_API aclError aclrtMemsetD32Async(void* ptr, size_t memSize, uint32_t value, size_t N,
                                        aclrtStream stream) {
  if (N == 0) return ACL_SUCCESS;
  aclError code = check_words(__func__, ptr, memSize, N);
  if (code != ACL_SUCCESS) return code;
  return fill_on(__func__, ptr, memSize, N * sizeof value, value, stream,
                 [=] { fill_words(ptr, value, N); });
}
ACLSIM_API aclError aclrtMemsetD32(void* ptr, size_t memSize, uint32_t value, size_t N) {
  if (N == 0) return ACL_SUCCESS;
  CallSpan span(__func__);
  aclError code = check_words(__func__, ptr, memSize, N);
  if (code == ACL_SUCCESS) code = check_fill(__func__, ptr, memSize, N * sizeof value);
  if (code == ACL_SUCCESS) code = check_synchronous(__func__);
  if (code != ACL_SUCCESS) return code;
  DoneAtOnce done({Work::Fill, value, N * sizeof value, nullptr, false}, __func__);
  fill_words(ptr, value, N);
  return ACL_SUCCESS;
}

// Cache hints change no result; there is no cache to move to.
ACLSIM_API aclError aclrtCmoAsync(void* src, size_t size, aclrtCmoType cmoType,
                                  aclrtStream stream) {
  ACLSIM_REQUIRE(src);
  if (size == 0) return bad_value(__func__, "size", "0", "must be greater than 0");
  if (cmoType < ACL_RT_CMO_TYPE_PREFETCH || cmoType > ACL_RT_CMO_TYPE_FLUSH) {
    return bad_value(__func__, "cmoType", "unknown", "an aclrtCmoType");
  }
  ACLSIM_STREAM(on, stream);
  Range range = locate(src, size);
  if (!range.device()) {
    return failed(ACL_ERROR_RT_PARAM_INVALID, "EE1017", "%s failed because %p is not device memory.",
                  __func__, src);
  }
  (void)on;
  return range.fits ? ACL_SUCCESS : past_end(__func__, "src", src, size, range);
}
