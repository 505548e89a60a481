/* Calls of operators that repeat an earlier one: Operator, whose call tells at a glance that its
 * arguments are those of a plan that is kept and launches it; View and Memory, the bases of device
 * tensors and buffers, whose fields it reads without a Python attribute. Everything else, errors
 * included, is Python's: `_call` is what a call comes to when in doubt. */
#include "block.h"

#include <stddef.h>
#include <string.h>
#include <structmember.h>

enum { PARAMETERS = 64 }; /* of one operator; those with more are Python's */
enum { WORDS = 192 };     /* of a key */
enum { TEXT = 64 };       /* bytes of a string in a key */

typedef struct {
  PyObject_HEAD
  uint64_t address; /* 0 once closed */
  uint64_t session;
  uint64_t lane; /* the default stream of its device, as launches take it */
} Memory;

typedef struct {
  PyObject_HEAD
  PyObject *buffer;
  PyObject *spec;
} View;

typedef struct {
  PyObject_HEAD
  PyObject *names;    /* of the parameters, in order: a tuple of str */
  PyObject *repeated; /* key → (plan, its address, what its key names); None: no call repeats */
} Operator;

/* The classes whose objects calls are given, set by operands(). */
static PyTypeObject *memory_type, *view_type, *stream_type;
static PyObject *stream_name, *call_name, *lane_name, *fail_name, *address_name;
static int lanes_vary; /* whether any thread ever took a stream that is not its device's default */

/* What a value of a key begins with, so that no two lists of values have one key. */
enum { VIEW = 1, REAL, WHOLE, TEXTUAL, CONSTANT, LIST };

typedef struct {
  uint64_t words[WORDS], given[MOST];
  Py_ssize_t length, count;
  Memory *first; /* the first tensor's memory */
} Glance;

static int put(Glance *glance, uint64_t word) {
  if (glance->length == WORDS) return 0;
  glance->words[glance->length++] = word;
  return 1;
}

static int put_view(Glance *glance, const View *view) {
  if (!view->spec || !view->buffer || !Py_IS_TYPE(view->buffer, memory_type)) return 0;
  Memory *memory = (Memory *)view->buffer;
  if (!memory->address || memory->session != present() || glance->count == MOST) return 0;
  if (!glance->first) glance->first = memory;
  glance->given[glance->count++] = memory->address;
  return put(glance, VIEW) && put(glance, (uint64_t)(uintptr_t)view->spec);
}

static int put_text(Glance *glance, PyObject *value) {
  Py_ssize_t size;
  const char *text = PyUnicode_AsUTF8AndSize(value, &size);
  if (!text) return PyErr_Clear(), 0; /* a lone surrogate */
  uint64_t words[TEXT / 8] = {0};
  if (size > TEXT || !put(glance, TEXTUAL) || !put(glance, (uint64_t)size)) return 0;
  memcpy(words, text, (size_t)size);
  for (Py_ssize_t k = 0; k * 8 < size; ++k)
    if (!put(glance, words[k])) return 0;
  return 1;
}

static int put_whole(Glance *glance, PyObject *value) {
  int over;
  const long long whole = PyLong_AsLongLongAndOverflow(value, &over);
  return !over && put(glance, WHOLE) && put(glance, (uint64_t)whole);
}

static int put_real(Glance *glance, PyObject *value) {
  const double real = PyFloat_AsDouble(value); /* by its bits: 0.0 is apart from -0.0 */
  uint64_t bits;
  memcpy(&bits, &real, sizeof bits);
  return put(glance, REAL) && put(glance, bits);
}

/* Adds what tells `value` from others; 0 when in doubt, without a Python error. Views count by
 * identity, which whoever keeps the key keeps too; plain values by type and value. */
static int put_value(Glance *glance, PyObject *value, int depth) {
  if (Py_IS_TYPE(value, view_type)) return put_view(glance, (View *)value);
  if (Py_IS_TYPE(value, &PyFloat_Type)) return put_real(glance, value);
  if (Py_IS_TYPE(value, &PyLong_Type)) return put_whole(glance, value);
  if (value == Py_True || value == Py_False || value == Py_None)
    return put(glance, CONSTANT) && put(glance, (uint64_t)(uintptr_t)value);
  if (Py_IS_TYPE(value, &PyUnicode_Type)) return put_text(glance, value);
  const int tuple = Py_IS_TYPE(value, &PyTuple_Type);
  if (depth || !(tuple || Py_IS_TYPE(value, &PyList_Type))) return 0;
  const Py_ssize_t size = tuple ? PyTuple_Size(value) : PyList_Size(value);
  if (!put(glance, LIST) || !put(glance, (uint64_t)size)) return 0;
  for (Py_ssize_t k = 0; k < size; ++k)
    if (!put_value(glance, tuple ? PyTuple_GetItem(value, k) : PyList_GetItem(value, k), 1))
      return 0;
  return 1;
}

