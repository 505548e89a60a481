// aclTensorDesc, aclDataBuffer and aclopAttr: see tensor_desc.h.
#include "ascendcl/tensor_desc.h"

#include "ascendcl/error.h"
#include "ascendcl/strict.h"

using aclsim::Kind;

namespace aclsim {
namespace {

template <class T>
T* make(Kind kind) {
  ThreadState* state = thread();
  T* made = acquire<T>(state, kind);
  count_live(state, kind, 1);
  if (strict()) remember_origin(made);
  return made;
}

void end(Handle* handle, Kind kind) {
  ThreadState* state = thread();
  count_live(state, kind, -1);
  if (strict()) forget_origin(handle);
  retire(handle, kind, Death::Destroyed);
  recycle(state, handle, kind);
}

ACLSIM_NOINLINE aclError dead(const char* function, const Handle* handle, Kind kind) {
  if (!handle) return null_pointer(function, kind_c_type(kind));
  if (strict()) report_dead(function, handle, kind);
  return failed(ACL_ERROR_INVALID_PARAM, "EH0007", "%s failed because %p is not a live %s.",
                function, static_cast<const void*>(handle), kind_c_type(kind));
}

#define REQUIRE_LIVE(handle, kind) \
  if (!(handle) || !(handle)->is(kind)) return dead(__func__, handle, kind)

aclError set_attr(const char* function, aclopAttr* attr, const char* name, Attribute value) {
  if (!attr || !attr->is(Kind::OpAttr)) return dead(function, attr, Kind::OpAttr);
  if (!name) return null_pointer(function, "attrName");
  (*attr->values)[name] = std::move(value);
  return ACL_SUCCESS;
}

// Whether there are `count` values; one that points must point at something.
template <class From>
aclError check_list(const char* function, int count, const From* values) {
  if (count < 0) return bad_value(function, "numValues", "negative", "0 or more");
  if (count > 0 && !values) return null_pointer(function, "values");
  if constexpr (std::is_pointer<From>::value) {
    for (int i = 0; i < count; ++i) {
      if (!values[i]) return null_pointer(function, "values");
    }
  }
  return ACL_SUCCESS;
}

template <class To, class From>
aclError set_list(const char* function, aclopAttr* attr, const char* name, int count,
                  const From* values, std::vector<To> Attribute::* part) {
  aclError code = check_list(function, count, values);
  if (code != ACL_SUCCESS) return code;
  Attribute all;
  (all.*part).assign(values, values + count);
  return set_attr(function, attr, name, std::move(all));
}

}  // namespace
}  // namespace aclsim

using namespace aclsim;

