// aclInit and its counterparts: one reference count per process.
#include <algorithm>
#include <fstream>
#include <sstream>
#include <vector>

#include "ascendcl/device.h"
#include "ascendcl/strict.h"

using namespace aclsim;

namespace {

constexpr int kNesting = 10;  // aclInit document: at most ten levels of each bracket

bool nested_too_deep(const std::string& text) {
  int depth[2] = {0, 0};
  for (char c : text) {
    if (c == '{' && ++depth[0] > kNesting) return true;
    if (c == '[' && ++depth[1] > kNesting) return true;
    if (c == '}') --depth[0];
    if (c == ']') --depth[1];
    if (depth[0] < 0 || depth[1] < 0) return true;
  }
  return depth[0] != 0 || depth[1] != 0;
}

// The string value of a key anywhere in the file; aclInit's keys are unique, so no tree is needed.
std::string value_of(const std::string& text, const std::string& key) {
  size_t at = text.find("\"" + key + "\"");
  if (at == std::string::npos) return "";
  at = text.find(':', at);
  if (at == std::string::npos) return "";
  size_t begin = text.find_first_not_of(" \t\r\n", at + 1);
  if (begin == std::string::npos || text[begin] != '"') return "";
  size_t end = text.find('"', begin + 1);
  return end == std::string::npos ? "" : text.substr(begin + 1, end - begin - 1);
}

aclError read_config(const char* path, std::string* text) {
  std::ifstream file(path);
  if (!file) {
    return failed(ACL_ERROR_INVALID_FILE, "EH0002", "aclInit failed because %s cannot be read.",
                  path);
  }
  std::stringstream all;
  all << file.rdbuf();
  *text = all.str();
  bool blank = text->find_first_not_of(" \t\r\n") == std::string::npos;
  if (!blank && (text->find('{') == std::string::npos || nested_too_deep(*text))) {
    return failed(ACL_ERROR_PARSE_FILE, "EH0002",
                  "aclInit failed because %s is not JSON with at most %d levels of nesting.", path,
                  kNesting);
  }
  return ACL_SUCCESS;
}

struct Hook {
  bool init;
  aclRegisterCallbackType type;
  aclInitCallbackFunc on_init;
  aclFinalizeCallbackFunc on_finalize;
  void* data;
};
std::vector<Hook>& hooks() {
  static auto* made = new std::vector<Hook>;
  return *made;
}

// A type other than ACL_REG_TYPE_OTHER has one callback of each kind (CANN's open runtime,
// init_callback_manager.cpp, which also has the codes).
aclError add_hook(const char* function, const Hook& hook) {
  for (const Hook& other : hooks()) {
    if (hook.type == ACL_REG_TYPE_OTHER || other.type != hook.type || other.init != hook.init) {
      continue;
    }
    return failed(ACL_ERROR_INTERNAL_ERROR, "EH0001",
                  "%s failed because type %d has a callback already.", function,
                  static_cast<int>(hook.type));
  }
  hooks().push_back(hook);
  return ACL_SUCCESS;
}

template <class Same>
aclError remove_hook(const char* function, Same same) {
  auto& all = hooks();
  auto at = std::find_if(all.begin(), all.end(), same);
  if (at == all.end()) {
    return failed(ACL_ERROR_INTERNAL_ERROR, "EH0001",
                  "%s failed because no such callback is registered.", function);
  }
  all.erase(at);
  return ACL_SUCCESS;
}

// The callbacks of one kind in the order in which they came; the first code that is no success.
// They may register and unregister others.
aclError call_hooks(bool init, const std::string& text) {
  std::vector<Hook> copy = hooks();
  for (const Hook& hook : copy) {
    if (hook.init != init) continue;
    aclError code = init ? hook.on_init(text.c_str(), text.size(), hook.data)
                         : hook.on_finalize(hook.data);
    if (code != ACL_SUCCESS) return code;
  }
  return ACL_SUCCESS;
}

aclError finalize(const char* function) {
  Runtime& all = runtime();
  aclError told = call_hooks(false, "");
  if (told != ACL_SUCCESS) return told;
  all.initialised = 0;
  profile_end();
  if (!strict()) return ACL_SUCCESS;
  int64_t leaked = report_leaks();
  all.finalized = true;
  if (!leaked || strict_mode < Strict::Error) return ACL_SUCCESS;
  return failed(ACL_ERROR_RELATIVE_RESOURCE_NOT_CLEARED, "EH0001",
                "%s: %lld handles or allocations were not released.", function,
                static_cast<long long>(leaked));
}

}  // namespace

