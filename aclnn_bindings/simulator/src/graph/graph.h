// The graph engine's classes as clients of libgraph see them: names, signatures and layouts are
// those of the Apache-licensed headers inc/external/graph/{ascend_string,tensor,operator,
// operator_factory}.h of github.com/Ascend/metadef. Values are kept; graphs are not built or run.
// Compiled with the strings of the old C++ ABI, which CANN and its clients use.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#define GRAPH_API __attribute__((visibility("default")))

namespace ge {

using graphStatus = uint32_t;
constexpr graphStatus GRAPH_SUCCESS = 0, GRAPH_FAILED = 0xFFFFFFFF;
enum Format : int32_t { FORMAT_ND = 2 };
enum DataType : int32_t { DT_FLOAT = 0 };

class GRAPH_API AscendString {
 public:
  AscendString() = default;
  AscendString(const char* name);
  const char* GetString() const;
  bool operator<(const AscendString& other) const;

 private:
  std::shared_ptr<std::string> name_;
};

struct ShapeImpl;
class GRAPH_API Shape {
 public:
  Shape();
  explicit Shape(const std::vector<int64_t>& dims);
  size_t GetDimNum() const;
  int64_t GetDim(size_t index) const;
  graphStatus SetDim(size_t index, int64_t value);
  std::vector<int64_t> GetDims() const;

 private:
  std::shared_ptr<ShapeImpl> impl_;
};

struct TensorDescImpl;
class GRAPH_API TensorDesc {
 public:
  TensorDesc();
  explicit TensorDesc(Shape shape, Format format = FORMAT_ND, DataType dtype = DT_FLOAT);
  TensorDesc(const TensorDesc& other);
  TensorDesc(TensorDesc&& other);
  TensorDesc& operator=(const TensorDesc& other);
  TensorDesc& operator=(TensorDesc&& other);
  Shape GetShape() const;
  void SetShape(const Shape& shape);
  Format GetFormat() const;
  void SetFormat(Format format);
  Shape GetOriginShape() const;
  void SetOriginShape(const Shape& shape);
  Format GetOriginFormat() const;
  void SetOriginFormat(Format format);
  DataType GetDataType() const;
  void SetDataType(DataType dtype);
  void SetRealDimCnt(int64_t count);

 private:
  std::shared_ptr<TensorDescImpl> impl;
};

struct TensorImpl;
class GRAPH_API Tensor {
 public:
  using DeleteFunc = std::function<void(uint8_t*)>;
  Tensor();
  explicit Tensor(const TensorDesc& desc);
  Tensor(const TensorDesc& desc, const uint8_t* data, size_t size);
  TensorDesc GetTensorDesc() const;
  const uint8_t* GetData() const;
  uint8_t* GetData();
  size_t GetSize() const;
  graphStatus SetData(const uint8_t* data, size_t size);
  graphStatus SetData(const std::string& data);
  graphStatus SetData(const std::vector<std::string>& data);
  graphStatus SetData(uint8_t* data, size_t size, const DeleteFunc& deleter);

 private:
  std::shared_ptr<TensorImpl> impl;
};

class Operator;
class Graph;
using InferFunc = std::function<graphStatus(Operator&)>;
using SubgraphBuilder = std::function<Graph()>;
struct OperatorImpl;

// One operator of a graph: a name, a type, attributes, descriptors of inputs and outputs.
class GRAPH_API Operator {
 public:
  Operator() {}
  explicit Operator(const std::string& type);
  explicit Operator(const char* type);
  Operator(const std::string& name, const std::string& type);
  Operator(const char* name, const char* type);
  Operator(const AscendString& name, const AscendString& type);
  virtual ~Operator() = default;

  std::string GetName() const;
  graphStatus GetName(AscendString& name) const;
  std::string GetOpType() const;
  graphStatus GetOpType(AscendString& type) const;

  Operator& SetInput(const std::string& name, const Operator& source);
  Operator& SetInput(const char* name, const Operator& source);
  Operator& SetInput(const std::string& name, const Operator& source, const std::string& output);
  Operator& SetInput(const char* name, const Operator& source, const char* output);
  Operator& SetInput(const char* name, const Operator& source, uint32_t index);
  Operator& SetInput(uint32_t input, const Operator& source, uint32_t index);
  Operator& SetInput(const char* name, uint32_t index, const Operator& source);
  Operator& SetInput(const char* name, uint32_t index, const Operator& source, const char* output);
  Operator& AddControlInput(const Operator& source);

