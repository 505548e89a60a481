// aclprof…: configurations, the life of a profile, and marks that programs set.
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include <acl/acl_prof.h>

#include "ascendcl/device.h"
#include "ascendcl/profile.h"
#include "ascendcl/profile_session.h"
#include "per_thread.h"

struct aclprofConfig {
  uint64_t devices, kinds;
};
struct aclprofStepInfo {
  uint64_t begin = 0;
  uint32_t count = 0;
};

namespace aclsim {
namespace {

struct Stamp {
  std::string message;
  uint64_t begin = 0;
};

struct State {
  std::mutex mutex;
  std::string folder;  // empty: aclprofInit was not called
  const aclprofConfig* running = nullptr;
  std::vector<Stamp*> ranges;  // by id; null once ended
};
State& state() {
  static auto* made = new State;
  return *made;
}
struct Pushed {
  std::vector<Stamp> stamps;
};
std::vector<Stamp>& pushed() { return aclnn_bindings::per_thread<Pushed>().stamps; }

aclError not_initialised(const char* function) {
  return failed(ACL_ERROR_PROF_NOT_RUN, "EH0001", "%s failed because aclprofInit was not called.",
                function);
}
aclError bad_config(const char* function) {
  return failed(ACL_ERROR_INVALID_PROFILING_CONFIG, "EH0001",
                "%s failed because the configuration is not the one that profiling runs with.",
                function);
}
void mark_now(const char* message) {
  if (!profiling()) return;
  uint64_t now = profile_clock();
  profile_mark("", message, now, now);
}

}  // namespace
}  // namespace aclsim

using namespace aclsim;

