// Runs the rows of the simulator's operators over host memory: see kernels.h. What a row needs of
// the rest of the simulator (memory of a call, messages, threads) is here; there is no device, no
// stream and no product.
#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "nnopbase/op.h"

#include "entry.h"

namespace aclsim {

// Memory and messages of one call: of the check, or of one run.
struct Executor {
  const OpSpec* spec = nullptr;
  std::vector<std::unique_ptr<std::max_align_t[]>> blocks;
  std::string message;

  void* take(size_t bytes) {
    const size_t units = bytes / sizeof(std::max_align_t) + 1;
    blocks.emplace_back(new std::max_align_t[units]);
    return blocks.back().get();
  }
};

struct Row {
  const Op* op;
  const OpSpec* spec;
};
extern const Row kernel_rows[];
extern const size_t kernel_row_count;

namespace {

std::atomic<int> threads{0};

std::string format_text(const char* format, va_list values) {
  char text[512];
  vsnprintf(text, sizeof text, format, values);
  return text;
}

const Row* find(const char* op) {
  const Row* end = kernel_rows + kernel_row_count;
  const Row* row = std::lower_bound(kernel_rows, end, op, [](const Row& r, const char* name) {
    return strcmp(r.op->name, name) < 0;
  });
  return row != end && strcmp(row->op->name, op) == 0 ? row : nullptr;
}

constexpr char kLetters[] = "TtSsIBFbifcp";  // by ArgKind

}  // namespace

const char* Call::name(int i) const { return executor->spec->params[i].name; }
void* Call::scratch(size_t bytes) { return executor->take(bytes); }
aclnnStatus Call::fail(aclnnStatus code, const char* format, ...) const {
  va_list values;
  va_start(values, format);
  executor->message = format_text(format, values);
  va_end(values);
  return code;
}
aclError Call::trap(aclError code, const char* format, ...) const {
  va_list values;
  va_start(values, format);
  executor->message = format_text(format, values);
  va_end(values);
  return code;
}
void Call::resize(TensorAt, const int64_t*, int) {}  // such operators are not among the rows

int kernel_threads() {
  const int wanted = threads.load(std::memory_order_relaxed);
  return wanted ? wanted : 1;
}

}  // namespace aclsim

using aclsim::Arg;
using aclsim::ArgKind;
using aclsim::Call;
using aclsim::Executor;
using aclsim::Row;
using aclsim::Tensor;

namespace {
struct Room;
}

struct mtk_kernel {
  const Row* row;
  std::vector<Arg> args;
  struct Operand {
    Tensor view;
    int argument, member, place;
  };
  std::vector<Operand> operands;
  Executor executor;
  Call call{};
  size_t members = 0;  // of all lists, with one more each
  std::unique_ptr<Room> checked;  // what the check saw: its state may point there
  ~mtk_kernel();
};

