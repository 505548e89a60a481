"""Builds packages of operators that are written in C by hand: x times y of float32 elements.

`aclnnProduct` does its work as often as a build says, `aclnnSlowProduct` eight times,
`aclnnProductOfSums` adds instead, `aclnnSmallProduct` has no kernel beyond 64 elements, and
`aclnnBrittleProduct` ends the process beyond 100.
"""

import subprocess
from pathlib import Path

from tests.simulator import compiled

OPERATOR = r"""
#include <stdint.h>
#include <stdlib.h>
int aclGetRawTensorAddr(const void *tensor, void **address);
int aclGetViewShape(const void *tensor, int64_t **dims, uint64_t *count);
int aclrtLaunchHostFunc(void *stream, void (*function)(void *), void *arguments);
typedef struct { const float *x, *y; float *out; int64_t n; } Call;
static Call *call_of(const void *x, const void *y, void *out) {
  Call *call = calloc(1, sizeof *call);
  int64_t *dims;
  uint64_t rank;
  aclGetRawTensorAddr(x, (void **)&call->x);
  aclGetRawTensorAddr(y, (void **)&call->y);
  aclGetRawTensorAddr(out, (void **)&call->out);
  aclGetViewShape(out, &dims, &rank);
  call->n = 1;
  for (uint64_t i = 0; i < rank; ++i) call->n *= dims[i];
  return call;
}
#define DEFINE(name, repeats, operation, most)                                                \
  static void compute##name(void *arguments) {                                              \
    Call *call = arguments;                                                                 \
    for (int repeat = 0; repeat < (repeats); ++repeat)                                      \
      for (volatile int64_t i = 0; i < call->n; ++i)                                        \
        call->out[i] = call->x[i] operation call->y[i];                                     \
  }                                                                                         \
  int aclnn##name##GetWorkspaceSize(const void *x, const void *y, void *out, uint64_t *size, \
                                    void **executor) {                                      \
    Call *call = call_of(x, y, out);                                                        \
    if (call->n > (most)) return 561003;                                                    \
    *size = 0;                                                                              \
    *executor = call;                                                                       \
    return 0;                                                                               \
  }                                                                                         \
  int aclnn##name(void *workspace, uint64_t size, void *executor, void *stream) {           \
    return aclrtLaunchHostFunc(stream, compute##name, executor);                            \
  }
DEFINE(Product, REPEATS, *, INT64_MAX)
DEFINE(SlowProduct, 8, *, INT64_MAX)
DEFINE(ProductOfSums, 1, +, INT64_MAX)
DEFINE(SmallProduct, 1, *, 64)
DEFINE(BrittleProduct, 1, / (call->n > 100 ? *(volatile float *)0 : 1) *, INT64_MAX)
"""
HEADER = """
aclnnStatus aclnn{0}GetWorkspaceSize(const aclTensor *x, const aclTensor *y, aclTensor *out,
                                     uint64_t *workspaceSize, aclOpExecutor **executor);
aclnnStatus aclnn{0}(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor,
                     aclrtStream stream);
"""


def package(root: Path, repeats: int = 1) -> Path:
    """A build of the package whose aclnnProduct does its work `repeats` times."""
    lib, include = root / "op_api/lib", root / "op_api/include"
    lib.mkdir(parents=True)
    include.mkdir()
    (root / "product.c").write_text(OPERATOR)
    libraries = [f"-L{compiled.install() / 'lib64'}", "-Wl,--no-as-needed", "-lascendcl",
                 "-lnnopbase"]  # fmt: skip
    command = [compiled.compiler(), "-x", "c", "-shared", "-fPIC", "-O1", f"-DREPEATS={repeats}",
               str(root / "product.c"), *libraries,
               "-o", str(lib / "libcust_opapi.so")]  # fmt: skip
    subprocess.run(command, check=True)
    names = ("Product", "SlowProduct", "ProductOfSums", "SmallProduct", "BrittleProduct")
    text = '#include "aclnn/acl_meta.h"\n' + "".join(map(HEADER.format, names))
    (include / "aclnn_product.h").write_text(text)
    return root
