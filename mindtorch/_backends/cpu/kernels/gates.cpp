// Inner loops of numpy's generalized universal functions: what an LSTM does with its gates.
//
// Gates lie in a line: input, forget, cell, output. Their functions are torch's (loops/elementary.h).
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "loops/elementary.h"
#include "universal.h"

namespace {

constexpr intptr_t CHUNK = 128;

ACL_EXACT void open_gates(float (&gates)[4][CHUNK], intptr_t n) {
  const intptr_t whole = n / 32 * 32;  // of what is left of two vectors torch takes the C library's exponentials
  for (int gate : {0, 1, 3}) {
    float* x = gates[gate];
    for (intptr_t i = 0; i < whole; ++i) x[i] = 1.0f / (1.0f + aclsim::exp_one(-x[i]));
    for (intptr_t i = whole; i < n; ++i) x[i] = 1.0f / (1.0f + aclsim::exp_nearest(-x[i]));
  }
  for (intptr_t i = 0; i < n; ++i) gates[2][i] = aclsim::tanh_nearest(gates[2][i]);
}
ACL_EXACT void tanh_of(float* x, intptr_t n) {
  for (intptr_t i = 0; i < n; ++i) x[i] = aclsim::tanh_nearest(x[i]);
}

void read(float* to, const char* from, intptr_t step, intptr_t n) {
  if (step == sizeof(float)) {
    memcpy(to, from, n * sizeof(float));
  } else {
    for (intptr_t i = 0; i < n; ++i) to[i] = *reinterpret_cast<const float*>(from + i * step);
  }
}
void write(char* to, const float* from, intptr_t step, intptr_t n) {
  for (intptr_t i = 0; i < n; ++i) *reinterpret_cast<float*>(to + i * step) = from[i];
}
void read_gates(float (&gates)[4][CHUNK], const char* from, intptr_t step, intptr_t width, intptr_t n) {
  for (intptr_t gate = 0; gate < 4; ++gate) read(gates[gate], from + gate * width * step, step, n);
  open_gates(gates, n);
}
// f(repetition, first place, places) for pieces of each line of `width`.
template <class F>
void each_chunk(intptr_t lines, intptr_t width, F f) {
  for (intptr_t line = 0; line < lines; ++line)
    for (intptr_t at = 0; at < width; at += CHUNK) f(line, at, std::min(CHUNK, width - at));
}

// (g),(n)->(n),(n): gates and the cell's state; the hidden state and the next of the cell.
void lstm_gates(char** args, const intptr_t* sizes, const intptr_t* steps, void*) {
  const intptr_t width = sizes[2], *inner = steps + 4;
  each_chunk(sizes[0], width, [&](intptr_t line, intptr_t at, intptr_t n) {
    const auto place = [&](int k) { return args[k] + line * steps[k] + at * inner[k]; };
    float gates[4][CHUNK], cell[CHUNK], hidden[CHUNK];
    read_gates(gates, place(0), inner[0], width, n);
    read(cell, place(1), inner[1], n);
    for (intptr_t i = 0; i < n; ++i) cell[i] = gates[1][i] * cell[i] + gates[0][i] * gates[2][i];
    memcpy(hidden, cell, n * sizeof(float));
    tanh_of(hidden, n);
    for (intptr_t i = 0; i < n; ++i) hidden[i] *= gates[3][i];
    write(place(2), hidden, inner[2], n);
    write(place(3), cell, inner[3], n);
  });
}

// (n),(n),(g),(n),(n)->(g),(n): gradients of both results, gates, and the cell before and after;
// gradients of the gates and of the cell before.
void lstm_gates_backward(char** args, const intptr_t* sizes, const intptr_t* steps, void*) {
  const intptr_t width = sizes[1], *inner = steps + 7;
  each_chunk(sizes[0], width, [&](intptr_t line, intptr_t at, intptr_t n) {
    const auto place = [&](int k) { return args[k] + line * steps[k] + at * inner[k]; };
    float gates[4][CHUNK], by_hidden[CHUNK], by_cell[CHUNK], before[CHUNK], bent[CHUNK];
    float slopes[4][CHUNK];
    read(by_hidden, place(0), inner[0], n);
    read(by_cell, place(1), inner[1], n);
    read_gates(gates, place(2), inner[2], width, n);
    read(before, place(3), inner[3], n);
    read(bent, place(4), inner[4], n);
    tanh_of(bent, n);
    for (intptr_t i = 0; i < n; ++i) {
      const float enter = gates[0][i], forget = gates[1][i], fresh = gates[2][i], leave = gates[3][i];
      const float flow = by_cell[i] + by_hidden[i] * leave * (1 - bent[i] * bent[i]);
      slopes[0][i] = flow * fresh * enter * (1 - enter);
      slopes[1][i] = flow * before[i] * forget * (1 - forget);
      slopes[2][i] = flow * enter * (1 - fresh * fresh);
      slopes[3][i] = by_hidden[i] * bent[i] * leave * (1 - leave);
      by_cell[i] = flow * forget;
    }
    for (intptr_t gate = 0; gate < 4; ++gate) {
      write(place(5) + gate * width * inner[5], slopes[gate], inner[5], n);
    }
    write(place(6), by_cell, inner[6], n);
  });
}

const char f = 11;  // numpy's number of float

}  // namespace

extern const Universal GATES[] = {
    {"lstm_gates", "(g),(n)->(n),(n)", 2, 2, 1, {f, f, f, f}, {lstm_gates}},
    {"lstm_gates_backward", "(n),(n),(g),(n),(n)->(g),(n)", 5, 2, 1, {f, f, f, f, f, f, f},
     {lstm_gates_backward}},
    {}};
