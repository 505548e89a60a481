// Time spent on the stream.
#include "nnopbase/op.h"

namespace aclsim {
namespace {

// (cycles): spends time on the stream, of which there is none to account for here.
void run_sleep(Call&) { return; }

}  // namespace
}  // namespace aclsim

ACLNN_OP(aclnnSleep, nullptr, run_sleep)
