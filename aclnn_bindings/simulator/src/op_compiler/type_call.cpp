// Calls by type name: see type_call.h.
#include "op_compiler/type_call.h"

#include <dlfcn.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "ascendcl/device.h"
#include "ascendcl/dtype.h"
#include "ascendcl/memory.h"

#include <aclnnop/aclnn_copy.h>
#include <aclnnop/aclnn_npu_format_cast.h>

namespace aclsim {
namespace {

// libopapi lies beside this library; what it needs can be found through it.
void* kernels() {
  static void* const library = [] {
    Dl_info here;
    if (!dladdr(reinterpret_cast<void*>(&find_type), &here) || !here.dli_fname) {
      return static_cast<void*>(nullptr);
    }
    std::string path = here.dli_fname;
    return dlopen((path.substr(0, path.rfind('/') + 1) + "libopapi.so").c_str(), RTLD_LAZY);
  }();
  return library;
}

template <class F>
F* meta(const char* name) {
  return reinterpret_cast<F*>(dlsym(kernels(), name));
}

// Memory of a call, given back when the stream has passed it.
struct Given {
  std::vector<void*> blocks;
};

}  // namespace

Dims strides_of(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

TypeCall::TypeCall(const char* type, aclrtStream stream, const aclopAttr* attr)
    : type_(type), stream_(stream), attr_(attr && attr->is(Kind::OpAttr) ? attr : nullptr) {}

TypeCall::~TypeCall() {
  for (aclTensorList* list : lists_) meta<decltype(aclDestroyTensorList)>("aclDestroyTensorList")(list);
  for (aclTensor* tensor : tensors_) meta<decltype(aclDestroyTensor)>("aclDestroyTensor")(tensor);
  for (aclIntArray* array : arrays_) meta<decltype(aclDestroyIntArray)>("aclDestroyIntArray")(array);
  for (aclBoolArray* array : flags_) meta<decltype(aclDestroyBoolArray)>("aclDestroyBoolArray")(array);
  for (aclScalar* scalar : scalars_) meta<decltype(aclDestroyScalar)>("aclDestroyScalar")(scalar);
  if (memory_.empty()) return;
  auto* given = new Given{std::move(memory_)};
  aclError code = ACL_SUCCESS;
  Stream* stream = find_stream(thread(), stream_, type_, &code);
  auto release = [given] {
    for (void* block : given->blocks) {
      leave_mapping(block);
      free(block);
    }
    delete given;
  };
  if (stream) {
    submit(stream, make_task([](Stream*) { return ACL_SUCCESS; }, false, release));
  } else {
    release();
  }
}

TypeCall::Slot TypeCall::slot_of(const aclTensorDesc* desc, const aclDataBuffer* buffer) {
  Slot slot = {};
  if (!desc || !desc->is(Kind::TensorDesc)) return slot;
  slot.view.dtype = desc->dtype;
  slot.view.dims = *desc->dims;
  slot.view.strides = strides_of(slot.view.dims);
  slot.view.data = desc->constant ? desc->constant->data() : aclGetDataBufferAddr(buffer);
  return slot;
}
// What a description in the inner format lays out, in the dims of its tiles; null for any other.
aclTensor* TypeCall::tiles_of(const aclTensorDesc* desc, void* data) {
  if (!desc || !desc->is(Kind::TensorDesc) || !data || desc->constant) return nullptr;
  // Products without the cast have nothing that reads tiles either: all is in the plain order.
  const Soc soc = config().soc->soc;
  if (soc != Soc::Ascend910B && soc != Soc::Ascend910_93 && soc != Soc::Ascend950) return nullptr;
  const bool inner = desc->storage_format == ACL_FORMAT_FRACTAL_NZ && desc->dims->size() >= 2 &&
                     desc->storage_dims->size() == desc->dims->size() + 2;
  View whole;
  whole.data = data, whole.dtype = desc->dtype;
  if (inner) whole.dims = *desc->storage_dims, whole.strides = strides_of(whole.dims);
  return inner ? tensor(whole, ACL_FORMAT_FRACTAL_NZ) : nullptr;
}
void TypeCall::untile(Slot& slot) {
  View plain = room(slot.view.dtype, slot.view.dims);
  if (ACLSIM_RUN(*this, aclnnNpuFormatCast, slot.tiles, tensor(plain)) == ACL_SUCCESS) {
    slot.laid = slot.view.data, slot.view = plain;
  } else {
    slot.tiles = nullptr;
  }
}
void TypeCall::add_input(const aclTensorDesc* desc, const aclDataBuffer* buffer) {
  Slot slot = slot_of(desc, buffer);
  bool given = slot.view.data && (desc->constant || !find_allocation(slot.view.data));
  if (given) {  // values on the host may be gone when the stream runs the call
    uint64_t bytes = desc->constant ? desc->constant->size() : aclGetDataBufferSizeV2(buffer);
    void* copy = memory(bytes);
    memcpy(copy, slot.view.data, bytes);
    slot.view.data = copy;
    slot.known = true;
  } else if ((slot.tiles = tiles_of(desc, slot.view.data))) {
    untile(slot);
  }
  inputs_.push_back(slot);
}
void TypeCall::settle_unless_known(size_t input) {
  if (!inputs_[input].known) aclrtSynchronizeStream(stream_);  // whoever makes them is still at it
}
void TypeCall::add_output(const aclTensorDesc* desc, aclDataBuffer* buffer, aclTensorDesc* shape) {
  outputs_.push_back(slot_of(desc, buffer));
  Slot& slot = outputs_.back();
  slot.shape = shape;
  slot.tiles = tiles_of(desc, slot.view.data);
  if (!slot.tiles) return;
  for (const Slot& in : inputs_) {  // what is changed in place is one tensor
    if (in.tiles && in.laid == slot.view.data) {
      slot.laid = in.laid, slot.view.data = in.view.data;
      return;
    }
  }
  untile(slot);  // what an operator leaves alone stays
}
aclError TypeCall::end() {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (!outputs_[i].tiles) continue;
    aclError code = ACLSIM_RUN(*this, aclnnNpuFormatCast, out_tensor(i), outputs_[i].tiles);
    if (code != ACL_SUCCESS) return code;
  }
  return ACL_SUCCESS;
}
bool TypeCall::set_dims(size_t output, const Dims& dims) {
  Slot& slot = outputs_[output];
  if (!slot.shape) return slot.view.dims == dims;
  *slot.shape->dims = dims;
  slot.view.dims = dims;
  slot.view.strides = strides_of(dims);
  return true;
}

Dims TypeCall::ints(size_t input) {
  const View& view = in(input);
  settle_unless_known(input);
  size_t count = 1;
  for (int64_t d : view.dims) count *= static_cast<size_t>(d);
  Dims values(count);
  for (size_t i = 0; i < count; ++i) {
    switch (view.dtype) {
      case ACL_INT32: values[i] = static_cast<int32_t*>(view.data)[i]; break;
      case ACL_INT64: values[i] = static_cast<int64_t*>(view.data)[i]; break;
      default: values[i] = 0;
    }
  }
  return values;
}

double TypeCall::number(size_t input) {
  const View& view = in(input);
  if (!view.data) return 0;
  settle_unless_known(input);
  switch (view.dtype) {
    case ACL_FLOAT: return *static_cast<float*>(view.data);
    case ACL_DOUBLE: return *static_cast<double*>(view.data);
    case ACL_FLOAT16: return aclFloat16ToFloat(*static_cast<aclFloat16*>(view.data));
    case ACL_BF16: {
      uint32_t bits = static_cast<uint32_t>(*static_cast<uint16_t*>(view.data)) << 16;
      float value;
      memcpy(&value, &bits, sizeof value);
      return value;
    }
    default: return static_cast<double>(ints(input).at(0));
  }
}

const Attribute* TypeCall::attribute(const char* name) const {
  if (!attr_) return nullptr;
  auto found = attr_->values->find(name);
  return found == attr_->values->end() ? nullptr : &found->second;
}
Dims TypeCall::ints_attr(const char* name, const Dims& fallback) const {
  const Attribute* found = attribute(name);
  return found ? found->ints : fallback;
}
int64_t TypeCall::int_attr(const char* name, int64_t fallback) const {
  const Attribute* found = attribute(name);
  return found && !found->ints.empty() ? found->ints[0] : fallback;
}
float TypeCall::float_attr(const char* name, float fallback) const {
  const Attribute* found = attribute(name);
  return found && !found->floats.empty() ? found->floats[0] : fallback;
}
std::vector<float> TypeCall::floats_attr(const char* name,
                                         const std::vector<float>& fallback) const {
  const Attribute* found = attribute(name);
  return found && !found->floats.empty() ? found->floats : fallback;
}
std::string TypeCall::text_attr(const char* name, const std::string& fallback) const {
  const Attribute* found = attribute(name);
  return found && !found->texts.empty() ? found->texts[0] : fallback;
}

aclTensor* TypeCall::tensor(const View& view, aclFormat format) {
  int64_t last = view.offset;
  bool empty = false;
  for (size_t i = 0; i < view.dims.size(); ++i) {
    last += (view.dims[i] - 1) * (view.strides[i] > 0 ? view.strides[i] : 0);
    empty |= view.dims[i] == 0;
  }
  int64_t storage = empty ? 0 : last + 1;
  aclTensor* made = meta<decltype(aclCreateTensor)>("aclCreateTensor")(
      view.dims.data(), view.dims.size(), view.dtype, view.strides.data(), view.offset,
      format, &storage, 1, view.data);
  tensors_.push_back(made);
  return made;
}
// A list owns its members.
aclTensorList* TypeCall::list(const std::vector<aclTensor*>& tensors) {
  for (aclTensor* t : tensors) {
    for (aclTensor*& own : tensors_) {
      if (own == t) own = nullptr;
    }
  }
  lists_.push_back(meta<decltype(aclCreateTensorList)>("aclCreateTensorList")(tensors.data(),
                                                                             tensors.size()));
  return lists_.back();
}
aclIntArray* TypeCall::array(const Dims& values) {
  arrays_.push_back(meta<decltype(aclCreateIntArray)>("aclCreateIntArray")(values.data(),
                                                                          values.size()));
  return arrays_.back();
}
aclBoolArray* TypeCall::flags(const std::vector<bool>& values) {
  bool plain[8];
  std::copy(values.begin(), values.end(), plain);
  flags_.push_back(meta<decltype(aclCreateBoolArray)>("aclCreateBoolArray")(plain, values.size()));
  return flags_.back();
}
aclScalar* TypeCall::scalar(float value) {
  scalars_.push_back(meta<decltype(aclCreateScalar)>("aclCreateScalar")(&value, ACL_FLOAT));
  return scalars_.back();
}
aclScalar* TypeCall::scalar_in(size_t input) {
  settle_unless_known(input);
  const View& view = in(input);
  scalars_.push_back(meta<decltype(aclCreateScalar)>("aclCreateScalar")(view.data, view.dtype));
  return scalars_.back();
}
Dims TypeCall::dims_of(const aclTensor* tensor) {
  int64_t* dims = nullptr;
  uint64_t rank = 0;
  meta<decltype(aclGetViewShape)>("aclGetViewShape")(tensor, &dims, &rank);
  Dims shape(dims, dims + rank);
  delete[] dims;
  return shape;
}

void* TypeCall::memory(uint64_t bytes) {
  uint64_t room = (bytes + 511) / 512 * 512 + 512;
  void* block = aligned_alloc(512, room);
  int32_t device = 0;
  aclrtGetDevice(&device);
  enter_mapping(block, room, device);
  memory_.push_back(block);
  return block;
}
View TypeCall::room(aclDataType dtype, const Dims& dims) {
  uint64_t bytes = dtype_size(dtype);
  for (int64_t d : dims) bytes *= static_cast<uint64_t>(d);
  return {memory(bytes), dtype, dims, strides_of(dims), 0};
}

void* TypeCall::find(const std::string& name) {
  return kernels() ? dlsym(kernels(), name.c_str()) : nullptr;
}
aclError TypeCall::missing(const char* op) {
  return refuse("%s, of which it is made, is not among the simulator's operators", op);
}
aclError TypeCall::launch(const char* op, uint64_t size, aclOpExecutor* executor) {
  using Second = aclnnStatus (*)(void*, uint64_t, aclOpExecutor*, aclrtStream);
  auto second = reinterpret_cast<Second>(find(op));
  return second(size ? memory(size) : nullptr, size, executor, stream_);
}

aclError TypeCall::copy(const View& to, const View& from) {
  return ACLSIM_RUN(*this, aclnnInplaceCopy, tensor(to), tensor(from));
}

aclError TypeCall::on_stream(std::function<aclError()> body) {
  aclError code = ACL_SUCCESS;
  Stream* stream = find_own_stream(thread(), stream_, type_, &code);
  if (!stream) return code;
  auto* work = new std::function<aclError()>(std::move(body));
  return submit(stream, make_task([work](Stream*) { return (*work)(); }, false,
                                  [work] { delete work; }));
}

aclError TypeCall::refuse(const char* format, ...) {
  char text[400];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return failed(ACL_ERROR_OP_INPUT_NOT_MATCH, "EE1003", "Operator %s: %s.", type_, text);
}

}  // namespace aclsim
