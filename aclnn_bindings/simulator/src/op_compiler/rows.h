// What the tables of type names share. Each file has a table; find_type looks through them.
#pragma once

#include <functional>
#include <unordered_map>

#include "op_compiler/type_call.h"

namespace aclsim {

using TypeTable = std::unordered_map<std::string, TypeRow>;
const TypeTable& basic_types();      // made of ACLNN operators and views
const TypeTable& elementwise_types();  // one ACLNN operator each
const TypeTable& box_types();        // overlaps and coordinates of boxes
const TypeTable& selection_types();  // suppression of boxes, rotated boxes
const TypeTable& recurrent_types();  // recurrent cells and sequences
const TypeTable& image_types();      // regions of images
const TypeTable& layer_types();      // layers of graph clients
const TypeTable& index_types();      // ranges, gathering and scattering, single values
const TypeTable& activation_types();
const TypeTable& loss_types();
const TypeTable& convolution_types();  // transposed, of volumes, by channel; gradients
const TypeTable& draw_types();         // draws from seeds, dropout
const TypeTable& arithmetic_types();   // of several operands, scans, pools, samples
const TypeTable& gradient_types();   // of functions of one number
const TypeTable& various_types();    // the rest that ACLNN has no form of

// Where counts are not those of the prototype, nothing is read.
aclError expect(TypeCall& c, size_t inputs, size_t outputs);
#define EXPECT(c, inputs, outputs) \
  if (aclError code_ = expect(c, inputs, outputs)) return code_

inline int64_t count_of(const Dims& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

// Refuses an input or output whose shape is not `dims`; -1 stands for any length.
aclError expect_dims(TypeCall& c, const char* what, size_t at, const Dims& shape, const Dims& dims);
#define EXPECT_IN(c, i, ...) \
  if (aclError code_ = expect_dims(c, "input", i, c.in(i).dims, Dims __VA_ARGS__)) return code_
#define EXPECT_OUT(c, i, ...) \
  if (aclError code_ = expect_dims(c, "output", i, c.out(i).dims, Dims __VA_ARGS__)) return code_

// Refuses an input or output of another number of elements.
aclError expect_size(TypeCall& c, const char* what, size_t at, const Dims& shape, int64_t count);
#define EXPECT_IN_SIZE(c, i, count) \
  if (aclError code_ = expect_size(c, "input", i, c.in(i).dims, count)) return code_
#define EXPECT_OUT_SIZE(c, i, count) \
  if (aclError code_ = expect_size(c, "output", i, c.out(i).dims, count)) return code_

// An input as float32 values: itself, or a copy made on the stream.
aclError float_in(TypeCall& c, size_t input, View* view);
// Room for float32 values of an output: itself, or memory that `float_out` rounds into it.
View float_room(TypeCall& c, size_t output);
aclError float_out(TypeCall& c, const View& room, size_t output);
inline float* floats(const View& view) { return static_cast<float*>(view.data); }

// Runs `body` on the stream: it sees inputs as float32 values, and writes float32 values for
// outputs. Tensors of other dtypes are converted before and after, rounding once.
using FloatBody = std::function<aclError(const std::vector<const float*>&,
                                         const std::vector<float*>&)>;
aclError on_floats(TypeCall& c, const std::vector<size_t>& ins, const std::vector<size_t>& outs,
                   FloatBody body);

// A row of so many inputs and one output; the arguments are those of the ACLNN operator.
#define ROW(type, op, inputs, ...)                            \
  {#type, [](TypeCall& c) -> aclError {                       \
     EXPECT(c, inputs, 1);                                    \
     return ACLSIM_RUN(c, op, __VA_ARGS__, c.out_tensor(0));  \
   }}
#define IN(i) c.in_tensor(i)

}  // namespace aclsim
