/* Block, a Python object that owns one device address and gives it back as it dies, and launches
 * that take and make Blocks. In C because a Python __del__ costs more than a small launch, and
 * reading addresses from objects less than passing them as numbers. Within the limited API of
 * CPython 3.10, so that one build serves all later. */
#include "block.h"

#include <stddef.h>
#include <structmember.h>

Start start;
Present present;
Obtain obtain;
static int32_t (*release)(uint64_t address, uint64_t session);
static PyObject *closed_error; /* what use after the session's end raises */

static uint64_t (*start_all)(uint64_t plan, uint64_t stream, const uint64_t *given, uint64_t count,
                             uint64_t made_in, uint64_t *made, uint64_t room);
static PyObject *heard; /* what a handler of a signal raised while nobody could raise it */

/* What mt_launch takes for blocks of several sessions, and for none at all. */
static const uint64_t MIXED = 0, ANY = UINT64_MAX;

typedef struct {
  PyObject_HEAD
  uint64_t address;
  uint64_t session;
  PyObject *nbytes;
} Block;

static PyTypeObject *block_type;

static PyObject *make_block(uint64_t address, PyObject *nbytes, uint64_t session) {
  Block *self = PyObject_New(Block, block_type);
  if (!self) {
    release(address, session);
    return NULL;
  }
  self->address = address;
  self->session = session;
  self->nbytes = Py_NewRef(nbytes);
  return (PyObject *)self;
}

static PyObject *block_new(PyTypeObject *type, PyObject *args, PyObject *names) {
  (void)type;
  if (PyTuple_Size(args) != 3 || (names && PyDict_Size(names))) {
    PyErr_SetString(PyExc_TypeError, "Block(address, nbytes, session): 3 positional arguments");
    return NULL;
  }
  uint64_t address, session;
  PyObject *nbytes = PyTuple_GetItem(args, 1);
  if (!number(PyTuple_GetItem(args, 0), &address) || !number(PyTuple_GetItem(args, 2), &session))
    return NULL;
  if (!PyLong_Check(nbytes)) {
    PyErr_SetString(PyExc_TypeError, "Block(address, nbytes, session): ints are expected");
    return NULL;
  }
  return make_block(address, nbytes, session);
}

static void block_dealloc(Block *self) {
  PyTypeObject *type = Py_TYPE((PyObject *)self);
  if (self->address && release) release(self->address, self->session);
  Py_DECREF(self->nbytes);
  PyObject_Free(self);
  Py_DECREF((PyObject *)type);
}

static PyObject *block_address(Block *self, void *unused) {
  (void)unused;
  if (present && self->session != present())
    return PyErr_Format(closed_error,
                        "device memory of %S bytes: the runtime that it was from was closed, and "
                        "its contents with it; make the tensor again",
                        self->nbytes);
  return PyLong_FromUnsignedLongLong(self->address);
}

static PyObject *block_repr(Block *self) {
  char at[24];
  PyOS_snprintf(at, sizeof at, "0x%llx", (unsigned long long)self->address);
  return PyUnicode_FromFormat("Block(%S bytes at %s)", self->nbytes, at);
}

