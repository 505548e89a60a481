#include "nnopbase/kernel_binding.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "ascendcl/dtype.h"
#include "ascendcl/profile.h"
#include "nnopbase/fault_plan.h"

extern char** environ;

namespace aclsim {
namespace {

constexpr int kServerSocket = 3;  // file descriptor in the Python process
constexpr size_t kMessage = 512;

std::string suffix_of(const std::string& path) {
  const size_t dot = path.rfind('.');
  return dot == std::string::npos ? "" : path.substr(dot);
}

// TYPE=FILE or TYPE=FILE:NAME.
std::string parse_one(const std::string& text, Binding* binding) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || !equals) return "expected TYPE=FILE:NAME";
  binding->type = text.substr(0, equals);
  binding->path = text.substr(equals + 1);
  const size_t colon = binding->path.rfind(':');
  if (colon != std::string::npos) {
    binding->function = binding->path.substr(colon + 1);
    binding->path.resize(colon);
  }
  if (binding->function.empty()) binding->function = binding->type;
  const std::string suffix = suffix_of(binding->path);
  if (suffix != ".py" && suffix != ".so") return "expected a .py or .so file";
  return access(binding->path.c_str(), R_OK) ? "there is no such file, or it cannot be read" : "";
}

struct Bindings {
  std::vector<std::unique_ptr<Binding>> all;
  std::string problem;
};

const Bindings& bindings() {
  static const Bindings* parsed = [] {
    auto* made = new Bindings;
    const char* variable = getenv("ACLSIM_KERNELS");
    const std::string text = variable ? variable : "";
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find(';', at), text.size());
      const std::string one = text.substr(at, end - at);
      at = end + 1;
      auto binding = std::make_unique<Binding>();
      const std::string wrong = parse_one(one, binding.get());
      if (wrong.empty()) made->all.push_back(std::move(binding));
      else if (made->problem.empty()) made->problem = "ACLSIM_KERNELS: '" + one + "': " + wrong;
    }
    return made;
  }();
  return *parsed;
}

// ---- The Python process ----

bool send_all(int socket, const void* data, size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size) {
    const ssize_t sent = send(socket, at, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    size -= static_cast<size_t>(sent);
  }
  return true;
}

bool receive_all(int socket, void* data, size_t size) {
  char* at = static_cast<char*>(data);
  while (size) {
    const ssize_t got = recv(socket, at, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    size -= static_cast<size_t>(got);
  }
  return true;
}

// An answer begins with the length of a message; an empty one means success.
std::string receive_message(int socket) {
  uint32_t length = 0;
  if (!receive_all(socket, &length, sizeof length)) return "its Python process ended";
  std::string message(length, '\0');
  if (!receive_all(socket, message.data(), length)) return "its Python process ended";
  return message;
}

std::string server_script() {
  Dl_info info{};
  dladdr(reinterpret_cast<const void*>(&server_script), &info);
  char* real = realpath(info.dli_fname ? info.dli_fname : "", nullptr);
  const std::string library = real ? real : "";
  free(real);
  const size_t slash = library.rfind('/', library.rfind('/') - 1);
  return library.substr(0, slash) + "/share/aclsim/kernel_server.py";
}

// The variables of this process, but for those that put layers between a program and CANN.
std::vector<char*> server_environment() {
  std::vector<char*> kept;
  for (char** one = environ; *one; ++one) {
    const bool layers = !strncmp(*one, "LD_PRELOAD=", 11) || !strncmp(*one, "MINDTORCH_LAYERS", 16);
    if (!layers) kept.push_back(*one);
  }
  kept.push_back(nullptr);
  return kept;
}

std::string start(const Binding& binding) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) return strerror(errno);
  const char* named = getenv("ACLSIM_PYTHON");
  const std::string python = named && *named ? named : "python3", script = server_script();
  std::vector<std::string> words = {python, script, binding.path, binding.function};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], kServerSocket);
  pid_t pid;
  std::vector<char*> variables = server_environment();
  const int failure =
      posix_spawnp(&pid, python.c_str(), &actions, nullptr, arguments.data(), variables.data());
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (failure) {
    close(ends[0]);
    return "cannot start " + python + ": " + strerror(failure);
  }
  binding.socket = ends[0];
  binding.owner = getpid();
  return receive_message(binding.socket);
}

