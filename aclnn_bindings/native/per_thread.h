// What a thread keeps for itself, usable at any moment of a process: the destructors of the main
// thread's variables run before those of libraries, which may call us still.
#pragma once

namespace aclnn_bindings {

// Each thread's own T, made at its first use; one use per T of its own. Deleted when the thread
// ends; a use after that makes another, which lasts.
template <class T>
T& per_thread() {
  static thread_local T* value = nullptr;  // nothing to destroy: readable to the end
  struct AtThreadEnd {
    bool watched = false;
    ~AtThreadEnd() {
      delete value;
      value = nullptr;
    }
  };
  if (!value) {
    static thread_local AtThreadEnd at_thread_end;
    at_thread_end.watched = true;
    value = new T;
  }
  return *value;
}

}  // namespace aclnn_bindings
