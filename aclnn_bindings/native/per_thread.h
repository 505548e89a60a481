// What a thread keeps for itself, usable at any moment of a process: the destructors of the main
// thread's variables run before those of libraries, which may call us still.
#pragma once

#include <cxxabi.h>

extern "C" __attribute__((visibility("hidden"))) void* __dso_handle;  // which library this is in

namespace aclnn_bindings {

// Each thread's own T, made at its first use; one use per T of its own. Deleted when the thread
// ends; a use after that makes another, which lasts. A pointer is all that it takes of the storage
// that the loader reserves for threads, of which a program has some hundred bytes to spare.
template <class T>
T& per_thread() {
  static thread_local T* value = nullptr;  // nothing to destroy: readable to the end
  if (!value) {
    value = new T();
    const auto at_thread_end = [](void*) {
      delete value;
      value = nullptr;
    };
    abi::__cxa_thread_atexit(at_thread_end, nullptr, &__dso_handle);
  }
  return *value;
}

}  // namespace aclnn_bindings