/* The key of these values for `self`, a new reference; NULL without an error when in doubt. */
static PyObject *key_of(Operator *self, Glance *glance, PyObject *const *values, Py_ssize_t count) {
  glance->length = glance->count = 0;
  glance->first = NULL;
  put(glance, (uint64_t)(uintptr_t)self);
  for (Py_ssize_t k = 0; k < count; ++k)
    if (!put_value(glance, values[k], 0)) return NULL;
  if (!glance->first) return NULL;
  PyObject *key = PyBytes_FromStringAndSize((char *)glance->words,
                                            glance->length * (Py_ssize_t)sizeof(uint64_t));
  if (!key) PyErr_Clear();
  return key;
}

/* The values of a call in the parameters' order, borrowed, and its stream, NULL for the current
 * one; 0 when they are not simply all there. */
static int arrange(Operator *self, PyObject *args, PyObject *names, PyObject **values,
                   PyObject **stream) {
  const Py_ssize_t wanted = PyTuple_Size(self->names), positional = PyTuple_Size(args);
  Py_ssize_t named = names ? PyDict_Size(names) : 0;
  *stream = NULL;
  if (wanted > PARAMETERS || positional > wanted) return 0;
  if (named > wanted - positional) { /* one more than the parameters can only be the stream */
    *stream = PyDict_GetItemWithError(names, stream_name);
    if (!*stream) return PyErr_Clear(), 0;
    if (*stream == Py_None)
      *stream = NULL;
    else if (!Py_IS_TYPE(*stream, stream_type))
      return 0;
    --named;
  }
  if (positional + named != wanted) return 0;
  for (Py_ssize_t k = 0; k < positional; ++k) values[k] = PyTuple_GetItem(args, k);
  Py_ssize_t at = 0, k = positional;
  PyObject *name, *value;
  /* Names are interned: in the header's order, pointers tell. */
  while (k < wanted && PyDict_Next(names, &at, &name, &value) &&
         name == PyTuple_GetItem(self->names, k))
    values[k++] = value;
  for (; k < wanted; ++k) {
    values[k] = PyDict_GetItemWithError(names, PyTuple_GetItem(self->names, k));
    if (!values[k]) return PyErr_Clear(), 0;
  }
  return 1;
}

/* The stream's number; 0 with an error, or without one when in doubt. */
static uint64_t lane_of(Operator *self, const Memory *memory, PyObject *stream) {
  uint64_t lane = memory->lane;
  if (!stream && !lanes_vary && lane) return lane;
  PyObject *found = stream ? PyObject_GetAttr(stream, address_name)
                           : PyObject_CallMethodObjArgs((PyObject *)self, lane_name, memory, NULL);
  if (!found || !number(found, &lane)) {
    PyErr_Clear(); /* Python comes to it again, and says more */
    lane = 0;
  }
  Py_XDECREF(found);
  return lane;
}

/* Launches the plan of an earlier call with these values. 1: done. 0: in doubt. -1: an error. */
static int repeat(Operator *self, PyObject *const *values, Py_ssize_t count, PyObject *stream) {
  Glance glance;
  uint64_t plan, done;
  PyObject *key = key_of(self, &glance, values, count);
  if (!key) return 0;
  PyObject *entry = PyDict_GetItemWithError(self->repeated, key);
  Py_DECREF(key);
  if (!entry || !PyTuple_Check(entry) || PyTuple_Size(entry) != 3) return PyErr_Clear(), 0;
  Py_INCREF(entry);
  Py_INCREF(glance.first);
  int result = 0;
  const uint64_t session = glance.first->session, lane = lane_of(self, glance.first, stream);
  if (lane && number(PyTuple_GetItem(entry, 1), &plan)) {
    Py_BEGIN_ALLOW_THREADS
    done = start(plan, lane, glance.given, (uint64_t)glance.count, session);
    Py_END_ALLOW_THREADS
    result = 1;
    if (!done) {
      PyObject *none = PyObject_CallMethodObjArgs((PyObject *)self, fail_name,
                                                  PyTuple_GetItem(entry, 0), glance.first, NULL);
      Py_XDECREF(none);
      result = none ? 0 : -1;
    }
  }
  if (!result) PyErr_Clear();
  Py_DECREF(glance.first);
  Py_DECREF(entry);
  return result;
}