namespace {

int refused(int code, const std::string& text, char* message, size_t room) {
  snprintf(message, room, "%s", text.c_str());
  return code ? code : -1;
}

template <class T>
T* kept(mtk_kernel* kernel, int64_t size) {
  return static_cast<T*>(kernel->executor.take(sizeof(T) * (static_cast<size_t>(size) + 1)));
}

// The call's own arguments: tensors at `tensors`, members of lists at `lists`.
void fill_arguments(const mtk_kernel& kernel, Arg* args, Tensor* tensors, Tensor** lists,
                    void* const* places) {
  std::copy(kernel.args.begin(), kernel.args.end(), args);
  for (size_t i = 0; i < kernel.args.size(); ++i) {
    if (args[i].kind != ArgKind::TensorList || args[i].size < 0) continue;
    args[i].tensors = lists;
    std::fill(lists, lists + args[i].size + 1, nullptr);
    lists += args[i].size + 1;
  }
  for (const mtk_kernel::Operand& operand : kernel.operands) {
    *tensors = operand.view;
    if (places) tensors->data = places[operand.place];
    Arg& arg = args[operand.argument];
    if (operand.member < 0) {
      arg.tensor = tensors;
    } else {
      arg.tensors[operand.member] = tensors;
    }
    ++tensors;
  }
}

struct Room {
  std::unique_ptr<Arg[]> args;
  std::unique_ptr<Tensor[]> tensors;
  std::unique_ptr<Tensor*[]> lists;
  explicit Room(const mtk_kernel& kernel)
      : args(new Arg[kernel.args.size() + 1]),
        tensors(new Tensor[kernel.operands.size() + 1]),
        lists(new Tensor*[kernel.members + 1]) {}
};

struct Free {
  void operator()(void* block) const { free(block); }
};

int run_in(const mtk_kernel& kernel, Arg* args, Tensor* tensors, Tensor** lists,
           void* const* places) {
  Executor executor;
  executor.spec = kernel.row->spec;
  fill_arguments(kernel, args, tensors, lists, places);
  Call call = kernel.call;
  call.args = args;
  call.executor = &executor;
  std::unique_ptr<void, Free> workspace;
  if (call.workspace_size) {
    const size_t bytes = (static_cast<size_t>(call.workspace_size) + 63) / 64 * 64;
    workspace.reset(aligned_alloc(64, bytes));
    if (!workspace) throw std::bad_alloc();
  }
  call.workspace = workspace.get();
  return call.op->run ? call.op->run(call) : 0;
}

int run(const mtk_kernel& kernel, void* const* places) {
  constexpr size_t kFew = 12;  // arguments of most operators: no memory is asked for them
  if (kernel.args.size() <= kFew && kernel.operands.size() <= kFew && kernel.members <= kFew) {
    Arg args[kFew];
    Tensor tensors[kFew];
    Tensor* lists[kFew];
    return run_in(kernel, args, tensors, lists, places);
  }
  const Room own(kernel);
  return run_in(kernel, own.args.get(), own.tensors.get(), own.lists.get(), places);
}

}  // namespace

mtk_kernel::~mtk_kernel() = default;

