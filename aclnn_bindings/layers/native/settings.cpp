#include "settings.h"

#include <fstream>

namespace layers {
namespace {

std::string unescaped(const std::string& text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    bool escape = text[i] == '\\' && i + 1 < text.size();
    if (escape) ++i;
    plain += escape && text[i] == 'n' ? '\n' : text[i];
  }
  return plain;
}

}  // namespace

bool Settings::read(const char* path) {
  std::ifstream file(path);
  if (!file) return false;
  for (std::string line; std::getline(file, line);) {
    size_t space = line.find(' ');
    if (space == std::string::npos) continue;
    std::string name = line.substr(0, space), value = unescaped(line.substr(space + 1));
    if (name == "table") table = value;
    else if (name == "status") status = value;
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
  return !table.empty();
}

}  // namespace layers
