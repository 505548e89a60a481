#include "tracking.h"

#include "per_thread.h"
#include "recorder.h"

namespace layers {
namespace {

bool uses_wanted = false;

// Keeps its memory from call to call.
[[gnu::noinline]] Geometry& scratch() { return aclnn_bindings::per_thread<Geometry>(); }

// aclCreateTensor(viewDims, n, dtype, strides, offset, format, storageDims, m, data), and
// aclInitTensor with the tensor before these.
std::shared_ptr<Object> tensor_of(const Frame& f, const Function& fn, int at) {
  Geometry& g = scratch();
  auto dims = pointer_argument<const int64_t*>(f, fn, at);
  auto rank = integer_argument(f, fn, at + 1);
  auto strides = pointer_argument<const int64_t*>(f, fn, at + 3);
  auto storage = pointer_argument<const int64_t*>(f, fn, at + 6);
  auto storage_rank = integer_argument(f, fn, at + 7);
  g.dtype = static_cast<int32_t>(integer_argument(f, fn, at + 2));
  g.offset = static_cast<int64_t>(integer_argument(f, fn, at + 4));
  g.format = static_cast<int32_t>(integer_argument(f, fn, at + 5));
  bool has_dims = dims && rank <= 64, has_storage = storage && storage_rank <= 64;
  g.shape.assign(dims, has_dims ? dims + rank : dims);
  g.storage.assign(storage, has_storage ? storage + storage_rank : storage);
  if (strides) {
    g.strides.assign(strides, strides + g.shape.size());
  } else {
    g.strides.resize(g.shape.size());
    int64_t step = 1;
    for (size_t i = g.shape.size(); i-- > 0; step *= g.shape[i]) g.strides[i] = step;
  }
  bool made = false;
  auto object = std::make_shared<Object>();
  object->kind = Kind::Tensor;
  object->geometry = intern_geometry(g, &made);
  object->dtype = object->geometry->dtype;
  object->data = pointer_argument<void*>(f, fn, at + 8);
  if (made) announce_geometry(*object->geometry);
  return object;
}

std::shared_ptr<Object> value_of(const Frame& f, const Function& fn, Kind kind, uint32_t unit) {
  auto object = std::make_shared<Object>();
  object->kind = kind;
  auto values = pointer_argument<const char*>(f, fn, 0);
  uint64_t count = integer_argument(f, fn, 1);
  if (values) object->words.assign(values, count * unit);
  return object;
}

std::shared_ptr<Object> scalar_of(const Frame& f, const Function& fn) {
  auto object = std::make_shared<Object>();
  object->kind = Kind::Scalar;
  object->dtype = static_cast<int32_t>(integer_argument(f, fn, 1));
  if (auto value = pointer_argument<const char*>(f, fn, 0))
    object->words.assign(value, element_size(object->dtype));
  return object;
}

std::shared_ptr<Object> list_of(const Frame& f, const Function& fn, Kind kind) {
  auto object = std::make_shared<Object>();
  object->kind = kind;
  auto members = pointer_argument<const void* const*>(f, fn, 0);
  if (members) object->members.assign(members, members + integer_argument(f, fn, 1));
  return object;
}

std::shared_ptr<Object> made_object(const Frame& f, const Function& fn) {
  switch (fn.role) {
    case Role::CreateTensor: return tensor_of(f, fn, 0);
    case Role::CreateScalar: return scalar_of(f, fn);
    case Role::CreateIntArray: return value_of(f, fn, Kind::IntArray, 8);
    case Role::CreateBoolArray: return value_of(f, fn, Kind::BoolArray, 1);
    case Role::CreateFloatArray: return value_of(f, fn, Kind::FloatArray, 4);
    case Role::CreateTensorList: return list_of(f, fn, Kind::TensorList);
    case Role::CreateScalarList: return list_of(f, fn, Kind::ScalarList);
    default: return nullptr;
  }
}

void add_use(Launch* launch, const void* handle, uint16_t position) {
  ObjectPtr object = find_object(handle);
  TensorUse use{nullptr, nullptr};
  if (object && object->kind == Kind::Tensor) use = {object->geometry, object->data};
  launch->uses.push_back(use);
  launch->positions.push_back(position);
}

void finish_phase_one(const Frame& f, const Call& call) {
  const Function& fn = *call.function;
  auto workspace = pointer_argument<const uint64_t*>(f, fn, fn.row->count - 2);
  auto executor = pointer_argument<void* const*>(f, fn, fn.row->count - 1);
  if (call.status != 0 || !executor || !*executor) return;
  auto launch = std::make_shared<Launch>();
  launch->kind = Kind::Executor;
  launch->function = fn.row->partner;
  launch->detail = call.detail;
  launch->stack = call.stack;
  launch->phase_one = call.number;
  launch->workspace = workspace ? *workspace : 0;
  if (uses_wanted) collect_uses(f, fn, launch.get());
  put_object(*executor, launch);
}

void readdress(const Frame& f, const Function& fn) {
  auto handle = pointer_argument<const void*>(f, fn, 0);
  ObjectPtr object = find_object(handle);
  if (!object) return;
  auto changed = std::make_shared<Object>(*object);
  changed->data = pointer_argument<void*>(f, fn, 1);
  put_object(handle, changed);
}

// aclSetTensorAddr(executor, index, tensor, addr): hand-written operators go by the tensor, so both
// the tensor and the executor's use of it follow.
void readdress_use(const Frame& f, const Function& fn) {
  auto executor = pointer_argument<const void*>(f, fn, 0);
  LaunchPtr launch = launch_of(executor);
  auto address = pointer_argument<void*>(f, fn, 3);
  auto tensor = pointer_argument<const void*>(f, fn, 2);
  ObjectPtr object = find_object(tensor);
  if (!launch || !object) return;
  auto changed = std::make_shared<Launch>(*launch);
  for (TensorUse& use : changed->uses)
    if (use.geometry == object->geometry && use.data == object->data) use.data = address;
  put_object(executor, changed);
  auto moved = std::make_shared<Object>(*object);
  moved->data = address;
  put_object(tensor, moved);
}

}  // namespace

// Numbers of aclDataType: acl_base.h.
uint32_t element_size(int32_t dtype) {
  switch (dtype) {
    case 0: case 3: case 8: return 4;             // FLOAT, INT32, UINT32
    case 1: case 6: case 7: case 27: return 2;    // FLOAT16, INT16, UINT16, BF16
    case 2: case 4: case 12: return 1;            // INT8, UINT8, BOOL
    case 9: case 10: case 11: case 16: return 8;  // INT64, UINT64, DOUBLE, COMPLEX64
    case 17: return 16;                           // COMPLEX128
    case 33: return 4;                            // COMPLEX32
    default: return dtype >= 34 ? 1 : 0;          // eight-bit floats
  }
}

LaunchPtr launch_of(const void* executor) {
  ObjectPtr object = find_object(executor);
  if (!object || object->kind != Kind::Executor) return nullptr;
  return std::static_pointer_cast<const Launch>(object);
}

void collect_uses(const Frame& f, const Function& fn, Launch* launch) {
  for (int i = 0; i + 2 < fn.row->count; ++i) {
    auto position = static_cast<uint16_t>(i);
    if (fn.parameters[i].kind == Kind::Tensor) {
      add_use(launch, pointer_argument<const void*>(f, fn, i), position);
    } else if (fn.parameters[i].kind == Kind::TensorList) {
      ObjectPtr list = find_object(pointer_argument<const void*>(f, fn, i));
      if (list && list->kind == Kind::TensorList)
        for (const void* member : list->members) add_use(launch, member, position);
    }
  }
}

void keep_uses() { uses_wanted = true; }

void track_before(const Frame& f, Call* call) {
  const Function& fn = *call->function;
  switch (fn.role) {
    case Role::DestroyList: {
      auto handle = pointer_argument<const void*>(f, fn, 0);
      call->object = take_object(handle);
      if (call->object)
        for (const void* member : call->object->members) take_object(member);
      return;
    }
    case Role::DestroyTensor:
    case Role::DestroyValue:
    case Role::DestroyExecutor:
      call->object = take_object(pointer_argument<const void*>(f, fn, 0));
      return;
    case Role::PhaseTwo: {
      auto executor = pointer_argument<const void*>(f, fn, 2);
      ObjectPtr object = take_object(executor);
      if (!object || object->kind != Kind::Executor) return;
      if (static_cast<const Launch&>(*object).repeatable) put_object(executor, object);
      call->object = std::move(object);
      return;
    }
    default:
      return;
  }
}

void track_after(const Frame& f, Call* call) {
  const Function& fn = *call->function;
  switch (fn.role) {
    case Role::PhaseOne:
      return finish_phase_one(f, *call);
    case Role::SetTensorAddress:
      if (call->status == 0) readdress(f, fn);
      return;
    case Role::SetExecutorAddress:
      if (call->status == 0) readdress_use(f, fn);
      return;
    case Role::InitTensor:
      if (call->status == 0) put_object(pointer_argument<void*>(f, fn, 0), tensor_of(f, fn, 1));
      return;
    case Role::Repeat:
      if (LaunchPtr launch = launch_of(pointer_argument<void*>(f, fn, 0)); launch && !call->status) {
        auto changed = std::make_shared<Launch>(*launch);
        changed->repeatable = true;
        put_object(pointer_argument<void*>(f, fn, 0), changed);
      }
      return;
    default:
      if (!f.results[0]) return;
      call->object = made_object(f, fn);
      if (call->object) put_object(reinterpret_cast<void*>(f.results[0]), call->object);
  }
}

}  // namespace layers
