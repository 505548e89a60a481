/* The start of the extension module aclnn_bindings.runtime._block. */
#include "block.h"

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_block", NULL, -1, NULL,
                                        NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__block(void) {
  PyObject *module = PyModule_Create(&definition);
  if (module && (add_block(module) < 0 || add_operator(module) < 0)) Py_CLEAR(module);
  return module;
}
