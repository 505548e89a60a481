// Owns how arguments of any C function are placed: integer and floating registers, then the stack.
//
// System V AMD64 psABI 3.2.3 and AAPCS64 6.4.2 agree on what matters here: integers and pointers
// take the next general register, float and double the next vector register, independently of
// each other; what no longer fits goes to the stack in declaration order, in slots of 8 bytes. So
// a call through a function type that names every register and N stack words places any mix of
// scalar arguments correctly. Structs by value, long double and varargs are refused above.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>

namespace launch {

#if defined(__x86_64__) && !defined(_WIN32)
constexpr int kGeneral = 6;
#elif defined(__aarch64__) && !defined(__APPLE__)
constexpr int kGeneral = 8;
#else
static_assert(sizeof(void*) == 0, "the argument placement is known for x86-64 and aarch64 Linux");
#endif
constexpr int kVector = 8;
constexpr int kStack = 64;
constexpr int kWords = kGeneral + kVector + kStack;
static_assert(sizeof(void*) == 8 && sizeof(double) == 8, "LP64");

// Argument words in the order: general registers, vector registers (bits), stack.
struct Frame {
  uint64_t words[kWords];
};

// Assigns places in declaration order.
struct Layout {
  int general = 0, vector = 0, stack = 0;

  // The index into Frame::words of the next argument; -1 when the stack part is full.
  int place(bool is_float) {
    if (is_float && vector < kVector) return kGeneral + vector++;
    if (!is_float && general < kGeneral) return general++;
    return stack < kStack ? kGeneral + kVector + stack++ : -1;
  }
  int words() const { return stack ? kGeneral + kVector + stack : vector ? kGeneral + vector : general; }
};

namespace placement {

template <int>
using Word = uint64_t;
template <int>
using Real = double;

inline double real(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

template <class Result, int... G, int... V, int... S>
inline Result call(void* function, const uint64_t* w, std::integer_sequence<int, G...>,
                   std::integer_sequence<int, V...>, std::integer_sequence<int, S...>) {
  using Type = Result (*)(Word<G>..., Real<V>..., Word<S>...);
  return reinterpret_cast<Type>(function)(w[G]..., real(w[kGeneral + V])...,
                                          w[kGeneral + kVector + S]...);
}

template <class Result, int Vectors, int Stack>
Result tier(void* function, const uint64_t* words) {
  return call<Result>(function, words, std::make_integer_sequence<int, kGeneral>(),
                      std::make_integer_sequence<int, Vectors>(),
                      std::make_integer_sequence<int, Stack>());
}

}  // namespace placement

template <class Result>
using Tier = Result (*)(void* function, const uint64_t* words);

// The cheapest call that covers `layout`.
template <class Result>
Tier<Result> tier_for(const Layout& layout) {
  using placement::tier;
  if (layout.stack == 0) return layout.vector ? tier<Result, kVector, 0> : tier<Result, 0, 0>;
  if (layout.stack <= 4 && layout.vector == 0) return tier<Result, 0, 4>;
  if (layout.stack <= 8) return tier<Result, kVector, 8>;
  if (layout.stack <= 16) return tier<Result, kVector, 16>;
  if (layout.stack <= 32) return tier<Result, kVector, 32>;
  if (layout.stack <= 48) return tier<Result, kVector, 48>;
  return tier<Result, kVector, kStack>;
}

}  // namespace launch
