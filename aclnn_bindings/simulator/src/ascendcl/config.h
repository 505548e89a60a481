// What the environment asks for, read once at the first call of any function.
#pragma once

#include "ascendcl/common.h"

namespace aclsim {

enum class Strict : uint8_t { Off, Report, Error, Abort };

struct SocProfile {
  const char* name;        // what aclrtGetSocName answers
  Soc soc;
  int cube_cores, vector_cores, cpu_cores;
  int64_t l2_bytes;
  uint64_t memory_bytes;   // per device, before the host's limit
  bool bfloat16;
  int stream_limit;        // default streams included; aclrtCreateStream document
  int event_limit;         // aclrtCreateEvent document
};

// Which side of each device allocation ends where touching on is a fault of the process.
enum class Guard : uint8_t { Off, Start, End };

struct Config {
  const SocProfile* soc;
  int installed;           // ACLSIM_DEVICES, default 2
  int devices;             // those of them that ASCEND_RT_VISIBLE_DEVICES shows
  uint64_t memory;         // ACLSIM_MEMORY, bytes per device
  Strict strict;           // ACLSIM_STRICT
  bool inline_streams;     // ACLSIM_STREAM=inline
  Guard guard;             // ACLSIM_GUARD
  int threads;             // ACLSIM_THREADS
  const char* report;      // ACLSIM_REPORT, path of JSON lines, or null
  int visible[64];         // user device id -> logical id
};

ACLSIM_SHARED const Config& config();
extern ACLSIM_SHARED Strict strict_mode;  // config().strict, for hot paths

inline bool strict() { return ACLSIM_UNLIKELY(strict_mode != Strict::Off); }

// Every product name that ACLSIM_SOC may give; null-terminated names at the end.
const SocProfile* soc_profiles(int* count);

}  // namespace aclsim
