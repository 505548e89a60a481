// The extension module mindtorch._tensor._slots: the slots of tensors, storages and nodes as C types,
// and functions that make one in one call. Python's classes derive from the types.
//
// Everything here is in the limited API of 3.10: a slot is a member whose place the type declares.
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <structmember.h>

// The fields of each type, the attributes that they are, and what reading one that is not set gives:
// T_OBJECT_EX an AttributeError, T_OBJECT None. `_array` is made when it is first asked for.
#define TENSOR(X)                                                                           \
  X(base, "_base", T_OBJECT_EX) X(creation, "_creation", T_OBJECT) X(fn, "_fn", T_OBJECT_EX) \
  X(geom, "_geom", T_OBJECT_EX) X(grad, "_grad", T_OBJECT) X(names, "_names", T_OBJECT)      \
  X(nr, "_nr", T_OBJECT_EX) X(retains, "_retains", T_OBJECT) X(storage, "_storage", T_OBJECT_EX)
#define ARRAY(X) X(array, "", 0)
#define STORAGE(X)                                                      \
  X(bytes, "_bytes", T_OBJECT_EX) X(memory, "memory", T_OBJECT_EX)      \
  X(value, "value", T_OBJECT_EX) X(views, "views", T_OBJECT_EX)
#define NODE(X)                                                                               \
  X(args, "args", T_OBJECT_EX) X(edges, "edges", T_OBJECT_EX) X(index, "index", T_OBJECT_EX)  \
  X(outs, "outs", T_OBJECT_EX) X(saved, "saved", T_OBJECT_EX) X(seq, "seq", T_OBJECT_EX)
#define NOTHING(X)

#define FIELD(field, name, kind) PyObject* field;
#define MEMBER(field, name, kind) {name, kind, offsetof(Self, field), 0, NULL},
#define VISIT(field, name, kind) Py_VISIT(((Self*)self)->field);
#define CLEAR(field, name, kind) Py_CLEAR(((Self*)self)->field);

static PyObject* ref(PyObject* object) {
  Py_INCREF(object);
  return object;
}

// A base that is a heap type itself: the class's own dealloc leaves the last steps to this one.
static void release(PyObject* self, inquiry clear) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  clear(self);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

typedef struct {
  PyObject_HEAD TENSOR(FIELD) ARRAY(FIELD)
} TensorSlots;
typedef struct {
  PyObject_HEAD STORAGE(FIELD)
} StorageSlots;
typedef struct {
  PyObject_HEAD NODE(FIELD)
} NodeSlots;

