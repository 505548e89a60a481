// Operators by type name, one part per run.
#include <acl/acl_op.h>
#include <acl/acl_op_compiler.h>

#include <functional>
#include <map>
#include <string>

#include "kit.h"

using Dims = std::vector<int64_t>;

// One call while it is put together.
struct Call {
  std::string type;
  aclopAttr* attr = aclopCreateAttr();
  std::vector<aclTensorDesc*> in_desc, out_desc;
  std::vector<aclDataBuffer*> in, out;
  explicit Call(const char* name) : type(name) {}
  ~Call() {
    aclopDestroyAttr(attr);
    for (auto* descs : {&in_desc, &out_desc}) for (auto* d : *descs) aclDestroyTensorDesc(d);
    for (auto* buffers : {&in, &out}) for (auto* b : *buffers) MUST(aclDestroyDataBuffer(b));
  }
  Call& input(void* at, Dims dims, aclDataType dtype = ACL_FLOAT) {
    in_desc.push_back(aclCreateTensorDesc(dtype, dims.size(), dims.data(), ACL_FORMAT_ND));
    in.push_back(aclCreateDataBuffer(at, aclGetTensorDescSize(in_desc.back())));
    return *this;
  }
  // Values that are known when the operator is compiled.
  Call& known(Dims& values) {
    input(values.data(), {int64_t(values.size())}, ACL_INT64);
    MUST(aclSetTensorPlaceMent(in_desc.back(), ACL_MEMTYPE_HOST));
    return *this;
  }
  Call& output(void* at, Dims dims, aclDataType dtype = ACL_FLOAT) {
    out_desc.push_back(aclCreateTensorDesc(dtype, dims.size(), dims.data(), ACL_FORMAT_ND));
    out.push_back(aclCreateDataBuffer(at, aclGetTensorDescSize(out_desc.back())));
    return *this;
  }
  int run(aclrtStream stream) {
    return aclopCompileAndExecute(type.c_str(), in.size(), in_desc.data(), in.data(), out.size(),
                                  out_desc.data(), out.data(), attr, ACL_ENGINE_SYS,
                                  ACL_COMPILE_SYS, nullptr, stream);
  }
  int run_now(aclrtStream stream) {
    return aclopExecuteV2(type.c_str(), in.size(), in_desc.data(), in.data(), out.size(),
                          out_desc.data(), out.data(), attr, stream);
  }
};

static std::vector<float> count_up(size_t n) {
  std::vector<float> values(n);
  for (size_t i = 0; i < n; ++i) values[i] = float(i);
  return values;
}

static void moves() {
  Kit kit;
  void* x = Kit::floats(count_up(12));  // [3, 4]
  void* y = Kit::device(4 * 64);
  auto result = [&](Call& call, size_t n) {
    MUST(call.run(kit.stream));
    MUST(aclrtSynchronizeStream(kit.stream));
    return Kit::back(y, n);
  };
  using Floats = std::vector<float>;
  {
    Dims offsets = {1, 1}, size = {2, -1};
    Call call("Slice");
    call.input(x, {3, 4}).known(offsets).known(size).output(y, {2, 3});
    CHECK(result(call, 6) == (Floats{5, 6, 7, 9, 10, 11}));
  }
  {
    Dims begin = {2, 0}, end = {0, 9}, strides = {-1, 2};
    Call call("StridedSlice");
    MUST(aclopSetAttrInt(call.attr, "end_mask", 1));
    call.input(x, {3, 4}).known(begin).known(end).known(strides).output(y, {3, 2});
    CHECK(result(call, 6) == (Floats{8, 10, 4, 6, 0, 2}));
  }
  {
    Dims begin = {-1}, end = {0}, strides = {1};
    Call call("StridedSlice");
    MUST(aclopSetAttrInt(call.attr, "shrink_axis_mask", 1));
    call.input(x, {3, 4}).known(begin).known(end).known(strides).output(y, {4});
    CHECK(result(call, 4) == (Floats{8, 9, 10, 11}));
  }
  {
    Dims order = {1, 0};
    Call call("Transpose");
    call.input(x, {3, 4}).known(order).output(y, {4, 3});
    CHECK(result(call, 12)[1] == 4 && Kit::back(y, 12)[3] == 1);
  }
  {
    Dims pads = {0, 1, 2, 0};
    Call call("Pad");
    call.input(x, {3, 4}).known(pads).output(y, {4, 6});
    CHECK(result(call, 24)[2] == 0 && Kit::back(y, 24)[3] == 1 && Kit::back(y, 24)[20] == 0);
  }
  {
    Dims dims = {5};
    float seven = 7;
    Call call("Fill");
    call.known(dims).input(Kit::floats({seven}), {}).output(y, {5});
    CHECK(result(call, 5) == Floats(5, 7));
  }
  kit.end();
}