static PyMemberDef block_members[] = {
    {"nbytes", T_OBJECT_EX, offsetof(Block, nbytes), READONLY, "bytes asked for"},
    {"session", T_ULONGLONG, offsetof(Block, session), READONLY, "the runtime session it is from"},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef block_getters[] = {
    {"address", (getter)block_address, NULL, "the first byte's address", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot block_slots[] = {
    {Py_tp_doc,
     "Block(address, nbytes, session): device memory, given back when the object dies."},
    {Py_tp_new, block_new},
    {Py_tp_dealloc, block_dealloc},
    {Py_tp_repr, block_repr},
    {Py_tp_members, block_members},
    {Py_tp_getset, block_getters},
    {0, NULL},
};

static PyType_Spec block_spec = {
    .name = "aclnn_bindings.runtime._block.Block",
    .basicsize = sizeof(Block),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = block_slots,
};

/* The addresses of Blocks, 0 of None, and the session that they are from. -1: a Python error. */
static int gather(PyObject *const *blocks, Py_ssize_t count, uint64_t *given, uint64_t *made_in) {
  *made_in = ANY;
  for (Py_ssize_t k = 0; k < count; ++k) {
    given[k] = 0;
    if (blocks[k] == Py_None) continue;
    if (!Py_IS_TYPE(blocks[k], block_type)) {
      PyErr_Format(PyExc_TypeError, "launch: expected a Block, got %R", Py_TYPE(blocks[k]));
      return -1;
    }
    const Block *block = (Block *)blocks[k];
    given[k] = block->address;
    *made_in = *made_in == ANY || *made_in == block->session ? block->session : MIXED;
  }
  return 0;
}

/* Runs plan args[0] on stream args[1] over the Blocks from args[first] on; without the GIL, as
 * phase 1 may take long and a full stream makes phase 2 wait. -1: a Python error is set. */
static int run(PyObject *const *args, Py_ssize_t count, Py_ssize_t first, uint64_t *result) {
  uint64_t plan, stream, given[MOST], made_in;
  if (count < first || count - first > MOST) {
    PyErr_Format(PyExc_TypeError, "launch: %zd arguments; expected %zd and up to %d blocks", count,
                 first, MOST);
    return -1;
  }
  if (!number(args[0], &plan) || !number(args[1], &stream)) return -1;
  if (gather(args + first, count - first, given, &made_in) < 0) return -1;
  Py_BEGIN_ALLOW_THREADS
  *result = start(plan, stream, given, (uint64_t)(count - first), made_in);
  Py_END_ALLOW_THREADS
  return 0;
}

static PyObject *launch(PyObject *module, PyObject *const *args, Py_ssize_t count) {
  (void)module;
  uint64_t result, session;
  if (run(args, count, 4, &result) < 0 || !number(args[3], &session)) return NULL;
  if (!result) Py_RETURN_NONE;
  return make_block(result, args[2], session);
}

/* A tuple of Blocks over addresses that are owned here; those that get none are given back. */
static PyObject *blocks_of(const uint64_t *addresses, PyObject *sizes, uint64_t session) {
  const Py_ssize_t count = PyTuple_Size(sizes);
  PyObject *blocks = PyTuple_New(count);
  Py_ssize_t k = 0;
  for (; blocks && k < count; ++k) {
    PyObject *block = make_block(addresses[k], PyTuple_GetItem(sizes, k), session);
    if (!block) {
      Py_CLEAR(blocks);
      ++k;
      break;
    }
    PyTuple_SetItem(blocks, k, block);
  }
  if (!blocks)
    for (; k < count; ++k) release(addresses[k], session);
  return blocks;
}

static PyObject *launch_many(PyObject *module, PyObject *const *args, Py_ssize_t count) {
  (void)module;
  uint64_t plan, stream, session, made_in, done;
  if (count < 4 || !PyTuple_Check(args[2])) {
    PyErr_SetString(PyExc_TypeError, "launch_many(plan, stream, nbytes, session, *blocks)");
    return NULL;
  }
  if (!number(args[0], &plan) || !number(args[1], &stream) || !number(args[3], &session))
    return NULL;
  const Py_ssize_t given = count - 4, room = PyTuple_Size(args[2]);
  uint64_t *words = PyMem_Malloc((size_t)(given + room + 1) * sizeof *words);
  if (!words) return PyErr_NoMemory();
  PyObject *blocks = NULL;
  if (gather(args + 4, given, words, &made_in) == 0) {
    Py_BEGIN_ALLOW_THREADS
    done = start_all(plan, stream, words, (uint64_t)given, made_in, words + given, (uint64_t)room);
    Py_END_ALLOW_THREADS
    blocks = done ? blocks_of(words + given, args[2], session) : Py_NewRef(Py_None);
  }
  PyMem_Free(words);
  return blocks;
}

static PyObject *launch_into(PyObject *module, PyObject *const *args, Py_ssize_t count) {
  (void)module;
  uint64_t result;
  if (run(args, count, 2, &result) < 0) return NULL;
  return PyBool_FromLong(result != 0);
}

/* The Block at once: an address that Python held alone would be lost to an interrupt. */
static PyObject *allocate(PyObject *module, PyObject *const *args, Py_ssize_t count) {
  (void)module;
  uint64_t address, stream, bytes, session;
  if (count != 3 || !PyLong_Check(args[1])) {
    PyErr_SetString(PyExc_TypeError, "allocate(stream, nbytes, session): 3 ints are expected");
    return NULL;
  }
  if (!number(args[0], &stream) || !number(args[1], &bytes) || !number(args[2], &session))
    return NULL;
  Py_BEGIN_ALLOW_THREADS
  address = obtain(stream, bytes ? bytes : 1, 0); /* MT_TENSOR */
  Py_END_ALLOW_THREADS
  if (!address) Py_RETURN_NONE;
  return make_block(address, args[1], session);
}

/* Lets the handlers of signals run, from a wait without the GIL; 1 when one raised. Python runs them
 * in its main thread alone: elsewhere nothing happens. */
static int32_t heed(void) {
  const PyGILState_STATE state = PyGILState_Ensure();
  const int32_t raised = PyErr_CheckSignals() != 0;
  if (raised) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (trace) PyException_SetTraceback(value, trace);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    Py_XDECREF(heard);
    heard = value;
  }
  PyGILState_Release(state);
  return raised;
}

static PyObject *taken(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  PyObject *value = heard;
  heard = NULL;
  if (value) return value;
  Py_RETURN_NONE;
}

static PyObject *connect(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *releases, *starts, *all, *allocates, *sessions, *error;
  if (!PyArg_ParseTuple(args, "OOOOOO", &releases, &starts, &all, &allocates, &sessions, &error))
    return NULL;
  obtain = (Obtain)PyLong_AsVoidPtr(allocates);
  release = (int32_t(*)(uint64_t, uint64_t))PyLong_AsVoidPtr(releases);
  start = (Start)PyLong_AsVoidPtr(starts);
  present = (Present)PyLong_AsVoidPtr(sessions);
  start_all = (uint64_t(*)(uint64_t, uint64_t, const uint64_t *, uint64_t, uint64_t, uint64_t *,
                           uint64_t))PyLong_AsVoidPtr(all);
  if (PyErr_Occurred()) return NULL;
  Py_XDECREF(closed_error);
  closed_error = Py_NewRef(error);
  return PyLong_FromVoidPtr((void *)heed);
}

static PyMethodDef methods[] = {
    {"connect", connect, METH_VARARGS, 
     "The addresses of mt_release, mt_launch, mt_launch_all, mt_alloc_for and mt_session; the error\n"
     "of closed blocks. Returns what mt_heed takes."},
    {"taken", taken, METH_NOARGS,
     "What a handler of a signal raised during the wait that MT_INTERRUPTED ended, or None."},
    {"allocate", (PyCFunction)(void (*)(void))allocate, METH_FASTCALL,
     "allocate(stream, nbytes, session): a Block, or None after a failure."},
    {"launch", (PyCFunction)(void (*)(void))launch, METH_FASTCALL,
     "launch(plan, stream, nbytes, session, *blocks): the Block of the plan's output, or None\n"
     "after a failure, which Plan.throw raises."},
    {"launch_many", (PyCFunction)(void (*)(void))launch_many, METH_FASTCALL,
     "launch_many(plan, stream, nbytes, session, *blocks): a tuple with a Block per member of the\n"
     "tuple nbytes, or None after a failure. Any number of blocks; None counts as no memory."},
    {"launch_into", (PyCFunction)(void (*)(void))launch_into, METH_FASTCALL,
     "launch_into(plan, stream, *blocks): whether a plan that allocates nothing was launched."},
    {NULL, NULL, 0, NULL},
};

int add_block(PyObject *module) {
  if (!block_type) block_type = (PyTypeObject *)PyType_FromSpec(&block_spec);
  if (!block_type || PyModule_AddObjectRef(module, "Block", (PyObject *)block_type) < 0) return -1;
  return PyModule_AddFunctions(module, methods);
}
