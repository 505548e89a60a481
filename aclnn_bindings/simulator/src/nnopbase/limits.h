#pragma once

#include <cstddef>
#include <cstdint>

namespace aclsim {

// What an operator refuses beyond its list of dtypes, by documents and by what hardware did.
struct Limit {
  enum Kind : uint8_t {
    kFormat,  // a tensor of rank `rank` (0: 3 to 5) in format ND
    kDtype,   // a tensor whose dtype is not among `dtypes`
    kValue,   // an integer argument equal to `value` with a tensor whose dtype is among `dtypes`
  };
  Kind kind;
  uint8_t socs;  // bit per Soc
  uint8_t param;
  int8_t rank;
  int32_t code;
  int64_t value;
  uint64_t dtypes;
  const char* formats;  // those that the operator takes, for the message
};

struct LimitRow {
  const char* op;
  const Limit* limits;
  size_t count;
};

// Generated, sorted by name (strcmp).
extern const LimitRow limit_rows[];
extern const size_t limit_row_count;

}  // namespace aclsim
