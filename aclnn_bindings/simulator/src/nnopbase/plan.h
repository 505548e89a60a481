// What a generated first phase does: copies each argument into the executor, then checks.
#pragma once

#include "nnopbase/executor.h"

namespace aclsim {

// Copies of a caller's arguments in an executor's memory; what is no live handle is noted there.
class ArgumentCopier {
 public:
  explicit ArgumentCopier(Executor* executor) : executor_(executor) {}

  Tensor* copy(const aclTensor* given) {
    if (!given || !alive(given, Kind::Tensor)) return nullptr;
    auto* made = static_cast<Tensor*>(take(executor_, sizeof(Tensor)));
    *made = given->view;
    return made;
  }
  Scalar* copy(const aclScalar* given) {
    if (!given || !alive(given, Kind::Scalar)) return nullptr;
    auto* made = static_cast<Scalar*>(take(executor_, sizeof(Scalar)));
    *made = given->value;
    return made;
  }
  template <class T, class L>
  T** list(const L* given, Kind kind, Arg& arg) {
    if (!given || !alive(given, kind)) return nullptr;
    // One slot more, so that an empty list is not a null one.
    auto** made = static_cast<T**>(take(executor_, sizeof(T*) * (given->size + 1)));
    for (uint64_t i = 0; i < given->size; ++i) made[i] = copy(given->data[i]);
    arg.size = static_cast<int64_t>(given->size);
    return made;
  }
  template <class T, class A>
  T* array(const A* given, Kind kind, Arg& arg) {
    if (!given || !alive(given, kind)) return nullptr;
    auto* made = static_cast<T*>(take(executor_, sizeof(T) * (given->size + 1)));
    memcpy(made, given->data, sizeof(T) * given->size);
    arg.size = static_cast<int64_t>(given->size);
    return made;
  }

 protected:
  bool alive(const Handle* given, Kind kind) {
    if (ACLSIM_LIKELY(given->is(kind))) return true;
    if (!executor_->misused) {
      executor_->misused = const_cast<Handle*>(given);
      executor_->misused_as = kind;
    }
    return false;
  }

  Executor* executor_;
};

class Planner : ArgumentCopier {
 public:
  Planner(Entry& entry, uint64_t* size, aclOpExecutor** out)
      : ArgumentCopier(make_executor(entry)), size_(size), out_(out) {
    executor_->call.args =
        static_cast<Arg*>(take(executor_, sizeof(Arg) * entry.spec->param_count));
  }

  void tensor(const aclTensor* given) { next(ArgKind::Tensor).tensor = copy(given); }
  void scalar(const aclScalar* given) { next(ArgKind::Scalar).scalar = copy(given); }
  void tensors(const aclTensorList* given) {
    Arg& arg = next(ArgKind::TensorList);
    arg.tensors = list<Tensor>(given, Kind::TensorList, arg);
  }
  void scalars(const aclScalarList* given) {
    Arg& arg = next(ArgKind::ScalarList);
    arg.scalars = list<Scalar>(given, Kind::ScalarList, arg);
  }
  void ints(const aclIntArray* given) {
    Arg& arg = next(ArgKind::IntArray);
    arg.ints = array<int64_t>(given, Kind::IntArray, arg);
  }
  void bools(const aclBoolArray* given) {
    Arg& arg = next(ArgKind::BoolArray);
    arg.bools = array<bool>(given, Kind::BoolArray, arg);
  }
  void floats(const aclFloatArray* given) {
    Arg& arg = next(ArgKind::FloatArray);
    arg.floats = array<float>(given, Kind::FloatArray, arg);
  }
  void text(const char* given) {
    char* copied = nullptr;
    if (given) {
      size_t bytes = strlen(given) + 1;
      copied = static_cast<char*>(take(executor_, bytes));
      memcpy(copied, given, bytes);
    }
    next(ArgKind::String).text = copied;
  }
  void flag(bool given) { next(ArgKind::Bool).flag = given; }
  void integer(int64_t given) { next(ArgKind::Int).integer = given; }
  void number(double given) { next(ArgKind::Float).number = given; }
  void pointer(const void* given) { next(ArgKind::Pointer).handle = const_cast<void*>(given); }

  aclnnStatus finish() { return finish_plan(executor_, count_, size_, out_); }

 private:
  Arg& next(ArgKind kind) {
    Arg& arg = executor_->call.args[count_++];
    arg.kind = kind;
    arg.size = 0;
    arg.handle = nullptr;
    return arg;
  }

  uint64_t* size_;
  aclOpExecutor** out_;
  int count_ = 0;
};

}  // namespace aclsim
