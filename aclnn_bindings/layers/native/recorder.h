// Writes calls and what they refer to as rows of 64 bytes; the format is that of docs/layers.md.
#pragma once

#include "core.h"

namespace layers {

enum class RowType : uint8_t {
  Call = 1, Words = 2, Geometry = 3, Detail = 4, Data = 5, Stack = 6, Unfinished = 7, DeviceTime = 8,
};
enum CallFlags : uint32_t {
  kNoFlags = 0,
  kPhaseOne = 1, kPhaseTwo = 2, kMakes = 4, kMicroseconds = 8, kMoreWords = 16, kInjected = 32, kHasData = 64,
};

void put_row(RowType type, uint32_t id, uint32_t extra, const char* data, size_t length);
void announce_geometry(const Geometry& geometry);
// The detail of a call's parameters, interned: set before the call runs.
void record_before(const Frame& frame, Call* call);
void record_after(const Frame& frame, const Call& call, uint64_t end);
void record_stacks(bool on);
void forget_details();  // after a fork

}  // namespace layers
