// The functions of an install as data: names, and for each parameter where it is passed and what
// it is. `table.py` writes the file; nothing here knows a function by name.
#pragma once

#include <cstdint>

namespace layers {

// What a parameter is; the codes of `table.py`.
enum class Kind : uint8_t {
  Tensor, TensorList, Scalar, ScalarList, IntArray, BoolArray, FloatArray, Executor,
  Integer, Real, String, Handle, Pointer, Opaque,
};

enum class Place : uint8_t { Integer, Vector, Stack, Unknown };

// Which handle of the runtime a parameter is.
enum class Thing : uint8_t { None, Stream, Event, Context };

struct Parameter {
  Kind kind;
  Place place;
  uint8_t index;      // register or stack slot
  uint8_t width;      // bytes of the value itself
  uint8_t is_signed;
  uint8_t out_width;  // bytes that the call writes through a pointer; 0: not a plain out value
  Thing thing;        // of a handle
  uint8_t access;     // of a tensor: 1 read, 2 written, 3 both
};
static_assert(sizeof(Parameter) == 8, "table.py writes 8 bytes");

// What a function returns.
enum class Returns : uint8_t { Nothing, Status, Word, Other };

struct Row {
  uint32_t name;
  uint32_t parameters;   // index of the first
  uint8_t count;
  Returns returns;
  uint8_t stack_words;
  uint8_t known;         // 0: no signature; forwarded and named only
  uint32_t partner;      // phase 1 of a phase 2 and the reverse; ~0: none
};
static_assert(sizeof(Row) == 16, "table.py writes 16 bytes");

constexpr uint64_t kTableMagic = 0x314C4241544C434DULL;  // "MCLTABL1"
constexpr uint32_t kNone = 0xFFFFFFFFu;

class Table {
 public:
  // Maps the file; false when it is none, or of another version.
  bool open(const char* path);
  uint32_t size() const { return count_; }
  const Row& row(uint32_t function) const { return rows_[function]; }
  const char* name(uint32_t function) const { return strings_ + rows_[function].name; }
  const Parameter* parameters(const Row& row) const { return parameters_ + row.parameters; }

 private:
  bool is_sound(uint64_t parameters, uint64_t text) const;
  const Row* rows_ = nullptr;
  const Parameter* parameters_ = nullptr;
  const char* strings_ = nullptr;
  uint32_t count_ = 0;
};

}  // namespace layers
