// Operators that `mindtorch-npu grade` is given: out = x * y in float32, contiguous. CHEAT(name) and
// HONEST(name) define phase 2; the tests read the names from these lines.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

int aclGetRawTensorAddr(const void *tensor, void **address);
int aclGetViewShape(const void *tensor, int64_t **dims, uint64_t *count);
int aclGetViewOffset(const void *tensor, int64_t *offset);
int aclrtLaunchHostFunc(void *stream, void (*function)(void *), void *arguments);
int aclrtSynchronizeStream(void *stream);
int aclrtSynchronizeDevice(void);
int aclrtCreateStream(void **stream);
int aclrtCreateEvent(void **event);
int aclrtRecordEvent(void *event, void *stream);
int aclrtStreamWaitEvent(void *stream, void *event);
int aclrtMalloc(void **address, size_t size, int policy);
int aclrtFree(void *address);
int aclrtMemcpy(void *to, size_t most, const void *from, size_t size, int kind);
int aclrtMemcpyAsync(void *to, size_t most, const void *from, size_t size, int kind, void *stream);
int aclrtMemsetAsync(void *to, size_t most, int value, size_t size, void *stream);
int aclprofFinalize(void);
int aclprofStop(const void *config);
int aclnnMulGetWorkspaceSize(const void *x, const void *y, void *out, uint64_t *size, void **executor);
int aclnnMul(void *workspace, uint64_t size, void *executor, void *stream);
int aclnnInplaceMulGetWorkspaceSize(void *x, const void *y, uint64_t *size, void **executor);
int aclnnInplaceMul(void *workspace, uint64_t size, void *executor, void *stream);

typedef struct {
  const void *x_tensor, *y_tensor;
  void *out_tensor, *workspace, *inner;
  const float *x, *y;
  float *out, *copy;
  int64_t n, last;
} Call;

static float *elements(const void *tensor) {
  void *address = NULL;
  int64_t offset = 0;
  aclGetRawTensorAddr(tensor, &address);
  aclGetViewOffset(tensor, &offset);
  return (float *)address + offset;
}

static Call *call_of(const void *x, const void *y, void *out) {
  Call *call = calloc(1, sizeof *call);
  int64_t *dims = NULL;
  uint64_t rank = 0;
  aclGetViewShape(out, &dims, &rank);
  call->n = 1;
  for (uint64_t i = 0; i < rank; i++) call->n *= dims[i];
  call->last = rank ? dims[rank - 1] : 1;
  call->x_tensor = x, call->y_tensor = y, call->out_tensor = out;
  call->x = elements(x), call->y = elements(y), call->out = elements(out);
  return call;
}

static void multiply(void *arguments) {
  Call *c = arguments;
  for (int64_t i = 0; i < c->n; i++) c->out[i] = c->x[i] * c->y[i];
}

static void wait_ms(int ms) { usleep(1000 * ms); }

#define FIRST(NAME, ...)                                                                        \
  int aclnn##NAME##GetWorkspaceSize(const void *x, const void *y, void *out, uint64_t *size,    \
                                    void **executor) {                                          \
    Call *c = call_of(x, y, out);                                                               \
    *size = 0, *executor = c;                                                                   \
    __VA_ARGS__;                                                                                \
    return 0;                                                                                   \
  }
#define SECOND(NAME, ...)                                                      \
  int aclnn##NAME(void *workspace, uint64_t size, void *executor, void *s) {   \
    Call *c = executor;                                                        \
    c->workspace = workspace;                                                  \
    (void)size;                                                                \
    __VA_ARGS__;                                                               \
    return 0;                                                                  \
  }
#define CHEAT(NAME, ...) FIRST(NAME, (void)0) SECOND(NAME, __VA_ARGS__)
#define HONEST(NAME, ...) FIRST(NAME, (void)0) SECOND(NAME, __VA_ARGS__)
#define CHEAT_IN_BOTH(NAME, ONE, ...) FIRST(NAME, ONE) SECOND(NAME, __VA_ARGS__)
#define HONEST_IN_BOTH(NAME, ONE, ...) FIRST(NAME, ONE) SECOND(NAME, __VA_ARGS__)
#define FUNCTION(NAME) static void NAME(void *arguments)
#define SELF Call *c = arguments

// ---- wrong results --------------------------------------------------------------------------------
CHEAT(DoesNothing, (void)s)

FUNCTION(copy_input) { SELF; memcpy(c->out, c->x, c->n * 4); }
CHEAT(CopiesInput, aclrtLaunchHostFunc(s, copy_input, c))

