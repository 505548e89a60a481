// What describes an operator that is called by its type name: tensors, buffers and attributes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ascendcl/handle.h"

namespace aclsim {

// One attribute; numbers of a list of lists stand one after the other.
struct Attribute {
  std::vector<int64_t> ints;  // also flags and dtypes
  std::vector<float> floats;
  std::vector<std::string> texts;
};

}  // namespace aclsim

struct aclTensorDesc : aclsim::Handle {
  aclDataType dtype;
  aclFormat format, storage_format, origin_format;
  std::vector<int64_t>* dims;
  std::vector<int64_t>* storage_dims;
  std::string* name;
  std::vector<char>* constant;  // aclSetTensorConst; null: none
  aclMemType placement;
  void* address;
};
struct aclDataBuffer : aclsim::Handle {
  void* data;
  size_t size;
};
struct aclopAttr : aclsim::Handle {
  std::map<std::string, aclsim::Attribute>* values;
};
