// Positions of parameters by name, for versions of an operator that differ in what they have.
#pragma once

#include <type_traits>

#include "loops/promote.h"

namespace aclsim {

constexpr int either(int a, int b) { return a == kNone ? b : a; }
template <typename P, bool, typename F>
constexpr int position(F of) {
  if constexpr (std::is_invocable_v<F, P>) return of(P{});
  return kNone;
}
// The position of the parameter with that name; kNone where the operator params::P has none. A name
// that no operator of the family has does not compile.
#define ACLSIM_AT(P, name)        \
  position<P, params::Known::name>( \
      [](auto p) -> decltype(int(decltype(p)::name)) { return decltype(p)::name; })

}  // namespace aclsim
