// Device memory as the program holds it, and which queued work reads and writes it.
#pragma once

#include <map>
#include <vector>

#include "findings.h"
#include "objects.h"
#include "order.h"

namespace layers {

// What one task does to some bytes; `geometry` (or null for all of them) says which in between.
struct Access {
  uintptr_t start, end;
  bool write;
  StreamKey stream;
  uint64_t time;
  uint64_t number;       // of the call
  const char* function;
  const Geometry* geometry;
  uintptr_t base;        // address of the geometry's storage
  OriginPtr origin;
};

struct Block {
  uintptr_t start, end;
  bool device;
  OriginPtr made;
  std::vector<Access> accesses;  // that the host does not know to be done
};

class Blocks {
 public:
  void add(uintptr_t start, uint64_t size, bool device, OriginPtr made);
  // The live block that holds `address`, or null.
  Block* find(uintptr_t address);
  bool was_freed(uintptr_t address) const;
  void remove(uintptr_t start);
  // Notes an access; the earlier one that it races with, or null.
  const Access* touch(Block* block, Access access, const Order& order);
  template <class Visit>
  void each(Visit visit) const {
    for (const auto& entry : live_) visit(entry.second);
  }

 private:
  std::map<uintptr_t, Block> live_;
  std::map<uintptr_t, uintptr_t> freed_;  // start → end of what was freed and not given out again
  Access conflict_;
};

// First and last byte (exclusive) that a tensor's view covers; false for an empty or unknown one.
bool extent_of(const TensorUse& use, uintptr_t* start, uintptr_t* end);

}  // namespace layers
