// Marks and small tools that every part of the simulator's runtime uses.
#pragma once

#include "nnopbase/op.h"

// Marks a function of the C interface; the generator looks for it in the first column.
#define ACLSIM_API extern "C" __attribute__((visibility("default")))

#define ACLSIM_LIKELY(x) __builtin_expect(!!(x), 1)
#define ACLSIM_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define ACLSIM_NOINLINE __attribute__((noinline, cold))

#if defined(__x86_64__)
#define ACLSIM_PAUSE() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define ACLSIM_PAUSE() asm volatile("yield")
#else
#define ACLSIM_PAUSE() ((void)0)
#endif
