// Device and pinned host memory: who owns which range, and how much of a device is taken.
#pragma once

#include <functional>
#include <memory>

#include "device.h"

namespace aclsim {

enum class Place : uint8_t { Device, Host };

struct Allocation {
  char* base;
  uint64_t size;            // bytes that the caller may use, padding included
  uint64_t asked;
  uint64_t charged;         // bytes counted against the device; 0 for mapped ranges
  Place place;
  bool registered;          // aclrtHostRegister: the memory is the caller's
  bool mapped;              // aclrtMapMem: not for aclrtFree
  int32_t device;
  Origin* origin;
  std::atomic<int32_t> in_use;  // queued launches that touch it (strict mode)
  ACLSIM_SHARED ~Allocation();
};

// The live allocation that contains `address`, or null. The pointer stays valid while the caller
// holds the shared pointer, even when another thread frees the memory.
ACLSIM_SHARED std::shared_ptr<Allocation> find_allocation(const void* address);
void count_allocations(bool device, const std::function<void(const Origin*)>& each);
// Ranges that aclrtMapMem backs: found like allocations, freed by aclrtUnmapMem alone.
void enter_mapping(void* base, uint64_t size, int32_t device);
void leave_mapping(void* base);
void release_deferred();   // gives back freed blocks that queued work might still have touched

}  // namespace aclsim
