// Strict mode: names every misuse of the API, the handle, where it was made, and the remedy.
#pragma once

#include "ascendcl/handle.h"

namespace aclsim {

// Keeps where the handle was made (strict mode only; callers test strict() first).
ACLSIM_SHARED void remember_origin(Handle* handle);
ACLSIM_SHARED void forget_origin(Handle* handle);

// One finding: `what` is a stable word ("use-after-destroy"), `remedy` a sentence. Aborts in
// abort mode. Findings without a handle pass null.
ACLSIM_SHARED void report_misuse(const char* what, const char* function, const Handle* handle,
                                 Kind kind, const char* remedy);
// A handle that no longer lives, or never did.
ACLSIM_SHARED void report_dead(const char* function, const Handle* handle, Kind kind);
// A finding about memory: its address and size, and where it was allocated when known.
ACLSIM_SHARED void report_memory(const char* what, const char* function, const void* address,
                                 uint64_t size, const Origin* origin, const char* remedy);
// True when the finding that this thread reported last must fail the call too: in error mode, and
// not among those that ACLSIM_ALLOW accepts.
ACLSIM_SHARED bool strict_fails();

Origin* make_origin();
void drop_origin(Origin* origin);
// At finalize: what still lives, per kind, with origins. Returns the number of leaked handles.
int64_t report_leaks();
int64_t finding_count();

}  // namespace aclsim
