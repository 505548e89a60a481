// What stands behind aclTensor and its kin. Kernels never see these: phase 1 copies what they need.
#pragma once

#include "ascendcl/handle.h"

// The opaque types of the C interface; at global scope because the headers name them there.
struct aclTensor : aclsim::Handle {
  aclsim::Tensor view;          // dims and strides are in `wide` when rank is above eight
  int32_t storage_rank;
  bool owned_by_list;
  aclFormat declared;           // the format as given; view's tells how wide inner tiles are too
  int64_t storage_dims[aclsim::kMaxRank];
  int64_t* wide;                // rank dims, rank strides, then storage_rank storage dims

  bool is_wide() const { return view.rank > aclsim::kMaxRank || storage_rank > aclsim::kMaxRank; }
  const int64_t* dims() const { return is_wide() ? wide : view.dims; }
  const int64_t* strides() const { return is_wide() ? wide + view.rank : view.strides; }
  const int64_t* storage() const { return is_wide() ? wide + 2 * view.rank : storage_dims; }
};

struct aclScalar : aclsim::Handle {
  aclsim::Scalar value;
  bool owned_by_list;
};

namespace aclsim {

// Arrays of numbers: a copy, in the object while small.
template <class T>
struct ArrayHandle : Handle {
  uint64_t size;
  T* data;
  T small[128 / sizeof(T)];
};

// Lists own their members.
template <class T>
struct ListHandle : Handle {
  uint64_t size;
  T** data;
  T* small[12];
};

}  // namespace aclsim

struct aclIntArray : aclsim::ArrayHandle<int64_t> {};
struct aclBoolArray : aclsim::ArrayHandle<bool> {};
struct aclFloatArray : aclsim::ArrayHandle<float> {};
struct aclTensorList : aclsim::ListHandle<aclTensor> {};
struct aclScalarList : aclsim::ListHandle<aclScalar> {};
