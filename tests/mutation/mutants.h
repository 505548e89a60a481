// Which mutant of the kernels is on, and which sites were reached: a board that a test program
// shares with every library through a file. Only instrumented copies of the sources include this.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <type_traits>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace aclsim_mutants {

constexpr int kSites = 1 << 20;
struct Board {
  volatile int32_t active;     // the mutant that is on; -1: none
  volatile int32_t recording;  // whether sites note that they were reached
  volatile int32_t marked;     // whether the mutant that is on says by MET when it changes something
  volatile int32_t met;        // whether it did since the program last set this to 0
  volatile unsigned char reached[kSites];
};

inline Board* opened() {
  const char* path = getenv("ACLSIM_MUTANTS");
  const int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
  const int flags = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
  auto* board = static_cast<Board*>(
      mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, flags, file, 0));
  if (file < 0) board->active = -1;
  return board;
}
inline Board* const board = opened();

#define ACLM_INLINE inline __attribute__((always_inline))

ACLM_INLINE void reach(int id) {
  if (__builtin_expect(board->recording, 0)) board->reached[id] = 1;
}
inline void meet() { board->met = 1; }
// Notes that the condition of a bug was met; its value is the condition's.
inline bool met(bool condition) {
  if (condition) meet();
  return condition;
}
#define MET(...) (aclsim_mutants::met(static_cast<bool>(__VA_ARGS__)))
// Whether one of the mutants [id, id + count) is on. One without MET is met where it is reached.
ACLM_INLINE bool on(int id, int count) {
  reach(id);
  if (__builtin_expect(static_cast<uint32_t>(board->active - id) >= static_cast<uint32_t>(count),
                       1)) {
    return false;
  }
  if (!board->marked) meet();
  return true;
}
ACLM_INLINE bool is(int id) { return board->active == id; }

template <class T, class N>
ACLM_INLINE T up_to(T n, N most) {
  return n > static_cast<T>(most) ? static_cast<T>(most) : n;
}

// Half the mantissa, rounded to nearest: float to 11 bits, double to float, int64 through float.
inline float coarse(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  if ((bits & 0x7F800000u) != 0x7F800000u) bits = (bits + 0x1000u) & ~0x1FFFu;
  std::memcpy(&x, &bits, 4);
  return x;
}
inline double coarse(double x) { return static_cast<float>(x); }
inline int64_t coarse(int64_t x) {
  const float near = static_cast<float>(x);
  return near >= 9.2e18f || near <= -9.2e18f ? x : static_cast<int64_t>(near);
}

template <class T>
struct IsComplex : std::false_type {};
template <class T>
struct IsComplex<std::complex<T>> : std::true_type {};
template <class T>
constexpr bool kWhole = std::is_same<T, int64_t>::value;

template <class T>
T spoiled(int how, T x) {
  if constexpr (IsComplex<T>::value) {
    return {spoiled(how, x.real()), spoiled(how, x.imag())};
  } else if constexpr (kWhole<T>) {
    return how == 0 ? coarse(x) : x;
  } else {
    if (how == 0) return coarse(x);
    if (how == 1) return x == T(0) ? T(0) : x;
    if (how == 2) return x != x ? T(0) : x;
    constexpr T inf = std::numeric_limits<T>::infinity();
    constexpr T most = std::numeric_limits<T>::max();
    return x == inf ? most : (x == -inf ? -most : x);
  }
}
template <class T>
bool differs(T a, T b) {
  return std::memcmp(&a, &b, sizeof(T)) != 0;
}
template <class T>
constexpr bool kSpoils = std::is_same<T, float>::value || std::is_same<T, double>::value ||
                         IsComplex<T>::value || kWhole<T>;

// Reached only by values that the mutant changes: what never meets such a value proves nothing.
template <class T>
ACLM_INLINE T values(int id, int count, T x) {
  if constexpr (kSpoils<T>) {
    if (__builtin_expect(board->recording, 0)) {
      for (int k = 0; k < count; ++k) {
        if (!board->reached[id + k] && differs(x, spoiled(k, x))) board->reached[id + k] = 1;
      }
    }
    const auto k = static_cast<uint32_t>(board->active - id);
    if (__builtin_expect(k < static_cast<uint32_t>(count), 0)) {
      return spoiled(static_cast<int>(k), x);
    }
  }
  return x;
}
template <class T>
ACLM_INLINE T& after(int id, T& x) {
  if constexpr (kSpoils<T> && !kWhole<T>) x = values(id, 1, x);
  return x;
}

}  // namespace aclsim_mutants
