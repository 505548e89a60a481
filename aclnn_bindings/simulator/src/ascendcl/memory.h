// Device and pinned host memory: who owns which range, and how much of a device is taken.
#pragma once

#include <functional>
#include <memory>

#include "ascendcl/device.h"

namespace aclsim {

enum class Place : uint8_t { Device, Host };

struct Allocation {
  char* base;
  uint64_t size;            // bytes that the caller may use, padding included
  uint64_t asked;
  uint64_t offset;          // in the device's memory: what was in use before
  uint64_t charged;         // bytes counted against the device; 0 for mapped ranges
  Place place;
  bool registered;          // aclrtHostRegister: the memory is the caller's
  bool mapped;              // aclrtMapMem: not for aclrtFree
  bool guarded;             // between pages that nobody may touch
  int32_t device;
  Origin* origin;
  std::atomic<const void*> mapped_at;  // where devices see it from on, though it is the host's; or null
  std::atomic<int32_t> in_use;  // queued launches that touch it (strict mode)
  ACLSIM_SHARED ~Allocation();
  bool seen_by_device() const { return place == Place::Device || mapped_at.load(); }
};

// The live allocation that contains `address`, or null. The pointer stays valid while the caller
// holds the shared pointer, even when another thread frees the memory.
ACLSIM_SHARED std::shared_ptr<Allocation> find_allocation(const void* address);
// Live memory from an address on: the allocation there (null: none), and the bytes up to the end
// of the last piece of aclrtMapMem that adjoins. `wanted` bounds the search, not the answer.
struct Extent {
  std::shared_ptr<Allocation> block;
  uint64_t bytes = 0;
};
ACLSIM_SHARED Extent find_extent(const void* address, uint64_t wanted);
void count_allocations(bool device, const std::function<void(const Origin*)>& each);
// Ranges that aclrtMapMem backs: found like allocations, freed by aclrtUnmapMem alone.
ACLSIM_SHARED void enter_mapping(void* base, uint64_t size, int32_t device);
ACLSIM_SHARED void leave_mapping(void* base);
// True for allocations with pages of their own; others share them with the heap.
bool owns_pages(const Allocation& block);
void end_sharing(const void* base);  // the memory is freed: its key opens nothing any more
void release_deferred();   // gives back freed blocks that queued work might still have touched

}  // namespace aclsim
