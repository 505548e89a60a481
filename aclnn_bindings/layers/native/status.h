// What processes tell the command that started them: a small shared file, made by `status.py`.
#pragma once

#include <cstddef>
#include <cstdint>

namespace layers {

constexpr uint64_t kStatusMagic = 0x315441545354434DULL;  // "MCTSTAT1"

// Maps the file; false when it is none. Until then, and without one, nothing is told.
bool open_status(const char* path);
// This process has loaded the layers.
void note_started();
// Something that was asked for is not done, in this process or from now on: the first reason stays.
void note_failure(const char* reason);
// The rule of this number has changed a call.
void note_match(size_t rule);

}  // namespace layers
