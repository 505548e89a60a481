// What the entry saves of a call, and the descriptor by which a shim is known.
#pragma once

#include <cstddef>
#include <cstdint>

namespace layers {

struct Vector {
  uint64_t low, high;
};

// The head of a shim's data; `image.py` writes it.
struct ShimDescriptor {
  void* entry;
  uint64_t magic;
  uint64_t count;
  const char* real;      // absolute path of the library that it stands for
  const char* soname;
  void** slots;          // per symbol: where its trampoline jumps
  const uint32_t* numbers;  // per symbol: its row in the table of functions
  const uint32_t* names;    // per symbol: where its name begins in `strings`
  const char* strings;
  void* handle;          // of the real library; the core's own, atomic
};

// The real library, once it was opened.
inline void* library_of(const ShimDescriptor* shim) {
  return __atomic_load_n(&shim->handle, __ATOMIC_ACQUIRE);
}

constexpr uint64_t kShimMagic = 0x314D4948534C434DULL;

// One call. The assembly in entry_*.S knows these offsets.
struct Frame {
  uint64_t integers[8];   // 0: argument registers
  Vector vectors[8];      // 64
  ShimDescriptor* shim;   // 192
  uint64_t index;         // 200: of the symbol in its shim
  void* caller;           // 208: return address
  uint64_t* stack;        // 216: arguments on the stack
  void* target;           // 224: the real function
  uint64_t stack_words;   // 232: how many of `stack` a call copies
  uint64_t extra;         // 240: rax (AMD64), x8 (AArch64)
  uint64_t unused;        // 248
  uint64_t results[2];    // 256
  Vector vector_results[4];  // 272
  uint64_t scratch[37];   // 336: what layers_before leaves for layers_after
};
static_assert(offsetof(Frame, shim) == 192 && offsetof(Frame, target) == 224 &&
              offsetof(Frame, results) == 256 && offsetof(Frame, vector_results) == 272 &&
              sizeof(Frame) <= 632, "entry_*.S knows these offsets");

enum Action : int { kJump = 0, kCall = 1, kReturn = 2 };

}  // namespace layers