static void numbers() {
  Kit kit;
  {  // A tensor without elements has no address.
    Call call("Identity");
    call.input(nullptr, {2, 0, 2}).output(nullptr, {2, 0, 2});
    MUST(call.run(kit.stream));
    MUST(aclrtSynchronizeStream(kit.stream));
  }
  void* x = Kit::floats({3, -1, 2, 5});
  void* y = Kit::device(64);
  int32_t* positions = static_cast<int32_t*>(Kit::device(64));
  {
    Call call("ArgMaxWithValue");
    MUST(aclopSetAttrInt(call.attr, "dimension", 1));
    call.input(x, {2, 2}).output(positions, {2}, ACL_INT32).output(y, {2});
    MUST(call.run(kit.stream));
    MUST(aclrtSynchronizeStream(kit.stream));
    CHECK(Kit::back(y, 2) == (std::vector<float>{3, 5}));
    int32_t seen[2];
    MUST(aclrtMemcpy(seen, 8, positions, 8, ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(seen[0] == 0 && seen[1] == 1);
  }
  {
    Call call("SortV2");
    MUST(aclopSetAttrBool(call.attr, "descending", 1));
    call.input(x, {4}).output(y, {4});
    MUST(call.run_now(kit.stream));
    MUST(aclrtSynchronizeStream(kit.stream));
    CHECK(Kit::back(y, 4) == (std::vector<float>{5, 3, 2, -1}));
  }
  {
    Dims axes = {0};
    Call call("ReduceMin");
    MUST(aclopSetAttrBool(call.attr, "keep_dims", 1));
    call.input(x, {2, 2}).known(axes).output(y, {1, 2});
    MUST(call.run(kit.stream));
    MUST(aclrtSynchronizeStream(kit.stream));
    CHECK(Kit::back(y, 2) == (std::vector<float>{2, -1}));
  }
  for (void* p : {x, y, static_cast<void*>(positions)}) MUST(aclrtFree(p));
  kit.end();
}

// What cannot be run is named, once, and what follows runs; also where streams stop on failure.
static void refusals() {
  Kit kit;
  MUST(aclrtSetStreamFailureMode(kit.stream, ACL_STOP_ON_FAILURE));
  void* x = Kit::floats({1, 2});
  Call unknown("NoSuchType"), good("Neg");
  unknown.input(x, {2}).output(x, {2});
  good.input(x, {2}).output(x, {2});
  CHECK(unknown.run_now(kit.stream) == ACL_ERROR_OP_NOT_FOUND);
  printf("%s\n", aclGetRecentErrMsg());
  MUST(unknown.run(kit.stream));
  MUST(good.run(kit.stream));
  CHECK(aclrtSynchronizeStream(kit.stream) == ACL_ERROR_RT_TASK_TYPE_NOT_SUPPORT);
  printf("%s\n", aclGetRecentErrMsg());
  MUST(aclrtSynchronizeStream(kit.stream));
  CHECK(Kit::back(x, 2) == (std::vector<float>{-1, -2}));
  Call wrong("Neg");  // no input
  wrong.output(x, {2});
  CHECK(wrong.run_now(kit.stream) == ACL_ERROR_OP_INPUT_NOT_MATCH);
  MUST(aclrtFree(x));
  kit.end();
}

int main(int, char** argv) {
  const std::map<std::string, std::function<void()>> parts = {
      {"moves", moves}, {"numbers", numbers}, {"refusals", refusals}};
  parts.at(argv[1])();
  printf("done\n");
}
