#include "nnopbase/header_names.h"

#include <dlfcn.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace aclsim {
namespace {

namespace fs = std::filesystem;

constexpr char kPhaseOne[] = "GetWorkspaceSize";

std::string content(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The last identifier of a parameter: `const aclTensor *x` declares x.
std::string declared_name(const std::string& parameter) {
  const auto part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  size_t end = parameter.size();
  while (end && !part(parameter[end - 1])) --end;
  size_t begin = end;
  while (begin && part(parameter[begin - 1])) --begin;
  return parameter.substr(begin, end - begin);
}

std::vector<std::string> parameters(const std::string& text, const std::string& declaration) {
  std::vector<std::string> names;
  const size_t at = text.find(declaration);
  const size_t end = at == std::string::npos ? at : text.find(')', at);
  if (end == std::string::npos) return names;
  std::stringstream list(text.substr(at + declaration.size(), end - at - declaration.size()));
  for (std::string one; std::getline(list, one, ',');) names.push_back(declared_name(one));
  if (names.size() < 2) return {};
  names.resize(names.size() - 2);
  return names;
}

}  // namespace

CallerSymbol caller_symbol(const void* address) {
  Dl_info info{};
  if (!dladdr(address, &info)) return {};
  CallerSymbol caller{info.dli_fname ? info.dli_fname : "", info.dli_sname ? info.dli_sname : ""};
  const size_t suffix = caller.function.rfind(kPhaseOne);
  const bool phase_one = suffix != std::string::npos &&
                         suffix + sizeof kPhaseOne - 1 == caller.function.size();
  caller.function = phase_one ? caller.function.substr(0, suffix) : "";
  return caller;
}

std::vector<std::string> header_names(const std::string& library, const std::string& function) {
  std::error_code error;
  const fs::path lib = fs::path(library).parent_path();
  for (const fs::path& folder : {lib.parent_path() / "include", lib, lib / "include"}) {
    for (fs::recursive_directory_iterator file(folder, error), end; !error && file != end;
         file.increment(error)) {
      if (file->path().extension() != ".h" || !file->is_regular_file(error)) continue;
      auto names = parameters(content(file->path()), function + kPhaseOne + "(");
      if (!names.empty()) return names;
    }
  }
  return {};
}

}  // namespace aclsim
