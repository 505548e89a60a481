/* A small ACL for tests: counts live handles, fails on request, runs streams by hand.
 * It knows no rules of CANN beyond what the tests ask of it. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static _Atomic int64_t live[16];
enum { TENSOR, SCALAR, ARRAY, LIST, EXECUTOR, DEVICE_MEMORY, STREAM, EVENT, HOST_MEMORY, CONTEXT };

int64_t stub_live(int kind) { return live[kind]; }

/* What the next calls do. */
static int64_t fail_init, fail_one, fail_two, fail_malloc, fail_sync, fail_tensor, workspace;
static int64_t busy_streams; /* whether a stream that is asked has work left */
static int64_t hanging; /* how many times waits expire before the work is done */
static int64_t fail_light, fail_create, fail_device; /* aclnnInit; newer creations; the end */
static int64_t held_events; /* events stay incomplete while set */
static int64_t launches_seen, synchronized, inits, finals, memory_left = (int64_t)1 << 40;
static void *last_stream;
static volatile int64_t held_device, holding; /* a wait for the device lasts while held */
static const char *message;
static char init_config[256];

void stub_set(const char *what, int64_t value) {
  if (!strcmp(what, "busy_streams")) busy_streams = value;
  if (!strcmp(what, "fail_init")) fail_init = value;
  if (!strcmp(what, "fail_one")) fail_one = value;
  if (!strcmp(what, "fail_two")) fail_two = value;
  if (!strcmp(what, "fail_malloc")) fail_malloc = value;
  if (!strcmp(what, "fail_sync")) fail_sync = value;
  if (!strcmp(what, "fail_tensor")) fail_tensor = value;
  if (!strcmp(what, "live"))
    for (int kind = 0; kind < 16; ++kind) live[kind] = value;
  if (!strcmp(what, "hanging")) hanging = value;
  if (!strcmp(what, "fail_light")) fail_light = value;
  if (!strcmp(what, "fail_create")) fail_create = value;
  if (!strcmp(what, "fail_device")) fail_device = value;
  if (!strcmp(what, "workspace")) workspace = value;
  if (!strcmp(what, "held_events")) held_events = value;
  if (!strcmp(what, "memory_left")) memory_left = value;
  if (!strcmp(what, "held_device")) held_device = value;
  if (!strcmp(what, "counters")) launches_seen = synchronized = inits = finals = value;
}
int64_t stub_get(const char *what) {
  if (!strcmp(what, "synchronized")) return synchronized;
  if (!strcmp(what, "holding")) return holding;
  if (!strcmp(what, "inits")) return inits;
  if (!strcmp(what, "finals")) return finals;
  if (!strcmp(what, "last_stream")) return (int64_t)last_stream;
  return launches_seen;
}
const char *stub_init_config(void) { return init_config; }

static int failing(int code, const char *text) {
  message = text;
  return code;
}
const char *aclGetRecentErrMsg(void) {
  const char *text = message;
  message = NULL;
  return text;
}

int aclInit(const char *config) {
  if (fail_init) return failing((int)fail_init, "EE9999: no driver");
  FILE *file = config ? fopen(config, "r") : NULL;
  if (file) {
    size_t n = fread(init_config, 1, sizeof init_config - 1, file);
    init_config[n] = 0;
    fclose(file);
  }
  return ++inits, 0;
}
int aclFinalize(void) { return ++finals, 0; }
int aclnnInit(const char *config) {
  return (void)config, fail_light ? failing((int)fail_light, "EZ9999: no tiling") : 0;
}
int aclnnFinalize(void) { return 0; }
const char *aclrtGetSocName(void) { return "Stub910"; }

/* Devices: the context is per thread, and needed. */
static __thread void *context;
static char primary[8];
int aclrtGetDeviceCount(uint32_t *count) { return *count = 8, 0; }
int aclrtSetDevice(int device) {
  if (device < 0 || device > 7) return failing(107001, "EE1001: no such device");
  return context = &primary[device], 0;
}
int aclrtResetDevice(int device) { return (void)device, 0; }
int aclrtSynchronizeDevice(void);
int aclrtSynchronizeDeviceWithTimeout(int32_t ms) {
  return fail_device ? failing((int)fail_device, "EE9999: the device hangs") : aclrtSynchronizeDevice();
}
int aclrtSynchronizeDevice(void) {
  for (holding = 1; held_device;) usleep(100);
  holding = 0;
  return ++synchronized, held_events = 0, context ? 0 : 107002;
}
int aclrtGetCurrentContext(void **out) { return *out = context, context ? 0 : 107002; }
int aclrtSetCurrentContext(void *in) { return context = in, 0; }
int aclrtCreateContext(void **out, int device) {
  return (void)device, ++live[CONTEXT], context = *out = malloc(8), 0;
}
int aclrtDestroyContext(void *in) { return --live[CONTEXT], free(in), 0; }

