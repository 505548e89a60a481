// The greatest element of rows that exponentials are taken of.
#pragma once

#include "loops/reduce.h"

#include <algorithm>
#include <cmath>

namespace aclsim {

struct MaxFinite : Combine {
  static constexpr bool integer = false;
  template <class T>
  static constexpr T first() {
    return -std::numeric_limits<T>::infinity();
  }
  template <class T>
  static ACL_INLINE T join(T a, T b) {
    return b > a || b != b ? b : a;
  }
};
inline aclDataType wider(aclDataType a, aclDataType b) {
  return a == ACL_DOUBLE || b == ACL_DOUBLE ? ACL_DOUBLE : ACL_FLOAT;
}

}  // namespace aclsim
