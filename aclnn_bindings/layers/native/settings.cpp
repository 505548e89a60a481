#include "settings.h"

#include <fstream>

namespace layers {

bool Settings::read(const char* path) {
  std::ifstream file(path);
  if (!file) return false;
  for (std::string line; std::getline(file, line);) {
    size_t space = line.find(' ');
    if (space == std::string::npos) continue;
    std::string name = line.substr(0, space), value = line.substr(space + 1);
    if (name == "table") table = value;
    else if (name == "spool") spool = value;
    else if (name == "fault") faults.push_back(value);
    else if (name == "strict") findings = value;
    else if (name == "strict_mode") strict_mode = value;
    else if (name == "races_only") races_only = true;
    else if (name == "allow") allowed.push_back(value);
    else if (name == "data") data.push_back(value);
    else if (name == "data_limit") data_limit = std::stoull(value);
    else if (name == "device_time") device_time = true;
    else if (name == "stacks") stacks = true;
    else if (name == "internal") internal.push_back(value);
  }
  if (table.empty()) return false;
  std::ofstream(std::string(path) + kReadSuffix);  // says that this program can be seen
  return true;
}

}  // namespace layers