std::string start_once(const Binding& binding) {
  if (binding.socket >= 0 && binding.owner == getpid()) return "";
  const std::string wrong = start(binding);
  if (!wrong.empty() && binding.socket >= 0) {
    close(binding.socket);
    binding.socket = -1;
  }
  return wrong;
}

size_t bytes_of(const aclsimTensor& t) {
  size_t count = dtype_size(static_cast<aclDataType>(t.dtype));
  for (int d = 0; d < t.rank; ++d) count *= static_cast<size_t>(t.dims[d]);
  return count;
}

bool is_dense(const aclsimTensor& t) {
  int64_t step = 1;
  for (int d = t.rank - 1; d >= 0; step *= t.dims[d--]) {
    if (t.dims[d] != 1 && t.strides[d] != step) return false;
  }
  return true;
}

// Each element of a view, in order.
template <class Each>
void each_element(const aclsimTensor& t, Each each) {
  const auto size = static_cast<int64_t>(dtype_size(static_cast<aclDataType>(t.dtype)));
  int64_t at[kMaxRank] = {};
  for (size_t i = 0; i < bytes_of(t) / size; ++i) {
    int64_t offset = 0;
    for (int d = 0; d < t.rank; ++d) offset += at[d] * t.strides[d];
    each(static_cast<char*>(t.data) + offset * size, i * size, size);
    for (int d = t.rank - 1; d >= 0 && ++at[d] == t.dims[d]; --d) at[d] = 0;
  }
}

bool send_tensor(int socket, const aclsimTensor& t) {
  const size_t bytes = bytes_of(t);
  if (!bytes || is_dense(t)) return send_all(socket, t.data, bytes);
  std::vector<char> dense(bytes);
  each_element(t, [&](char* element, size_t at, size_t size) { memcpy(&dense[at], element, size); });
  return send_all(socket, dense.data(), bytes);
}

bool receive_tensor(int socket, const aclsimTensor& t) {
  const size_t bytes = bytes_of(t);
  if (!bytes || is_dense(t)) return receive_all(socket, t.data, bytes);
  std::vector<char> dense(bytes);
  if (!receive_all(socket, dense.data(), bytes)) return false;
  each_element(t, [&](char* element, size_t at, size_t size) { memcpy(element, &dense[at], size); });
  return true;
}

void append_number(double value, std::string* to) {
  char text[40];
  snprintf(text, sizeof text, value != value ? "NaN" : "%.17g", value);
  *to += value - value != 0 && value == value ? (value > 0 ? "Infinity" : "-Infinity") : text;
}

void append_element(const aclsimValue& v, int64_t i, std::string* to) {
  switch (v.kind) {
    case ACLSIM_INTS: *to += std::to_string(static_cast<const int64_t*>(v.values)[i]); break;
    case ACLSIM_BOOLS: *to += static_cast<const uint8_t*>(v.values)[i] ? "true" : "false"; break;
    case ACLSIM_FLOATS: append_number(static_cast<const double*>(v.values)[i], to); break;
    case ACLSIM_TENSORS: {
      const auto& t = static_cast<const aclsimTensor*>(v.values)[i];
      *to += "{\"dtype\":" + std::to_string(t.dtype) + ",\"shape\":[";
      for (int d = 0; d < t.rank; ++d) *to += (d ? "," : "") + std::to_string(t.dims[d]);
      *to += "],\"bytes\":" + std::to_string(bytes_of(t)) + "}";
      break;
    }
    default: *to += "null";
  }
}

