// The ranks that an operator's kernel exchanges tensors with: its communicator by name, and exchanges
// of floats through the library that the client made the communicator with.
#pragma once

#include "loops/values.h"

namespace aclsim {

enum Kind : uint32_t {
  kAllReduce = 0,
  kReduceScatter = 2,
  kAllGather = 5,
  kAllToAll = 8
};  // hccl/exchange.h

// What phase 1 learns of the group, for the kernel.
struct Group {
  const char* name;
  int32_t device;
  uint32_t rank, ranks;
};
// Makes the call's state a Group. `reduce`, where there is one, is the argument that has to be "sum".
aclnnStatus find_group(Call& c, int group, int reduce);
aclnnStatus find_group(const Call& c, int group, Group& g);

// `give` and `get` hold that many parts of equal sizes; all ranks give as much.
aclError exchange(const Call& c, const Group& g, Kind kind, Floats& give, uint32_t gives, Floats& get,
                  uint32_t gets);
inline aclError exchange(Call& c, Kind kind, Floats& give, uint32_t gives, Floats& get,
                         uint32_t gets) {
  return exchange(c, c.get<Group>(), kind, give, gives, get, gets);
}
// What every rank gives, of any size, in the order of ranks.
aclError gather(const Call& c, const Group& g, const Floats& give, std::vector<Floats>& get);
// give[r] goes to rank r, get[r] comes from it; parts have any sizes.
aclError scatter(const Call& c, const Group& g, const std::vector<Floats>& give,
                 std::vector<Floats>& get);

// The argument of one of a family's versions by its name, whatever it is marked with ("Optional",
// "Out", "Ref"); kNone where the version has none.
int named(const Call& c, const char* name);

}  // namespace aclsim