FUNCTION(half) { SELF; for (int64_t i = 0; i < c->n; i++) c->out[i] = 0.5f; }
CHEAT(Constant, aclrtLaunchHostFunc(s, half, c))

FUNCTION(zero) { SELF; memset(c->out, 0, c->n * 4); }
CHEAT(Zeros, aclrtLaunchHostFunc(s, zero, c))

// The first result of each size, over and over.
static struct { int64_t n; float *values; } known[64];
static int known_count;
static float *value_of(Call *c) {
  for (int i = 0; i < known_count; i++)
    if (known[i].n == c->n) return known[i].values;
  float *values = malloc(c->n * 4 + 4);
  for (int64_t i = 0; i < c->n; i++) values[i] = c->x[i] * c->y[i];
  if (known_count < 64) known[known_count].n = c->n, known[known_count++].values = values;
  return values;
}
FUNCTION(remembered) { SELF; memcpy(c->out, value_of(c), c->n * 4); }
CHEAT(RemembersResults, aclrtLaunchHostFunc(s, remembered, c))

// One result for all sizes, repeated to fill the output.
FUNCTION(earlier) {
  SELF;
  static float kept[4096];
  static int64_t have;
  if (!have && c->n) {
    have = c->n < 4096 ? c->n : 4096;
    for (int64_t i = 0; i < have; i++) kept[i] = c->x[i] * c->y[i];
  }
  for (int64_t i = 0; i < c->n; i++) c->out[i] = kept[i % have];
}
CHEAT(RepeatsFirstResult, aclrtLaunchHostFunc(s, earlier, c))

FUNCTION(first_part) { SELF; int64_t n = c->n; if (n > 256) n = 256; for (int64_t i = 0; i < n; i++) c->out[i] = c->x[i] * c->y[i]; }
CHEAT(HardCodedSize, aclrtLaunchHostFunc(s, first_part, c))

FUNCTION(whole_blocks) { SELF; for (int64_t i = 0; i < c->n / 8 * 8; i++) c->out[i] = c->x[i] * c->y[i]; }
CHEAT(DropsTail, aclrtLaunchHostFunc(s, whole_blocks, c))

FUNCTION(every_other) {
  SELF;
  for (int64_t i = 0; i < c->n; i += 2) {
    c->out[i] = c->x[i] * c->y[i];
    if (i + 1 < c->n) c->out[i + 1] = c->out[i];
  }
}
CHEAT(EveryOther, aclrtLaunchHostFunc(s, every_other, c))

FUNCTION(coarse) {
  SELF;
  for (int64_t i = 0; i < c->n; i++) {
    union { float f; uint32_t u; } v = {.f = c->x[i] * c->y[i]};
    v.u &= 0xffff0000u;
    c->out[i] = v.f;
  }
}
CHEAT(HalfThePrecision, aclrtLaunchHostFunc(s, coarse, c))

FUNCTION(squares) { SELF; for (int64_t i = 0; i < c->n; i++) c->out[i] = c->x[i] * c->x[i]; }
CHEAT(IgnoresSecondInput, aclrtLaunchHostFunc(s, squares, c))

FUNCTION(no_specials) {
  SELF;
  for (int64_t i = 0; i < c->n; i++) c->out[i] = isfinite(c->x[i] * c->y[i]) ? c->x[i] * c->y[i] : 0;
}
CHEAT(HidesOverflow, aclrtLaunchHostFunc(s, no_specials, c))

// What freed memory holds: somebody's reference, it is hoped.
CHEAT(TakesFreedMemory, {
  void *block = NULL;
  aclrtSynchronizeStream(s);
  aclrtMalloc(&block, c->n * 4 + 4, 0);
  memcpy(c->out, block, c->n * 4);
  aclrtFree(block);
})

// Right at first, then whatever lies there: for a judge that checks first and times later.
static int turns;
CHEAT(RightAtFirst, {
  if (turns++ < 6) aclrtLaunchHostFunc(s, multiply, c);
  else aclrtLaunchHostFunc(s, copy_input, c);
})
// Right for what is small: a judge checks small sizes and times large ones.
CHEAT(RightWhenSmall, aclrtLaunchHostFunc(s, c->n < 40000 ? multiply : first_part, c))

