// Files of accepted findings. A file is TOML of one shape:
//   [[allow]]
//   finding = "leak"            # globs; those that are left out match anything
//   created = "libtorch_npu*"
//   reason = "why this is no fault of the program"   # required
#include "ascendcl/allow.h"

#include <dlfcn.h>
#include <fnmatch.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <vector>

namespace aclsim {
namespace {

using Rule = std::map<std::string, std::string>;

const char* const kKeys[] = {"finding", "call", "object", "created", "reason"};

std::string trim(const std::string& text) {
  size_t begin = text.find_first_not_of(" \t\r"), end = text.find_last_not_of(" \t\r");
  return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

// A name without a slash is one of the files that come with the simulator.
std::string path_of(const std::string& named) {
  Dl_info here;
  if (named.find('/') != std::string::npos ||
      !dladdr(reinterpret_cast<void*>(&allowed_finding), &here) || !here.dli_fname) {
    return named;
  }
  std::string library = here.dli_fname;
  return library.substr(0, library.rfind('/') + 1) + "../share/aclsim/" + named + ".toml";
}

// `key = "value"`, perhaps with a comment; false for anything else.
bool parse_entry(const std::string& line, Rule* rule) {
  size_t equals = line.find('='), open = line.find('"', equals);
  size_t close = open == std::string::npos ? open : line.find('"', open + 1);
  if (equals == std::string::npos || close == std::string::npos) return false;
  std::string key = trim(line.substr(0, equals)), rest = trim(line.substr(close + 1));
  bool known = false;
  for (const char* one : kKeys) known |= key == one;
  bool clean = trim(line.substr(equals + 1, open - equals - 1)).empty() &&
               (rest.empty() || rest[0] == '#');
  (*rule)[key] = line.substr(open + 1, close - open - 1);
  return known && clean;
}

void complain(const std::string& path, int line, const char* expected) {
  fprintf(stderr, "aclsim: ACLSIM_ALLOW: %s, line %d: expected %s; the rest of the file is ignored.\n",
          path.c_str(), line, expected);
}

void read_file(const std::string& named, std::vector<Rule>* rules) {
  std::string path = path_of(named), line;
  std::ifstream file(path);
  if (!file) {
    fprintf(stderr, "aclsim: ACLSIM_ALLOW: %s cannot be read; its rules are missing.\n", path.c_str());
    return;
  }
  std::vector<Rule> found;
  int number = 0;
  auto complete = [&] { return found.empty() || !found.back()["reason"].empty(); };
  while (std::getline(file, line)) {
    ++number;
    line = trim(line);
    if (line.empty() || line[0] == '#') continue;
    if (line == "[[allow]]") {
      if (!complete()) return complain(path, number, "a reason in the rule before");
      found.emplace_back();
    } else if (found.empty() || !parse_entry(line, &found.back())) {
      return complain(path, number, "[[allow]], or one of finding, call, object, created, reason = "
                                    "\"text\"");
    }
  }
  if (!complete()) return complain(path, number, "a reason in the last rule");
  rules->insert(rules->end(), found.begin(), found.end());
}

const std::vector<Rule>& rules() {
  static const auto* made = [] {
    auto* all = new std::vector<Rule>;
    const char* files = getenv("ACLSIM_ALLOW");
    std::stringstream names(files ? files : "");
    for (std::string name; std::getline(names, name, ':');) {
      if (!name.empty()) read_file(name, all);
    }
    return all;
  }();
  return *made;
}

bool matches(const Rule& rule, const char* key, const std::string& text) {
  auto found = rule.find(key);
  return found == rule.end() || fnmatch(found->second.c_str(), text.c_str(), 0) == 0;
}

}  // namespace

bool allowed_finding(const std::string& finding, const std::string& call, const std::string& object,
                     const std::string& created) {
  for (const Rule& rule : rules()) {
    if (matches(rule, "finding", finding) && matches(rule, "call", call) &&
        matches(rule, "object", object) && matches(rule, "created", created)) {
      return true;
    }
  }
  return false;
}

}  // namespace aclsim
