#include "python_stack.h"

#include <dlfcn.h>

#include <vector>

namespace layers {
namespace {

// CPython's C API, as far as it is needed; found in the process, never linked. Frames are objects
// of the interpreter, all references are new ones (CPython documentation: frame objects, 3.11).
struct Python {
  int (*is_initialized)();
  int (*is_finalizing)();  // may be absent
  void* (*this_thread)();
  int (*holds_lock)();
  int (*take_lock)();
  void (*give_lock)(int);
  void* (*frame_of)(void*);
  void* (*back)(void*);
  void* (*code)(void*);
  int (*line)(void*);
  void* (*attribute)(void*, const char*);
  const char* (*text)(void*);
  void (*drop)(void*);
  bool complete;
};

template <class F>
bool find(F* place, const char* name) {
  *place = reinterpret_cast<F>(dlsym(RTLD_DEFAULT, name));
  return *place != nullptr;
}

Python load() {
  Python p{};
  if (!find(&p.is_finalizing, "Py_IsFinalizing")) find(&p.is_finalizing, "_Py_IsFinalizing");
  p.complete = find(&p.is_initialized, "Py_IsInitialized") &&
               find(&p.this_thread, "PyGILState_GetThisThreadState") &&
               find(&p.holds_lock, "PyGILState_Check") &&
               find(&p.take_lock, "PyGILState_Ensure") &&
               find(&p.give_lock, "PyGILState_Release") &&
               find(&p.frame_of, "PyThreadState_GetFrame") && find(&p.back, "PyFrame_GetBack") &&
               find(&p.code, "PyFrame_GetCode") && find(&p.line, "PyFrame_GetLineNumber") &&
               find(&p.attribute, "PyObject_GetAttrString") &&
               find(&p.text, "PyUnicode_AsUTF8") && find(&p.drop, "Py_DecRef");
  return p;
}

constexpr int kDeepest = 24, kFrames = 4, kFramesOfPackages = 2;

struct Line {
  std::string text;
  bool installed;
};

std::string attribute_text(const Python& p, void* object, const char* name) {
  void* value = p.attribute(object, name);
  const char* text = value ? p.text(value) : nullptr;
  std::string found = text ? text : "?";
  if (value) p.drop(value);
  return found;
}

Line line_of(const Python& p, void* frame) {
  void* code = p.code(frame);
  std::string file = attribute_text(p, code, "co_filename");
  std::string name = attribute_text(p, code, "co_name");
  p.drop(code);
  bool typed = file == "<string>" || file == "<stdin>";  // with -c, or at a prompt
  bool installed = file.find("-packages/") != std::string::npos || (file[0] == '<' && !typed) ||
                   file.find("/torch_npu/") != std::string::npos ||
                   file.find("/mindtorch/") != std::string::npos;
  size_t slash = file.rfind('/');
  if (slash != std::string::npos) file = file.substr(slash + 1);
  return {file + ":" + std::to_string(p.line(frame)) + " " + name, installed};
}

std::vector<Line> lines_of(const Python& p, void* thread) {
  std::vector<Line> lines;
  void* frame = p.frame_of(thread);
  while (frame && static_cast<int>(lines.size()) < kDeepest) {
    lines.push_back(line_of(p, frame));
    void* outer = p.back(frame);
    p.drop(frame);
    frame = outer;
  }
  if (frame) p.drop(frame);
  return lines;
}

std::string shown(const std::vector<Line>& lines, bool installed, int most) {
  std::string text;
  for (const Line& line : lines) {
    if (line.installed && !installed) continue;
    text += (text.empty() ? "" : " < ") + line.text;
    if (--most == 0) break;
  }
  return text;
}

}  // namespace

std::string python_stack() {
  static const Python p = load();
  if (!p.complete || !p.is_initialized() || (p.is_finalizing && p.is_finalizing())) return "";
  void* thread = p.this_thread();
  if (!thread) return "";
  bool held = p.holds_lock() != 0;
  int state = held ? 0 : p.take_lock();
  std::vector<Line> lines = lines_of(p, thread);
  if (!held) p.give_lock(state);
  std::string own = shown(lines, false, kFrames);
  return own.empty() ? shown(lines, true, kFramesOfPackages) : own;
}

}  // namespace layers