extern "C" {

const char* mtk_parameters(const char* op) {
  const Row* row = aclsim::find(op);
  if (!row) return nullptr;
  static thread_local std::string letters;
  letters.clear();
  for (int i = 0; i < row->spec->param_count; ++i) {
    letters += aclsim::kLetters[static_cast<int>(row->spec->params[i].kind)];
  }
  return letters.c_str();
}

int mtk_dtype(const char* name) {
  const std::string wanted = std::string("DT_") + name;
  for (int value = 0; value < 64; ++value) {
    const auto dtype = static_cast<aclDataType>(value);
    if (aclsim::dtype_size(dtype) && wanted == aclsim::dtype_name(dtype)) return value;
  }
  return -1;
}

void mtk_set_threads(int threads) { aclsim::threads.store(std::max(1, threads)); }
int mtk_threads(void) { return aclsim::kernel_threads(); }

mtk_kernel* mtk_new(const char* op) {
  const Row* row = aclsim::find(op);
  if (!row) return nullptr;
  try {
    auto kernel = std::make_unique<mtk_kernel>();
    kernel->row = row;
    kernel->executor.spec = row->spec;
    kernel->args.resize(row->spec->param_count);
    for (size_t i = 0; i < kernel->args.size(); ++i) {
      Arg& arg = kernel->args[i];
      arg.kind = row->spec->params[i].kind;
      arg.size = arg.kind == ArgKind::TensorList ? -1 : 0;
      arg.handle = nullptr;
    }
    return kernel.release();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void mtk_free(mtk_kernel* kernel) { delete kernel; }

void mtk_tensor(mtk_kernel* kernel, int argument, int member, int members, int place, int dtype,
                int rank, const int64_t* dims, const int64_t* strides, int64_t offset,
                int64_t numel) {
  mtk_kernel::Operand operand{};
  Tensor& view = operand.view;
  view.offset = offset;
  view.storage_numel = numel;
  view.dtype = static_cast<aclDataType>(dtype);
  view.format = ACL_FORMAT_ND;
  // Formats as clients give them, by rank: windows read the channels' place from them.
  if (rank == 3) view.format = ACL_FORMAT_NCL;
  if (rank == 4) view.format = ACL_FORMAT_NCHW;
  if (rank == 5) view.format = ACL_FORMAT_NCDHW;
  view.rank = rank;
  std::copy(dims, dims + rank, view.dims);
  std::copy(strides, strides + rank, view.strides);
  operand.argument = argument;
  operand.member = member;
  operand.place = place;
  Arg& arg = kernel->args[static_cast<size_t>(argument)];
  if (member >= 0 && arg.size < 0) {
    arg.size = members;
    kernel->members += static_cast<size_t>(members) + 1;
  }
  kernel->operands.push_back(operand);
}

void mtk_scalar(mtk_kernel* kernel, int argument, int dtype, const void* value, size_t size) {
  auto* made = new (kept<aclsim::Scalar>(kernel, 1)) aclsim::Scalar();
  made->dtype = static_cast<aclDataType>(dtype);
  memcpy(made->bytes, value, std::min(size, sizeof made->bytes));
  kernel->args[static_cast<size_t>(argument)].scalar = made;
}

void mtk_ints(mtk_kernel* kernel, int argument, int64_t size, const int64_t* values) {
  Arg& arg = kernel->args[static_cast<size_t>(argument)];
  arg.ints = kept<int64_t>(kernel, size);
  arg.size = size;
  std::copy(values, values + size, arg.ints);
}

void mtk_flags(mtk_kernel* kernel, int argument, int64_t size, const bool* values) {
  Arg& arg = kernel->args[static_cast<size_t>(argument)];
  arg.bools = kept<bool>(kernel, size);
  arg.size = size;
  std::copy(values, values + size, arg.bools);
}

void mtk_integer(mtk_kernel* kernel, int argument, int64_t value) {
  kernel->args[static_cast<size_t>(argument)].integer = value;
}
void mtk_number(mtk_kernel* kernel, int argument, double value) {
  kernel->args[static_cast<size_t>(argument)].number = value;
}
void mtk_flag(mtk_kernel* kernel, int argument, bool value) {
  kernel->args[static_cast<size_t>(argument)].flag = value;
}
void mtk_text(mtk_kernel* kernel, int argument, const char* value) {
  const size_t size = strlen(value) + 1;
  char* text = kept<char>(kernel, static_cast<int64_t>(size));
  memcpy(text, value, size);
  kernel->args[static_cast<size_t>(argument)].text = text;
}

int mtk_check(mtk_kernel* kernel, char* message, size_t room) {
  try {
    kernel->checked = std::make_unique<Room>(*kernel);
    const Room& own = *kernel->checked;
    fill_arguments(*kernel, own.args.get(), own.tensors.get(), own.lists.get(), nullptr);
    Call& call = kernel->call;
    call = Call{};
    call.op = kernel->row->op;
    call.args = own.args.get();
    call.count = static_cast<int32_t>(kernel->args.size());
    call.soc = aclsim::Soc::Ascend950;  // the product whose operators take the most
    call.executor = &kernel->executor;
    if (!call.op->check) return 0;
    const int code = call.op->check(call);
    return code ? refused(code, kernel->executor.message, message, room) : 0;
  } catch (const std::bad_alloc&) {
    return refused(-1, "no memory", message, room);
  }
}

int mtk_run(const mtk_kernel* kernel, void* const* places) {
  try {
    return run(*kernel, places);
  } catch (const std::bad_alloc&) {
    return -1;
  }
}

int mtk_run2(const mtk_kernel* kernel, void* first, void* second) {
  void* const places[] = {first, second};
  return mtk_run(kernel, places);
}

int mtk_run3(const mtk_kernel* kernel, void* first, void* second, void* third) {
  void* const places[] = {first, second, third};
  return mtk_run(kernel, places);
}

}  // extern "C"
