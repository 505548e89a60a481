// What the tables of type names share: see rows.h.
#include "op_compiler/rows.h"

#include <algorithm>

#include "op_compiler/known.h"

#include <aclnnop/aclnn_cast.h>

namespace aclsim {

aclError expect(TypeCall& c, size_t inputs, size_t outputs) {
  if (c.inputs() < inputs || c.outputs() < outputs) {
    return c.refuse("%zu inputs and %zu outputs are given, %zu and %zu expected", c.inputs(),
                    c.outputs(), inputs, outputs);
  }
  for (size_t i = 0; i < inputs; ++i) {
    const Dims& dims = c.in(i).dims;
    bool empty = std::find(dims.begin(), dims.end(), 0) != dims.end();
    if (!c.given(i) && !empty) return c.refuse("input %zu has no data", i);
  }
  return ACL_SUCCESS;
}

aclError expect_dims(TypeCall& c, const char* what, size_t at, const Dims& shape,
                     const Dims& dims) {
  bool fits = shape.size() == dims.size();
  for (size_t i = 0; fits && i < dims.size(); ++i) fits = dims[i] < 0 || shape[i] == dims[i];
  if (fits) return ACL_SUCCESS;
  auto text = [](const Dims& values) {
    std::string joined;
    for (int64_t d : values) joined += (joined.empty() ? "" : ",") + (d < 0 ? "n" : std::to_string(d));
    return "[" + joined + "]";
  };
  return c.refuse("%s %zu has the shape %s, expected %s", what, at, text(shape).c_str(),
                  text(dims).c_str());
}

aclError expect_size(TypeCall& c, const char* what, size_t at, const Dims& shape, int64_t count) {
  if (count_of(shape) == count) return ACL_SUCCESS;
  return c.refuse("%s %zu has %lld elements, not %lld", what, at,
                  static_cast<long long>(count_of(shape)), static_cast<long long>(count));
}
aclError float_in(TypeCall& c, size_t input, View* view) {
  *view = c.in(input);
  if (view->dtype == ACL_FLOAT) return ACL_SUCCESS;
  *view = c.room(ACL_FLOAT, view->dims);
  return ACLSIM_RUN(c, aclnnCast, c.in_tensor(input), ACL_FLOAT, c.tensor(*view));
}
View float_room(TypeCall& c, size_t output) {
  const View& out = c.out(output);
  return out.dtype == ACL_FLOAT ? out : c.room(ACL_FLOAT, out.dims);
}
aclError float_out(TypeCall& c, const View& room, size_t output) {
  const View& out = c.out(output);
  if (room.data == out.data) return ACL_SUCCESS;
  return ACLSIM_RUN(c, aclnnCast, c.tensor(room), out.dtype, c.out_tensor(output));
}

aclError on_floats(TypeCall& c, const std::vector<size_t>& ins, const std::vector<size_t>& outs,
                   FloatBody body) {
  std::vector<const float*> from;
  std::vector<float*> to;
  std::vector<View> rooms;
  for (size_t i : ins) {
    View view;
    if (aclError code = float_in(c, i, &view)) return code;
    from.push_back(floats(view));
  }
  for (size_t i : outs) {
    rooms.push_back(float_room(c, i));
    to.push_back(floats(rooms.back()));
  }
  aclError code = c.on_stream([from, to, body = std::move(body)] { return body(from, to); });
  for (size_t k = 0; k < outs.size() && code == ACL_SUCCESS; ++k) {
    code = float_out(c, rooms[k], outs[k]);
  }
  return code;
}

TypeRow find_type(const char* type) {
  for (const TypeTable* table : {&basic_types(), &elementwise_types(), &box_types(), &selection_types(),
                                 &recurrent_types(), &image_types(), &layer_types(), &index_types(),
                                 &activation_types(), &loss_types(), &convolution_types(), &draw_types(),
                                 &arithmetic_types(), &gradient_types(), &various_types()}) {
    auto row = table->find(type);
    if (row != table->end()) return row->second;
  }
  return nullptr;
}

}  // namespace aclsim

ACLSIM_API bool aclsim_knows_type(const char* type) {
  return type && aclsim::find_type(type) != nullptr;
}
