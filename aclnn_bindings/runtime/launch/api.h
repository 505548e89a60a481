/* The C entry points of aclnn_bindings._launch, as cffi reads them: declarations only.
 * Handles and device addresses travel as uint64_t; 0 means failure, whose details
 * mt_last_failure gives on the same thread until the thread's next failure. */

enum mt_phase {
  MT_PHASE_RUNTIME,
  MT_PHASE_STATE,
  MT_PHASE_ARGUMENTS,
  MT_PHASE_OUTPUT,
  MT_PHASE_DESCRIPTOR,
  MT_PHASE_ONE,
  MT_PHASE_WORKSPACE,
  MT_PHASE_TWO,
  MT_PHASE_SYNCHRONIZE
};

/* Reasons of our own; ACL's codes are positive. */
enum mt_reason {
  MT_NOT_STARTED = -1,
  MT_FORKED = -2,
  MT_STOPPED = -3,
  MT_CLOSED_HANDLE = -4,
  MT_WRONG_COUNT = -5,
  MT_UNKNOWN_POINTER = -6,
  MT_MISSING_FUNCTION = -7,
  MT_TOO_MANY_ARGUMENTS = -8,
  MT_NULL_DESCRIPTOR = -9,
  MT_OVER_LIMIT = -10,
  MT_STILL_USED = -11,
  MT_CLOSED_MEMORY = -12,
  MT_INTERRUPTED = -13
};

enum mt_purpose { MT_TENSOR, MT_WORKSPACE, MT_BUFFER };
enum mt_role { MT_ROLE_WORKSPACE, MT_ROLE_SIZE, MT_ROLE_EXECUTOR, MT_ROLE_STREAM };
/* Arguments of a plan, each a record of 64-bit words that starts with one of these:
 *   VALUE phase is_float bits           ROLE phase role           TEXT phase address
 *   SCALAR dtype low high               SCALARS count (dtype low high)...
 *   INTS count value...                 BOOLS count value...      FLOATS count bits...
 *   TENSOR rank storage_rank offset dtype format bytes dims... strides... storage_dims...
 *   TENSORS count (what follows TENSOR)...
 * `bytes` is what a launch allocates for the tensor; 0: the caller gives its address. */
enum mt_word {
  MT_WORD_VALUE, MT_WORD_ROLE, MT_WORD_TEXT, MT_WORD_SCALAR, MT_WORD_SCALARS, MT_WORD_INTS,
  MT_WORD_BOOLS, MT_WORD_FLOATS, MT_WORD_TENSOR, MT_WORD_TENSORS
};
enum mt_result { MT_RESULT_INTEGER, MT_RESULT_FLOAT, MT_RESULT_DOUBLE, MT_RESULT_VOID };

typedef struct {
  int32_t phase;       /* enum mt_phase */
  int32_t code;        /* ACL status, or enum mt_reason */
  const char *call;    /* the function that failed */
  const char *message; /* what aclGetRecentErrMsg said, or "" */
  uint64_t detail;     /* bytes asked for, or a position */
} mt_failure;

typedef struct {
  uint64_t launches, failed_launches, host_syncs;
  uint64_t copies_to_device, copies_to_host, copies_on_device, bytes_to_device, bytes_to_host;
} mt_counts;

typedef struct {
  uint64_t current, peak, allocated, freed;
} mt_gauge;

/* Index 0 is the total, 1 the small pool (blocks up to 1 MiB), 2 the large pool. */
typedef struct {
  mt_gauge allocation[3], allocated_bytes[3], requested_bytes[3];
  mt_gauge segment[3], reserved_bytes[3];
  uint64_t pending_blocks, pending_bytes, free_blocks, free_bytes, largest_free;
  uint64_t purpose_bytes[3];
  uint64_t retries, ooms, limit;
} mt_memory;

/* What one stream's pool holds, in bytes. */
typedef struct {
  uint64_t stream, tensors, workspaces, buffers, cached;
} mt_holding;

typedef struct {
  uint64_t address, bytes, requested, stream;
  int32_t purpose, pending;
} mt_block;

