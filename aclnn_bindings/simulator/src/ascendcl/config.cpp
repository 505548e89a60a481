#include "ascendcl/config.h"

#include <algorithm>
#include <sched.h>
#include <strings.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace aclsim {
namespace {

// Limits of streams and events are documented per product (aclrtCreateStream, aclrtCreateEvent);
// so is bfloat16 (operator documents). Core counts, cache and memory sizes are representative of
// each product only: a program that tunes by them must ask a device.
constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr int64_t kMiB = 1 << 20;
const SocProfile kProfiles[] = {
    {"Ascend910B2", Soc::Ascend910B, 24, 48, 6, 192 * kMiB, 64 * kGiB, true, 1984, 65536},
    {"Ascend910B1", Soc::Ascend910B, 25, 50, 6, 192 * kMiB, 64 * kGiB, true, 1984, 65536},
    {"Ascend910B3", Soc::Ascend910B, 20, 40, 6, 192 * kMiB, 64 * kGiB, true, 1984, 65536},
    {"Ascend910B4", Soc::Ascend910B, 20, 40, 6, 96 * kMiB, 32 * kGiB, true, 1984, 65536},
    {"Ascend910_9392", Soc::Ascend910_93, 24, 48, 6, 192 * kMiB, 64 * kGiB, true, 1984, 65536},
    {"Ascend910A", Soc::Ascend910, 32, 0, 14, 32 * kMiB, 32 * kGiB, false, 2048, 65535},
    {"Ascend310P3", Soc::Ascend310P, 8, 7, 7, 16 * kMiB, 24 * kGiB, false, 1024, 1023},
    {"Ascend310B1", Soc::Ascend310B, 1, 1, 4, 4 * kMiB, 16 * kGiB, false, 512, 65536},
    {"Ascend950PR_9599", Soc::Ascend950, 32, 64, 8, 128 * kMiB, 128 * kGiB, true, 1984, 65536},
};
struct Alias {
  const char* given;
  const char* name;
};
const Alias kAliases[] = {
    {"910B", "Ascend910B2"},    {"910A", "Ascend910A"},        {"910", "Ascend910A"},
    {"310P", "Ascend310P3"},    {"310B", "Ascend310B1"},       {"910_93", "Ascend910_9392"},
    {"950", "Ascend950PR_9599"}, {"910B2", "Ascend910B2"},     {"910C", "Ascend910_9392"},
};

const SocProfile* find_profile(const char* given) {
  if (strncasecmp(given, "Ascend", 6) == 0) given += 6;
  for (const Alias& alias : kAliases) {
    if (strcasecmp(alias.given, given) == 0) given = alias.name + 6;
  }
  for (const SocProfile& profile : kProfiles) {
    if (strcasecmp(profile.name + 6, given) == 0) return &profile;
  }
  return nullptr;
}

uint64_t refused(const char* name, const char* text, uint64_t fallback) {
  fprintf(stderr, "aclsim: %s=%.80s is not a size; using %llu\n", name, text,
          static_cast<unsigned long long>(fallback));
  return fallback;
}

// A number with an optional unit (K, M, G; powers of two); the default when absent or malformed.
uint64_t number(const char* name, uint64_t fallback) {
  const char* text = getenv(name);
  if (!text || !*text) return fallback;
  char* end = nullptr;
  double value = strtod(text, &end);
  const char* units = "kmgt";
  if (*end) {
    const char* unit = nullptr;
    for (const char* u = units; *u; ++u) {
      if (strncasecmp(end, u, 1) == 0) unit = u;
    }
    if (!unit) return refused(name, text, fallback);
    for (const char* u = units; u <= unit; ++u) value *= 1024;
  }
  if (!(value < 9e18)) return refused(name, text, fallback);  // NaN too: no integer holds them
  return value < 1 ? fallback : static_cast<uint64_t>(value);
}

bool given(const char* name, const char* value) {
  const char* text = getenv(name);
  return text && strcasecmp(text, value) == 0;
}

uint64_t default_memory(const SocProfile& profile) {
  uint64_t host = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  return host / 2 < profile.memory_bytes ? host / 2 : profile.memory_bytes;
}

int available_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) return CPU_COUNT(&set);
  return 1;
}

// ASCEND_RT_VISIBLE_DEVICES: ascending list, parsing stops at the first entry that is not an
// ascending, existing id; ids then renumber from 0 (aclrtSetDevice document).
int visible_devices(int count, int* visible) {
  const char* text = getenv("ASCEND_RT_VISIBLE_DEVICES");
  for (int i = 0; i < count; ++i) visible[i] = i;
  if (!text) return count;
  int seen = 0, last = -1;
  while (*text) {
    char* end = nullptr;
    long id = strtol(text, &end, 10);
    if (end == text || id <= last || id >= count) break;
    visible[seen++] = last = static_cast<int>(id);
    if (*end != ',') break;
    text = end + 1;
  }
  return seen;
}

Config read() {
  Config made = {};
  const char* soc = getenv("ACLSIM_SOC");
  made.soc = soc && *soc ? find_profile(soc) : &kProfiles[0];
  if (!made.soc) {
    fprintf(stderr, "aclsim: ACLSIM_SOC=%s is unknown; using %s\n", soc, kProfiles[0].name);
    made.soc = &kProfiles[0];
  }
  uint64_t devices = number("ACLSIM_DEVICES", 2);
  made.installed = devices > 64 ? 64 : static_cast<int>(devices);
  made.devices = visible_devices(made.installed, made.visible);
  made.memory = number("ACLSIM_MEMORY", default_memory(*made.soc));
  made.strict = given("ACLSIM_STRICT", "report")  ? Strict::Report
                : given("ACLSIM_STRICT", "error") ? Strict::Error
                : given("ACLSIM_STRICT", "abort") ? Strict::Abort
                                                  : Strict::Off;
  made.inline_streams = given("ACLSIM_STREAM", "inline");
  made.guard = given("ACLSIM_GUARD", "end")     ? Guard::End
               : given("ACLSIM_GUARD", "start") ? Guard::Start
                                                : Guard::Off;
  made.threads = static_cast<int>(std::min<uint64_t>(number("ACLSIM_THREADS", available_cpus()), 1024));
  const char* report = getenv("ACLSIM_REPORT");
  made.report = report && *report ? strdup(report) : nullptr;
  strict_mode = made.strict;
  return made;
}

}  // namespace

Strict strict_mode = Strict::Off;

const Config& config() {
  static const Config made = read();
  return made;
}

const SocProfile* soc_profiles(int* count) {
  *count = sizeof kProfiles / sizeof kProfiles[0];
  return kProfiles;
}

int kernel_threads() { return config().threads; }

}  // namespace aclsim
