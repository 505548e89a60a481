// One call of an operator by its type name, and the ACLNN operators that it is made of.
#pragma once

#include <acl/acl_op_compiler.h>
#include <aclnn/acl_meta.h>
#include <aclnn/aclnn_base.h>

#include <functional>
#include <string>
#include <vector>

#include "ascendcl/stream.h"
#include "ascendcl/tensor_desc.h"

namespace aclsim {

using Dims = std::vector<int64_t>;

// Row-major strides of a shape.
Dims strides_of(const Dims& dims);

// A tensor as a row sees it: where it lies, and how it is shaped. Strides count elements.
struct View {
  void* data;
  aclDataType dtype;
  Dims dims, strides;
  int64_t offset = 0;
};

class TypeCall {
 public:
  TypeCall(const char* type, aclrtStream stream, const aclopAttr* attr);
  ~TypeCall();
  TypeCall(const TypeCall&) = delete;
  TypeCall& operator=(const TypeCall&) = delete;

  void add_input(const aclTensorDesc* desc, const aclDataBuffer* buffer);
  // `shape` is the same description where its shape may be changed.
  void add_output(const aclTensorDesc* desc, aclDataBuffer* buffer, aclTensorDesc* shape);
  // Brings results to where they belong, after the operator was queued.
  aclError end();

  const char* type() const { return type_; }
  size_t inputs() const { return inputs_.size(); }
  size_t outputs() const { return outputs_.size(); }
  const View& in(size_t i) const { return inputs_[i].view; }
  const View& out(size_t i) const { return outputs_[i].view; }
  bool given(size_t i) const { return i < inputs_.size() && inputs_[i].view.data; }

  // Values of an integer or float input, wherever it lies.
  Dims ints(size_t input);
  double number(size_t input);
  // Attributes, with what the operator takes where none is set.
  Dims ints_attr(const char* name, const Dims& fallback) const;
  int64_t int_attr(const char* name, int64_t fallback) const;
  bool flag_attr(const char* name, bool fallback) const { return int_attr(name, fallback) != 0; }
  float float_attr(const char* name, float fallback) const;
  std::vector<float> floats_attr(const char* name, const std::vector<float>& fallback) const;
  std::string text_attr(const char* name, const std::string& fallback) const;

  // Descriptors that live as long as the call.
  aclTensor* tensor(const View& view, aclFormat format = ACL_FORMAT_ND);
  aclTensor* in_tensor(size_t i) { return tensor(in(i)); }
  aclTensor* out_tensor(size_t i) { return tensor(out(i)); }
  aclTensorList* list(const std::vector<aclTensor*>& tensors);
  aclIntArray* array(const Dims& values);
  aclBoolArray* flags(const std::vector<bool>& values);
  aclScalar* scalar(float value);
  // A number that an input holds, as a scalar of its dtype.
  aclScalar* scalar_in(size_t input);
  // The shape that a tensor has now: one of results whose number depends on values is told.
  static Dims dims_of(const aclTensor* tensor);
  // Device memory that lives until the stream has run the call.
  View room(aclDataType dtype, const Dims& dims);

  // Runs both phases; the arguments are those of the first phase before its last two.
  template <class First, class... A>
  aclError run(const char* op, A... arguments) {
    auto first = reinterpret_cast<First*>(find(std::string(op) + "GetWorkspaceSize"));
    uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    if (!first) return missing(op);
    aclnnStatus status = first(arguments..., &size, &executor);
    return status == ACL_SUCCESS ? launch(op, size, executor) : status;
  }
  aclError copy(const View& to, const View& from);
  // Queues work on the host after what is queued already.
  aclError on_stream(std::function<aclError()> body);
  // Waits for what is queued, as an operator must whose results' shapes depend on values.
  aclError settle() { return aclrtSynchronizeStream(stream_); }
  // The shape of a result that depends on values. False where the caller gave a fixed one.
  bool set_dims(size_t output, const Dims& dims);

  // Refuses the call: the text follows the operator's name.
  aclError refuse(const char* format, ...) __attribute__((format(printf, 2, 3)));

 private:
  struct Slot {
    View view;
    aclTensorDesc* shape;  // of an output whose shape may be told; else null
    bool known;            // an input whose values the call brought along; a copy of its own
    aclTensor* tiles;      // in the inner format, which is computed in the plain order
    void* laid;            // where those lie
  };
  static Slot slot_of(const aclTensorDesc* desc, const aclDataBuffer* buffer);
  static void* find(const std::string& name);
  const Attribute* attribute(const char* name) const;
  aclError missing(const char* op);
  aclError launch(const char* op, uint64_t size, aclOpExecutor* executor);
  void* memory(uint64_t bytes);
  void settle_unless_known(size_t input);
  aclTensor* tiles_of(const aclTensorDesc* desc, void* data);
  void untile(Slot& slot);

  const char* type_;
  aclrtStream stream_;
  const aclopAttr* attr_;
  std::vector<Slot> inputs_, outputs_;
  std::vector<aclTensor*> tensors_;
  std::vector<aclTensorList*> lists_;
  std::vector<aclIntArray*> arrays_;
  std::vector<aclBoolArray*> flags_;
  std::vector<aclScalar*> scalars_;
  std::vector<void*> memory_;
};

// The row of a type name; null where there is none.
using TypeRow = aclError (*)(TypeCall&);
TypeRow find_type(const char* type);

#define ACLSIM_RUN(call, op, ...) (call).run<decltype(op##GetWorkspaceSize)>(#op, __VA_ARGS__)

}  // namespace aclsim