/* Bytes that changed around a block of `requested` bytes: so many before it and behind it; the first
 * of those behind is `first` bytes from its end. */
typedef struct {
  uint64_t address, requested, before, behind, first;
  int32_t purpose, padding;
} mt_trespass;

/* Libraries, the function table and the session. */
uint64_t mt_library_open(const char *path, int32_t whole, char *why, uint64_t room);
uint64_t mt_library_symbol(uint64_t library, const char *name);
const char *mt_function_name(uint32_t index);
int32_t mt_function_required(uint32_t index);
void mt_function_bind(uint32_t index, uint64_t address);
/* A function that runs the host's handlers of signals and is not 0 when one wants to be heard;
 * waits ask it twice a second. */
void mt_heed(uint64_t address);
int32_t mt_start(const char *config);
int32_t mt_stop(void);
/* The session's number, 0 when there is none. */
uint64_t mt_session(void);
void mt_launch_blocking(int32_t on);
int32_t mt_is_launch_blocking(void);
/* Whether freed memory is kept for reuse (the default), or each block is an allocation of its own
 * that goes back when it is freed, so that a memory checker sees its ends. */
void mt_memory_caching(int32_t on);
/* Whether each block has guards before it and from its last byte on, of contents of its own:
 * 0 no, 1 yes, 2 but for the 32 bytes, after rounding to 32, that a device may write behind a
 * block (aclrtMalloc's document). Set it before memory is allocated. */
void mt_memory_guard(int32_t mode);
/* The byte that a guarded block is full of when it is allocated; -1: what it held. Whether blocks
 * are guarded. */
int32_t mt_memory_garbage(int32_t value);
const mt_failure *mt_last_failure(void);
const mt_counts *mt_counters(void);
const char *mt_recent_message(void);

/* Devices, contexts, streams, events. Flags are the installed headers' values. */
int32_t mt_device_count(uint32_t *count);
uint64_t mt_device_open(int32_t id, uint32_t stream_flags, uint32_t event_flags);
int32_t mt_device_synchronize(uint64_t device);
uint64_t mt_device_stream(uint64_t device);
uint64_t mt_device_context(uint64_t device);
int32_t mt_device_memory(uint64_t device, uint64_t *free_bytes, uint64_t *total_bytes);
uint64_t mt_context_open(uint64_t device);
int32_t mt_context_close(uint64_t context);
int32_t mt_context_use(uint64_t context);
uint64_t mt_context_handle(uint64_t context);
void mt_context_forget(void);
uint64_t mt_stream_open(uint64_t context, uint32_t priority, uint32_t flags);
int32_t mt_stream_close(uint64_t stream);
int32_t mt_stream_synchronize(uint64_t stream, int32_t timeout_ms);
int32_t mt_stream_query(uint64_t stream);
uint64_t mt_stream_handle(uint64_t stream);
uint64_t mt_event_open(uint64_t device, uint32_t flags);
int32_t mt_event_close(uint64_t event);
/* Closes it and gives up the handle, which nobody may use any more. */
int32_t mt_event_free(uint64_t event);
int32_t mt_event_record(uint64_t event, uint64_t stream);
int32_t mt_event_wait(uint64_t event, uint64_t stream);
int32_t mt_event_query(uint64_t event);
int32_t mt_event_synchronize(uint64_t event);
int32_t mt_event_elapsed(uint64_t start, uint64_t end, float *ms);
uint64_t mt_event_handle(uint64_t event);

/* Memory. mt_free is stream ordered and does not wait; copies are in stream order. With `wait`, a
 * copy from or to the host may use any host memory; without, pinned memory that outlives it. */
