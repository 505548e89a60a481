#include "settings.h"

#include <unistd.h>

#include <fstream>
#include <sstream>

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

constexpr int kMostAncestors = 64;

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  return text.str();
}

std::string variable_at_start(const std::string& process, const std::string& name) {
  const std::string all = '\0' + text_of("/proc/" + process + "/environ");
  const size_t at = all.find('\0' + name + '=');
  if (at == std::string::npos) return "";
  const size_t begin = at + name.size() + 2;
  return all.substr(begin, all.find('\0', begin) - begin);
}

// "PID (NAME) STATE PPID …", where NAME may hold anything.
std::string parent_of(const std::string& process) {
  const std::string stat = text_of("/proc/" + process + "/stat");
  const size_t end = stat.rfind(')');
  if (end == std::string::npos) return "";
  std::istringstream words(stat.substr(end + 1));
  std::string state, parent;
  words >> state >> parent;
  return parent == "0" ? "" : parent;
}

}  // namespace

std::string inherited_settings() {
  std::string process = "self";
  for (int i = 0; i < kMostAncestors && !process.empty(); ++i, process = parent_of(process)) {
    const std::string path = variable_at_start(process, kSettingsVariable);
    if (!path.empty()) return path;
  }
  return "";
}

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