// What the collector and the types of one struct need, as `name`_spec. Methods of tensors show the
// path of theirs.
#define TYPE(Struct, FIELDS, MORE, name, getters, path)                                                           \
  static PyMemberDef* name##_members(void) {                                                    \
    typedef Struct Self;                                                                        \
    static PyMemberDef members[] = {FIELDS(MEMBER){NULL, 0, 0, 0, NULL}};                       \
    return members;                                                                             \
  }                                                                                             \
  static int name##_traverse(PyObject* self, visitproc visit, void* arg) {                      \
    typedef Struct Self;                                                                        \
    Py_VISIT(Py_TYPE(self));                                                                    \
    FIELDS(VISIT) MORE(VISIT)                                                                               \
    return 0;                                                                                   \
  }                                                                                             \
  static int name##_clear(PyObject* self) {                                                     \
    typedef Struct Self;                                                                        \
    FIELDS(CLEAR) MORE(CLEAR)                                                                               \
    return 0;                                                                                   \
  }                                                                                             \
  static void name##_dealloc(PyObject* self) { release(self, name##_clear); }                   \
  static PyTypeObject* name##_type(void) {                                                      \
    PyType_Slot slots[] = {{Py_tp_doc, "The slots of a " #name "."},                            \
                           {Py_tp_members, name##_members()},                                   \
                           {Py_tp_getset, getters},                                             \
                           {Py_tp_traverse, (void*)name##_traverse},                            \
                           {Py_tp_clear, (void*)name##_clear},                                  \
                           {Py_tp_dealloc, (void*)name##_dealloc},                              \
                           {0, NULL}};                                                          \
    PyType_Spec spec = {path, sizeof(Struct), 0,                                                \
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};  \
    return (PyTypeObject*)PyType_FromSpec(&spec);                                               \
  }

// host_array(geom, storage), told to `bind`.
static PyObject* host;

static PyObject* get_array(PyObject* self, void* closure) {
  TensorSlots* t = (TensorSlots*)self;
  (void)closure;
  if (!t->array) {
    if (!host || !t->geom || !t->storage) {
      PyErr_SetString(PyExc_AttributeError, "_array");
      return NULL;
    }
    PyObject* array = PyObject_CallFunctionObjArgs(host, t->geom, t->storage, NULL);
    if (!array) return NULL;
    Py_XDECREF(t->array);  // another thread may have made one meanwhile
    t->array = array;
  }
  return ref(t->array);
}

static int set_array(PyObject* self, PyObject* value, void* closure) {
  TensorSlots* t = (TensorSlots*)self;
  (void)closure;
  PyObject* before = t->array;
  Py_XINCREF(value);
  t->array = value;
  Py_XDECREF(before);
  return 0;
}

static PyGetSetDef tensor_getters[] = {
    {"_array", get_array, set_array, "The numpy view of a cpu tensor.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};
static PyGetSetDef no_getters[] = {{NULL, NULL, NULL, NULL, NULL}};

TYPE(TensorSlots, TENSOR, ARRAY, tensor, tensor_getters, "torch._C.TensorBase")
TYPE(StorageSlots, STORAGE, NOTHING, storage, no_getters, "mindtorch._tensor._slots.StorageSlots")
TYPE(NodeSlots, NODE, NOTHING, node, no_getters, "mindtorch._tensor._slots.NodeSlots")

// The types, and the classes that `bind` was told, for the process.
static PyTypeObject *tensor_base, *storage_base, *node_base, *tensor_class, *storage_class;
static PyObject* zero;

static int is_class_of(PyObject* object, PyTypeObject* base) {
  return PyType_Check(object) && PyType_IsSubtype((PyTypeObject*)object, base);
}

static PyObject* bind(PyObject* module, PyObject* const* args, Py_ssize_t count) {
  (void)module;
  if (count != 3 || !is_class_of(args[0], tensor_base) || !is_class_of(args[1], storage_base) ||
      !PyCallable_Check(args[2])) {
    PyErr_SetString(PyExc_TypeError, "bind(tensor, storage, host): classes of TensorSlots and "
                                     "StorageSlots, and what makes the array of a tensor");
    return NULL;
  }
  tensor_class = (PyTypeObject*)ref(args[0]);
  storage_class = (PyTypeObject*)ref(args[1]);
  host = ref(args[2]);
  Py_RETURN_NONE;
}

// What stands in `_fn` of a base and then in that of its views, told to `inherit`.
static PyObject* inherited;

static PyObject* inherit(PyObject* module, PyObject* const* args, Py_ssize_t count) {
  (void)module;
  if (count != 1) {
    PyErr_SetString(PyExc_TypeError, "inherit(fn): what views of a tensor that has it have too");
    return NULL;
  }
  PyObject* previous = inherited;
  inherited = ref(args[0]);
  Py_XDECREF(previous);
  Py_RETURN_NONE;
}

static PyObject* fn_of_view(PyObject* base) {
  int has = inherited && PyObject_TypeCheck(base, tensor_base) &&
            ((TensorSlots*)base)->fn == inherited;
  return has ? inherited : Py_None;
}

// A tensor of this geometry over a storage, whose reference is taken.
static PyObject* over_storage(PyObject* geom, PyObject* storage, PyObject* base) {
  TensorSlots* t = (TensorSlots*)PyType_GenericAlloc(tensor_class, 0);
  if (!t) {
    Py_DECREF(storage);
    return NULL;
  }
  t->geom = ref(geom);
  t->storage = storage;
  t->fn = ref(fn_of_view(base));
  t->nr = ref(zero);
  t->base = ref(base);
  return (PyObject*)t;
}

static PyObject* fresh(PyObject* module, PyObject* const* args, Py_ssize_t count) {
  (void)module;
  if ((count != 2 && count != 3) || !tensor_class) {
    PyErr_SetString(PyExc_TypeError, "fresh(geom, memory, array=unset), after bind");
    return NULL;
  }
  StorageSlots* s = (StorageSlots*)PyType_GenericAlloc(storage_class, 0);
  if (!s) return NULL;
  s->memory = ref(args[1]);
  s->value = ref(zero);
  s->views = ref(Py_None);
  PyObject* tensor = over_storage(args[0], (PyObject*)s, Py_None);
  if (tensor && count == 3) ((TensorSlots*)tensor)->array = ref(args[2]);
  return tensor;
}

static PyObject* over(PyObject* module, PyObject* const* args, Py_ssize_t count) {
  (void)module;
  if ((count != 2 && count != 3) || !tensor_class) {
    PyErr_SetString(PyExc_TypeError, "over(geom, storage, base=None), after bind");
    return NULL;
  }
  return over_storage(args[0], ref(args[1]), count == 3 ? args[2] : Py_None);
}

static PyObject* grown(PyObject* module, PyObject* const* args, Py_ssize_t count) {
  (void)module;
  if (count != 7 || !is_class_of(args[0], node_base)) {
    PyErr_SetString(PyExc_TypeError, "grown(cls, seq, edges, outs, saved, args, index)");
    return NULL;
  }
  NodeSlots* n = (NodeSlots*)PyType_GenericAlloc((PyTypeObject*)args[0], 0);
  if (!n) return NULL;
  n->seq = ref(args[1]);
  n->edges = ref(args[2]);
  n->outs = ref(args[3]);
  n->saved = ref(args[4]);
  n->args = ref(args[5]);
  n->index = ref(args[6]);
  return (PyObject*)n;
}

// Objects of C for functions of Python. One of Python binds where a class holds it, and torch's do
// not: `act = torch.tanh` in a class. CPython tells a C function its `self` alone, which is torch's
// here, so each has an entry point of its own, which knows its place in these tables.
#define ENTRIES 2048
static PyObject* called[ENTRIES];
static char bound[ENTRIES];  // whether `self` is the first argument
static PyMethodDef entries[ENTRIES];
static int entry_count;

#if defined(Py_LIMITED_API) && Py_LIMITED_API < 0x030c0000
// In the limited API of 3.12, exported since 3.11.
__attribute__((weak)) PyObject* PyObject_Vectorcall(PyObject*, PyObject* const*, size_t, PyObject*);
#endif

static PyObject* by_tuple(PyObject* f, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  Py_ssize_t named = names ? PyTuple_Size(names) : 0;
  PyObject* positional = PyTuple_New(count);
  PyObject* keywords = named ? PyDict_New() : NULL;
  PyObject* result = NULL;
  if (!positional || (named && !keywords)) goto done;
  for (Py_ssize_t i = 0; i < count; i++) PyTuple_SetItem(positional, i, ref(args[i]));
  for (Py_ssize_t i = 0; i < named; i++)
    if (PyDict_SetItem(keywords, PyTuple_GetItem(names, i), args[count + i]) < 0) goto done;
  result = PyObject_Call(f, positional, keywords);
done:
  Py_XDECREF(positional);
  Py_XDECREF(keywords);
  return result;
}

static PyObject* forward(PyObject* f, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  if (!PyObject_Vectorcall) return by_tuple(f, args, count, names);
  return PyObject_Vectorcall(f, args, (size_t)count, names);
}

static PyObject* forward_bound(
    int at, PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  PyObject* few[8];
  Py_ssize_t total = count + (names ? PyTuple_Size(names) : 0);
  PyObject** all = total < 8 ? few : PyMem_Malloc((size_t)(total + 1) * sizeof *all);
  if (!all) return PyErr_NoMemory();
  all[0] = self;
  for (Py_ssize_t i = 0; i < total; i++) all[i + 1] = args[i];
  PyObject* result = forward(called[at], all, count + 1, names);
  if (all != few) PyMem_Free(all);
  return result;
}

static PyObject* explainer;

// What the explainer says of a call, before it is made where `error` is None; NULL with an error.
static PyObject* ask_explainer(
    int at, PyObject* owner, PyObject* const* args, Py_ssize_t count, PyObject* names,
    PyObject* error) {
  PyObject* answer = NULL;
  PyObject* positional = PyTuple_New(count);
  PyObject* keywords = PyDict_New();
  if (positional && keywords) {
    for (Py_ssize_t i = 0; i < count; i++) PyTuple_SetItem(positional, i, ref(args[i]));
    for (Py_ssize_t i = 0; i < (names ? PyTuple_Size(names) : 0); i++)
      PyDict_SetItem(keywords, PyTuple_GetItem(names, i), args[count + i]);
    if (bound[at]) owner = (PyObject*)tensor_base;
    answer = PyObject_CallFunction(explainer, "OsOOO", owner ? owner : Py_None,
                                   entries[at].ml_name, positional, keywords, error);
  }
  Py_XDECREF(positional);
  Py_XDECREF(keywords);
  return answer;
}

// The kinds of arguments that a signature of an entry takes: hashes of their classes, of those of
// the ends of lists, and of keywords. An entry without signatures is never asked about.
#define KINDS 64
static uint64_t* fitting[ENTRIES];
static unsigned char fitting_count[ENTRIES];
static char unparsed[ENTRIES];

static uint64_t mix(uint64_t hash, const void* value) {
  hash = (hash ^ (uintptr_t)value) * 0x9E3779B97F4A7C15u;
  return hash ^ hash >> 29;
}

static uint64_t mix_kind(uint64_t hash, PyObject* value) {
  PyTypeObject* type = Py_TYPE(value);
  hash = mix(hash, type);
  if (type != &PyTuple_Type && type != &PyList_Type) return hash;
  int list = type == &PyList_Type;
  Py_ssize_t size = list ? PyList_Size(value) : PyTuple_Size(value);
  if (!size) return mix(hash, &fitting);
  for (Py_ssize_t i = 0; i < size; i += size > 1 ? size - 1 : 1)
    hash = mix(hash, Py_TYPE(list ? PyList_GetItem(value, i) : PyTuple_GetItem(value, i)));
  return hash;
}

// Whether a call may be made: -1 with torch's TypeError where no signature takes its arguments.
static int parse(
    int at, PyObject* owner, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  Py_ssize_t named = names ? PyTuple_Size(names) : 0;
  uint64_t hash = (uint64_t)count * 0x9E3779B97F4A7C15u | 1;
  for (Py_ssize_t i = 0; i < count + named; i++) hash = mix_kind(hash, args[i]);
  for (Py_ssize_t i = 0; i < named; i++)
    hash = mix(hash, (void*)(uintptr_t)PyObject_Hash(PyTuple_GetItem(names, i)));
  hash |= 1;  // 0 is a free place
  uint64_t* kinds = fitting[at];
  size_t place = hash >> 58;
  if (kinds)
    for (; kinds[place]; place = (place + 1) % KINDS)
      if (kinds[place] == hash) return 0;
  PyObject* answer = ask_explainer(at, owner, args, count, names, Py_None);
  if (!answer) return -1;
  int refused = PyObject_IsInstance(answer, PyExc_BaseException);
  if (refused) {
    PyErr_SetObject((PyObject*)Py_TYPE(answer), answer);
  } else if (answer == Py_None) {
    unparsed[at] = 1;
  } else if (answer == Py_True) {
    kinds = fitting[at];  // others may have come meanwhile
    if (!kinds) kinds = fitting[at] = PyMem_Calloc(KINDS, sizeof *kinds);
    if (kinds && fitting_count[at] == KINDS / 2) {
      memset(kinds, 0, KINDS * sizeof *kinds);
      fitting_count[at] = 0;
    }
    if (kinds) {
      for (place = hash >> 58; kinds[place]; place = (place + 1) % KINDS) continue;
      kinds[place] = hash;
      fitting_count[at]++;
    }
  }
  Py_DECREF(answer);
  return -refused;
}

// Raises what the explainer says of a call that failed, where that is another error.
static void explain(
    int at, PyObject* owner, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  PyObject *kind, *error, *traceback;
  PyErr_Fetch(&kind, &error, &traceback);
  PyErr_NormalizeException(&kind, &error, &traceback);
  PyObject* better = ask_explainer(at, owner, args, count, names, error);
  if (better && better != Py_None) {
    PyErr_SetObject((PyObject*)Py_TYPE(better), better);
    Py_XDECREF(kind);
    Py_XDECREF(error);
    Py_XDECREF(traceback);
  } else {
    PyErr_Restore(kind, error, traceback);
  }
  Py_XDECREF(better);
}

static PyObject* call(
    int at, PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  if (explainer && !unparsed[at] && parse(at, self, args, count, names)) return NULL;
  PyObject* result = bound[at] ? forward_bound(at, self, args, count, names)
                               : forward(called[at], args, count, names);
  if (!result && explainer) explain(at, self, args, count, names);
  return result;
}

#define ENTRY(at)                                                                 \
  static PyObject* entry##at(                                                     \
      PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) { \
    return call(0##at, self, args, count, names);                                 \
  }
#define ADDRESS(at) (PyCFunction)(void*)entry##at,
// Octal: the digits of a place are those of its entry point's name.
#define EIGHT(X, at) X(at##0) X(at##1) X(at##2) X(at##3) X(at##4) X(at##5) X(at##6) X(at##7)
#define SIXTY_FOUR(X, at)                                                             \
  EIGHT(X, at##0) EIGHT(X, at##1) EIGHT(X, at##2) EIGHT(X, at##3)                     \
  EIGHT(X, at##4) EIGHT(X, at##5) EIGHT(X, at##6) EIGHT(X, at##7)
#define HALF_THOUSAND(X, at)                                                          \
  SIXTY_FOUR(X, at##0) SIXTY_FOUR(X, at##1) SIXTY_FOUR(X, at##2) SIXTY_FOUR(X, at##3) \
  SIXTY_FOUR(X, at##4) SIXTY_FOUR(X, at##5) SIXTY_FOUR(X, at##6) SIXTY_FOUR(X, at##7)
#define ALL(X) HALF_THOUSAND(X, 0) HALF_THOUSAND(X, 1) HALF_THOUSAND(X, 2) HALF_THOUSAND(X, 3)
ALL(ENTRY)
static const PyCFunction entry_points[ENTRIES] = {ALL(ADDRESS)};

static PyObject* explain_by(PyObject* module, PyObject* const* args, Py_ssize_t count) {
  (void)module;
  if (count != 1) {
    PyErr_SetString(PyExc_TypeError, "explain_by(function)");
    return NULL;
  }
  PyObject* before = explainer;
  explainer = ref(args[0]);
  Py_XDECREF(before);
  return ref(Py_None);
}

static char* duplicate(const char* text) {
  char* copy = text ? PyMem_Malloc(strlen(text) + 1) : NULL;
  return copy ? strcpy(copy, text) : NULL;
}

// The next entry, for a function by this name and document; NULL with an error.
static PyMethodDef* next_entry(PyObject* function, const char* name, const char* doc, char method) {
  if (entry_count == ENTRIES) {
    PyErr_SetString(PyExc_RuntimeError, "more functions than there are entry points in C");
    return NULL;
  }
  PyMethodDef* entry = &entries[entry_count];
  entry->ml_name = duplicate(name);
  entry->ml_doc = duplicate(doc);
  entry->ml_meth = entry_points[entry_count];
  entry->ml_flags = METH_FASTCALL | METH_KEYWORDS;
  if (!entry->ml_name) return (PyMethodDef*)PyErr_NoMemory();
  called[entry_count] = ref(function);
  bound[entry_count++] = method;
  return entry;
}

static PyObject* builtin(PyObject* module, PyObject* args) {
  PyObject *function, *owner, *home;
  const char *name, *doc;
  (void)module;
  if (!PyArg_ParseTuple(args, "OszOO:builtin", &function, &name, &doc, &owner, &home)) return NULL;
  PyMethodDef* entry = next_entry(function, name, doc, 0);
  if (entry && PyType_Check(owner)) entry->ml_flags |= METH_STATIC;
  return entry ? PyCFunction_NewEx(entry, owner, home == Py_None ? NULL : home) : NULL;
}

static PyObject* descriptor(PyObject* module, PyObject* args) {
  PyObject* function;
  const char *name, *doc;
  (void)module;
  if (!PyArg_ParseTuple(args, "Osz:descriptor", &function, &name, &doc)) return NULL;
  PyMethodDef* entry = next_entry(function, name, doc, 1);
  return entry ? PyDescr_NewMethod(tensor_base, entry) : NULL;
}

#define FUNCTION(name, doc) {#name, (PyCFunction)(void*)name, METH_FASTCALL, doc}
static PyMethodDef functions[] = {
    FUNCTION(bind, "Say the classes of what is made, and what makes the array of a tensor."),
    FUNCTION(explain_by, "explain_by(function): what says of a failed call what torch would."),
    FUNCTION(inherit, "inherit(fn): what views of a tensor that has it have too."),
    FUNCTION(fresh, "fresh(geom, memory, array=unset): a tensor over a storage of its own."),
    FUNCTION(over, "over(geom, storage, base=None): a tensor over a storage that there is."),
    FUNCTION(grown, "grown(cls, seq, edges, outs, saved, args, index): a node."),
    {"builtin", builtin, METH_VARARGS,
     "builtin(function, name, doc, owner, module): a function of C that calls one of Python."},
    {"descriptor", descriptor, METH_VARARGS,
     "descriptor(function, name, doc): a method of C of tensors that calls a function."},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {.m_base = PyModuleDef_HEAD_INIT,
                                        .m_name = "mindtorch._tensor._slots",
                                        .m_doc = "Slots of tensors, storages and nodes.",
                                        .m_size = -1,
                                        .m_methods = functions};

PyMODINIT_FUNC PyInit__slots(void) {
  PyObject* module = PyModule_Create(&definition);
  if (!module) return NULL;
  zero = PyLong_FromLong(0);
  tensor_base = tensor_type();
  storage_base = storage_type();
  node_base = node_type();
  if (!zero || !tensor_base || !storage_base || !node_base ||
      PyModule_AddObject(module, "TensorSlots", ref((PyObject*)tensor_base)) < 0 ||
      PyModule_AddObject(module, "StorageSlots", ref((PyObject*)storage_base)) < 0 ||
      PyModule_AddObject(module, "NodeSlots", ref((PyObject*)node_base)) < 0) {
    Py_DECREF(module);
    return NULL;
  }
  return module;
}
