// The Python lines that led to a call, where the calling thread belongs to an interpreter.
#pragma once

#include <string>

namespace layers {

// "train.py:31 losses < train.py:52 <module>", innermost first; "" outside of Python. Lines of
// installed packages are left out unless there are no others. Takes the interpreter's lock when the
// thread does not hold it.
std::string python_stack();

}  // namespace layers