ACLSIM_API aclError aclInit(const char* configPath) {
  thread();
  Runtime& all = runtime();
  Lock lock(all.mutex);
  if (all.initialised) {
    ++all.initialised;
    // An answer more than a failure: callers may ignore it (aclInit document), and a message left
    // behind would be printed as the cause of whatever fails next.
    return thread()->last_error = ACL_ERROR_REPEAT_INITIALIZE;
  }
  std::string text;
  if (configPath && *configPath) {
    aclError code = read_config(configPath, &text);
    if (code != ACL_SUCCESS) return code;
  }
  // After aclFinalize, aclInit works again, with the same configuration.
  if (!all.first_config.empty() && all.first_config != text + ";") {
    return failed(ACL_ERROR_INVALID_PARAM, "EH0001",
                  "aclInit failed because its configuration differs from the process's first.");
  }
  all.first_config = text + ";";
  profile_from_environment();
  std::string device = value_of(text, "default_device");
  if (!device.empty()) all.default_device = atoi(device.c_str());
  errors_per_process(value_of(text, "err_msg_mode") == "1");
  aclError told = call_hooks(true, text);
  if (told != ACL_SUCCESS) return told;
  all.initialised = 1;
  all.finalized = false;
  return ACL_SUCCESS;
}

ACLSIM_API aclError aclFinalize() {
  thread();
  Runtime& all = runtime();
  Lock lock(all.mutex);
  if (all.finalized || (!all.initialised && !all.first_config.empty())) {
    if (strict()) report_misuse("call-after-finalize", __func__, nullptr, Kind::Context, "Call aclFinalize once.");
    return failed(ACL_ERROR_REPEAT_FINALIZE, "EH0001", "aclFinalize was called already.");
  }
  return finalize(__func__);
}

ACLSIM_API aclError aclFinalizeReference(uint64_t* refCount) {
  thread();
  Runtime& all = runtime();
  Lock lock(all.mutex);
  if (all.initialised == 0) {
    return failed(ACL_ERROR_REPEAT_FINALIZE, "EH0001", "aclFinalizeReference: nothing is initialised.");
  }
  --all.initialised;
  if (refCount) *refCount = all.initialised;
  return all.initialised ? ACL_SUCCESS : finalize(__func__);
}

// After aclInit the callback runs at once, and its code is nobody's.
ACLSIM_API aclError aclInitCallbackRegister(aclRegisterCallbackType type,
                                            aclInitCallbackFunc cbFunc, void* userData) {
  ACLSIM_REQUIRE(cbFunc);
  Runtime& all = runtime();
  Lock lock(all.mutex);
  aclError code = add_hook(__func__, {true, type, cbFunc, nullptr, userData});
  if (code == ACL_SUCCESS && all.initialised) {
    const std::string text = all.first_config.substr(0, all.first_config.size() - 1);
    cbFunc(text.c_str(), text.size(), userData);
  }
  return code;
}
ACLSIM_API aclError aclInitCallbackUnRegister(aclRegisterCallbackType type,
                                              aclInitCallbackFunc cbFunc) {
  ACLSIM_REQUIRE(cbFunc);
  Lock lock(runtime().mutex);
  return remove_hook(__func__, [&](const Hook& hook) {
    return hook.init && hook.type == type && hook.on_init == cbFunc;
  });
}
ACLSIM_API aclError aclFinalizeCallbackRegister(aclRegisterCallbackType type,
                                                aclFinalizeCallbackFunc cbFunc, void* userData) {
  ACLSIM_REQUIRE(cbFunc);
  Lock lock(runtime().mutex);
  return add_hook(__func__, {false, type, nullptr, cbFunc, userData});
}
ACLSIM_API aclError aclFinalizeCallbackUnRegister(aclRegisterCallbackType type,
                                                  aclFinalizeCallbackFunc cbFunc) {
  ACLSIM_REQUIRE(cbFunc);
  Lock lock(runtime().mutex);
  return remove_hook(__func__, [&](const Hook& hook) {
    return !hook.init && hook.type == type && hook.on_finalize == cbFunc;
  });
}
