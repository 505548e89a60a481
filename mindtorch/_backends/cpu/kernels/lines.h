// What loops over whole lines and matrices are written with.
//
// A loop gets addresses of its operands and results, the number of repetitions with the sizes of
// the signature's letters, and strides in bytes: one per operand for the repetitions, then one per
// letter of each operand (numpy C-API documentation, "PyUFuncGenericFunction").
#pragma once
#include <cstdint>

namespace {

template <class T>
struct Line {
  char* at;
  intptr_t step;
  T& operator[](intptr_t i) const { return *reinterpret_cast<T*>(at + i * step); }
};

template <class T>
struct Plane {
  char* at;
  intptr_t down, across;
  T& operator()(intptr_t i, intptr_t j) const {
    return *reinterpret_cast<T*>(at + i * down + j * across);
  }
};

template <class T>
T& number(char* at) {
  return *reinterpret_cast<T*>(at);
}

// Calls `body` for each repetition, whose `COUNT` operands and results are moved on after it.
template <int COUNT, class Body>
void each(char** args, const intptr_t* sizes, const intptr_t* steps, Body body) {
  for (intptr_t i = 0; i < sizes[0]; ++i) {
    body();
    for (int k = 0; k < COUNT; ++k) args[k] += steps[k];
  }
}

constexpr char f = 11, d = 12, q = 7, b = 0, F = 14, D = 15;  // NPY_TYPES

}  // namespace
