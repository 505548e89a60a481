#include "findings.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "callers.h"

namespace layers {
namespace {

constexpr int kShown = 3;
std::string& file() {
  static auto* path = new std::string;
  return *path;
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

void set_findings_file(const char* path) { file() = path; }

void report(const Finding& f) {
  std::string now = origin_text(origin_here().get());
  std::string line = "{\"finding\":" + json_text(f.what) + ",\"call\":" + json_text(f.call) +
                     ",\"object\":" + json_text(f.object) +
                     ",\"count\":" + std::to_string(f.count) +
                     ",\"created\":" + json_text(f.created) + ",\"at\":" + json_text(now) +
                     ",\"remedy\":" + json_text(f.remedy) +
                     ",\"number\":" + std::to_string(f.number) +
                     ",\"pid\":" + std::to_string(getpid()) + "}\n";
  int out = open(file().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (out < 0) return;
  ssize_t written = write(out, line.data(), line.size());
  (void)written;  // a full disk must not change what the program does
  close(out);
}

}  // namespace layers
