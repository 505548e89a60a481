// Tensors, scalars, arrays and lists as the C interface makes, reads and destroys them.
#include "nnopbase/descriptors.h"

#include <cstdlib>

#include "ascendcl/error.h"
#include "ascendcl/strict.h"

namespace aclsim {
namespace {

ACLSIM_NOINLINE aclnnStatus null_argument(const char* function, const char* parameter) {
  return failed(ACLNN_ERR_PARAM_NULLPTR, "EZ1001", "%s failed because %s is null.", function,
                parameter);
}

ACLSIM_NOINLINE aclnnStatus dead_argument(const char* function, const Handle* handle, Kind kind) {
  if (strict()) report_dead(function, handle, kind);
  return failed(ACLNN_ERR_PARAM_INVALID, "EZ1001", "%s failed because %p is not a live %s.",
                function, static_cast<const void*>(handle), kind_c_type(kind));
}

#define REQUIRE_HANDLE(handle, kind)                                             \
  if (ACLSIM_UNLIKELY(!(handle))) return null_argument(__func__, #handle);       \
  if (ACLSIM_UNLIKELY(!(handle)->is(kind))) return dead_argument(__func__, handle, kind)
#define REQUIRE_OUTPUT(pointer) \
  if (ACLSIM_UNLIKELY(!(pointer))) return null_argument(__func__, #pointer)

template <class T>
T* make(Kind kind) {
  ThreadState* state = thread();
  T* made = acquire<T>(state, kind);
  count_live(state, kind, 1);
  if (strict()) remember_origin(made);
  return made;
}

void end(Handle* handle, Kind kind, Death death) {
  ThreadState* state = thread();
  count_live(state, kind, -1);
  if (strict()) forget_origin(handle);
  retire(handle, kind, death);
  recycle(state, handle, kind);
}

void drop_wide(aclTensor* tensor) {
  if (ACLSIM_UNLIKELY(tensor->is_wide())) free(tensor->wide);
}

void row_major(const int64_t* dims, int rank, int64_t* strides) {
  int64_t step = 1;
  for (int i = rank - 1; i >= 0; --i) {
    strides[i] = step;
    step *= dims[i];
  }
}

// A plain view of tiles that are wider or narrower than 32 bytes: the format says so.
aclFormat tiles_format(const aclTensor* tensor) {
  const int32_t last = tensor->storage_rank - 1;
  const auto size = static_cast<int64_t>(dtype_size(tensor->view.dtype));
  if (last != tensor->view.rank + 1 || last < 3 || !size) return ACL_FORMAT_FRACTAL_NZ;
  const int64_t wide = tensor->storage()[last];
  if (wide * size == 32) return ACL_FORMAT_FRACTAL_NZ;
  return wide == 8    ? ACL_FORMAT_FRACTAL_NZ_C0_8
         : wide == 16 ? ACL_FORMAT_FRACTAL_NZ_C0_16
         : wide == 32 ? ACL_FORMAT_FRACTAL_NZ_C0_32
                      : ACL_FORMAT_FRACTAL_NZ;
}

// Null iff a dims pointer is missing; everything else is accepted here, and judged by the ops
// (aclCreateTensor document).
bool describe(aclTensor* tensor, const int64_t* dims, uint64_t rank, aclDataType dtype,
              const int64_t* strides, int64_t offset, aclFormat format,
              const int64_t* storage_dims, uint64_t storage_rank, void* data) {
  tensor->view.rank = static_cast<int32_t>(rank);
  tensor->storage_rank = static_cast<int32_t>(storage_rank);
  if (ACLSIM_UNLIKELY(tensor->is_wide())) {
    tensor->wide = static_cast<int64_t*>(malloc((2 * rank + storage_rank) * sizeof(int64_t)));
    if (!tensor->wide) return false;
  }
  auto* to_dims = const_cast<int64_t*>(tensor->dims());
  auto* to_strides = const_cast<int64_t*>(tensor->strides());
  auto* to_storage = const_cast<int64_t*>(tensor->storage());
  for (uint64_t i = 0; i < rank; ++i) to_dims[i] = dims[i];
  if (strides) {
    for (uint64_t i = 0; i < rank; ++i) to_strides[i] = strides[i];
  } else {
    row_major(to_dims, static_cast<int>(rank), to_strides);
  }
  int64_t numel = 1;
  for (uint64_t i = 0; i < storage_rank; ++i) numel *= to_storage[i] = storage_dims[i];
  tensor->view.storage_numel = numel;
  tensor->view.data = data;
  tensor->view.offset = offset;
  tensor->view.dtype = dtype;
  tensor->declared = format;
  tensor->view.format =
      ACLSIM_UNLIKELY(format == ACL_FORMAT_FRACTAL_NZ) ? tiles_format(tensor) : format;
  tensor->view.origin = tensor;
  return true;
}

// Memory for `size` elements where an object's `own` are too few; false when there is none.
template <class T>
bool make_room(uint64_t size, size_t own, T** large) {
  if (ACLSIM_LIKELY(size <= own)) return true;
  if (size <= PTRDIFF_MAX / sizeof(T)) *large = static_cast<T*>(malloc(size * sizeof(T)));
  return *large;
}

template <class A, class T>
A* make_array(const T* value, uint64_t size, Kind kind) {
  if (ACLSIM_UNLIKELY(!value && size > 0)) return nullptr;
  T* large = nullptr;
  if (!make_room(size, sizeof A::small / sizeof(T), &large)) return nullptr;
  A* array = make<A>(kind);
  array->size = size;
  array->data = large ? large : array->small;
  if (size) memcpy(array->data, value, size * sizeof(T));
  return array;
}

template <class A>
aclnnStatus destroy_array(const char* function, const A* array, Kind kind) {
  if (!array) return ACL_SUCCESS;
  if (ACLSIM_UNLIKELY(!array->is(kind))) return dead_argument(function, array, kind);
  auto* mine = const_cast<A*>(array);
  if (mine->data != mine->small) free(mine->data);
  end(mine, kind, Death::Destroyed);
  return ACL_SUCCESS;
}

template <class L, class T>
L* make_list(const char* function, const T* const* value, uint64_t size, Kind kind, Kind member) {
  if (ACLSIM_UNLIKELY(!value && size > 0)) return nullptr;
  for (uint64_t i = 0; i < size && strict(); ++i) {
    if (value[i] && !value[i]->is(member)) report_dead(function, value[i], member);
  }
  T** large = nullptr;
  if (!make_room(size, sizeof L::small / sizeof(T*), &large)) return nullptr;
  L* list = make<L>(kind);
  list->size = size;
  list->data = large ? large : list->small;
  for (uint64_t i = 0; i < size; ++i) list->data[i] = const_cast<T*>(value[i]);
  return list;
}

template <class L>
aclnnStatus destroy_list(const char* function, const L* list, Kind kind, Kind member) {
  if (!list) return ACL_SUCCESS;
  if (ACLSIM_UNLIKELY(!list->is(kind))) return dead_argument(function, list, kind);
  auto* mine = const_cast<L*>(list);
  aclnnStatus code = ACL_SUCCESS;
  for (uint64_t i = 0; i < mine->size; ++i) {
    auto* item = mine->data[i];
    if (!item) continue;
    if (ACLSIM_UNLIKELY(!item->is(member))) {
      code = dead_argument(function, item, member);
      continue;
    }
    if constexpr (std::is_same<L, aclTensorList>::value) drop_wide(item);
    end(item, member, Death::ByList);
  }
  if (mine->data != mine->small) free(mine->data);
  end(mine, kind, Death::Destroyed);
  return code;
}

// Copies handed out by getters belong to the caller, who must delete[] them.
aclnnStatus hand_out(const int64_t* from, int32_t count, int64_t** out, uint64_t* size) {
  *out = new int64_t[count];
  for (int32_t i = 0; i < count; ++i) (*out)[i] = from[i];
  *size = static_cast<uint64_t>(count);
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

using namespace aclsim;

ACLSIM_API aclTensor* aclCreateTensor(const int64_t* viewDims, uint64_t viewDimsNum,
                                      aclDataType dataType, const int64_t* stride, int64_t offset,
                                      aclFormat format, const int64_t* storageDims,
                                      uint64_t storageDimsNum, void* tensorData) {
  if (ACLSIM_UNLIKELY((!viewDims && viewDimsNum) || (!storageDims && storageDimsNum))) {
    null_argument(__func__, viewDims || !viewDimsNum ? "storageDims" : "viewDims");
    return nullptr;
  }
  aclTensor* tensor = make<aclTensor>(Kind::Tensor);
  tensor->owned_by_list = false;
  describe(tensor, viewDims, viewDimsNum, dataType, stride, offset, format, storageDims,
           storageDimsNum, tensorData);
  return tensor;
}

ACLSIM_API aclnnStatus aclInitTensor(aclTensor* tensor, const int64_t* viewDims,
                                     uint64_t viewDimsNum, aclDataType dataType,
                                     const int64_t* stride, int64_t offset, aclFormat format,
                                     const int64_t* storageDims, uint64_t storageDimsNum,
                                     void* tensorDataAddr) {
  REQUIRE_HANDLE(tensor, Kind::Tensor);
  if ((!viewDims && viewDimsNum) || (!storageDims && storageDimsNum)) {
    return null_argument(__func__, viewDims || !viewDimsNum ? "storageDims" : "viewDims");
  }
  drop_wide(tensor);
  describe(tensor, viewDims, viewDimsNum, dataType, stride, offset, format, storageDims,
           storageDimsNum, tensorDataAddr);
  return ACL_SUCCESS;
}

ACLSIM_API aclnnStatus aclDestroyTensor(const aclTensor* tensor) {
  if (!tensor) return ACL_SUCCESS;
  if (ACLSIM_UNLIKELY(!tensor->is(Kind::Tensor))) {
    return dead_argument(__func__, tensor, Kind::Tensor);
  }
  auto* mine = const_cast<aclTensor*>(tensor);
  drop_wide(mine);
  end(mine, Kind::Tensor, Death::Destroyed);
  return ACL_SUCCESS;
}

ACLSIM_API aclScalar* aclCreateScalar(void* value, aclDataType dataType) {
  if (ACLSIM_UNLIKELY(!value)) {
    null_argument(__func__, "value");
    return nullptr;
  }
  aclScalar* scalar = make<aclScalar>(Kind::Scalar);
  scalar->value.dtype = dataType;
  memset(scalar->value.bytes, 0, sizeof scalar->value.bytes);
  memcpy(scalar->value.bytes, value, dtype_size(dataType));
  return scalar;
}
ACLSIM_API aclnnStatus aclDestroyScalar(const aclScalar* scalar) {
  if (!scalar) return ACL_SUCCESS;
  if (ACLSIM_UNLIKELY(!scalar->is(Kind::Scalar))) {
    return dead_argument(__func__, scalar, Kind::Scalar);
  }
  end(const_cast<aclScalar*>(scalar), Kind::Scalar, Death::Destroyed);
  return ACL_SUCCESS;
}

ACLSIM_API aclIntArray* aclCreateIntArray(const int64_t* value, uint64_t size) {
  return make_array<aclIntArray>(value, size, Kind::IntArray);
}
ACLSIM_API aclBoolArray* aclCreateBoolArray(const bool* value, uint64_t size) {
  return make_array<aclBoolArray>(value, size, Kind::BoolArray);
}
ACLSIM_API aclFloatArray* aclCreateFloatArray(const float* value, uint64_t size) {
  return make_array<aclFloatArray>(value, size, Kind::FloatArray);
}
ACLSIM_API aclnnStatus aclDestroyIntArray(const aclIntArray* array) {
  return destroy_array(__func__, array, Kind::IntArray);
}
ACLSIM_API aclnnStatus aclDestroyBoolArray(const aclBoolArray* array) {
  return destroy_array(__func__, array, Kind::BoolArray);
}
ACLSIM_API aclnnStatus aclDestroyFloatArray(const aclFloatArray* array) {
  return destroy_array(__func__, array, Kind::FloatArray);
}
ACLSIM_API aclTensorList* aclCreateTensorList(const aclTensor* const* value, uint64_t size) {
  return make_list<aclTensorList>(__func__, value, size, Kind::TensorList, Kind::Tensor);
}
ACLSIM_API aclScalarList* aclCreateScalarList(const aclScalar* const* value, uint64_t size) {
  return make_list<aclScalarList>(__func__, value, size, Kind::ScalarList, Kind::Scalar);
}
ACLSIM_API aclnnStatus aclDestroyTensorList(const aclTensorList* array) {
  return destroy_list(__func__, array, Kind::TensorList, Kind::Tensor);
}
ACLSIM_API aclnnStatus aclDestroyScalarList(const aclScalarList* array) {
  return destroy_list(__func__, array, Kind::ScalarList, Kind::Scalar);
}

ACLSIM_API aclnnStatus aclGetIntArraySize(const aclIntArray* array, uint64_t* size) {
  REQUIRE_HANDLE(array, Kind::IntArray);
  REQUIRE_OUTPUT(size);
  *size = array->size;
  return ACL_SUCCESS;
}
ACLSIM_API aclnnStatus aclGetBoolArraySize(const aclBoolArray* array, uint64_t* size) {
  REQUIRE_HANDLE(array, Kind::BoolArray);
  REQUIRE_OUTPUT(size);
  *size = array->size;
  return ACL_SUCCESS;
}
ACLSIM_API aclnnStatus aclGetFloatArraySize(const aclFloatArray* array, uint64_t* size) {
  REQUIRE_HANDLE(array, Kind::FloatArray);
  REQUIRE_OUTPUT(size);
  *size = array->size;
  return ACL_SUCCESS;
}
ACLSIM_API aclnnStatus aclGetTensorListSize(const aclTensorList* tensorList, uint64_t* size) {
  REQUIRE_HANDLE(tensorList, Kind::TensorList);
  REQUIRE_OUTPUT(size);
  *size = tensorList->size;
  return ACL_SUCCESS;
}
ACLSIM_API aclnnStatus aclGetScalarListSize(const aclScalarList* scalarList, uint64_t* size) {
  REQUIRE_HANDLE(scalarList, Kind::ScalarList);
  REQUIRE_OUTPUT(size);
  *size = scalarList->size;
  return ACL_SUCCESS;
}

ACLSIM_API aclnnStatus aclGetViewShape(const aclTensor* tensor, int64_t** viewDims,
                                       uint64_t* viewDimsNum) {
  REQUIRE_HANDLE(tensor, Kind::Tensor);
  REQUIRE_OUTPUT(viewDims);
  REQUIRE_OUTPUT(viewDimsNum);
  return hand_out(tensor->dims(), tensor->view.rank, viewDims, viewDimsNum);
}
ACLSIM_API aclnnStatus aclGetViewStrides(const aclTensor* tensor, int64_t** stridesValue,
                                         uint64_t* stridesNum) {
  REQUIRE_HANDLE(tensor, Kind::Tensor);
  REQUIRE_OUTPUT(stridesValue);
  REQUIRE_OUTPUT(stridesNum);
  return hand_out(tensor->strides(), tensor->view.rank, stridesValue, stridesNum);
}
ACLSIM_API aclnnStatus aclGetStorageShape(const aclTensor* tensor, int64_t** storageDims,
                                          uint64_t* storageDimsNum) {
  REQUIRE_HANDLE(tensor, Kind::Tensor);
  REQUIRE_OUTPUT(storageDims);
  REQUIRE_OUTPUT(storageDimsNum);
  return hand_out(tensor->storage(), tensor->storage_rank, storageDims, storageDimsNum);
}
ACLSIM_API aclnnStatus aclGetViewOffset(const aclTensor* tensor, int64_t* offset) {
  REQUIRE_HANDLE(tensor, Kind::Tensor);
  REQUIRE_OUTPUT(offset);
  *offset = tensor->view.offset;
  return ACL_SUCCESS;
}
ACLSIM_API aclnnStatus aclGetFormat(const aclTensor* tensor, aclFormat* format) {
  REQUIRE_HANDLE(tensor, Kind::Tensor);
  REQUIRE_OUTPUT(format);
  *format = tensor->declared;
  return ACL_SUCCESS;
}
ACLSIM_API aclnnStatus aclGetDataType(const aclTensor* tensor, aclDataType* dataType) {
  REQUIRE_HANDLE(tensor, Kind::Tensor);
  REQUIRE_OUTPUT(dataType);
  *dataType = tensor->view.dtype;
  return ACL_SUCCESS;
}
ACLSIM_API aclnnStatus aclGetRawTensorAddr(const aclTensor* tensor, void** addr) {
  REQUIRE_HANDLE(tensor, Kind::Tensor);
  REQUIRE_OUTPUT(addr);
  *addr = tensor->view.data;
  return ACL_SUCCESS;
}
ACLSIM_API aclnnStatus aclSetRawTensorAddr(aclTensor* tensor, void* addr) {
  REQUIRE_HANDLE(tensor, Kind::Tensor);
  tensor->view.data = addr;
  return ACL_SUCCESS;
}
