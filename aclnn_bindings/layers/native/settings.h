// What the command asked for: lines of `name value` in the file that MINDTORCH_LAYERS names, where a
// backslash before a backslash or an `n` stands for that or a new line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace layers {

constexpr const char* kSettingsVariable = "MINDTORCH_LAYERS";

// The variable as this process, or the nearest one above it that had it, began with; "" for none.
std::string inherited_settings();

struct Settings {
  std::string table;                  // the functions of the install
  std::string status;                 // status.h
  std::string spool;                  // where records go; empty: nothing is recorded
  std::vector<std::string> internal;  // folders whose code is the install's own
  std::vector<std::string> faults;    // rules of faults.h
  std::string findings;               // where the strict layer writes; empty: it is off
  std::string strict_mode = "report";  // error: faulty calls fail; abort: the program ends there
  bool races_only = false;            // the install finds the rest itself
  std::vector<std::string> allowed;   // known findings, as findings.h reads them
  std::vector<std::string> data;      // rules of data.h
  uint64_t data_limit = 0;            // bytes; 0: the usual limit
  bool device_time = false;           // time launches on the device
  bool stacks = false;                // record the Python lines of launches
  // False when the file cannot be read.
  bool read(const char* path);
  bool any_layer() const { return !spool.empty() || !faults.empty() || !findings.empty(); }
};

}  // namespace layers