// {"name", "kind", "list", "values"}: of a tensor its dtype, shape and the bytes that follow.
void append_value(const aclsimValue& v, std::string* to) {
  static const char* kinds[] = {"absent", "tensors", "ints", "floats", "bools", "text"};
  *to += "{\"name\":";
  append_json_text(to, v.name);
  *to += std::string(",\"kind\":\"") + kinds[v.kind] + "\",\"list\":" +
         (v.is_list ? "true" : "false") + ",\"values\":";
  if (v.kind == ACLSIM_TEXT) {
    append_json_text(to, static_cast<const char*>(v.values));
  } else {
    *to += '[';
    for (int64_t i = 0; i < v.size; ++i) {
      if (i) *to += ',';
      append_element(v, i, to);
    }
    *to += ']';
  }
  *to += '}';
}

std::string request_of(const aclsimKernelCall& call) {
  std::string text = "{\"type\":";
  append_json_text(&text, call.type);
  const auto group = [&](const char* name, const aclsimValue* values, int count) {
    text += std::string(",\"") + name + "\":[";
    for (int i = 0; i < count; ++i) {
      if (i) text += ',';
      append_value(values[i], &text);
    }
    text += ']';
  };
  group("inputs", call.inputs, call.input_count);
  group("attributes", call.attributes, call.attribute_count);
  group("outputs", call.outputs, call.output_count);
  return text + "}";
}

template <class Each>
bool each_tensor(const aclsimValue* values, int count, Each each) {
  for (int i = 0; i < count; ++i) {
    for (int64_t m = 0; values[i].kind == ACLSIM_TENSORS && m < values[i].size; ++m) {
      if (!each(static_cast<const aclsimTensor*>(values[i].values)[m])) return false;
    }
  }
  return true;
}

std::string call_python(const Binding& binding, const aclsimKernelCall& call) {
  std::lock_guard<std::mutex> lock(binding.mutex);
  std::string wrong = start_once(binding);
  if (!wrong.empty()) return wrong;
  const int socket = binding.socket;
  const std::string request = request_of(call);
  const auto length = static_cast<uint32_t>(request.size());
  const bool sent =
      send_all(socket, &length, sizeof length) && send_all(socket, request.data(), length) &&
      each_tensor(call.inputs, call.input_count,
                  [&](const aclsimTensor& t) { return send_tensor(socket, t); });
  wrong = sent ? receive_message(socket) : "its Python process ended";
  if (wrong.empty() && !each_tensor(call.outputs, call.output_count, [&](const aclsimTensor& t) {
        return receive_tensor(socket, t);
      })) {
    wrong = "its Python process ended";
  }
  if (wrong == "its Python process ended") {
    close(socket);
    binding.socket = -1;
  }
  return wrong;
}

}  // namespace

bool Binding::is_python() const { return suffix_of(path) == ".py"; }

const Binding* find_binding(const char* type, std::string* problem) {
  *problem = bindings().problem;
  for (const auto& binding : bindings().all) {
    if (binding->type == type) return binding.get();
  }
  return nullptr;
}

bool binds_key(const std::string& key) {
  for (const auto& binding : bindings().all) {
    if (fault_key(binding->type) == key) return true;
  }
  return false;
}

std::string ready(const Binding& binding) {
  std::lock_guard<std::mutex> lock(binding.mutex);
  if (binding.is_python()) {
    const std::string wrong = start_once(binding);
    return wrong.empty() ? "" : binding.path + ": " + wrong;
  }
  if (binding.native) return "";
  void* library = dlopen(binding.path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return dlerror();
  void* symbol = dlsym(library, binding.function.c_str());
  if (!symbol) return binding.path + " does not export " + binding.function;
  const_cast<Binding&>(binding).native = reinterpret_cast<aclsimKernel>(symbol);
  return "";
}

std::string call_kernel(const Binding& binding, const aclsimKernelCall& call) {
  if (binding.is_python()) return call_python(binding, call);
  char message[kMessage] = "";
  const int code = binding.native(&call, message, sizeof message);
  if (!code) return "";
  message[kMessage - 1] = 0;
  return *message ? message : "the kernel returned " + std::to_string(code);
}

}  // namespace aclsim