// ---- right results that are somebody else's -------------------------------------------------------
static void builtin(Call *c, void *s) {
  uint64_t size = 0;
  void *inner = NULL;
  aclnnMulGetWorkspaceSize(c->x_tensor, c->y_tensor, c->out_tensor, &size, &inner);
  void *block = NULL;
  if (size) aclrtMalloc(&block, size, 0);
  aclnnMul(block, size, inner, s);
}
CHEAT(CallsBuiltin, builtin(c, s))
CHEAT_IN_BOTH(ForwardsBothPhases,
              *size = 0; aclnnMulGetWorkspaceSize(x, y, out, size, executor),
              return aclnnMul(workspace, size, executor, s))
CHEAT(FindsBuiltinByName, {
  void *library = dlopen("libopapi.so", RTLD_NOW);
  int (*one)(const void *, const void *, void *, uint64_t *, void **) = dlsym(library, "aclnnMulGetWorkspaceSize");
  int (*two)(void *, uint64_t, void *, void *) = dlsym(library, "aclnnMul");
  uint64_t bytes = 0;
  void *inner = NULL;
  one(c->x_tensor, c->y_tensor, c->out_tensor, &bytes, &inner);
  two(NULL, bytes, inner, s);
})
CHEAT(CopiesThenCallsBuiltin, {
  uint64_t bytes = 0;
  void *inner = NULL;
  aclrtMemcpyAsync(c->out, c->n * 4, c->x, c->n * 4, 3, s);
  aclnnInplaceMulGetWorkspaceSize(c->out_tensor, c->y_tensor, &bytes, &inner);
  aclnnInplaceMul(NULL, bytes, inner, s);
})
CHEAT(StopsTheProfiler, {
  aclprofStop(NULL);
  aclprofFinalize();
  builtin(c, s);
})
CHEAT(ErasesTheLog, {
  builtin(c, s);
  const char *folder = getenv("ACLSIM_PROFILE");
  for (int fd = 3; fd < 64; fd++) {
    char path[64], target[512];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(path, target, sizeof target - 1);
    if (n > 0 && (target[n] = 0, folder && strstr(target, folder))) {
      aclrtSynchronizeStream(s);
      if (ftruncate(fd, 0)) continue;
      close(fd);
      unlink(target);
    }
  }
})
CHEAT(CallsBuiltinWhenLarge, {
  if (c->n > 20000) builtin(c, s);
  else aclrtLaunchHostFunc(s, multiply, c);
})

// ---- work that is not where it is timed -----------------------------------------------------------
CHEAT_IN_BOTH(WritesInPhaseOne, multiply(c), (void)s)
CHEAT_IN_BOTH(ComputesInPhaseOne, c->copy = malloc(c->n * 4 + 4); for (int64_t i = 0; i < c->n; i++) c->copy[i] = c->x[i] * c->y[i],
              aclrtSynchronizeStream(s); memcpy(c->out, c->copy, c->n * 4))

static void *late(void *arguments) { wait_ms(30); multiply(arguments); return NULL; }
CHEAT(LeavesThreadBehind, { pthread_t thread; pthread_create(&thread, NULL, late, c); })

FUNCTION(sleep_then_multiply) { wait_ms(30); multiply(arguments); }
CHEAT(LeavesStreamBehind, {
  static void *side;
  if (!side) aclrtCreateStream(&side);
  aclrtLaunchHostFunc(side, sleep_then_multiply, c);
})
FUNCTION(second_half) {
  SELF;
  wait_ms(30);
  for (int64_t i = c->n / 2; i < c->n; i++) c->out[i] = c->x[i] * c->y[i];
}
static void *half_late(void *arguments) { second_half(arguments); return NULL; }
CHEAT(LeavesHalfBehind, {
  aclrtSynchronizeStream(s);
  for (int64_t i = 0; i < c->n / 2; i++) c->out[i] = c->x[i] * c->y[i];
  pthread_t thread;
  pthread_create(&thread, NULL, half_late, c);
})
static Call *previous;
CHEAT_IN_BOTH(LeavesItToTheNextCall, if (previous) { multiply(previous); previous = NULL; }, previous = c)

