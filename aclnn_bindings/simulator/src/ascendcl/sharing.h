// Memory that several processes of one host see: files without a name, found through the process
// that made them. They are gone when the last process that uses them is.
#pragma once

#include <atomic>
#include <cstddef>

#include "ascendcl/common.h"

namespace aclsim {

// Names a shared file of a living process: its pid, its descriptor, and a number that tells it
// from later files with the same descriptor. Never 0.
using ShareId = uint64_t;

// Makes a file of `bytes` (filled with zeros) and keeps it open; -1 when the system has no room.
ACLSIM_SHARED int make_shared_file(uint64_t bytes, ShareId* id);
// Opens the file that another process (or this one) made; -1 when it is gone or not ours.
ACLSIM_SHARED int open_shared_file(ShareId id, uint64_t* bytes);
// Maps `bytes` of the file, shared; null when the system refuses.
ACLSIM_SHARED void* map_shared_file(int file, uint64_t bytes);

// Who may open it: nobody else until `allow_everyone` or `allow_processes`.
void allow_everyone(int file);
aclError allow_processes(const char* function, int file, const int32_t* pids, size_t count);
bool allowed(int file);

// Sleeps while `*word` is `seen`, at most `timeout_ms`; across processes.
ACLSIM_SHARED void wait_for_change(const std::atomic<uint32_t>* word, uint32_t seen,
                                   int timeout_ms);
ACLSIM_SHARED void wake_waiters(const std::atomic<uint32_t>* word);

}  // namespace aclsim
