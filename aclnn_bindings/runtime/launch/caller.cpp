// Owns mt_call: one call of any function by its address.
#include "caller.h"

#include "device.h"
#include "state.h"

using namespace launch;

namespace {

template <class Result>
Result invoke(void* function, const Frame& frame, const Layout& layout) {
  return tier_for<Result>(layout)(function, frame.words);
}

template <class Result>
uint64_t bits_of(Result value) {
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof value);
  return bits;
}

}  // namespace

extern "C" int32_t mt_call(uint64_t function, const uint8_t* is_float, const uint64_t* values,
                           uint64_t count, int32_t result_kind, uint64_t* result) {
  Frame frame{};
  Layout layout;
  for (uint64_t k = 0; k < count; ++k) {
    const int at = layout.place(is_float[k] != 0);
    if (at < 0) return fail(MT_PHASE_ARGUMENTS, MT_TOO_MANY_ARGUMENTS, "mt_call", count);
    frame.words[at] = values[k];
  }
  // What was called may have changed the thread's context.
  current_context = 0;
  void* target = reinterpret_cast<void*>(function);
  switch (result_kind) {
    case MT_RESULT_FLOAT: *result = bits_of(invoke<float>(target, frame, layout)); break;
    case MT_RESULT_DOUBLE: *result = bits_of(invoke<double>(target, frame, layout)); break;
    default: *result = invoke<uint64_t>(target, frame, layout);
  }
  current_context = 0;
  return 0;
}

extern "C" void mt_delete_array(int64_t* array) { delete[] array; }