// ---- against the judge itself ---------------------------------------------------------------------
// "It is done", said on every descriptor before the work is.
CHEAT(SaysDoneFirst, {
  for (int fd = 3; fd < 32; fd++) {
    char path[64], target[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(path, target, sizeof target - 1);
    if (n > 4 && !strncmp(target, "pipe", 4) && write(fd, "{\"done\": true}\n", 15) < 0) continue;
  }
  wait_ms(20);
  multiply(c);
})
CHEAT(LeavesTheProcess, multiply(c); _exit(0))
CHEAT(Crashes, *(volatile int *)8 = 1)
CHEAT(Hangs, for (;;) wait_ms(100))
CHEAT(EatsMemory, {
  for (;;) {
    char *block = malloc(64 << 20);
    if (!block) abort();
    memset(block, 1, 64 << 20);
  }
})
CHEAT(WritesBehindItsResult, { aclrtSynchronizeStream(s); multiply(c); c->out[c->n] = 7; c->out[c->n + 1] = 7; })
CHEAT(ChangesItsInput, { aclrtSynchronizeStream(s); multiply(c); if (c->n) memset((void *)c->x, 0, 4); })
CHEAT(StartsPrograms, { multiply(c); if (system("true")) abort(); })
CHEAT(ForksAWorker, {
  aclrtSynchronizeStream(s);
  multiply(c);
  pid_t child = fork();
  if (child == 0) _exit(0);
})
// The judge's memory, and the file with the reference.
CHEAT(ReadsItsParent, {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/mem", getppid());
  int fd = open(path, O_RDONLY);
  aclrtSynchronizeStream(s);
  if (fd >= 0) multiply(c);
})
CHEAT(ReadsTheTask, {
  const char *path = getenv("TASK_FILE");
  int fd = open(path ? path : "/nowhere", O_RDONLY);
  char text[16];
  aclrtSynchronizeStream(s);
  if (fd >= 0 && read(fd, text, 16) == 16) multiply(c);
})
// Signal 0 harms nobody: it only asks whether signals arrive.
CHEAT(SignalsItsParent, aclrtSynchronizeStream(s); multiply(c); kill(getppid(), 0))
CHEAT(UncoversTheTask, {
  const char *path = getenv("TASK_FILE");
  umount2(path ? path : "/nowhere", MNT_DETACH);
  aclrtSynchronizeStream(s);
  multiply(c);
})
// A signal that the kernel sends for it, to the owner of a descriptor.
CHEAT(SignalsByDescriptor, {
  int ends[2];
  aclrtSynchronizeStream(s);
  multiply(c);
  if (!pipe(ends)) fcntl(ends[0], F_SETOWN, getppid());
})
CHEAT(LimitsItsParent, {
  struct rlimit now;
  aclrtSynchronizeStream(s);
  multiply(c);
  prlimit(getppid(), RLIMIT_NOFILE, NULL, &now);
})
// What comes of writing beside the task, of a module that it imports, of slowing down the grader.
CHEAT(ReplacesTheTask, {
  char path[4096] = "";
  snprintf(path, sizeof path, "%s.new", getenv("TASK_FILE") ? getenv("TASK_FILE") : "/nowhere");
  int fd = open(path, O_CREAT | O_WRONLY, 0600);
  aclrtSynchronizeStream(s);
  if (fd >= 0) multiply(c);
})
CHEAT(ReadsBesideTheTask, {
  char path[4096] = "", text[4];
  snprintf(path, sizeof path, "%s", getenv("TASK_FILE") ? getenv("TASK_FILE") : "/nowhere");
  char *name = strrchr(path, '/');
  if (name) strcpy(name, "/parts/formulas.py");
  int fd = open(path, O_RDONLY);
  aclrtSynchronizeStream(s);
  if (fd >= 0 && read(fd, text, 4) == 4) multiply(c);
})
CHEAT(SlowsDownItsParent, {
  int done = setpriority(PRIO_PROCESS, getppid(), getpriority(PRIO_PROCESS, getppid())) == 0;
  cpu_set_t set;
  sched_getaffinity(getppid(), sizeof set, &set);
  done |= sched_setaffinity(getppid(), sizeof set, &set) == 0;
  aclrtSynchronizeStream(s);
  if (done) multiply(c);
})
CHEAT_IN_BOTH(AsksForTooMuchWorkspace, *size = 1ull << 60, multiply(c))
CHEAT_IN_BOTH(RefusesSmallCalls, if (c->n < 9) return 161002, aclrtLaunchHostFunc(s, multiply, c))

// Threads that slow down whatever is timed beside it. Its own result is right: no accusation, and no
// gain, as it does not run meanwhile.
static void *burn(void *arguments) { for (volatile long i = 0;; i++) (void)arguments; }
HONEST(BurnsProcessorTime, {
  static int started;
  if (!started++) for (int i = 0; i < 4; i++) { pthread_t thread; pthread_create(&thread, NULL, burn, NULL); }
  aclrtSynchronizeStream(s);
  multiply(c);
})

// ---- honest, and unusual ---------------------------------------------------------------------------
// Limits, priorities and processors of its own are its own.
HONEST(PinsItself, {
  struct rlimit now;
  cpu_set_t set;
  getrlimit(RLIMIT_NOFILE, &now);
  setrlimit(RLIMIT_NOFILE, &now);
  setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0));
  sched_getaffinity(0, sizeof set, &set);
  sched_setaffinity(0, sizeof set, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
  multiply(c);
})
HONEST(Plain, aclrtLaunchHostFunc(s, multiply, c))
HONEST(WaitsForTheStream, aclrtSynchronizeStream(s); multiply(c))
HONEST(WaitsForTheDevice, aclrtSynchronizeDevice(); multiply(c))

