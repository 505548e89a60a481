// Phase 1's generic rules, driven by the documented facts of each operator.
#pragma once

#include "nnopbase/executor.h"

namespace aclsim {

// Null pointers (161001), then dtypes of the product and ranks (161002), in CANN's order.
aclnnStatus check_rules(Executor* executor);
// Strict mode: views that reach outside their declared storage.
aclnnStatus check_views(Executor* executor);

}  // namespace aclsim
