#include "findings.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <vector>

#include "callers.h"
#include "status.h"

namespace layers {
namespace {

constexpr int kShown = 3;

struct Output {
  std::string file;
  Mode mode = Mode::Report;
  std::vector<std::array<std::string, 4>> allowed;
};

Output& output() {
  static auto* made = new Output;
  return *made;
}

thread_local bool failing = false;

bool is_allowed(const Finding& f) {
  for (const auto& glob : output().allowed)
    if (!fnmatch(glob[0].c_str(), f.what, 0) && !fnmatch(glob[1].c_str(), f.call, 0) &&
        !fnmatch(glob[2].c_str(), f.object.c_str(), 0) &&
        !fnmatch(glob[3].c_str(), f.created.c_str(), 0))
      return true;
  return false;
}

std::string json_text(const std::string& plain) {
  std::string out = "\"";
  for (char c : plain) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      char code[8];
      snprintf(code, sizeof code, "\\u%04x", c);
      out += code;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string frame_text(void* frame, const Dl_info& info) {
  const char* base = strrchr(info.dli_fname, '/');
  const auto* from =
      static_cast<const char*>(info.dli_saddr ? info.dli_saddr : info.dli_fbase);
  char text[256];
  snprintf(text, sizeof text, "%s(%s+0x%zx)", base ? base + 1 : info.dli_fname,
           info.dli_sname ? info.dli_sname : "",
           static_cast<size_t>(static_cast<char*>(frame) - from));
  return text;
}

}  // namespace

OriginPtr origin_here() {
  auto made = std::make_shared<Origin>();
  made->depth = backtrace(made->frames, 14);
  return made;
}

std::string origin_text(const Origin* origin) {
  std::string text;
  int shown = 0;
  for (int i = 0; origin && i < origin->depth && shown < kShown; ++i) {
    Dl_info info;
    if (is_internal(origin->frames[i]) || !dladdr(origin->frames[i], &info) || !info.dli_fname)
      continue;
    text += (shown++ ? " < " : "") + frame_text(origin->frames[i], info);
  }
  return text;
}

void set_findings_file(const char* path, Mode mode) {
  output().file = path;
  output().mode = mode;
}

void allow_finding(const std::string& globs) {
  std::istringstream parts(globs);
  std::array<std::string, 4> one;
  for (std::string& glob : one) std::getline(parts, glob, '\x1f');
  output().allowed.push_back(one);
}

bool findings_fail_call() {
  bool fails = failing;
  failing = false;
  return fails && output().mode == Mode::Error;
}

void report(const Finding& f) {
  std::string now = origin_text(origin_here().get());
  std::string line = "{\"finding\":" + json_text(f.what) + ",\"call\":" + json_text(f.call) +
                     ",\"object\":" + json_text(f.object) +
                     ",\"count\":" + std::to_string(f.count) +
                     ",\"created\":" + json_text(f.created) + ",\"at\":" + json_text(now) +
                     ",\"remedy\":" + json_text(f.remedy) +
                     ",\"number\":" + std::to_string(f.number) +
                     ",\"pid\":" + std::to_string(getpid()) + "}\n";
  int out = open(output().file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  // A full disk must not change what the program does, but whoever asked is told.
  if (out < 0 || write(out, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    note_failure("a finding could not be written");
  if (out >= 0) close(out);
  if (output().mode == Mode::Report || is_allowed(f)) return;
  if (output().mode == Mode::Abort) abort();
  failing = true;
}

}  // namespace layers
