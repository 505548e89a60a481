// The extension module mindtorch._tensor._slots: the slots of tensors, storages and nodes as C types,
// and functions that make one in one call. Python's classes derive from the types.
//
// Everything here is in the limited API of 3.10: a slot is a member whose place the type declares.
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
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

// What the collector and the types of one struct need, as `name`_spec.
#define TYPE(Struct, FIELDS, MORE, name, getters)                                                              \
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
    PyType_Spec spec = {"mindtorch._tensor._slots." #Struct, sizeof(Struct), 0,                 \
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

TYPE(TensorSlots, TENSOR, ARRAY, tensor, tensor_getters)
TYPE(StorageSlots, STORAGE, NOTHING, storage, no_getters)
TYPE(NodeSlots, NODE, NOTHING, node, no_getters)

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

#define FUNCTION(name, doc) {#name, (PyCFunction)(void*)name, METH_FASTCALL, doc}
static PyMethodDef functions[] = {
    FUNCTION(bind, "Say the classes of what is made, and what makes the array of a tensor."),
    FUNCTION(inherit, "inherit(fn): what views of a tensor that has it have too."),
    FUNCTION(fresh, "fresh(geom, memory, array=unset): a tensor over a storage of its own."),
    FUNCTION(over, "over(geom, storage, base=None): a tensor over a storage that there is."),
    FUNCTION(grown, "grown(cls, seq, edges, outs, saved, args, index): a node."),
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
