/* What the files of the extension module aclnn_bindings.runtime._block share. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

enum { MOST = 32 }; /* addresses of one launch, as mt_launch takes */

/* Entry points of _launch, set by connect(). */
typedef uint64_t (*Start)(uint64_t plan, uint64_t stream, const uint64_t *given, uint64_t count,
                          uint64_t made_in);
typedef uint64_t (*Present)(void); /* the session's number, 0 while there is none */
typedef uint64_t (*Obtain)(uint64_t stream, uint64_t bytes, int32_t purpose);
extern Start start;
extern Present present;
extern Obtain obtain;

/* Addresses and session numbers fit a long; PyLong_AsLong is the quick conversion. */
static inline int number(PyObject *object, uint64_t *value) {
  *value = (uint64_t)PyLong_AsLong(object);
  return *value != (uint64_t)-1 || !PyErr_Occurred();
}

/* Adds Block and its launches to the module; -1 with a Python error. */
int add_block(PyObject *module);
/* Adds Memory, View and Operator and their functions to the module; -1 with a Python error. */
int add_operator(PyObject *module);
