// Findings of the strict layer: where a thing was made, and one JSON line for each misuse.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace layers {

// The program's frames of a moment, innermost first; the install's own are left out when shown.
struct Origin {
  int depth = 0;
  void* frames[14];
};
using OriginPtr = std::shared_ptr<const Origin>;

OriginPtr origin_here();
std::string origin_text(const Origin* origin);  // "" for null

struct Finding {
  const char* what;  // a stable word
  const char* call;
  std::string object;
  std::string created;  // where the object was made, or the earlier of two accesses
  const char* remedy;
  int64_t count = 1;
  uint64_t number = 0;  // of the call, in a recording
};

enum class Mode : uint8_t { Report, Error, Abort };

void set_findings_file(const char* path, Mode mode);
// A known finding, by globs of what, call, object and created, with 0x1F between: it is written
// like others, and never fails a call or ends the program.
void allow_finding(const std::string& globs);
// Writes a finding; ends the program in abort mode.
void report(const Finding& finding);
// Whether this thread's findings since it was asked last must fail the call: in error mode.
bool findings_fail_call();

}  // namespace layers