  graphStatus UpdateInputDesc(const std::string& name, const TensorDesc& desc);
  graphStatus UpdateInputDesc(const char* name, const TensorDesc& desc);
  graphStatus UpdateOutputDesc(const std::string& name, const TensorDesc& desc);
  graphStatus UpdateOutputDesc(const char* name, const TensorDesc& desc);
  graphStatus UpdateDynamicOutputDesc(const char* name, uint32_t index, const TensorDesc& desc);
  int GetDynamicOutputNum(const std::string& name) const;

#define GRAPH_ATTR(T)                                        \
  Operator& SetAttr(const std::string& name, T const& value); \
  Operator& SetAttr(const char* name, T const& value);        \
  graphStatus GetAttr(const std::string& name, T& value) const; \
  graphStatus GetAttr(const char* name, T& value) const;
#define GRAPH_NUMBER(T)                                      \
  Operator& SetAttr(const std::string& name, T value);        \
  Operator& SetAttr(const char* name, T value);               \
  graphStatus GetAttr(const std::string& name, T& value) const; \
  graphStatus GetAttr(const char* name, T& value) const;
#define GRAPH_NUMBERS(X) X(int64_t) X(int32_t) X(uint32_t) X(float) X(bool)
#define GRAPH_VALUES(X)                                                              \
  X(std::vector<int64_t>) X(std::vector<int32_t>) X(std::vector<uint32_t>)            \
  X(std::vector<float>) X(std::vector<bool>) X(std::string) X(std::vector<std::string>) \
  X(std::vector<std::vector<int64_t>>) X(Tensor) X(DataType) X(std::vector<DataType>)
  GRAPH_NUMBERS(GRAPH_NUMBER)
  GRAPH_VALUES(GRAPH_ATTR)
#undef GRAPH_NUMBER
#undef GRAPH_ATTR
  Operator& SetAttr(const char* name, const char* value);

 protected:
  void InputRegister(const std::string& name);
  void InputRegister(const char* name, const char* types);
  void OptionalInputRegister(const std::string& name);
  void OptionalInputRegister(const char* name, const char* types);
  void OutputRegister(const std::string& name);
  void OutputRegister(const char* name, const char* types);
  void DynamicInputRegister(const char* name, uint32_t count, const char* types, bool at_end);
  void DynamicInputRegisterByIndex(const char* name, uint32_t count, size_t index);
  void DynamicOutputRegister(const char* name, uint32_t count, const char* types, bool at_end);
  void RequiredAttrRegister(const std::string& name);
  void RequiredAttrWithTypeRegister(const char* name, const char* type);
  void AttrRegister(const char* name, const AscendString& value);
  void AttrRegister(const char* name, const std::vector<AscendString>& value);
  void AttrRegister(const char* name, const DataType& value);
  void AttrRegister(const char* name, const std::vector<float>& value);
  void AttrRegister(const char* name, const std::vector<int64_t>& value);
  void AttrRegister(const char* name, bool value);
  void AttrRegister(const char* name, float value);
  void AttrRegister(const char* name, int64_t value);
  void InferFuncRegister(const InferFunc& infer);
  void SubgraphCountRegister(const char* name, uint32_t count);
  void SetSubgraphBuilder(const char* name, uint32_t index, const SubgraphBuilder& builder);

 private:
  OperatorImpl& impl();
  std::shared_ptr<OperatorImpl> impl_{nullptr};
};

using OpCreator = std::function<Operator(const std::string&)>;
using OpCreatorV2 = std::function<Operator(const AscendString&)>;

class GRAPH_API OperatorFactory {
 public:
  static Operator CreateOperator(const std::string& name, const std::string& type);
  static Operator CreateOperator(const char* name, const char* type);
  static bool IsExistOp(const std::string& type);
  static bool IsExistOp(const char* type);
};
class GRAPH_API OperatorCreatorRegister {
 public:
  OperatorCreatorRegister(const std::string& type, const OpCreator& creator);
  OperatorCreatorRegister(const char* type, const OpCreatorV2& creator);
};
class GRAPH_API InferShapeFuncRegister {
 public:
  InferShapeFuncRegister(const std::string& type, const InferFunc& infer);
  InferShapeFuncRegister(const char* type, const InferFunc& infer);
};

// Clients register texts of their statuses through inline functions over the one map in here.
class GRAPH_API StatusFactory {
 public:
  static StatusFactory* Instance();

 private:
  std::map<uint32_t, std::string> texts_;
};

GRAPH_API uint32_t GEInitialize(const std::map<std::string, std::string>& options);
GRAPH_API uint32_t GEFinalize();

}  // namespace ge
