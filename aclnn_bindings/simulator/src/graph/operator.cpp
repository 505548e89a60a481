// Operators of the graph engine: what a client says of one is kept and can be read again.
#include <variant>

#include "graph/graph.h"

namespace ge {

using Value = std::variant<int64_t, float, bool, std::string, std::vector<int64_t>,
                           std::vector<float>, std::vector<bool>, std::vector<std::string>,
                           std::vector<std::vector<int64_t>>, Tensor, DataType,
                           std::vector<DataType>>;

struct OperatorImpl {
  std::string name, type;
  std::map<std::string, Value> attrs;
  std::map<std::string, TensorDesc> inputs, outputs;
  std::map<std::string, uint32_t> dynamic_outputs;
  std::map<std::string, std::string> edges;  // input → name of the operator it comes from
};

OperatorImpl& Operator::impl() {
  if (!impl_) impl_ = std::make_shared<OperatorImpl>();
  return *impl_;
}

Operator::Operator(const std::string& type) : Operator(type, type) {}
Operator::Operator(const char* type) : Operator(std::string(type ? type : "")) {}
Operator::Operator(const std::string& name, const std::string& type) {
  impl().name = name;
  impl().type = type;
}
Operator::Operator(const char* name, const char* type)
    : Operator(std::string(name ? name : ""), std::string(type ? type : "")) {}
Operator::Operator(const AscendString& name, const AscendString& type)
    : Operator(name.GetString(), type.GetString()) {}

std::string Operator::GetName() const { return impl_ ? impl_->name : ""; }
std::string Operator::GetOpType() const { return impl_ ? impl_->type : ""; }
graphStatus Operator::GetName(AscendString& name) const {
  name = AscendString(GetName().c_str());
  return impl_ ? GRAPH_SUCCESS : GRAPH_FAILED;
}
graphStatus Operator::GetOpType(AscendString& type) const {
  type = AscendString(GetOpType().c_str());
  return impl_ ? GRAPH_SUCCESS : GRAPH_FAILED;
}

Operator& Operator::SetInput(const std::string& name, const Operator& source) {
  impl().edges[name] = source.GetName();
  return *this;
}
Operator& Operator::SetInput(const char* name, const Operator& source) {
  return SetInput(std::string(name), source);
}
Operator& Operator::SetInput(const std::string& name, const Operator& source, const std::string&) {
  return SetInput(name, source);
}
Operator& Operator::SetInput(const char* name, const Operator& source, const char*) {
  return SetInput(std::string(name), source);
}
Operator& Operator::SetInput(const char* name, const Operator& source, uint32_t) {
  return SetInput(std::string(name), source);
}
Operator& Operator::SetInput(uint32_t input, const Operator& source, uint32_t) {
  return SetInput(std::to_string(input), source);
}
Operator& Operator::SetInput(const char* name, uint32_t index, const Operator& source) {
  return SetInput(name + std::to_string(index), source);
}
Operator& Operator::SetInput(const char* name, uint32_t index, const Operator& source,
                             const char*) {
  return SetInput(name, index, source);
}
Operator& Operator::AddControlInput(const Operator&) { return *this; }

graphStatus Operator::UpdateInputDesc(const std::string& name, const TensorDesc& desc) {
  impl().inputs[name] = desc;
  return GRAPH_SUCCESS;
}
graphStatus Operator::UpdateInputDesc(const char* name, const TensorDesc& desc) {
  return UpdateInputDesc(std::string(name), desc);
}
graphStatus Operator::UpdateOutputDesc(const std::string& name, const TensorDesc& desc) {
  impl().outputs[name] = desc;
  return GRAPH_SUCCESS;
}
graphStatus Operator::UpdateOutputDesc(const char* name, const TensorDesc& desc) {
  return UpdateOutputDesc(std::string(name), desc);
}
graphStatus Operator::UpdateDynamicOutputDesc(const char* name, uint32_t index,
                                              const TensorDesc& desc) {
  return UpdateOutputDesc(name + std::to_string(index), desc);
}
int Operator::GetDynamicOutputNum(const std::string& name) const {
  if (!impl_) return 0;
  auto at = impl_->dynamic_outputs.find(name);
  return at == impl_->dynamic_outputs.end() ? 0 : static_cast<int>(at->second);
}

namespace {

// Numbers are kept as int64, as the graph's own attributes are.
Value kept(int32_t v) { return int64_t(v); }
Value kept(uint32_t v) { return int64_t(v); }
Value kept(const std::vector<int32_t>& v) { return std::vector<int64_t>(v.begin(), v.end()); }
Value kept(const std::vector<uint32_t>& v) { return std::vector<int64_t>(v.begin(), v.end()); }
template <class T>
Value kept(const T& v) { return Value(std::in_place_type<T>, v); }

template <class T>
struct Kept { using type = T; };
template <> struct Kept<int32_t> { using type = int64_t; };
template <> struct Kept<uint32_t> { using type = int64_t; };
template <> struct Kept<std::vector<int32_t>> { using type = std::vector<int64_t>; };
template <> struct Kept<std::vector<uint32_t>> { using type = std::vector<int64_t>; };

template <class T>
void read(const T& from, T& to) { to = from; }
void read(int64_t from, int32_t& to) { to = static_cast<int32_t>(from); }
void read(int64_t from, uint32_t& to) { to = static_cast<uint32_t>(from); }
void read(const std::vector<int64_t>& from, std::vector<int32_t>& to) {
  to.assign(from.begin(), from.end());
}
void read(const std::vector<int64_t>& from, std::vector<uint32_t>& to) {
  to.assign(from.begin(), from.end());
}

template <class T>
graphStatus get(const std::shared_ptr<OperatorImpl>& impl, const std::string& name, T& value) {
  if (!impl) return GRAPH_FAILED;
  auto at = impl->attrs.find(name);
  if (at == impl->attrs.end()) return GRAPH_FAILED;
  const auto* same = std::get_if<typename Kept<T>::type>(&at->second);
  if (!same) return GRAPH_FAILED;
  read(*same, value);
  return GRAPH_SUCCESS;
}

std::vector<std::string> texts(const std::vector<AscendString>& values) {
  std::vector<std::string> result;
  for (const AscendString& value : values) result.push_back(value.GetString());
  return result;
}

}  // namespace

#define GRAPH_ATTR(T, ARGUMENT)                                               \
  Operator& Operator::SetAttr(const std::string& name, ARGUMENT value) {       \
    impl().attrs.insert_or_assign(name, kept(value));                          \
    return *this;                                                              \
  }                                                                            \
  Operator& Operator::SetAttr(const char* name, ARGUMENT value) {              \
    return SetAttr(std::string(name), value);                                  \
  }                                                                            \
  graphStatus Operator::GetAttr(const std::string& name, T& value) const {     \
    return get(impl_, name, value);                                            \
  }                                                                            \
  graphStatus Operator::GetAttr(const char* name, T& value) const {            \
    return get(impl_, name, value);                                            \
  }
#define GRAPH_NUMBER(T) GRAPH_ATTR(T, T)
#define GRAPH_VALUE(T) GRAPH_ATTR(T, T const&)
GRAPH_NUMBERS(GRAPH_NUMBER)
GRAPH_VALUES(GRAPH_VALUE)
Operator& Operator::SetAttr(const char* name, const char* value) {
  return SetAttr(std::string(name), std::string(value ? value : ""));
}

// What an operator declares of itself. Inputs and outputs are known by what is said of them later.
void Operator::InputRegister(const std::string& name) { impl().inputs[name]; }
void Operator::InputRegister(const char* name, const char*) { impl().inputs[name]; }
void Operator::OptionalInputRegister(const std::string&) { impl(); }
void Operator::OptionalInputRegister(const char*, const char*) { impl(); }
void Operator::OutputRegister(const std::string& name) { impl().outputs[name]; }
void Operator::OutputRegister(const char* name, const char*) { impl().outputs[name]; }
void Operator::DynamicInputRegister(const char*, uint32_t, const char*, bool) { impl(); }
void Operator::DynamicInputRegisterByIndex(const char*, uint32_t, size_t) { impl(); }
void Operator::DynamicOutputRegister(const char* name, uint32_t count, const char*, bool) {
  impl().dynamic_outputs[name] = count;
}
void Operator::RequiredAttrRegister(const std::string&) { impl(); }
void Operator::RequiredAttrWithTypeRegister(const char*, const char*) { impl(); }
void Operator::AttrRegister(const char* name, const AscendString& value) {
  SetAttr(name, value.GetString());
}
void Operator::AttrRegister(const char* name, const std::vector<AscendString>& value) {
  SetAttr(name, texts(value));
}
void Operator::AttrRegister(const char* name, const DataType& value) { SetAttr(name, value); }
void Operator::AttrRegister(const char* name, const std::vector<float>& value) { SetAttr(name, value); }
void Operator::AttrRegister(const char* name, const std::vector<int64_t>& value) {
  SetAttr(name, value);
}
void Operator::AttrRegister(const char* name, bool value) { SetAttr(name, value); }
void Operator::AttrRegister(const char* name, float value) { SetAttr(name, value); }
void Operator::AttrRegister(const char* name, int64_t value) { SetAttr(name, value); }
void Operator::InferFuncRegister(const InferFunc&) { impl(); }
void Operator::SubgraphCountRegister(const char*, uint32_t) { impl(); }
void Operator::SetSubgraphBuilder(const char*, uint32_t, const SubgraphBuilder&) { impl(); }

}  // namespace ge
