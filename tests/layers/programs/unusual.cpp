// Programs that start, run or end in an unusual way; argument 1 says which. Each prints what it
// computed, and leaves with a code of its own, with layers as without.
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include <aclnnop/aclnn_add.h>

#include "sample.h"

extern char **environ;

namespace {

// 1 + 2 * 3 through the device.
float compute() {
  DeviceTensor<float> x(std::vector<float>(4, 1), {4}, ACL_FLOAT), y({3, 3, 3, 3}, {4}, ACL_FLOAT);
  float two = 2;
  aclScalar *alpha = aclCreateScalar(&two, ACL_FLOAT);
  aclrtStream stream;
  OK_OR_EXIT(aclrtCreateStream(&stream));
  uint64_t size = 0;
  aclOpExecutor *executor = nullptr;
  OK_OR_EXIT(aclnnAddGetWorkspaceSize(x.handle, y.handle, alpha, x.handle, &size, &executor));
  OK_OR_EXIT(aclnnAdd(nullptr, size, executor, stream));
  OK_OR_EXIT(aclrtSynchronizeStream(stream));
  OK_OR_EXIT(aclrtDestroyStream(stream));
  OK_OR_EXIT(aclDestroyScalar(alpha));
  return x.values()[0];
}

void say() {
  std::printf("%g\n", compute());
  std::fflush(stdout);
}

// Its own idea of every file descriptor: daemons close them all, and open others in their place.
int closes_files() {
  Session session;
  const int out = dup(1);
  for (int fd = 3; fd < 1024; ++fd)
    if (fd != out) close(fd);
  for (int i = 0; i < 32; ++i)
    if (open("/dev/null", O_RDWR) < 0) return 1;
  say();
  return 4;
}

int calls_after_the_end() {
  { Session session; say(); }
  void *memory = nullptr;
  const int refused = aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST) != 0;
  aclrtStream stream = nullptr;
  const int second = aclrtCreateStream(&stream) != 0;
  OK_OR_EXIT(aclInit(nullptr));
  OK_OR_EXIT(aclrtSetDevice(0));
  say();
  std::printf("%d %d\n", refused, second);
  return 5;
}

// A child that borrows this process's memory until it becomes another program.
int vforks() {
  Session session;
  for (int i = 0; i < 5; ++i) {
    const pid_t child = vfork();
    if (child == 0) {
      execl("/bin/true", "true", static_cast<char *>(nullptr));
      _exit(127);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status) return 1;
    say();
  }
  return 6;
}

int spawns(char *self) {
  Session session;
  char mode[] = "plain";
  char *const words[] = {self, mode, nullptr};
  pid_t child = 0;
  if (posix_spawn(&child, self, nullptr, nullptr, words, environ)) return 1;
  int status = 0;
  waitpid(child, &status, 0);
  say();
  return WEXITSTATUS(status) + 1;
}

// Faults on purpose and goes on: its handler makes the page accessible, as managed memory does.
char *page = nullptr;
std::atomic<int> faults{0};

void on_fault(int, siginfo_t *info, void *) {
  if (info->si_addr < page || info->si_addr >= page + 4096) _exit(99);
  ++faults;
  mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

int handles_faults() {
  page = static_cast<char *>(mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGSEGV, &action, nullptr);
  Session session;
  for (int i = 0; i < 3; ++i) {
    mprotect(page, 4096, PROT_NONE);
    // The install itself copies to the faulting page.
    OK_OR_EXIT(aclrtMemcpy(page, 64, page, 64, ACL_MEMCPY_HOST_TO_HOST));
    page[8] = 'x';
    say();
  }
  std::printf("%d\n", faults.load() > 0);
  return 8;
}

int quits() {
  OK_OR_EXIT(aclInit(nullptr));
  OK_OR_EXIT(aclrtSetDevice(0));
  say();
  std::quick_exit(9);
}

// Threads that are in the middle of calls when the process leaves.
int leaves_threads() {
  OK_OR_EXIT(aclInit(nullptr));
  OK_OR_EXIT(aclrtSetDevice(0));
  std::atomic<int> started{0};
  for (int t = 0; t < 4; ++t) std::thread([&started] {
    if (aclrtSetDevice(0)) return;
    for (;;) {
      aclrtStream stream;
      if (aclrtCreateStream(&stream) || aclrtDestroyStream(stream)) return;
      ++started;
    }
  }).detach();
  while (started < 40) std::this_thread::yield();
  say();
  _exit(10);
}

// Symbols of its own first: what a library opened so finds must still be the install's.
int binds_deep() {
  void *handle = dlopen("libopapi.so", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  if (!handle) return 1;
  using First = aclnnStatus (*)(const aclTensor *, const aclTensor *, const aclScalar *, aclTensor *,
                                uint64_t *, aclOpExecutor **);
  auto first = reinterpret_cast<First>(dlsym(handle, "aclnnAddGetWorkspaceSize"));
  if (!first || first(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr) == 0) return 1;
  Session session;
  say();
  return 11;
}

// Many signals, among them while calls run: none may be lost or end a call early.
std::atomic<int> ticks{0};

int is_interrupted() {
  struct sigaction action = {};
  action.sa_handler = [](int) { ++ticks; };
  sigaction(SIGPROF, &action, nullptr);
  const itimerval every = {{0, 200}, {0, 200}};
  Session session;
  setitimer(ITIMER_PROF, &every, nullptr);
  float sum = 0;
  for (int i = 0; i < 300 || ticks < 5; ++i) sum = compute();
  const itimerval none = {};
  setitimer(ITIMER_PROF, &none, nullptr);
  std::printf("%g %d\n", sum, ticks > 0);
  return 12;
}

// Little stack: a thread with the least that pthreads give, and a signal handler on its own.
int has_little_stack() {
  Session session;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 64 << 10);
  pthread_t thread;
  auto body = [](void *) -> void * {
    OK_OR_EXIT(aclrtSetDevice(0));
    say();
    return nullptr;
  };
  if (pthread_create(&thread, &attributes, body, nullptr)) return 1;
  pthread_join(thread, nullptr);
  return 13;
}

int plain() {
  Session session;
  say();
  return 3;
}

}  // namespace

int main(int, char **words) {
  const std::string mode = words[1];
  if (mode == "files") return closes_files();
  if (mode == "after") return calls_after_the_end();
  if (mode == "vfork") return vforks();
  if (mode == "spawn") return spawns(words[0]);
  if (mode == "faults") return handles_faults();
  if (mode == "quick") return quits();
  if (mode == "threads") return leaves_threads();
  if (mode == "deep") return binds_deep();
  if (mode == "signals") return is_interrupted();
  if (mode == "stack") return has_little_stack();
  return plain();
}