uint64_t mt_alloc(uint64_t stream, uint64_t bytes);
uint64_t mt_alloc_for(uint64_t stream, uint64_t bytes, int32_t purpose);
int32_t mt_free(uint64_t address);
/* mt_free that never waits for another thread; nothing for a session that is over. */
int32_t mt_release(uint64_t address, uint64_t session);
int32_t mt_record_stream(uint64_t address, uint64_t stream);
int32_t mt_block_at(uint64_t address, mt_block *block);
int32_t mt_memory_empty(uint64_t device);
int32_t mt_memory_limit(uint64_t device, uint64_t bytes);
int32_t mt_memory_read(uint64_t device, mt_memory *memory);
int32_t mt_memory_reset_peak(uint64_t device);
uint64_t mt_memory_holdings(uint64_t device, mt_holding *rows, uint64_t room);
/* Waits for the device and looks at the guards of all blocks, those freed since the last look too:
 * how many were overwritten, of which `rows` tells the first. */
uint64_t mt_memory_trespasses(uint64_t device, mt_trespass *rows, uint64_t room);
/* A pool of its own for what a stream allocates until mt_pool_leave: captured work goes on using
 * its memory, free or not, until mt_pool_close, which gives it to the device's default stream. */
uint64_t mt_pool_open(uint64_t stream);
int32_t mt_pool_leave(uint64_t stream);
int32_t mt_pool_close(uint64_t stream, uint64_t pool);
uint64_t mt_host_alloc(uint64_t device, uint64_t bytes);
/* The session's end leaves this memory alone: somebody looks into it. */
int32_t mt_host_keep(uint64_t address);
int32_t mt_host_free(uint64_t device, uint64_t address);
int32_t mt_copy(uint64_t stream, uint64_t to, uint64_t room, uint64_t from, uint64_t bytes,
                int32_t kind, int32_t wait);
int32_t mt_fill(uint64_t stream, uint64_t to, uint64_t room, int32_t value, uint64_t bytes);

/* Any function by its address: integers and pointers as bits, float as bits in the low half. */
int32_t mt_call(uint64_t function, const uint8_t *is_float, const uint64_t *values,
                uint64_t count, int32_t result_kind, uint64_t *result);

/* Frees an array that ACL made with new[], such as aclGetViewShape's. */
void mt_delete_array(int64_t *array);

/* A plan of an operator's two functions for arguments in declaration order; 0 on failure. `about`
 * is the call in words, for errors. */
uint64_t mt_plan_make(const char *name, const char *about, uint64_t first, uint64_t second,
                      const uint64_t *words, uint64_t count);
void mt_plan_close(uint64_t plan);
/* Closes it and gives up the handle, which nobody may use any more. */
void mt_plan_free(uint64_t plan);

/* Launches: addresses of the slots that the caller gives, in declaration order. The result is
 * the first allocated output's address, 1 if the plan allocates none, 0 on failure. */
uint64_t mt_run0(uint64_t plan, uint64_t stream);
uint64_t mt_run1(uint64_t plan, uint64_t stream, uint64_t a);
uint64_t mt_run2(uint64_t plan, uint64_t stream, uint64_t a, uint64_t b);
uint64_t mt_run3(uint64_t plan, uint64_t stream, uint64_t a, uint64_t b, uint64_t c);
uint64_t mt_run4(uint64_t plan, uint64_t stream, uint64_t a, uint64_t b, uint64_t c, uint64_t d);
uint64_t mt_run5(uint64_t plan, uint64_t stream, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
                 uint64_t e);
uint64_t mt_run6(uint64_t plan, uint64_t stream, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
                 uint64_t e, uint64_t f);
/* The same for any number of given addresses, up to 32 slots in all; `made_in` is the session
 * that they are from: 0 for several, MT_ANY_SESSION where nobody knows. */
uint64_t mt_launch(uint64_t plan, uint64_t stream, const uint64_t *given, uint64_t count,
                   uint64_t made_in);
/* The same for any number of slots: 1, and `made` holds the `room` addresses that the plan
 * allocates, or 0. */
uint64_t mt_launch_all(uint64_t plan, uint64_t stream, const uint64_t *given, uint64_t count,
                       uint64_t made_in, uint64_t *made, uint64_t room);
/* `slots` holds every slot's address; those of allocated outputs are written. */
uint64_t mt_run(uint64_t plan, uint64_t stream, uint64_t *slots, uint64_t count);
