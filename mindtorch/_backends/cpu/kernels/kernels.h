/* The native kernels of cpu tensors: operators' loops over addresses that the caller owns.
 * A kernel is made once for given geometries and numbers, then run with addresses, from any number
 * of threads at once. Operators and their parameters are those of the ACLNN headers. */

typedef struct mtk_kernel mtk_kernel;

/* The kinds of an operator's parameters, a letter each: T tensor, t list of tensors, S scalar,
 * s list of scalars, I array of int64, B array of bool, F array of float, b bool, i integer,
 * f number, c text, p pointer. NULL where there is no such operator here. */
const char* mtk_parameters(const char* op);
/* The value of an ACL dtype by its name without prefix; -1 where there is none. */
int mtk_dtype(const char* name);
/* Threads that kernels may use from now on, at least 1. */
void mtk_set_threads(int threads);
int mtk_threads(void);

/* NULL where there is no such operator or no memory. All arguments are absent at first. */
mtk_kernel* mtk_new(const char* op);
void mtk_free(mtk_kernel* kernel);
/* A view of `place`, the position of its storage's address in mtk_run; offset, strides and `numel`,
 * the storage's size, count elements. `member`: its position in a list of `members`, else -1. */
void mtk_tensor(mtk_kernel* kernel, int argument, int member, int members, int place, int dtype,
                int rank, const int64_t* dims, const int64_t* strides, int64_t offset,
                int64_t numel);
void mtk_scalar(mtk_kernel* kernel, int argument, int dtype, const void* value, size_t size);
void mtk_ints(mtk_kernel* kernel, int argument, int64_t size, const int64_t* values);
void mtk_flags(mtk_kernel* kernel, int argument, int64_t size, const bool* values);
void mtk_integer(mtk_kernel* kernel, int argument, int64_t value);
void mtk_number(mtk_kernel* kernel, int argument, double value);
void mtk_flag(mtk_kernel* kernel, int argument, bool value);
void mtk_text(mtk_kernel* kernel, int argument, const char* value);
/* A numpy universal function by its inner loops (ndarraytypes.h, PyUFuncGenericFunction), one for
 * each of its `kinds`; `types`: numpy's numbers of dtypes, of each kind's operands and results;
 * `signature`: NULL where it goes element by element. */
typedef struct {
  const char* signature;
  int operands, results, kinds;
  const char* types;
  void* const* loops;
} mtk_loops;
/* Whether there is one of a name, then its loops in `found`. */
int mtk_function(const char* name, mtk_loops* found);
/* Once, after the arguments: 0, or why the operator does not take them, in `message`. */
int mtk_check(mtk_kernel* kernel, char* message, size_t room);
/* 0, or the code with which it stopped: an index out of range, no memory. */
int mtk_run(const mtk_kernel* kernel, void* const* places);
/* The same of as many places, without a list of them: a small sum takes 1.01 us, not 1.17. */
int mtk_run2(const mtk_kernel* kernel, void* first, void* second);
int mtk_run3(const mtk_kernel* kernel, void* first, void* second, void* third);
