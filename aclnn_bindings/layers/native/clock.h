// CLOCK_MONOTONIC at the price of reading the processor's counter.
#pragma once

#include <cstdint>

// Thread-local data read several times a call: as offsets from the thread's register where that is
// cheaper than asking the loader. AArch64 asks cheaply, and its static storage is scarcer.
#if defined(__x86_64__)
#define LAYER_TLS __attribute__((tls_model("initial-exec")))
#else
#define LAYER_TLS
#endif

namespace layers {

// Nanoseconds of CLOCK_MONOTONIC, to about 0.1 us. One that follows another in a thread may be
// less by as much.
uint64_t now_ns();

}  // namespace layers