int aclrtCreateStream(void **out) {
  if (!context) return failing(107002, "EE1002: no context");
  return ++live[STREAM], *out = malloc(8), 0;
}
int aclrtCreateStreamWithConfig(void **out, uint32_t priority, uint32_t flags) {
  if (fail_create) return failing((int)fail_create, "EE9999: the driver is older");
  return (void)priority, (void)flags, aclrtCreateStream(out);
}
int aclrtDestroyStream(void *stream) { return --live[STREAM], free(stream), 0; }
int aclrtSynchronizeStream(void *stream) {
  (void)stream;
  ++synchronized;
  return fail_sync ? failing((int)fail_sync, "EE9999: a kernel faulted") : 0;
}
int aclrtSynchronizeStreamWithTimeout(void *stream, int ms) {
  (void)ms;
  if (hanging > 0) return --hanging, failing(507046, "EE1002: timed out");
  return aclrtSynchronizeStream(stream);
}
int aclrtStreamQuery(void *stream, int *status) {
  return (void)stream, *status = busy_streams ? 1 : 0, 0;
}
int aclrtStreamWaitEvent(void *stream, void *event) { return (void)stream, (void)event, 0; }

int aclrtCreateEventExWithFlag(void **out, uint32_t flags) {
  if (fail_create) return failing((int)fail_create, "EE9999: the driver is older");
  return (void)flags, ++live[EVENT], *out = malloc(8), 0;
}
int aclrtCreateEvent(void **out) { return ++live[EVENT], *out = malloc(8), 0; }
int aclrtDestroyEvent(void *event) { return --live[EVENT], free(event), 0; }
int aclrtRecordEvent(void *event, void *stream) { return (void)event, (void)stream, 0; }
int aclrtQueryEventStatus(void *event, int *status) {
  return (void)event, *status = held_events ? 0 : 1, 0;
}
int aclrtSynchronizeEvent(void *event) { return (void)event, 0; }
int aclrtSynchronizeEventWithTimeout(void *event, int ms) {
  (void)event, (void)ms;
  return hanging > 0 ? (--hanging, failing(507047, "EE1002: timed out")) : 0;
}
int aclrtEventElapsedTime(float *ms, void *a, void *b) { return (void)a, (void)b, *ms = 1.5f, 0; }

/* Memory: each allocation is preceded by its size. */
static int obtain(void **out, size_t size) {
  if (!context) return failing(107002, "EE1002: no context");
  if (fail_malloc || (int64_t)size > memory_left) return failing(207001, "EL0004: out of memory");
  char *base = aligned_alloc(512, (size + 1023) / 512 * 512);
  memcpy(base, &size, sizeof size);
  memory_left -= (int64_t)size;
  ++live[DEVICE_MEMORY];
  return *out = base + 512, 0;
}
int aclrtMalloc(void **out, size_t size, int policy) { return (void)policy, obtain(out, size); }
int aclrtMallocAlign32(void **out, size_t size, int policy) {
  return (void)policy, obtain(out, size);
}
int aclrtFree(void *pointer) {
  size_t size;
  memcpy(&size, (char *)pointer - 512, sizeof size);
  memory_left += (int64_t)size;
  return --live[DEVICE_MEMORY], free((char *)pointer - 512), 0;
}
int aclrtMallocHost(void **out, size_t size) { return ++live[HOST_MEMORY], *out = malloc(size), 0; }
int aclrtFreeHost(void *pointer) { return --live[HOST_MEMORY], free(pointer), 0; }
int aclrtMemcpyAsync(void *to, size_t room, const void *from, size_t n, int kind, void *stream) {
  (void)kind, (void)stream;
  if (n > room) return failing(107000, "EE1003: count");
  return memmove(to, from, n), 0;
}
int aclrtMemcpy(void *to, size_t room, const void *from, size_t n, int kind) {
  return aclrtMemcpyAsync(to, room, from, n, kind, NULL);
}
int aclrtMemsetAsync(void *to, size_t room, int value, size_t n, void *stream) {
  return (void)room, (void)stream, memset(to, value, n), 0;
}
int aclrtGetMemInfo(int attr, size_t *unused, size_t *total) {
  return (void)attr, *unused = (size_t)memory_left, *total = (size_t)1 << 40, 0;
}

/* Descriptors. */
typedef struct {
  int64_t dims[8], strides[8], storage[8], offset;
  uint64_t rank, storage_rank;
  int dtype, format;
  char *data;
} Tensor;
typedef struct {
  uint64_t count;
  char data[512];
} Values;