ACLSIM_API aclTensorDesc* aclCreateTensorDesc(aclDataType dataType, int numDims,
                                              const int64_t* dims, aclFormat format) {
  if (numDims < 0 || (numDims > 0 && !dims)) {
    null_pointer(__func__, "dims");
    return nullptr;
  }
  auto* desc = make<aclTensorDesc>(Kind::TensorDesc);
  desc->dtype = dataType;
  desc->format = desc->storage_format = desc->origin_format = format;
  desc->dims = new std::vector<int64_t>(dims, dims + numDims);
  desc->storage_dims = new std::vector<int64_t>(*desc->dims);
  desc->name = new std::string;
  desc->placement = ACL_MEMTYPE_DEVICE;
  desc->constant = nullptr;
  desc->address = nullptr;
  return desc;
}
ACLSIM_API void aclDestroyTensorDesc(const aclTensorDesc* desc) {
  if (!desc) return;
  if (!desc->is(Kind::TensorDesc)) {
    dead(__func__, desc, Kind::TensorDesc);
    return;
  }
  delete desc->dims;
  delete desc->storage_dims;
  delete desc->name;
  delete desc->constant;
  end(const_cast<aclTensorDesc*>(desc), Kind::TensorDesc);
}
ACLSIM_API aclDataType aclGetTensorDescType(const aclTensorDesc* desc) {
  return desc && desc->is(Kind::TensorDesc) ? desc->dtype : ACL_DT_UNDEFINED;
}
ACLSIM_API aclFormat aclGetTensorDescFormat(const aclTensorDesc* desc) {
  return desc && desc->is(Kind::TensorDesc) ? desc->format : ACL_FORMAT_UNDEFINED;
}
ACLSIM_API size_t aclGetTensorDescNumDims(const aclTensorDesc* desc) {
  return desc && desc->is(Kind::TensorDesc) ? desc->dims->size() : 0;
}
ACLSIM_API size_t aclGetTensorDescElementCount(const aclTensorDesc* desc) {
  if (!desc || !desc->is(Kind::TensorDesc)) return 0;
  size_t count = 1;
  for (int64_t d : *desc->dims) count *= d < 0 ? 0 : static_cast<size_t>(d);
  return count;
}
ACLSIM_API size_t aclGetTensorDescSize(const aclTensorDesc* desc) {
  return aclGetTensorDescElementCount(desc) * dtype_size(aclGetTensorDescType(desc));
}
ACLSIM_API int64_t aclGetTensorDescDim(const aclTensorDesc* desc, size_t index) {
  bool there = desc && desc->is(Kind::TensorDesc) && index < desc->dims->size();
  return there ? (*desc->dims)[index] : -1;
}
ACLSIM_API aclError aclGetTensorDescDimV2(const aclTensorDesc* desc, size_t index,
                                          int64_t* dimSize) {
  REQUIRE_LIVE(desc, Kind::TensorDesc);
  ACLSIM_REQUIRE(dimSize);
  if (index >= desc->dims->size()) return bad_value(__func__, "index", "too large", "below the rank");
  *dimSize = (*desc->dims)[index];
  return ACL_SUCCESS;
}
ACLSIM_API const char* aclGetTensorDescName(aclTensorDesc* desc) {
  return desc && desc->is(Kind::TensorDesc) ? desc->name->c_str() : "";
}
ACLSIM_API void aclSetTensorDescName(aclTensorDesc* desc, const char* name) {
  if (desc && desc->is(Kind::TensorDesc)) *desc->name = name ? name : "";
}
ACLSIM_API void* aclGetTensorDescAddress(const aclTensorDesc* desc) {
  return desc && desc->is(Kind::TensorDesc) ? desc->address : nullptr;
}
ACLSIM_API aclError aclSetTensorFormat(aclTensorDesc* desc, aclFormat format) {
  REQUIRE_LIVE(desc, Kind::TensorDesc);
  desc->storage_format = format;
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclSetTensorStorageFormat(aclTensorDesc* desc, aclFormat format) {
  return aclSetTensorFormat(desc, format);
}
ACLSIM_API aclError aclSetTensorOriginFormat(aclTensorDesc* desc, aclFormat format) {
  REQUIRE_LIVE(desc, Kind::TensorDesc);
  desc->origin_format = format;
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclSetTensorShape(aclTensorDesc* desc, int numDims, const int64_t* dims) {
  REQUIRE_LIVE(desc, Kind::TensorDesc);
  if (numDims < 0 || (numDims > 0 && !dims)) return null_pointer(__func__, "dims");
  desc->storage_dims->assign(dims, dims + numDims);
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclSetTensorStorageShape(aclTensorDesc* desc, int numDims, const int64_t* dims) {
  return aclSetTensorShape(desc, numDims, dims);
}
ACLSIM_API aclError aclSetTensorOriginShape(aclTensorDesc* desc, int numDims, const int64_t* dims) {
  REQUIRE_LIVE(desc, Kind::TensorDesc);
  if (numDims < 0 || (numDims > 0 && !dims)) return null_pointer(__func__, "dims");
  desc->dims->assign(dims, dims + numDims);
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclSetTensorPlaceMent(aclTensorDesc* desc, aclMemType memType) {
  REQUIRE_LIVE(desc, Kind::TensorDesc);
  desc->placement = memType;
  return ACL_SUCCESS;
}

// Values that are known when the operator is compiled, such as the axes of a transposition.
ACLSIM_API aclError aclSetTensorConst(aclTensorDesc* desc, void* dataBuffer, size_t length) {
  REQUIRE_LIVE(desc, Kind::TensorDesc);
  ACLSIM_REQUIRE(dataBuffer);
  auto* bytes = static_cast<char*>(dataBuffer);
  delete desc->constant;
  desc->constant = new std::vector<char>(bytes, bytes + length);
  return ACL_SUCCESS;
}

ACLSIM_API aclDataBuffer* aclCreateDataBuffer(void* data, size_t size) {
  auto* buffer = make<aclDataBuffer>(Kind::DataBuffer);
  buffer->data = data;
  buffer->size = size;
  return buffer;
}
ACLSIM_API aclError aclDestroyDataBuffer(const aclDataBuffer* dataBuffer) {
  REQUIRE_LIVE(dataBuffer, Kind::DataBuffer);
  end(const_cast<aclDataBuffer*>(dataBuffer), Kind::DataBuffer);
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclUpdateDataBuffer(aclDataBuffer* dataBuffer, void* data, size_t size) {
  REQUIRE_LIVE(dataBuffer, Kind::DataBuffer);
  dataBuffer->data = data;
  dataBuffer->size = size;
  return ACL_SUCCESS;
}
ACLSIM_API void* aclGetDataBufferAddr(const aclDataBuffer* dataBuffer) {
  return dataBuffer && dataBuffer->is(Kind::DataBuffer) ? dataBuffer->data : nullptr;
}
ACLSIM_API size_t aclGetDataBufferSizeV2(const aclDataBuffer* dataBuffer) {
  return dataBuffer && dataBuffer->is(Kind::DataBuffer) ? dataBuffer->size : 0;
}
ACLSIM_API uint32_t aclGetDataBufferSize(const aclDataBuffer* dataBuffer) {
  return static_cast<uint32_t>(aclGetDataBufferSizeV2(dataBuffer));
}

ACLSIM_API aclopAttr* aclopCreateAttr() {
  auto* attr = make<aclopAttr>(Kind::OpAttr);
  attr->values = new std::map<std::string, Attribute>;
  return attr;
}
ACLSIM_API void aclopDestroyAttr(const aclopAttr* attr) {
  if (!attr) return;
  if (!attr->is(Kind::OpAttr)) {
    dead(__func__, attr, Kind::OpAttr);
    return;
  }
  delete attr->values;
  end(const_cast<aclopAttr*>(attr), Kind::OpAttr);
}
ACLSIM_API aclError aclopSetAttrBool(aclopAttr* attr, const char* attrName, uint8_t attrValue) {
  return set_attr(__func__, attr, attrName, {{attrValue != 0}, {}, {}});
}
ACLSIM_API aclError aclopSetAttrInt(aclopAttr* attr, const char* attrName, int64_t attrValue) {
  return set_attr(__func__, attr, attrName, {{attrValue}, {}, {}});
}
ACLSIM_API aclError aclopSetAttrFloat(aclopAttr* attr, const char* attrName, float attrValue) {
  return set_attr(__func__, attr, attrName, {{}, {attrValue}, {}});
}
ACLSIM_API aclError aclopSetAttrString(aclopAttr* attr, const char* attrName,
                                       const char* attrValue) {
  ACLSIM_REQUIRE(attrValue);
  return set_attr(__func__, attr, attrName, {{}, {}, {attrValue}});
}
ACLSIM_API aclError aclopSetAttrDataType(aclopAttr* attr, const char* attrName,
                                         aclDataType attrValue) {
  return set_attr(__func__, attr, attrName, {{attrValue}, {}, {}});
}
ACLSIM_API aclError aclopSetAttrListBool(aclopAttr* attr, const char* attrName, int numValues,
                                         const uint8_t* values) {
  return set_list(__func__, attr, attrName, numValues, values, &Attribute::ints);
}
ACLSIM_API aclError aclopSetAttrListInt(aclopAttr* attr, const char* attrName, int numValues,
                                        const int64_t* values) {
  return set_list(__func__, attr, attrName, numValues, values, &Attribute::ints);
}
ACLSIM_API aclError aclopSetAttrListFloat(aclopAttr* attr, const char* attrName, int numValues,
                                          const float* values) {
  return set_list(__func__, attr, attrName, numValues, values, &Attribute::floats);
}
ACLSIM_API aclError aclopSetAttrListString(aclopAttr* attr, const char* attrName, int numValues,
                                           const char** values) {
  return set_list(__func__, attr, attrName, numValues, values, &Attribute::texts);
}
ACLSIM_API aclError aclopSetAttrListDataType(aclopAttr* attr, const char* attrName, int numValues,
                                             const aclDataType values[]) {
  return set_list(__func__, attr, attrName, numValues, values, &Attribute::ints);
}
ACLSIM_API aclError aclopSetAttrListListInt(aclopAttr* attr, const char* attrName, int numLists,
                                            const int* numValues, const int64_t* const values[]) {
  aclError code = check_list(__func__, numLists, values);
  if (code == ACL_SUCCESS) code = check_list(__func__, numLists, numValues);
  Attribute all;
  for (int i = 0; code == ACL_SUCCESS && i < numLists; ++i) {
    code = check_list(__func__, numValues[i], values[i]);
    if (code == ACL_SUCCESS) all.ints.insert(all.ints.end(), values[i], values[i] + numValues[i]);
  }
  return code == ACL_SUCCESS ? set_attr(__func__, attr, attrName, std::move(all)) : code;
}
