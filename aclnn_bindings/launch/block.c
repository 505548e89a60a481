/* The extension module aclnn_bindings._block: Block, a Python object that owns one device address
 * and gives it back as it dies. In C because a Python __del__ costs more than a small launch. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <stdint.h>
#include <structmember.h>

static int32_t (*release)(uint64_t address, uint64_t session);

typedef struct {
  PyObject_HEAD
  PyObject *address; /* kept as objects: they are read far more often than made */
  PyObject *nbytes;
  uint64_t session;
} Block;

static PyTypeObject BlockType;

static PyObject *block_vectorcall(PyObject *type, PyObject *const *args, size_t flags,
                                  PyObject *names) {
  if (PyVectorcall_NARGS(flags) != 3 || (names && PyTuple_GET_SIZE(names))) {
    PyErr_SetString(PyExc_TypeError, "Block(address, nbytes, session): 3 positional arguments");
    return NULL;
  }
  const uint64_t session = PyLong_AsUnsignedLongLong(args[2]);
  if (session == (uint64_t)-1 && PyErr_Occurred()) return NULL;
  if (!PyLong_Check(args[0]) || !PyLong_Check(args[1])) {
    PyErr_SetString(PyExc_TypeError, "Block(address, nbytes, session): ints are expected");
    return NULL;
  }
  Block *self = PyObject_New(Block, (PyTypeObject *)type);
  if (!self) return NULL;
  self->address = Py_NewRef(args[0]);
  self->nbytes = Py_NewRef(args[1]);
  self->session = session;
  return (PyObject *)self;
}

static void block_dealloc(Block *self) {
  const uint64_t address = PyLong_AsUnsignedLongLong(self->address);
  if (PyErr_Occurred()) PyErr_Clear();
  else if (address && release) release(address, self->session);
  Py_DECREF(self->address);
  Py_DECREF(self->nbytes);
  PyObject_Free(self);
}

static PyObject *block_repr(Block *self) {
  return PyUnicode_FromFormat("Block(%S bytes at %S)", self->nbytes, self->address);
}

static PyMemberDef block_members[] = {
    {"address", T_OBJECT_EX, offsetof(Block, address), READONLY, "the first byte's address"},
    {"nbytes", T_OBJECT_EX, offsetof(Block, nbytes), READONLY, "bytes asked for"},
    {"session", T_ULONGLONG, offsetof(Block, session), READONLY, "the runtime session it is from"},
    {NULL, 0, 0, 0, NULL},
};

static PyTypeObject BlockType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "aclnn_bindings._block.Block",
    .tp_doc = "Block(address, nbytes, session): device memory, given back when the object dies.",
    .tp_basicsize = sizeof(Block),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = (destructor)block_dealloc,
    .tp_repr = (reprfunc)block_repr,
    .tp_members = block_members,
    .tp_vectorcall = block_vectorcall,
};

static PyObject *set_release(PyObject *module, PyObject *address) {
  (void)module;
  void *found = PyLong_AsVoidPtr(address);
  if (!found && PyErr_Occurred()) return NULL;
  release = (int32_t(*)(uint64_t, uint64_t))found;
  Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"set_release", set_release, METH_O, "The address of mt_release, which frees blocks."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_block", NULL, -1, methods,
                                    NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__block(void) {
  if (PyType_Ready(&BlockType) < 0) return NULL;
  PyObject *made = PyModule_Create(&module);
  if (made && PyModule_AddObjectRef(made, "Block", (PyObject *)&BlockType) < 0) Py_CLEAR(made);
  return made;
}