static PyObject *operator_call(Operator *self, PyObject *args, PyObject *names) {
  PyObject *values[PARAMETERS], *stream;
  if (view_type && self->names && self->repeated && PyTuple_Check(self->names) &&
      PyDict_Check(self->repeated) && arrange(self, args, names, values, &stream)) {
    const Py_ssize_t count = PyTuple_Size(self->names);
    /* What a call was given lives until it was launched, whatever others do to its dict. */
    for (Py_ssize_t k = 0; k < count; ++k) Py_INCREF(values[k]);
    Py_XINCREF(stream);
    const int result = repeat(self, values, count, stream);
    Py_XDECREF(stream);
    for (Py_ssize_t k = 0; k < count; ++k) Py_DECREF(values[k]);
    if (result > 0) Py_RETURN_NONE;
    if (result < 0) return NULL;
  }
  PyObject *call = PyObject_GetAttr((PyObject *)self, call_name);
  PyObject *result = call ? PyObject_Call(call, args, names) : NULL;
  Py_XDECREF(call);
  return result;
}

static PyObject *operator_key(Operator *self, PyObject *const *values, Py_ssize_t count) {
  Glance glance;
  PyObject *key = view_type && count <= PARAMETERS ? key_of(self, &glance, values, count) : NULL;
  if (key) return Py_BuildValue("Nn", key, glance.count);
  Py_RETURN_NONE;
}

static int operator_traverse(Operator *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE((PyObject *)self));
  Py_VISIT(self->names);
  Py_VISIT(self->repeated);
  return 0;
}

static int operator_clear(Operator *self) {
  Py_CLEAR(self->names);
  Py_CLEAR(self->repeated);
  return 0;
}

static int view_traverse(View *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE((PyObject *)self));
  Py_VISIT(self->buffer);
  Py_VISIT(self->spec);
  return 0;
}

static int view_clear(View *self) {
  Py_CLEAR(self->buffer);
  Py_CLEAR(self->spec);
  return 0;
}

/* tp_dealloc of heap types that Python classes derive from: the type's own free, then the type. */
static void let_go(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
  release(self);
  Py_DECREF(type);
}

static void operator_dealloc(PyObject *self) {
  PyObject_GC_UnTrack(self);
  operator_clear((Operator *)self);
  let_go(self);
}

static void view_dealloc(PyObject *self) {
  PyObject_GC_UnTrack(self);
  view_clear((View *)self);
  let_go(self);
}

/* The address is the object's at once: one that Python held alone would be lost to an interrupt. */
static PyObject *memory_obtain(Memory *self, PyObject *const *args, Py_ssize_t count) {
  uint64_t stream, bytes, purpose, address;
  if (count != 3 || !number(args[0], &stream) || !number(args[1], &bytes) ||
      !number(args[2], &purpose)) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "_obtain(stream, nbytes, purpose)");
    return NULL;
  }
  Py_BEGIN_ALLOW_THREADS
  address = obtain(stream, bytes, (int32_t)purpose);
  Py_END_ALLOW_THREADS
  self->address = address;
  return PyBool_FromLong(address != 0);
}

