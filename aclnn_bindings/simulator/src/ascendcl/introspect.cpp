// The simulator's own interface, see include/aclsim/aclsim.h.
#include <aclsim/aclsim.h>

#include "ascendcl/device.h"
#include "ascendcl/strict.h"

using namespace aclsim;

ACLSIM_API int64_t aclsimLiveHandles(const char* kind) {
  int64_t total = 0;
  for (int k = 0; k < static_cast<int>(Kind::Task); ++k) {
    if (kind && strcmp(kind, kind_name(static_cast<Kind>(k))) == 0) {
      return live_count(static_cast<Kind>(k));
    }
    if (k != static_cast<int>(Kind::Context)) total += live_count(static_cast<Kind>(k));
  }
  return kind ? -1 : total;
}

ACLSIM_API int64_t aclsimFindings() { return finding_count(); }

ACLSIM_API uint64_t aclsimMemoryInUse(int32_t device) {
  return device >= 0 && device < 64 ? runtime().devices[device].used.load() : 0;
}
ACLSIM_API uint64_t aclsimMemoryPeak(int32_t device) {
  return device >= 0 && device < 64 ? runtime().devices[device].peak.load() : 0;
}

ACLSIM_API const char* aclsimProduct(int32_t n) {
  int count = 0;
  const SocProfile* profiles = soc_profiles(&count);
  return n >= 0 && n < count ? profiles[n].name : nullptr;
}