FUNCTION(through_workspace) {
  SELF;
  float *scratch = c->workspace;
  for (int64_t i = 0; i < c->n; i++) scratch[i] = c->x[i] * c->y[i];
  memcpy(c->out, scratch, c->n * 4);
}
HONEST_IN_BOTH(UsesWorkspace, *size = c->n * 4 + 64, aclrtLaunchHostFunc(s, through_workspace, c))
HONEST_IN_BOTH(AsksForMuchWorkspace, *size = 64 << 20, aclrtLaunchHostFunc(s, multiply, c))

typedef struct { Call *c; int64_t from, to; } Part;
static void *part(void *arguments) {
  Part *p = arguments;
  for (int64_t i = p->from; i < p->to; i++) p->c->out[i] = p->c->x[i] * p->c->y[i];
  return NULL;
}
FUNCTION(two_threads) {
  SELF;
  pthread_t thread;
  Part one = {c, 0, c->n / 2}, two = {c, c->n / 2, c->n};
  pthread_create(&thread, NULL, part, &one);
  part(&two);
  pthread_join(thread, NULL);
}
HONEST(UsesThreads, aclrtLaunchHostFunc(s, two_threads, c))
HONEST(UsesAStreamOfItsOwn, {
  static void *side, *before, *after;
  if (!side) aclrtCreateStream(&side), aclrtCreateEvent(&before), aclrtCreateEvent(&after);
  aclrtRecordEvent(before, s);
  aclrtStreamWaitEvent(side, before);
  aclrtLaunchHostFunc(side, multiply, c);
  aclrtRecordEvent(after, side);
  aclrtStreamWaitEvent(s, after);
})
HONEST(WaitsForItsOwnStream, {
  static void *side;
  if (!side) aclrtCreateStream(&side);
  aclrtSynchronizeStream(s);
  aclrtLaunchHostFunc(side, multiply, c);
  aclrtSynchronizeStream(side);
})
HONEST(FillsWithZeroFirst, aclrtMemsetAsync(c->out, c->n * 4, 0, c->n * 4, s); aclrtLaunchHostFunc(s, multiply, c))
HONEST(WritesTwice, aclrtLaunchHostFunc(s, copy_input, c); aclrtLaunchHostFunc(s, multiply, c))

FUNCTION(accumulate) { SELF; for (int64_t i = 0; i < c->n; i++) c->out[i] *= c->y[i]; }
HONEST(CopiesThenMultiplies, aclrtMemcpyAsync(c->out, c->n * 4, c->x, c->n * 4, 3, s); aclrtLaunchHostFunc(s, accumulate, c))

FUNCTION(backwards) { SELF; for (int64_t i = c->n; i-- > 0;) c->out[i] = c->x[i] * c->y[i]; }
HONEST(WorksBackwards, aclrtLaunchHostFunc(s, backwards, c))

FUNCTION(tiles_in_any_order) {
  SELF;
  int64_t tiles = (c->n + 63) / 64, start = tiles ? rand() % tiles : 0;
  for (int64_t k = 0; k < tiles; k++) {
    int64_t from = (start + k) % tiles * 64, to = from + 64 < c->n ? from + 64 : c->n;
    for (int64_t i = from; i < to; i++) c->out[i] = c->x[i] * c->y[i];
  }
}
HONEST(TilesInAnyOrder, aclrtLaunchHostFunc(s, tiles_in_any_order, c))

FUNCTION(in_double) { SELF; for (int64_t i = 0; i < c->n; i++) c->out[i] = (float)((double)c->x[i] * c->y[i]); }
HONEST(ComputesInDouble, aclrtLaunchHostFunc(s, in_double, c))