ACLSIM_API aclError aclprofInit(const char* profilerResultPath, size_t length) {
  thread();
  ACLSIM_REQUIRE(profilerResultPath);
  if (!length) return bad_value(__func__, "length", "0", "the length of profilerResultPath");
  std::lock_guard<std::mutex> lock(state().mutex);
  if (!state().folder.empty()) {
    return failed(ACL_ERROR_PROF_ALREADY_RUN, "EH0001", "aclprofInit was called already.");
  }
  std::string folder(profilerResultPath, strnlen(profilerResultPath, length));
  struct stat about;
  bool good = stat(folder.c_str(), &about) == 0 ? S_ISDIR(about.st_mode) != 0
                                                : mkdir(folder.c_str(), 0750) == 0;
  if (!good || access(folder.c_str(), W_OK) != 0) {
    return failed(ACL_ERROR_INVALID_FILE, "EH0002",
                  "aclprofInit failed because %s is no folder that can be written.", folder.c_str());
  }
  state().folder = folder;
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclprofFinalize() {
  thread();
  std::lock_guard<std::mutex> lock(state().mutex);
  if (state().folder.empty()) return not_initialised(__func__);
  profile_end();
  state().folder.clear();
  state().running = nullptr;
  return ACL_SUCCESS;
}

ACLSIM_API aclprofConfig* aclprofCreateConfig(uint32_t* deviceIdList, uint32_t deviceNums,
                                              aclprofAicoreMetrics, const aclprofAicoreEvents*,
                                              uint64_t dataTypeConfig) {
  thread();
  if (deviceNums && !deviceIdList) return null_pointer(__func__, "deviceIdList"), nullptr;
  uint64_t devices = 0;
  for (uint32_t i = 0; i < deviceNums; ++i) {
    if (deviceIdList[i] >= static_cast<uint32_t>(config().devices)) {
      failed(ACL_ERROR_INVALID_DEVICE, "EH0001", "%s failed because device %u does not exist.",
             __func__, deviceIdList[i]);
      return nullptr;
    }
    if (devices >> deviceIdList[i] & 1) {
      failed(ACL_ERROR_INVALID_PARAM, "EH0001", "%s failed because device %u is given twice.",
             __func__, deviceIdList[i]);
      return nullptr;
    }
    devices |= uint64_t{1} << deviceIdList[i];
  }
  return new aclprofConfig{devices, dataTypeConfig};
}
ACLSIM_API aclError aclprofDestroyConfig(const aclprofConfig* profilerConfig) {
  thread();
  ACLSIM_REQUIRE(profilerConfig);
  std::lock_guard<std::mutex> lock(state().mutex);
  if (state().running == profilerConfig) state().running = nullptr;
  delete profilerConfig;
  return ACL_SUCCESS;
}
// Newer than the headers: clients look it up and pass what aclprofStart then gets. Nothing of the
// simulator needs to warm up.
ACLSIM_API aclError aclprofWarmup(const aclprofConfig* profilerConfig) {
  thread();
  ACLSIM_REQUIRE(profilerConfig);
  std::lock_guard<std::mutex> lock(state().mutex);
  return state().folder.empty() ? not_initialised(__func__) : ACL_SUCCESS;
}
ACLSIM_API aclError aclprofStart(const aclprofConfig* profilerConfig) {
  thread();
  ACLSIM_REQUIRE(profilerConfig);
  std::lock_guard<std::mutex> lock(state().mutex);
  if (state().folder.empty()) return not_initialised(__func__);
  switch (profile_open(state().folder, profilerConfig->devices, profilerConfig->kinds)) {
    case ProfileCode::Running:
      return failed(ACL_ERROR_PROF_ALREADY_RUN, "EH0001", "Profiling runs already.");
    case ProfileCode::NoFile:
      return failed(ACL_ERROR_PROFILING_FAILURE, "EH0002", "No profile can be written below %s.",
                    state().folder.c_str());
    default: break;
  }
  state().running = profilerConfig;
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclprofStop(const aclprofConfig* profilerConfig) {
  thread();
  ACLSIM_REQUIRE(profilerConfig);
  std::lock_guard<std::mutex> lock(state().mutex);
  if (state().folder.empty()) return not_initialised(__func__);
  if (!profiling()) {
    return failed(ACL_ERROR_PROF_NOT_RUN, "EH0001", "aclprofStop failed: no profiling runs.");
  }
  if (state().running != profilerConfig) return bad_config(__func__);
  profile_close();
  state().running = nullptr;
  return ACL_SUCCESS;
}
// Rates of hardware counters: there is nothing to count here, and nothing depends on it.
ACLSIM_API aclError aclprofSetConfig(aclprofConfigType configType, const char* config,
                                     size_t configLength) {
  thread();
  ACLSIM_REQUIRE(config);
  if (configType <= ACL_PROF_ARGS_MIN || configType >= ACL_PROF_ARGS_MAX) {
    return bad_value(__func__, "configType", "unknown", "an aclprofConfigType");
  }
  if (!configLength) return bad_value(__func__, "configLength", "0", "the length of config");
  return ACL_SUCCESS;
}

// Steps of a training: what lies between the two tags.
ACLSIM_API aclprofStepInfo* aclprofCreateStepInfo() { return new aclprofStepInfo; }
ACLSIM_API void aclprofDestroyStepInfo(aclprofStepInfo* stepinfo) { delete stepinfo; }
ACLSIM_API aclError aclprofGetStepTimestamp(aclprofStepInfo* stepInfo, aclprofStepTag tag,
                                            aclrtStream stream) {
  ACLSIM_REQUIRE(stepInfo);
  ACLSIM_STREAM(on, stream);
  (void)on;
  if (tag == ACL_STEP_START) {
    stepInfo->begin = profile_clock();
  } else if (tag != ACL_STEP_END) {
    return bad_value(__func__, "tag", "unknown", "ACL_STEP_START or ACL_STEP_END");
  } else if (profiling() && stepInfo->begin) {
    std::string name = "step " + std::to_string(++stepInfo->count);
    profile_mark("step", name.c_str(), stepInfo->begin, profile_clock());
  }
  return ACL_SUCCESS;
}

// Stamps: messages at a time, or over a range of one thread (push, pop) or of several (start, stop).
ACLSIM_API void* aclprofCreateStamp() { return new Stamp; }
ACLSIM_API void aclprofDestroyStamp(void* stamp) { delete static_cast<Stamp*>(stamp); }
ACLSIM_API aclError aclprofSetStampTraceMessage(void* stamp, const char* msg, uint32_t msgLen) {
  ACLSIM_REQUIRE(stamp);
  ACLSIM_REQUIRE(msg);
  static_cast<Stamp*>(stamp)->message.assign(msg, strnlen(msg, msgLen));
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclprofMark(void* stamp) {
  ACLSIM_REQUIRE(stamp);
  mark_now(static_cast<Stamp*>(stamp)->message.c_str());
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclprofMarkEx(const char* msg, size_t msgLen, aclrtStream stream) {
  ACLSIM_REQUIRE(msg);
  ACLSIM_STREAM(on, stream);
  (void)on;
  mark_now(std::string(msg, strnlen(msg, msgLen)).c_str());
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclprofPush(void* stamp) {
  ACLSIM_REQUIRE(stamp);
  pushed().push_back({static_cast<Stamp*>(stamp)->message, profile_clock()});
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclprofPop() {
  if (pushed().empty()) {
    return failed(ACL_ERROR_INVALID_PARAM, "EH0001", "aclprofPop failed: nothing was pushed.");
  }
  if (profiling()) {
    profile_mark("", pushed().back().message.c_str(), pushed().back().begin, profile_clock());
  }
  pushed().pop_back();
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclprofRangeStart(void* stamp, uint32_t* rangeId) {
  ACLSIM_REQUIRE(stamp);
  ACLSIM_REQUIRE(rangeId);
  auto* range = new Stamp{static_cast<Stamp*>(stamp)->message, profile_clock()};
  std::lock_guard<std::mutex> lock(state().mutex);
  *rangeId = static_cast<uint32_t>(state().ranges.size());
  state().ranges.push_back(range);
  return ACL_SUCCESS;
}
ACLSIM_API aclError aclprofRangeStop(uint32_t rangeId) {
  Stamp* range = nullptr;
  {
    std::lock_guard<std::mutex> lock(state().mutex);
    if (rangeId < state().ranges.size()) std::swap(range, state().ranges[rangeId]);
  }
  if (!range) {
    return failed(ACL_ERROR_INVALID_PARAM, "EH0001",
                  "aclprofRangeStop failed because range %u was not started, or has ended.", rangeId);
  }
  if (profiling()) profile_mark("", range->message.c_str(), range->begin, profile_clock());
  delete range;
  return ACL_SUCCESS;
}
