#include "nnopbase/custom_op.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "nnopbase/header_names.h"
#include "nnopbase/kernel_binding.h"

namespace aclsim {

// Parameters stand in the header's order: inputs, attributes, outputs.
struct CustomEntry : Entry {
  Op op = {nullptr, nullptr, nullptr, 0};
  OpSpec rules;
  std::string type, function, library;
  std::vector<ParamSpec> params;
  std::vector<std::string> names;
  std::vector<uint64_t> masks;  // none: the package's own list decides
  int inputs, attributes, outputs;
  std::once_flag named;
};

namespace {

constexpr uint64_t kAlignment = 512;

CustomEntry* of(const Executor* executor) { return static_cast<CustomEntry*>(executor->entry); }

uint64_t dense_bytes(const Tensor& t) {
  const uint64_t bytes = static_cast<uint64_t>(t.numel()) * dtype_size(t.dtype);
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

bool needs_copy(const Tensor* t) {
  return t && t->numel() && dtype_size(t->dtype) && !t->contiguous();
}

template <class Each>
void each_tensor(const Arg& arg, Each each) {
  if (arg.kind == ArgKind::Tensor && arg.tensor) each(arg.tensor);
  for (int64_t m = 0; arg.kind == ArgKind::TensorList && arg.tensors && m < arg.size; ++m) {
    if (arg.tensors[m]) each(arg.tensors[m]);
  }
}

// Copies between a view and dense memory, in the order of its elements.
void copy_elements(const Tensor& view, char* dense, bool to_view) {
  const auto size = static_cast<int64_t>(dtype_size(view.dtype));
  int64_t at[kMaxRank] = {};
  for (int64_t i = 0, count = view.numel(); i < count; ++i) {
    int64_t offset = view.offset;
    for (int d = 0; d < view.rank; ++d) offset += at[d] * view.strides[d];
    char* element = static_cast<char*>(view.data) + offset * size;
    if (to_view) memcpy(element, dense + i * size, size);
    else memcpy(dense + i * size, element, size);
    for (int d = view.rank - 1; d >= 0 && ++at[d] == view.dims[d]; --d) at[d] = 0;
  }
}

// ---- What a kernel sees ----

// The values of one launch: dense tensors in the workspace where the caller's views are not dense.
class Launch {
 public:
  explicit Launch(Call& call)
      : call_(call), entry_(*of(call.executor)), custom_(call.get<CustomCall>()),
        room_(static_cast<char*>(call.workspace)) {}

  std::string run() {
    for (int i = 0; i < entry_.inputs; ++i) {
      inputs_.push_back(value(i, !custom_.own_strides[i], true));
    }
    for (int i = 0; i < entry_.attributes; ++i) {
      attributes_.push_back(value(entry_.inputs + i, false, false));
    }
    for (int i = 0; i < entry_.outputs; ++i) {
      const int input = custom_.input_of[i];
      const int at = entry_.inputs + entry_.attributes + i;
      outputs_.push_back(input >= 0 ? inputs_[input] : value(at, true, false));
      outputs_.back().name = call_.name(at);
      if (input >= 0) each_copy(input, &scattered_);
    }
    const aclsimKernelCall call = {entry_.type.c_str(), entry_.inputs, entry_.attributes,
                                   entry_.outputs, inputs_.data(), attributes_.data(),
                                   outputs_.data()};
    std::string wrong = call_kernel(*custom_.binding, call);
    if (wrong.empty()) {
      for (const Copy& copy : scattered_) copy_elements(*copy.view, copy.dense, true);
    }
    return wrong;
  }

 private:
  struct Copy {
    int parameter;
    const Tensor* view;
    char* dense;
  };

  void each_copy(int parameter, std::vector<Copy>* to) {
    for (const Copy& copy : gathered_) {
      if (copy.parameter == parameter) to->push_back(copy);
    }
  }

  aclsimTensor tensor(int parameter, const Tensor& t, bool dense, bool gather) {
    dims_.emplace_back(new int64_t[2 * kMaxRank]);
    int64_t *dims = dims_.back().get(), *strides = dims + kMaxRank;
    std::copy(t.dims, t.dims + t.rank, dims);
    std::copy(t.strides, t.strides + t.rank, strides);
    char* data = static_cast<char*>(t.data) + t.offset * static_cast<int64_t>(dtype_size(t.dtype));
    if (dense && needs_copy(&t)) {
      data = room_;
      room_ += dense_bytes(t);
      if (gather) copy_elements(t, data, false);
      (gather ? gathered_ : scattered_).push_back({parameter, &t, data});
    }
    if (dense) {
      int64_t step = 1;
      for (int d = t.rank - 1; d >= 0; --d) strides[d] = step, step *= dims[d];
    }
    return {data, t.dtype, t.format, t.rank, dims, strides};
  }

  aclsimValue value(int i, bool dense, bool gather) {
    const Arg& arg = call_.args[i];
    const char* name = call_.name(i);
    switch (arg.kind) {
      case ArgKind::Bool: return own<uint8_t>(name, ACLSIM_BOOLS, arg.flag);
      case ArgKind::Int: return own<int64_t>(name, ACLSIM_INTS, arg.integer);
      case ArgKind::Float: return own<double>(name, ACLSIM_FLOATS, arg.number);
      default: break;
    }
    if (!arg.handle) return {name, ACLSIM_ABSENT, 0, 0, nullptr};
    switch (arg.kind) {
      case ArgKind::Tensor: case ArgKind::TensorList: return tensors(i, arg, dense, gather);
      case ArgKind::Scalar: return scalars(name, &arg.scalar, 1, false);
      case ArgKind::ScalarList: return scalars(name, arg.scalars, arg.size, true);
      case ArgKind::IntArray: return {name, ACLSIM_INTS, 1, arg.size, arg.ints};
      case ArgKind::BoolArray: return {name, ACLSIM_BOOLS, 1, arg.size, arg.bools};
      case ArgKind::FloatArray: {
        auto* wide = static_cast<double*>(room(sizeof(double) * arg.size));
        std::copy(arg.floats, arg.floats + arg.size, wide);
        return {name, ACLSIM_FLOATS, 1, arg.size, wide};
      }
      case ArgKind::String:
        return {name, ACLSIM_TEXT, 0, static_cast<int64_t>(strlen(arg.text)), arg.text};
      default: return {name, ACLSIM_ABSENT, 0, 0, nullptr};
    }
  }

  aclsimValue tensors(int i, const Arg& arg, bool dense, bool gather) {
    auto* made = static_cast<aclsimTensor*>(
        room(sizeof(aclsimTensor) * (arg.kind == ArgKind::Tensor ? 1 : arg.size)));
    int64_t count = 0;
    each_tensor(arg, [&](const Tensor* t) { made[count++] = tensor(i, *t, dense, gather); });
    return {call_.name(i), ACLSIM_TENSORS, arg.kind == ArgKind::TensorList, count, made};
  }

  aclsimValue scalars(const char* name, Scalar* const* values, int64_t count, bool list) {
    auto* wide = static_cast<double*>(room(sizeof(double) * count));
    for (int64_t i = 0; i < count; ++i) wide[i] = values[i] ? values[i]->real() : 0;
    return {name, ACLSIM_FLOATS, list, count, wide};
  }

  template <class T>
  aclsimValue own(const char* name, aclsimKind kind, T value) {
    auto* held = static_cast<T*>(room(sizeof(T)));
    *held = value;
    return {name, kind, 0, 1, held};
  }

  void* room(size_t bytes) {
    blocks_.emplace_back(new char[bytes + 1]);
    return blocks_.back().get();
  }

  Call& call_;
  const CustomEntry& entry_;
  const CustomCall& custom_;
  char* room_;
  std::vector<aclsimValue> inputs_, attributes_, outputs_;
  std::vector<Copy> gathered_, scattered_;
  std::vector<std::unique_ptr<int64_t[]>> dims_;
  std::vector<std::unique_ptr<char[]>> blocks_;
};

aclError run_custom(Call& call) {
  const std::string wrong = Launch(call).run();
  if (wrong.empty()) return ACL_SUCCESS;
  return call.trap(ACL_ERROR_RT_AICORE_EXCEPTION, "%s", wrong.c_str());
}

// ---- Phase 1 ----

// The generator's numbers of products.
uint32_t generated_soc(Soc soc) {
  switch (soc) {
    case Soc::Ascend910: return 1;
    case Soc::Ascend910B: return 2;
    case Soc::Ascend910_93: return 3;
    case Soc::Ascend950: return 4;
    case Soc::Ascend310P: return 5;
    case Soc::Ascend310B: return 6;
  }
  return 0;
}

// Where this product stands in a package's list. Code from before parameters were named knew one
// product less before 310P.
size_t soc_index(const CustomCall& custom, Soc soc) {
  const uint32_t* end = custom.socs + custom.soc_count;
  const uint32_t number = generated_soc(soc);
  const uint32_t* found = std::find(custom.socs, end, number);
  const bool moved = soc == Soc::Ascend310P || soc == Soc::Ascend310B;
  if (found == end && moved && !custom.named) found = std::find(custom.socs, end, number - 1);
  return found - custom.socs;
}

// Layouts whose elements lie in the order of the dimensions: any of them goes where another does.
bool is_plain(int32_t format) {
  switch (format) {
    case ACL_FORMAT_ND: case ACL_FORMAT_NCHW: case ACL_FORMAT_NHWC: case ACL_FORMAT_HWCN:
    case ACL_FORMAT_NDHWC: case ACL_FORMAT_NCDHW: case ACL_FORMAT_NC: case ACL_FORMAT_NCL:
      return true;
    default: return false;
  }
}

bool fits(const Arg& arg, const GeneratedTensorDesc& desc, bool strict_formats) {
  bool all = true;
  each_tensor(arg, [&](const Tensor* t) {
    const bool plain = !strict_formats && is_plain(t->format) && is_plain(desc.format);
    all &= t->dtype == desc.dtype && (t->format == desc.format || plain);
  });
  return all;
}

bool fits(Executor* x, const GeneratedSupport& row, bool strict_formats) {
  bool all = true;
  for (size_t i = 0; i < row.input_count && input_at(x, i); ++i) {
    all &= fits(*input_at(x, i), row.inputs[i], strict_formats);
  }
  for (size_t i = 0; i < row.output_count && output_at(x, i); ++i) {
    all &= fits(*output_at(x, i), row.outputs[i], strict_formats);
  }
  return all;
}

std::string spelled(const GeneratedSupport& row) {
  std::string text;
  const auto add = [&text](const GeneratedTensorDesc& desc) {
    text += (text.empty() ? "" : ",") + std::string(dtype_name(static_cast<aclDataType>(desc.dtype)));
  };
  for (size_t i = 0; i < row.input_count; ++i) add(row.inputs[i]);
  for (size_t i = 0; i < row.output_count; ++i) add(row.outputs[i]);
  return "[" + text + "]";
}

std::string spelled(const Call& call) {
  std::string text;
  for (int i = 0; i < call.count; ++i) {
    each_tensor(call.args[i], [&](const Tensor* t) {
      text += (text.empty() ? "" : ", ") + std::string(call.name(i)) + " " + dtype_name(t->dtype);
    });
  }
  return text;
}

aclnnStatus check_support(Call& call) {
  const CustomCall& custom = call.get<CustomCall>();
  if (!custom.supports) return ACL_SUCCESS;
  const size_t at = soc_index(custom, call.soc);
  if (at >= std::min(custom.soc_count, custom.supports->count)) {
    return call.fail(ACLNN_ERR_PARAM_INVALID,
                     "The package %s lists no dtypes of %s for %s: it was built for other products.",
                     of(call.executor)->library.c_str(), of(call.executor)->type.c_str(),
                     config().soc->name);
  }
  const GeneratedSocSupport& soc = custom.supports->socs[at];
  std::string list;
  for (size_t i = 0; i < soc.count; ++i) {
    if (fits(call.executor, soc.rows[i], custom.strict_formats)) return ACL_SUCCESS;
    if (i < 6) list += spelled(soc.rows[i]);
  }
  return call.fail(ACLNN_ERR_PARAM_INVALID,
                   "The package lists no such combination of dtypes and formats for %s: %s. "
                   "Its combinations of inputs and outputs: %s%s.", config().soc->name,
                   spelled(call).c_str(), list.c_str(), soc.count > 6 ? ", and more" : "");
}

aclnnStatus check_custom(Call& call) {
  aclnnStatus code = check_support(call);
  if (code != ACL_SUCCESS) return code;
  auto& custom = *static_cast<CustomCall*>(call.state);
  const CustomEntry& entry = *of(call.executor);
  std::string wrong;
  custom.binding = find_binding(entry.type.c_str(), &wrong);
  if (custom.binding) wrong = ready(*custom.binding);
  if (!wrong.empty()) {
    return call.fail(ACLNN_ERR_INNER_FIND_KERNEL_ERROR, "The kernel of %s: %s", entry.type.c_str(),
                     wrong.c_str());
  }
  if (!custom.binding) {
    return call.fail(ACLNN_ERR_INNER_FIND_KERNEL_ERROR,
                     "No kernel of %s was found. The simulator cannot run a kernel built for a "
                     "device: bind one with --kernel %s=my_ops.py:function, or in ACLSIM_KERNELS.",
                     entry.type.c_str(), entry.type.c_str());
  }
  for (int i = 0; i < call.count; ++i) {
    const bool input = i < entry.inputs, output = i >= entry.inputs + entry.attributes;
    if (!(input && !custom.own_strides[i]) && !output) continue;
    if (output && custom.input_of[i - entry.inputs - entry.attributes] >= 0) continue;
    each_tensor(call.args[i], [&](const Tensor* t) {
      if (needs_copy(t)) call.workspace_size += dense_bytes(*t);
    });
  }
  return ACL_SUCCESS;
}

// ---- Entries ----

std::string fallback_name(const CustomEntry& entry, int i) {
  if (i < entry.inputs) return "input " + std::to_string(i);
  i -= entry.inputs;
  if (i < entry.attributes) return "attribute " + std::to_string(i);
  return "output " + std::to_string(i - entry.attributes);
}

// The header's names, once it is known which outputs are inputs that are written.
void name_parameters(CustomEntry* entry, const CustomCall& custom) {
  std::vector<std::string> names = header_names(entry->library, entry->function);
  const int before = entry->inputs + entry->attributes;
  int written = 0;
  for (int i = 0; i < entry->outputs; ++i) written += custom.input_of[i] >= 0;
  if (static_cast<int>(names.size()) != before + entry->outputs - written) return;
  size_t next = before;
  for (int i = 0; i < before; ++i) entry->names[i] = names[i];
  for (int i = 0; i < entry->outputs; ++i) {
    const int input = custom.input_of[i];
    entry->names[before + i] = input >= 0 ? entry->names[input] : names[next++];
  }
  for (size_t i = 0; i < entry->params.size(); ++i) entry->params[i].name = entry->names[i].c_str();
}

std::unique_ptr<CustomEntry> make_entry(const char* type, const CallerSymbol& caller, Shape3 inputs,
                                        Shape3 outputs, Shape3 attributes) {
  auto entry = std::make_unique<CustomEntry>();
  entry->type = type;
  entry->library = caller.library;
  entry->function = caller.function.empty() ? "aclnn" + entry->type : caller.function;
  entry->inputs = static_cast<int>(inputs.count);
  entry->attributes = static_cast<int>(attributes.count);
  entry->outputs = static_cast<int>(outputs.count);
  const int count = entry->inputs + entry->attributes + entry->outputs;
  for (int i = 0; i < count; ++i) entry->names.push_back(fallback_name(*entry, i));
  for (int i = 0; i < count; ++i) {
    entry->params.push_back({entry->names[i].c_str(), ArgKind::Tensor,
                             i >= entry->inputs + entry->attributes, false, -1, -1, 0});
  }
  entry->masks.assign(count + 1, 0);
  entry->op = {entry->function.c_str(), check_custom, run_custom, kOwnDtypes | kOwnNulls};
  entry->rules = {entry->function.c_str(), entry->params.data(), nullptr,
                  static_cast<uint16_t>(count), 0, 0};
  entry->row = &entry->op;
  entry->spec = &entry->rules;
  entry->dtypes = entry->masks.data();
  return entry;
}

}  // namespace

CustomEntry* custom_entry(const char* type, const void* address, Shape3 inputs, Shape3 outputs,
                          Shape3 attributes) {
  static std::mutex mutex;
  static auto* entries = new std::map<std::string, std::unique_ptr<CustomEntry>>;
  if (inputs.count > kMaxParameters || outputs.count > kMaxParameters) return nullptr;
  const CallerSymbol caller = caller_symbol(address);
  const std::string key = caller.library + '\n' + caller.function + '\n' + type + '\n' +
                          std::to_string(inputs.count) + ' ' + std::to_string(outputs.count) + ' ' +
                          std::to_string(attributes.count);
  std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<CustomEntry>& entry = (*entries)[key];
  if (!entry) entry = make_entry(type, caller, inputs, outputs, attributes);
  return entry.get();
}

Executor* make_custom_executor(CustomEntry* entry) {
  Executor* executor = make_executor(*entry);
  Call& call = executor->call;
  const size_t count = entry->params.size();
  call.args = static_cast<Arg*>(take(executor, sizeof(Arg) * (count + 1)));
  for (size_t i = 0; i < count; ++i) call.args[i] = {ArgKind::Tensor, 0, {nullptr}};
  auto& custom = call.make<CustomCall>();
  std::fill(std::begin(custom.input_of), std::end(custom.input_of), int16_t{-1});
  return executor;
}

Arg* input_at(Executor* executor, size_t index) {
  return index < static_cast<size_t>(of(executor)->inputs) ? executor->call.args + index : nullptr;
}
Arg* attribute_at(Executor* executor, size_t index) {
  const CustomEntry& entry = *of(executor);
  if (index >= static_cast<size_t>(entry.attributes)) return nullptr;
  return executor->call.args + entry.inputs + index;
}
Arg* output_at(Executor* executor, size_t index) {
  const CustomEntry& entry = *of(executor);
  if (index >= static_cast<size_t>(entry.outputs)) return nullptr;
  return executor->call.args + entry.inputs + entry.attributes + index;
}
CustomCall* custom_call(Executor* executor) {
  return static_cast<CustomCall*>(executor->call.state);
}

aclnnStatus finish_custom_plan(Executor* executor, uint64_t* workspace_size) {
  CustomEntry* entry = of(executor);
  std::call_once(entry->named, [&] { name_parameters(entry, *custom_call(executor)); });
  aclOpExecutor* ignored = nullptr;
  return finish_plan(executor, static_cast<int>(entry->params.size()), workspace_size, &ignored);
}

}  // namespace aclsim
