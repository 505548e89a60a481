// Which code computes an operator of a custom package: what ACLSIM_KERNELS binds to its type, a
// function of a Python file or of a library.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include <aclsim/kernel.h>

namespace aclsim {

struct Binding {
  std::string type, path, function;
  aclsimKernel native = nullptr;
  mutable std::mutex mutex;      // one call at a time goes to the Python process
  mutable int socket = -1;       // of the Python process that serves it
  mutable int owner = 0;         // the process that started it
  bool is_python() const;
};

// What is bound to a type; null when nothing is. What is wrong with the variable, or "".
const Binding* find_binding(const char* type, std::string* problem);

// Whether a kernel is bound to the type of this name in lower case.
bool binds_key(const std::string& key);

// Loads the library or starts Python: what went wrong, or "".
std::string ready(const Binding& binding);

// Runs it: what went wrong, or "".
std::string call_kernel(const Binding& binding, const aclsimKernelCall& call);

}  // namespace aclsim
