// Strings, shapes, descriptors and tensors of the graph engine. Copies share what they describe,
// but for descriptors, which are values.
#include <cstring>

#include "graph/graph.h"

namespace ge {

AscendString::AscendString(const char* name) {
  if (name) name_ = std::make_shared<std::string>(name);
}
const char* AscendString::GetString() const { return name_ ? name_->c_str() : ""; }
bool AscendString::operator<(const AscendString& other) const {
  return std::strcmp(GetString(), other.GetString()) < 0;
}

struct ShapeImpl {
  std::vector<int64_t> dims;
};
constexpr int64_t kUnknownRank = -2;  // the one dim of a shape whose rank is not known

Shape::Shape() : impl_(std::make_shared<ShapeImpl>()) {}
Shape::Shape(const std::vector<int64_t>& dims)
    : impl_(std::make_shared<ShapeImpl>(ShapeImpl{dims})) {}
size_t Shape::GetDimNum() const {
  bool unknown = impl_->dims.size() == 1 && impl_->dims[0] == kUnknownRank;
  return unknown ? 0 : impl_->dims.size();
}
int64_t Shape::GetDim(size_t index) const {
  return index < impl_->dims.size() ? impl_->dims[index] : 0;
}
graphStatus Shape::SetDim(size_t index, int64_t value) {
  if (index >= impl_->dims.size()) return GRAPH_FAILED;
  impl_->dims[index] = value;
  return GRAPH_SUCCESS;
}
std::vector<int64_t> Shape::GetDims() const { return impl_->dims; }

struct TensorDescImpl {
  std::vector<int64_t> dims, origin_dims;
  Format format = FORMAT_ND, origin_format = FORMAT_ND;
  DataType dtype = DT_FLOAT;
  int64_t real_dims = 0;
};

TensorDesc::TensorDesc() : impl(std::make_shared<TensorDescImpl>()) {}
TensorDesc::TensorDesc(Shape shape, Format format, DataType dtype) : TensorDesc() {
  impl->dims = shape.GetDims();
  impl->format = format;
  impl->dtype = dtype;
}
TensorDesc::TensorDesc(const TensorDesc& other)
    : impl(std::make_shared<TensorDescImpl>(*other.impl)) {}
TensorDesc::TensorDesc(TensorDesc&& other) : TensorDesc(static_cast<const TensorDesc&>(other)) {}
TensorDesc& TensorDesc::operator=(const TensorDesc& other) {
  *impl = *other.impl;
  return *this;
}
TensorDesc& TensorDesc::operator=(TensorDesc&& other) {
  return *this = static_cast<const TensorDesc&>(other);
}
Shape TensorDesc::GetShape() const { return Shape(impl->dims); }
void TensorDesc::SetShape(const Shape& shape) { impl->dims = shape.GetDims(); }
Format TensorDesc::GetFormat() const { return impl->format; }
void TensorDesc::SetFormat(Format format) { impl->format = format; }
Shape TensorDesc::GetOriginShape() const { return Shape(impl->origin_dims); }
void TensorDesc::SetOriginShape(const Shape& shape) { impl->origin_dims = shape.GetDims(); }
Format TensorDesc::GetOriginFormat() const { return impl->origin_format; }
void TensorDesc::SetOriginFormat(Format format) { impl->origin_format = format; }
DataType TensorDesc::GetDataType() const { return impl->dtype; }
void TensorDesc::SetDataType(DataType dtype) { impl->dtype = dtype; }
void TensorDesc::SetRealDimCnt(int64_t count) { impl->real_dims = count; }

struct TensorImpl {
  TensorDesc desc;
  std::shared_ptr<uint8_t> data;
  size_t size = 0;
};

Tensor::Tensor() : impl(std::make_shared<TensorImpl>()) {}
Tensor::Tensor(const TensorDesc& desc) : Tensor() { impl->desc = desc; }
Tensor::Tensor(const TensorDesc& desc, const uint8_t* data, size_t size) : Tensor(desc) {
  SetData(data, size);
}
TensorDesc Tensor::GetTensorDesc() const { return impl->desc; }
const uint8_t* Tensor::GetData() const { return impl->data.get(); }
uint8_t* Tensor::GetData() { return impl->data.get(); }
size_t Tensor::GetSize() const { return impl->size; }
graphStatus Tensor::SetData(const uint8_t* data, size_t size) {
  if (!data && size) return GRAPH_FAILED;
  std::shared_ptr<uint8_t> kept(new uint8_t[size ? size : 1], std::default_delete<uint8_t[]>());
  if (size) std::memcpy(kept.get(), data, size);
  impl->data = kept;
  impl->size = size;
  return GRAPH_SUCCESS;
}
graphStatus Tensor::SetData(uint8_t* data, size_t size, const DeleteFunc& deleter) {
  if (!data && size) return GRAPH_FAILED;
  impl->data = deleter ? std::shared_ptr<uint8_t>(data, deleter)
                       : std::shared_ptr<uint8_t>(data, [](uint8_t*) {});
  impl->size = size;
  return GRAPH_SUCCESS;
}
// Tensors of strings have a layout of their own, which nothing here reads.
graphStatus Tensor::SetData(const std::string&) { return GRAPH_FAILED; }
graphStatus Tensor::SetData(const std::vector<std::string>&) { return GRAPH_FAILED; }

}  // namespace ge
