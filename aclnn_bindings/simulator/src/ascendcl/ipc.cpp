// Device memory that another process opens by a key (aclrtIpcMem…): the pages of the allocation
// become those of a shared file, which the other process maps.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>

#include "ascendcl/memory.h"
#include "ascendcl/sharing.h"
#include "ascendcl/strict.h"

namespace aclsim {
namespace {

constexpr size_t kKeyLength = 65;  // aclrtIpcMemGetExportKey document

struct Exported {
  int file;
  char* base;
};
struct Imported {
  char* base;
  uint64_t bytes;
  int32_t uses;
};
struct Keys {
  std::mutex mutex;
  std::map<ShareId, Exported> exported;
  std::map<ShareId, Imported> imported;
};
Keys& keys() {
  static Keys* made = new Keys;
  return *made;
}

aclError refuse_key(const char* function, const char* why) {
  return failed(ACL_ERROR_RT_PARAM_INVALID, "EE1011", "%s failed because %s.", function, why);
}

// "aclsim-" and 16 hexadecimal digits; 0 for anything else.
ShareId parse_key(const char* key) {
  unsigned long long id = 0;
  return sscanf(key, "aclsim-%16llx", &id) == 1 ? id : 0;
}

// Blocks from the heap share their pages with other data of the process, so only those with
// pages of their own can be given away.
aclError share_pages(const char* function, const Allocation& block, ShareId* id) {
  if (!owns_pages(block)) {
    return failed(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "EE1006",
                  "%s: the simulator shares allocations of at least 256 KiB; this one has %llu "
                  "bytes. Allocate more, and share a part of it.", function,
                  static_cast<unsigned long long>(block.asked));
  }
  int file = make_shared_file(block.size, id);
  uint64_t done = 0;
  while (file >= 0 && done < block.size) {
    ssize_t n = pwrite(file, block.base + done, block.size - done, static_cast<off_t>(done));
    if (n <= 0) break;
    done += static_cast<uint64_t>(n);
  }
  void* at = done < block.size ? MAP_FAILED
                               : mmap(block.base, block.size, PROT_READ | PROT_WRITE,
                                      MAP_SHARED | MAP_FIXED, file, 0);
  if (at == MAP_FAILED) {
    if (file >= 0) close(file);
    return failed(ACL_ERROR_RT_MEMORY_ALLOCATION, "EE1023",
                  "%s failed because the host has no room for %llu shared bytes.", function,
                  static_cast<unsigned long long>(block.size));
  }
  keys().exported[*id] = {file, block.base};
  return ACL_SUCCESS;
}

aclError import_pages(const char* function, ShareId id, int32_t device, void** out) {
  uint64_t bytes = 0;
  int file = open_shared_file(id, &bytes);
  if (file < 0) return refuse_key(function, "no living process exports this key");
  if (!allowed(file)) {
    close(file);
    return failed(ACL_ERROR_RT_NO_PERMISSION, "EE1011",
                  "%s failed because the exporting process did not name process %d with "
                  "aclrtIpcMemSetImportPid.", function, static_cast<int>(getpid()));
  }
  void* at = map_shared_file(file, bytes);
  close(file);
  if (!at) return refuse_key(function, "the system refused the mapping");
  keys().imported[id] = {static_cast<char*>(at), bytes, 1};
  enter_mapping(at, bytes, device);
  *out = at;
  return ACL_SUCCESS;
}

void end_import(std::map<ShareId, Imported>::iterator found) {
  if (--found->second.uses > 0) return;
  leave_mapping(found->second.base);
  munmap(found->second.base, found->second.bytes);
  keys().imported.erase(found);
}

}  // namespace

// The memory was freed: nobody can open it any more; who has it open keeps its pages.
void end_sharing(const void* base) {
  std::lock_guard<std::mutex> lock(keys().mutex);
  for (auto at = keys().exported.begin(); at != keys().exported.end();) {
    if (at->second.base == base) {
      close(at->second.file);
      at = keys().exported.erase(at);
    } else {
      ++at;
    }
  }
}

}  // namespace aclsim

using namespace aclsim;

ACLSIM_API aclError aclrtIpcMemGetExportKey(void* devPtr, size_t size, char* key, size_t len,
                                            uint64_t flags) {
  ACLSIM_REQUIRE(devPtr);
  ACLSIM_REQUIRE(key);
  if (size == 0) return bad_value(__func__, "size", "0", "must be greater than 0");
  if (len < kKeyLength) return bad_value(__func__, "len", "too small", "65");
  if (flags > ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION) {
    return bad_value(__func__, "flags", "unknown", "0 or 1");
  }
  std::shared_ptr<Allocation> block = find_allocation(devPtr);
  bool whole = block && block->place == Place::Device && block->base == devPtr && !block->mapped;
  if (!whole || size > block->size) {
    return refuse_key(__func__, "the address is not the start of an allocation of this size");
  }
  aclError code = aclrtSynchronizeDevice();  // pages must not move under running work
  if (code != ACL_SUCCESS) return code;
  std::lock_guard<std::mutex> lock(keys().mutex);
  ShareId id = 0;
  for (const auto& one : keys().exported) {
    if (one.second.base == block->base) id = one.first;
  }
  if (!id) code = share_pages(__func__, *block, &id);
  if (code != ACL_SUCCESS) return code;
  if (flags) allow_everyone(keys().exported[id].file);
  snprintf(key, len, "aclsim-%016llx", static_cast<unsigned long long>(id));
  return ACL_SUCCESS;
}

ACLSIM_API aclError aclrtIpcMemSetImportPid(const char* key, int32_t* pid, size_t num) {
  ACLSIM_REQUIRE(key);
  ACLSIM_REQUIRE(pid);
  thread();
  std::lock_guard<std::mutex> lock(keys().mutex);
  auto found = keys().exported.find(parse_key(key));
  if (found == keys().exported.end()) return refuse_key(__func__, "this process exports no such key");
  return allow_processes(__func__, found->second.file, pid, num);
}

ACLSIM_API aclError aclrtIpcMemImportByKey(void** devPtr, const char* key, uint64_t flags) {
  ACLSIM_REQUIRE(devPtr);
  ACLSIM_REQUIRE(key);
  ACLSIM_CONTEXT(context);
  if (flags > ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS) {
    return bad_value(__func__, "flags", "unknown", "0 or 1");
  }
  ShareId id = parse_key(key);
  if (!id) return refuse_key(__func__, "the key is none that aclrtIpcMemGetExportKey gave");
  std::lock_guard<std::mutex> lock(keys().mutex);
  auto found = keys().imported.find(id);
  if (found == keys().imported.end()) return import_pages(__func__, id, context->device, devPtr);
  ++found->second.uses;
  *devPtr = found->second.base;
  return ACL_SUCCESS;
}

// Ends an import, or an export: then the key opens nothing any more.
ACLSIM_API aclError aclrtIpcMemClose(const char* key) {
  ACLSIM_REQUIRE(key);
  aclError code = aclrtSynchronizeDevice();  // pages must not go while work touches them
  if (code != ACL_SUCCESS) return code;
  std::lock_guard<std::mutex> lock(keys().mutex);
  ShareId id = parse_key(key);
  auto imported = keys().imported.find(id);
  if (imported != keys().imported.end()) return end_import(imported), ACL_SUCCESS;
  auto exported = keys().exported.find(id);
  if (exported == keys().exported.end()) return refuse_key(__func__, "the key is not open");
  close(exported->second.file);
  keys().exported.erase(exported);
  return ACL_SUCCESS;
}