void *aclCreateTensor(const int64_t *dims, uint64_t rank, int dtype, const int64_t *strides,
                      int64_t offset, int format, const int64_t *storage, uint64_t storage_rank,
                      void *data) {
  if (!dims || !storage) return NULL;
  if (fail_tensor && --fail_tensor == 0) return NULL;
  Tensor *t = calloc(1, sizeof *t);
  memcpy(t->dims, dims, rank * 8);
  memcpy(t->strides, strides, rank * 8);
  memcpy(t->storage, storage, storage_rank * 8);
  t->rank = rank, t->storage_rank = storage_rank, t->dtype = dtype, t->format = format;
  t->offset = offset, t->data = data;
  return ++live[TENSOR], t;
}
int aclDestroyTensor(void *t) { return t ? (--live[TENSOR], free(t), 0) : 0; }
static void *values(const void *data, size_t bytes, uint64_t count, int kind) {
  Values *v = calloc(1, sizeof *v);
  if (bytes > sizeof v->data) abort();
  memcpy(v->data, data, bytes);
  v->count = count;
  return ++live[kind], v;
}
void *aclCreateScalar(void *value, int dtype) {
  return value ? values(value, dtype == 17 ? 16 : dtype == 1 || dtype == 27 ? 2 : dtype == 0 ? 4
                               : dtype == 12 ? 1 : 8, (uint64_t)dtype, SCALAR) : NULL;
}
int aclDestroyScalar(void *v) { return v ? (--live[SCALAR], free(v), 0) : 0; }
void *aclCreateIntArray(const int64_t *d, uint64_t n) { return values(d, n * 8, n, ARRAY); }
int aclDestroyIntArray(void *v) { return --live[ARRAY], free(v), 0; }
void *aclCreateBoolArray(const bool *d, uint64_t n) { return values(d, n, n, ARRAY); }
int aclDestroyBoolArray(void *v) { return --live[ARRAY], free(v), 0; }
void *aclCreateFloatArray(const float *d, uint64_t n) { return values(d, n * 4, n, ARRAY); }
int aclDestroyFloatArray(void *v) { return --live[ARRAY], free(v), 0; }
typedef struct {
  uint64_t count;
  void **members;
  int kind;
} List;
static void *list(void *const *members, uint64_t n, int kind) {
  List *l = malloc(sizeof *l);
  l->members = malloc(n * sizeof(void *) + 1);
  memcpy(l->members, members, n * sizeof(void *));
  l->count = n, l->kind = kind;
  return ++live[LIST], l;
}
static int drop(List *l) {
  for (uint64_t k = 0; k < l->count; ++k) --live[l->kind], free(l->members[k]);
  free(l->members);
  return --live[LIST], free(l), 0;
}
void *aclCreateTensorList(void *const *m, uint64_t n) { return list(m, n, TENSOR); }
int aclDestroyTensorList(void *l) { return drop(l); }
void *aclCreateScalarList(void *const *m, uint64_t n) { return list(m, n, SCALAR); }
int aclDestroyScalarList(void *l) { return drop(l); }

/* Operators. */
typedef struct {
  float *to;
  float value;
  int64_t count;
} Executor;

static int finish(uint64_t *size, void **executor, float *to, float value, int64_t count) {
  if (fail_one) return failing((int)fail_one, "EZ1001: the stub was told to refuse");
  Executor *e = malloc(sizeof *e);
  e->to = to, e->value = value, e->count = count;
  ++live[EXECUTOR];
  *size = (uint64_t)workspace;
  return *executor = e, 0;
}
static int run(void *memory, uint64_t size, Executor *e, void *stream) {
  if (!e || !stream) return 161001;
  int code = fail_two ? failing((int)fail_two, "EZ9999: the stub was told to fail") : 0;
  if (size && !memory) code = failing(161001, "EZ1001: workspace is null");
  if (!code) {
    ++launches_seen, last_stream = stream;
    if (memory) memset(memory, 0xAB, size);
    for (int64_t k = 0; e->to && k < e->count; ++k) e->to[k] = e->value + (float)k;
  }
  --live[EXECUTOR];
  free(e);
  return code;
}
#define PHASE_TWO(name) \
  int name(void *w, uint64_t n, void *e, void *s) { return run(w, n, e, s); }

static float *at(Tensor *t) { return (float *)t->data + t->offset; }
static int64_t numel(Tensor *t) {
  int64_t n = 1;
  for (uint64_t k = 0; k < t->rank; ++k) n *= t->dims[k];
  return n;
}

/* out[k] = self[0] + alpha + k: enough to see that each argument arrived. */
/* What phase 1 of aclnnAdd has done by another thread, as a compiler of kernels that needs Python
 * would be; it waits for the end of it, and gives up after a minute. */