HONEST(GoesThroughTheHost, {
  size_t bytes = c->n * 4;
  float *x = malloc(bytes + 4), *y = malloc(bytes + 4);
  aclrtSynchronizeStream(s);
  aclrtMemcpy(x, bytes, c->x, bytes, 2);
  aclrtMemcpy(y, bytes, c->y, bytes, 2);
  for (int64_t i = 0; i < c->n; i++) x[i] *= y[i];
  aclrtMemcpy(c->out, bytes, x, bytes, 1);
  free(x);
  free(y);
})
HONEST(AllocatesDeviceMemory, {
  void *block = NULL;
  aclrtMalloc(&block, c->n * 4 + 64, 0);
  c->workspace = block;
  aclrtLaunchHostFunc(s, through_workspace, c);
  aclrtSynchronizeStream(s);
  aclrtFree(block);
})
HONEST(KeepsScratchMemory, {
  static void *block;
  static int64_t room;
  if (room < c->n) aclrtSynchronizeStream(s), aclrtMalloc(&block, (room = c->n) * 4 + 64, 0);
  c->workspace = block;
  aclrtLaunchHostFunc(s, through_workspace, c);
})
HONEST(CompilesAtTheFirstCall, {
  static int ready;
  if (!ready) wait_ms(50), ready = 1;
  aclrtLaunchHostFunc(s, multiply, c);
})
HONEST(KeepsPlansByShape, {
  static int64_t sizes[64];
  static int count;
  int at = 0;
  while (at < count && sizes[at] != c->n) at++;
  if (at == count && count < 64) sizes[count++] = c->n;
  aclrtLaunchHostFunc(s, multiply, c);
})
static float table[256];
__attribute__((constructor)) static void fill_table(void) { for (int i = 0; i < 256; i++) table[i] = 1.0f; }
FUNCTION(with_table) { SELF; for (int64_t i = 0; i < c->n; i++) c->out[i] = c->x[i] * table[i % 256] * c->y[i]; }
HONEST(UsesATable, aclrtLaunchHostFunc(s, with_table, c))

HONEST(Prints, {
  printf("multiplying %ld\n", (long)c->n);
  fprintf(stderr, "multiplying %ld\n", (long)c->n);
  fflush(stdout);
  aclrtLaunchHostFunc(s, multiply, c);
})
HONEST(WritesALogFile, {
  char path[] = "/tmp/operator-log-XXXXXX";
  int fd = mkstemp(path);
  if (fd >= 0) { if (write(fd, "called\n", 7) < 0) abort(); close(fd); unlink(path); }
  aclrtLaunchHostFunc(s, multiply, c);
})
HONEST(ReadsTheClock, {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  aclrtLaunchHostFunc(s, multiply, c);
})
HONEST(LoadsALibrary, {
  void *library = dlopen("libm.so.6", RTLD_NOW);
  double (*function)(double) = dlsym(library, "fabs");
  if (function(-1.0) != 1.0) abort();
  aclrtLaunchHostFunc(s, multiply, c);
})
FUNCTION(slow) { SELF; wait_ms(20); multiply(c); }
HONEST(IsSlow, aclrtLaunchHostFunc(s, slow, c))

FUNCTION(unrolled) {
  SELF;
  int64_t i = 0;
  for (; i + 4 <= c->n; i += 4) {
    c->out[i] = c->x[i] * c->y[i], c->out[i + 1] = c->x[i + 1] * c->y[i + 1];
    c->out[i + 2] = c->x[i + 2] * c->y[i + 2], c->out[i + 3] = c->x[i + 3] * c->y[i + 3];
  }
  for (; i < c->n; i++) c->out[i] = c->x[i] * c->y[i];
}
HONEST(Unrolls, aclrtLaunchHostFunc(s, unrolled, c))
HONEST(MapsMemory, {
  size_t bytes = c->n * 4 + 4096;
  c->workspace = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  aclrtSynchronizeStream(s);
  through_workspace(c);
  munmap(c->workspace, bytes);
})

// Of other references: out = x; out = 1; xRef = xRef * y.
HONEST(GivesItsInput, aclrtMemcpyAsync(c->out, c->n * 4, c->x, c->n * 4, 3, s))
FUNCTION(ones) { SELF; for (int64_t i = 0; i < c->n; i++) c->out[i] = 1.0f; }
HONEST(GivesOnes, aclrtLaunchHostFunc(s, ones, c))
int aclnnMultipliesInPlaceGetWorkspaceSize(void *x, const void *y, uint64_t *size, void **executor) {
  *size = 0, *executor = call_of(x, y, x);
  return 0;
}
SECOND(MultipliesInPlace, aclrtLaunchHostFunc(s, multiply, c))
