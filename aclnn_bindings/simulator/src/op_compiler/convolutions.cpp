// Convolutions by type name: transposed ones, those of volumes and by channel, and gradients.
#include "op_compiler/rows.h"

#include <aclnnop/aclnn_convolution.h>
#include <aclnnop/aclnn_convolution_backward.h>

namespace aclsim {
namespace {

// Attributes of a convolution without those of the first two axes.
struct Window {
  Dims strides, pads, dilations, output_pads;
  int64_t groups;
};

Dims inner_of(const Dims& all) { return Dims(all.begin() + 2, all.end()); }

aclError window_of(TypeCall& c, size_t axes, Window* window) {
  std::string format = c.text_attr("data_format", axes == 3 ? "NCDHW" : "NCHW");
  if (format != (axes == 3 ? "NCDHW" : "NCHW")) {
    return c.refuse("data_format %s is not simulated", format.c_str());
  }
  Dims ones(axes + 2, 1), none(axes + 2, 0);
  Dims strides = c.ints_attr("strides", ones), dilations = c.ints_attr("dilations", ones);
  Dims output_pads = c.ints_attr("output_padding", none);
  Dims pads = c.ints_attr("pads", Dims(axes * 2, 0));
  if (strides.size() != axes + 2 || dilations.size() != axes + 2 || pads.size() != 2 * axes ||
      output_pads.size() != axes + 2) {
    return c.refuse("strides, dilations, output_padding or pads have a wrong number of values");
  }
  *window = {inner_of(strides), {}, inner_of(dilations), inner_of(output_pads),
             c.int_attr("groups", 1)};
  for (size_t i = 0; i < axes; ++i) {
    if (pads[2 * i] != pads[2 * i + 1]) return c.refuse("pads before and after an axis differ");
    window->pads.push_back(pads[2 * i]);
  }
  return ACL_SUCCESS;
}

aclTensor* spatial(TypeCall& c, const View& view) {
  return c.tensor(view, view.dims.size() == 5 ? ACL_FORMAT_NCDHW : ACL_FORMAT_NCHW);
}
aclError expect_images(TypeCall& c, size_t rank, std::initializer_list<const View*> views) {
  for (const View* view : views) {
    if (view->dims.size() != rank) return c.refuse("images and filter need %zu axes", rank);
  }
  return ACL_SUCCESS;
}

// size, x, filter, bias or none → y.
template <size_t axes>
aclError transposed(TypeCall& c) {
  EXPECT(c, 3, 1);
  Window w;
  if (aclError code = window_of(c, axes, &w)) return code;
  if (aclError code = expect_images(c, axes + 2, {&c.in(1), &c.in(2), &c.out(0)})) return code;
  return ACLSIM_RUN(c, aclnnConvolution, spatial(c, c.in(1)), spatial(c, c.in(2)),
                    c.given(3) ? c.in_tensor(3) : nullptr, c.array(w.strides), c.array(w.pads),
                    c.array(w.dilations), true, c.array(w.output_pads), w.groups,
                    spatial(c, c.out(0)), int8_t{0});
}

// The gradient of one operand; the other two are read. The operand itself gives its shape alone.
aclError gradient(TypeCall& c, const Window& w, const View& grad, const View& x, const View& filter,
                  bool of_input) {
  aclTensor* out = spatial(c, c.out(0));
  return ACLSIM_RUN(c, aclnnConvolutionBackward, spatial(c, grad), spatial(c, x), spatial(c, filter),
                    static_cast<aclIntArray*>(nullptr), c.array(w.strides), c.array(w.pads),
                    c.array(w.dilations), false, c.array(Dims(w.strides.size(), 0)),
                    static_cast<int>(w.groups), c.flags({of_input, !of_input, false}), int8_t{0},
                    of_input ? out : nullptr, of_input ? nullptr : out,
                    static_cast<aclTensor*>(nullptr));
}
// size of x, filter, gradient → gradient of x.
aclError volume_input_grad(TypeCall& c) {
  EXPECT(c, 3, 1);
  Window w;
  if (aclError code = window_of(c, 3, &w)) return code;
  if (aclError code = expect_images(c, 5, {&c.in(1), &c.in(2), &c.out(0)})) return code;
  return gradient(c, w, c.in(2), c.out(0), c.in(1), true);
}
// x, size of the filter, gradient → gradient of the filter.
aclError volume_filter_grad(TypeCall& c) {
  EXPECT(c, 3, 1);
  Window w;
  if (aclError code = window_of(c, 3, &w)) return code;
  if (aclError code = expect_images(c, 5, {&c.in(0), &c.in(2), &c.out(0)})) return code;
  return gradient(c, w, c.in(2), c.in(0), c.out(0), false);
}

// A filter [multiplier, channels, h, w] by channel as one in groups [channels * multiplier, 1, h, w];
// what is queued first turns it, since its result of a channel lie together.
View by_group(const View& filter) {
  View turned = filter;
  turned.dims = {filter.dims[1], filter.dims[0], filter.dims[2], filter.dims[3]};
  turned.strides = {filter.strides[1], filter.strides[0], filter.strides[2], filter.strides[3]};
  return turned;
}
View grouped_room(TypeCall& c, const View& filter) {
  View room = c.room(filter.dtype, by_group(filter).dims);
  room.dims = {filter.dims[0] * filter.dims[1], 1, filter.dims[2], filter.dims[3]};
  room.strides = strides_of(room.dims);
  return room;
}
aclError grouped(TypeCall& c, const View& filter, View* room) {
  *room = grouped_room(c, filter);
  View turned = by_group(filter), to = *room;
  to.dims = turned.dims;
  to.strides = strides_of(to.dims);
  return c.copy(to, turned);
}

// x, filter, bias or none → y.
aclError by_channel(TypeCall& c) {
  EXPECT(c, 2, 1);
  Window w;
  View filter;
  if (aclError code = window_of(c, 2, &w)) return code;
  if (aclError code = expect_images(c, 4, {&c.in(0), &c.in(1), &c.out(0)})) return code;
  if (aclError code = grouped(c, c.in(1), &filter)) return code;
  return ACLSIM_RUN(c, aclnnConvolution, spatial(c, c.in(0)), spatial(c, filter),
                    c.given(2) ? c.in_tensor(2) : nullptr, c.array(w.strides), c.array(w.pads),
                    c.array(w.dilations), false, c.array({0, 0}), c.in(0).dims[1],
                    spatial(c, c.out(0)), int8_t{0});
}
// size of x, filter, gradient → gradient of x.
aclError by_channel_input_grad(TypeCall& c) {
  EXPECT(c, 3, 1);
  Window w;
  View filter;
  if (aclError code = window_of(c, 2, &w)) return code;
  if (aclError code = expect_images(c, 4, {&c.in(1), &c.in(2), &c.out(0)})) return code;
  if (aclError code = grouped(c, c.in(1), &filter)) return code;
  w.groups = c.out(0).dims[1];
  return gradient(c, w, c.in(2), c.out(0), filter, true);
}
// x, size of the filter, gradient → gradient of the filter.
aclError by_channel_filter_grad(TypeCall& c) {
  EXPECT(c, 3, 1);
  Window w;
  if (aclError code = window_of(c, 2, &w)) return code;
  if (aclError code = expect_images(c, 4, {&c.in(0), &c.in(2), &c.out(0)})) return code;
  w.groups = c.in(0).dims[1];
  View room = grouped_room(c, c.out(0));
  aclTensor* out = spatial(c, room);
  aclError code = ACLSIM_RUN(c, aclnnConvolutionBackward, spatial(c, c.in(2)), spatial(c, c.in(0)), out,
                             static_cast<aclIntArray*>(nullptr), c.array(w.strides),
                             c.array(w.pads), c.array(w.dilations), false, c.array({0, 0}),
                             static_cast<int>(w.groups), c.flags({false, true, false}), int8_t{0},
                             static_cast<aclTensor*>(nullptr), out,
                             static_cast<aclTensor*>(nullptr));
  if (code != ACL_SUCCESS) return code;
  View to = by_group(c.out(0));
  room.dims = to.dims;
  room.strides = strides_of(room.dims);
  return c.copy(to, room);
}

}  // namespace

const TypeTable& convolution_types() {
  static const auto* rows = new TypeTable{
      {"Conv2DTranspose", transposed<2>}, {"Conv3DTranspose", transposed<3>},
      {"Conv3DBackpropInput", volume_input_grad}, {"Conv3DBackpropFilter", volume_filter_grad},
      {"DepthwiseConv2D", by_channel}, {"DepthwiseConv2DBackpropInput", by_channel_input_grad},
      {"DepthwiseConv2DBackpropFilter", by_channel_filter_grad}};
  return *rows;
}

}  // namespace aclsim