static void *(*compiler)(void *);
void stub_compile_by(void *function) { compiler = (void *(*)(void *))function; }
static int compile(void) {
  pthread_t thread;
  struct timespec end;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += 60;
  if (pthread_create(&thread, NULL, compiler, NULL)) return -1;
  return pthread_timedjoin_np(thread, NULL, &end);
}

int aclnnAddGetWorkspaceSize(Tensor *self, Tensor *other, Values *alpha, Tensor *out,
                             uint64_t *size, void **executor) {
  if (compiler && compile()) return failing(361001, "EZ9999: the compiler does not end");
  if (!self || !other || !alpha || !out) return failing(161001, "EZ1001: null");
  double a;
  memcpy(&a, alpha->data, 8);
  if (alpha->count != 11) a = -1;
  return finish(size, executor, at(out), at(self)[0] + at(other)[0] * (float)a, numel(out));
}
PHASE_TWO(aclnnAdd)

/* Every kind at once; out[0..] reports what arrived. */
static float seen[64];
int aclnnStubKindsGetWorkspaceSize(Tensor *self, List *tensors, List *scalars, Values *ints,
                                   Values *bools, Values *floats, const char *text, bool flag,
                                   int8_t i8, int32_t i32, int64_t i64, uint32_t u32, uint64_t u64,
                                   float f, double d, int dtype, Tensor *optional, Tensor *out,
                                   uint64_t *size, void **executor) {
  int64_t first_int;
  float first_float;
  memcpy(&first_int, ints->data + 8, 8);
  memcpy(&first_float, floats->data, 4);
  const float found[] = {at(self)[0], (float)tensors->count, at(tensors->members[1])[0],
                         (float)scalars->count, (float)ints->count, (float)first_int,
                         (float)bools->data[1], first_float, (float)strlen(text), (float)flag,
                         (float)i8, (float)i32, (float)i64, (float)u32, (float)u64, f, (float)d,
                         (float)dtype, optional ? 1.f : 0.f};
  memcpy(seen, found, sizeof found);
  int code = finish(size, executor, NULL, 0, 0);
  if (!code) memcpy(at(out), seen, sizeof found);
  return code;
}
PHASE_TWO(aclnnStubKinds)

int aclnnStubSplitGetWorkspaceSize(Tensor *self, List *out, uint64_t *size, void **executor) {
  for (uint64_t k = 0; k < out->count; ++k) at(out->members[k])[0] = at(self)[0] + (float)k;
  return finish(size, executor, NULL, 0, 0);
}
PHASE_TWO(aclnnStubSplit)

/* Irregular: a host output in phase 1, an extra parameter in phase 2. */
int aclnnStubOddGetWorkspaceSize(Tensor *self, bool *any, int64_t *count, uint64_t *size,
                                 void **executor) {
  *any = true;
  *count = numel(self);
  return finish(size, executor, at(self), 0, 1);
}
int aclnnStubOdd(void *w, uint64_t n, double scale, void *e, void *s) {
  ((Executor *)e)->value = (float)scale;
  return run(w, n, e, s);
}

/* Writes its array: the next launch must not see it. */
int aclnnStubWritesGetWorkspaceSize(Tensor *out, Values *array, uint64_t *size, void **executor) {
  int64_t value;
  memcpy(&value, array->data, 8);
  at(out)[0] = (float)value;
  value = 99;
  memcpy(array->data, &value, 8);
  return finish(size, executor, NULL, 0, 0);
}
PHASE_TWO(aclnnStubWrites)

int aclnnStubNoopGetWorkspaceSize(Tensor *a, Tensor *b, Values *alpha, Tensor *out, uint64_t *size,
                                  void **executor) {
  (void)a, (void)b, (void)alpha, (void)out;
  *size = 0;
  return *executor = seen, 0;
}
int aclnnStubNoop(void *w, uint64_t n, void *e, void *s) {
  return (void)w, (void)n, (void)e, (void)s, 0;
}

/* One-phase helpers. */
int aclnnStubWeightSize(Values *shape, uint64_t *size) {
  *size = 1;
  for (uint64_t k = 0; k < shape->count; ++k) {
    int64_t n;
    memcpy(&n, shape->data + k * 8, 8);
    *size *= (uint64_t)n;
  }
  return 0;
}
int aclnnStubRefuse(int64_t code) { return failing((int)code, "EZ1001: refused"); }
float stubHalf(float x) { return x / 2; }
double stubMix(int a, double b, int64_t c, float d, uint8_t e) { return a + b + c + d + e; }
int8_t stubNegative(void) { return -3; }
void stubNothing(void) {}