static PyMethodDef memory_methods[] = {
    {"_obtain", (PyCFunction)(void (*)(void))memory_obtain, METH_FASTCALL,
     "_obtain(stream, nbytes, purpose): takes device memory; False after a failure."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef memory_members[] = {
    {"_address", T_ULONGLONG, offsetof(Memory, address), 0, "0 once closed"},
    {"_session", T_ULONGLONG, offsetof(Memory, session), 0, "the runtime session it is from"},
    {"_lane", T_ULONGLONG, offsetof(Memory, lane), 0, "the default stream of its device"},
    {NULL, 0, 0, 0, NULL},
};

static PyMemberDef view_members[] = {
    {"buffer", T_OBJECT_EX, offsetof(View, buffer), 0, "the memory, a Buffer"},
    {"spec", T_OBJECT_EX, offsetof(View, spec), 0, "the view of it, a TensorSpec"},
    {NULL, 0, 0, 0, NULL},
};

static PyMemberDef operator_members[] = {
    {"_names", T_OBJECT_EX, offsetof(Operator, names), 0, "of the parameters, in order"},
    {"_repeated", T_OBJECT_EX, offsetof(Operator, repeated), 0,
     "key of a call: (plan, its address, what the key names); None: no call repeats another"},
    {NULL, 0, 0, 0, NULL},
};

static PyMethodDef operator_methods[] = {
    {"_key", (PyCFunction)(void (*)(void))operator_key, METH_FASTCALL,
     "_key(*values): what tells a call with these values from others, and how many addresses it\n"
     "gives; None when in doubt."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot memory_slots[] = {
    {Py_tp_doc, "The base of buffers: where they are."},
    {Py_tp_dealloc, let_go},
    {Py_tp_members, memory_members},
    {Py_tp_methods, memory_methods},
    {0, NULL},
};

static PyType_Slot view_slots[] = {
    {Py_tp_doc, "The base of device tensors: a buffer and a view of it."},
    {Py_tp_dealloc, view_dealloc},
    {Py_tp_traverse, view_traverse},
    {Py_tp_clear, view_clear},
    {Py_tp_members, view_members},
    {0, NULL},
};

static PyType_Slot operator_slots[] = {
    {Py_tp_doc, "The base of operators: a call like an earlier one launches its plan."},
    {Py_tp_call, operator_call},
    {Py_tp_dealloc, operator_dealloc},
    {Py_tp_traverse, operator_traverse},
    {Py_tp_clear, operator_clear},
    {Py_tp_members, operator_members},
    {Py_tp_methods, operator_methods},
    {0, NULL},
};

enum { BASE = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE };

static PyType_Spec specs[] = {
    {"aclnn_bindings.runtime._block.Memory", sizeof(Memory), 0, BASE, memory_slots},
    {"aclnn_bindings.runtime._block.View", sizeof(View), 0, BASE | Py_TPFLAGS_HAVE_GC, view_slots},
    {"aclnn_bindings.runtime._block.Operator", sizeof(Operator), 0, BASE | Py_TPFLAGS_HAVE_GC,
     operator_slots},
};

/* Whether `type` is a class with the layout of the base `at` of this module. */
static int derives(PyObject *module, PyObject *type, const char *base) {
  PyObject *expected = PyObject_GetAttrString(module, base);
  const int yes = expected && PyType_Check(type) &&
                  PyType_IsSubtype((PyTypeObject *)type, (PyTypeObject *)expected);
  if (expected && !yes)
    PyErr_Format(PyExc_TypeError, "operands: %R does not derive from %s", type, base);
  Py_XDECREF(expected);
  return yes;
}

static PyObject *operands(PyObject *module, PyObject *args) {
  PyObject *view, *memory, *stream;
  if (!PyArg_ParseTuple(args, "OOO!", &view, &memory, &PyType_Type, &stream) ||
      !derives(module, view, "View") || !derives(module, memory, "Memory"))
    return NULL;
  stream_type = (PyTypeObject *)Py_NewRef(stream);
  view_type = (PyTypeObject *)Py_NewRef(view);
  memory_type = (PyTypeObject *)Py_NewRef(memory);
  Py_RETURN_NONE;
}

static PyObject *vary_lanes(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  lanes_vary = 1;
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"operands", operands, METH_VARARGS,
     "operands(view, memory, stream): the classes whose objects, and no subclass's, calls that may\n"
     "repeat are given."},
    {"vary_lanes", vary_lanes, METH_NOARGS,
     "From now on an operator asks for the thread's stream."},
    {NULL, NULL, 0, NULL},
};

int add_operator(PyObject *module) {
  static const char *const names[] = {"Memory", "View", "Operator"};
  struct {
    PyObject **place;
    const char *text;
  } texts[] = {{&stream_name, "stream"}, {&call_name, "_call"}, {&lane_name, "_lane"},
               {&fail_name, "_fail"}, {&address_name, "address"}};
  for (size_t k = 0; k < sizeof texts / sizeof *texts; ++k)
    if (!*texts[k].place && !(*texts[k].place = PyUnicode_InternFromString(texts[k].text)))
      return -1;
  for (size_t k = 0; k < sizeof specs / sizeof *specs; ++k) {
    PyObject *type = PyType_FromSpec(&specs[k]);
    if (!type || PyModule_AddObjectRef(module, names[k], type) < 0) return -1;
    Py_DECREF(type);
  }
  return PyModule_AddFunctions(module, functions);
}
