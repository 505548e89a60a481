// Tells the program's calls from those that the install makes of itself, by the return address.
#pragma once

namespace layers {

// Folders whose libraries are the install's; to be named before the first question.
void add_internal_folder(const char* folder);
// Whether code at `address` belongs to the install, to a shim or to the core.
bool is_internal(const void* address);

}  // namespace layers
