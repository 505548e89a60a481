// What the program's handles stand for, as its own create calls said.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "table.h"

namespace layers {

// A tensor's metadata, interned: equal ones are one object, never freed.
struct Geometry {
  uint32_t id;
  int32_t dtype, format;
  int64_t offset;
  std::vector<int64_t> shape, strides, storage;
  mutable std::atomic<uint32_t> detail{0};  // of the calls that make such a tensor; 0: none yet

  Geometry() = default;
  Geometry(const Geometry& other)
      : id(other.id), dtype(other.dtype), format(other.format), offset(other.offset),
        shape(other.shape), strides(other.strides), storage(other.storage) {}
};

struct TensorUse {
  const Geometry* geometry;
  void* data;
};

// One live handle. `words` are the values of a scalar or an array, raw; `members` those of a list.
struct Object {
  Kind kind;
  int32_t dtype = 0;
  const Geometry* geometry = nullptr;
  void* data = nullptr;
  std::string words;
  std::vector<const void*> members;
};

using ObjectPtr = std::shared_ptr<const Object>;

void put_object(const void* handle, ObjectPtr object);
// Null when the handle was not made by the program's own calls.
ObjectPtr find_object(const void* handle);
// Removes the handle, and gives what it stood for.
ObjectPtr take_object(const void* handle);

// The interned geometry; `made` tells whether it is new (and so to be announced). `wanted` is only
// read, so that a caller may keep it and its memory.
const Geometry* intern_geometry(const Geometry& wanted, bool* made);

void forget_objects();  // all of them: what they stood for may have changed unseen
void forget_objects_ids();  // after a fork: geometries are announced again

}  // namespace layers
