// A program that profiles itself (`aclprof…`), or that msprof profiles: one part per run, by name.
#include <acl/acl_prof.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <string>

#include "kit.h"

extern "C" void mstxMarkA(const char*, aclrtStream);  // of libms_tools_ext, which has no public header

constexpr int kLaunches = 5;
constexpr uint64_t kKinds = ACL_PROF_ACL_API | ACL_PROF_TASK_TIME | ACL_PROF_TASK_MEMORY;

static void work(Kit& kit) {
  Addition add;
  for (int i = 0; i < kLaunches; ++i) {
    MUST(add.plan());
    MUST(aclnnAdd(nullptr, 0, add.executor, kit.stream));
  }
  MUST(aclrtMemsetAsync(add.out, 32, 0, 32, kit.stream));
  mstxMarkA("done", kit.stream);  // passes the stream, and is no task
  MUST(aclrtSynchronizeStream(kit.stream));
  add.destroy_handles();
  add.free_memory();
}

static void whole(const char*) {
  Kit kit;
  work(kit);
  kit.end();
}

static void part(const char* folder) {
  Kit kit;
  work(kit);  // before the profile: not in it
  uint32_t device = 0;
  MUST(aclprofInit(folder, strlen(folder)));
  aclprofConfig* config = aclprofCreateConfig(&device, 1, ACL_AICORE_NONE, nullptr, kKinds);
  CHECK(config);
  MUST(aclprofStart(config));
  void* stamp = aclprofCreateStamp();
  MUST(aclprofSetStampTraceMessage(stamp, "a \"range\"", 9));
  MUST(aclprofPush(stamp));
  work(kit);
  MUST(aclprofPop());
  aclprofDestroyStamp(stamp);
  MUST(aclprofStop(config));
  work(kit);  // after it
  MUST(aclprofDestroyConfig(config));
  MUST(aclprofFinalize());
  kit.end();
}

// The child ends as programs do, and leaves the parent's profile alone.
static void forked(const char* folder) {
  Kit kit;
  uint32_t device = 0;
  MUST(aclprofInit(folder, strlen(folder)));
  aclprofConfig* config = aclprofCreateConfig(&device, 1, ACL_AICORE_NONE, nullptr, kKinds);
  MUST(aclprofStart(config));
  work(kit);
  pid_t child = fork();
  if (child == 0) exit(0);
  int status = 1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  MUST(aclprofStop(config));
  MUST(aclprofDestroyConfig(config));
  MUST(aclprofFinalize());
  kit.end();
}

static void codes(const char* folder) {
  Kit kit;
  uint32_t device = 0, absent = 63, twice[] = {0, 0};
  aclprofConfig* config = aclprofCreateConfig(&device, 1, ACL_AICORE_NONE, nullptr, kKinds);
  CHECK(!aclprofCreateConfig(&absent, 1, ACL_AICORE_NONE, nullptr, kKinds));
  CHECK(!aclprofCreateConfig(twice, 2, ACL_AICORE_NONE, nullptr, kKinds));
  CHECK(aclprofStart(config) == ACL_ERROR_PROF_NOT_RUN);
  CHECK(aclprofFinalize() == ACL_ERROR_PROF_NOT_RUN);
  CHECK(aclprofInit("/proc/none", 10) == ACL_ERROR_INVALID_FILE);
  CHECK(aclprofInit(nullptr, 1) == ACL_ERROR_INVALID_PARAM);
  MUST(aclprofInit(folder, strlen(folder)));
  CHECK(aclprofInit(folder, strlen(folder)) == ACL_ERROR_PROF_ALREADY_RUN);
  CHECK(aclprofStop(config) == ACL_ERROR_PROF_NOT_RUN);
  MUST(aclprofStart(config));
  CHECK(aclprofStart(config) == ACL_ERROR_PROF_ALREADY_RUN);
  aclprofConfig* other = aclprofCreateConfig(&device, 1, ACL_AICORE_NONE, nullptr, kKinds);
  CHECK(aclprofStop(other) == ACL_ERROR_INVALID_PROFILING_CONFIG);
  MUST(aclprofStop(config));
  CHECK(aclprofPop() == ACL_ERROR_INVALID_PARAM);
  CHECK(aclprofRangeStop(7) == ACL_ERROR_INVALID_PARAM);
  MUST(aclprofDestroyConfig(config));
  MUST(aclprofDestroyConfig(other));
  MUST(aclprofFinalize());
  kit.end();
}

int main(int count, char** arguments) {
  CHECK(count >= 2);
  std::map<std::string, std::function<void(const char*)>> parts = {
      {"whole", whole}, {"part", part}, {"codes", codes}, {"forked", forked}};
  parts.at(arguments[1])(count > 2 ? arguments[2] : nullptr);
  printf("done\n");
}
