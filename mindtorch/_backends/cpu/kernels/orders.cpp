// Inner loops of numpy's generalized universal functions: what compares the elements of lines.
#include <algorithm>
#include <numeric>
#include <vector>

#include "ascendcl/dtype.h"
#include "lines.h"
#include "universal.h"

namespace {

template <class T>
struct Place {
  T value;
  int64_t index;
  bool operator<(const Place& other) const {
    return value < other.value || (value == other.value && index < other.index);
  }
};

// The elements of a line that are numbers, in order; whether there are others.
template <class T>
bool read_numbers(const Line<T>& line, intptr_t n, std::vector<Place<T>>& places) {
  places.clear();
  for (intptr_t i = 0; i < n; ++i)
    if (line[i] == line[i]) places.push_back({line[i], i});
  return static_cast<intptr_t>(places.size()) < n;
}

template <class T>
intptr_t first_nan(const Line<T>& line, intptr_t n) {
  intptr_t i = 0;
  while (i < n - 1 && line[i] == line[i]) ++i;
  return i;
}

// (n),()->(),(): the lower median and its index, of all or, by the flag, of what is a number.
template <class T>
void middle(char** args, const intptr_t* sizes, const intptr_t* steps, void*) {
  const intptr_t n = sizes[1];
  std::vector<Place<T>> places;
  each<4>(args, sizes, steps, [&] {
    const Line<T> line{args[0], steps[4]};
    const bool holes = read_numbers(line, n, places);
    intptr_t at = first_nan(line, holes ? n : 1);
    if (!places.empty() && !(holes && !number<bool>(args[1]))) {
      const auto nth = places.begin() + (static_cast<intptr_t>(places.size()) - 1) / 2;
      std::nth_element(places.begin(), nth, places.end());
      at = nth->index;
    }
    number<T>(args[2]) = line[at];
    number<int64_t>(args[3]) = at;
  });
}

// (n)->(),(): the most frequent value, the smallest of equals, and where one is.
template <class T>
void mode(char** args, const intptr_t* sizes, const intptr_t* steps, void*) {
  const intptr_t n = sizes[1];
  std::vector<Place<T>> places;
  each<3>(args, sizes, steps, [&] {
    const Line<T> line{args[0], steps[3]};
    read_numbers(line, n, places);
    // By value alone: of equals that torch's same call puts last, this is the index.
    std::sort(places.begin(), places.end(), [](auto& a, auto& b) { return a.value < b.value; });
    const Place<T>* best = nullptr;
    size_t most = 0, start = 0;
    for (size_t i = 0; i < places.size(); ++i) {
      if (places[i].value != places[start].value) start = i;
      if (i - start >= most) most = i - start + 1, best = &places[i];
    }
    const intptr_t at = best ? best->index : 0;
    number<T>(args[1]) = line[at];
    number<int64_t>(args[2]) = at;
  });
}

// (n),()->(): the lower median, of all or, by the flag, of what is a number.
template <class T>
void half(char** args, const intptr_t* sizes, const intptr_t* steps, void*) {
  const intptr_t n = sizes[1];
  std::vector<T> values(n);
  each<3>(args, sizes, steps, [&] {
    const Line<T> line{args[0], steps[3]};
    intptr_t count = 0;
    for (intptr_t i = 0; i < n; ++i) {
      values[count] = line[i];
      count += line[i] == line[i];
    }
    T result = line[count < n ? first_nan(line, n) : 0];
    if (count && (count == n || number<bool>(args[1]))) {
      const auto nth = values.begin() + (count - 1) / 2;
      std::nth_element(values.begin(), nth, values.begin() + count);
      result = *nth;
    }
    number<T>(args[2]) = result;
  });
}

struct Above {
  template <class T> static ACL_INLINE bool of(T a, T b) { return (a > b) | ((a != a) & (b == b)); }
};
struct Below {
  template <class T> static ACL_INLINE bool of(T a, T b) { return (a < b) | ((a != a) & (b == b)); }
};

constexpr intptr_t SIDE_BY_SIDE = 32;  // lines at once
template <class How, class T>
ACL_VECTOR void extremes(const char* at, intptr_t down, intptr_t n, T* best, int64_t* places, intptr_t m) {
  const T* first = reinterpret_cast<const T*>(at);
  for (intptr_t j = 0; j < m; ++j) best[j] = first[j], places[j] = 0;
  for (intptr_t i = 1; i < n; ++i) {
    const T* row = reinterpret_cast<const T*>(at + i * down);
    ACL_IVDEP
    for (intptr_t j = 0; j < m; ++j) {
      const bool better = How::of(row[j], best[j]);
      best[j] = better ? row[j] : best[j];
      places[j] = better ? i : places[j];
    }
  }
}

// (n)->(),(): the first NaN, or else the first of the greatest or least elements, and its place.
template <class How, class T>
void extreme(char** args, const intptr_t* sizes, const intptr_t* steps, void*) {
  const intptr_t n = sizes[1], size = sizeof(T);
  if (steps[0] != size || steps[3] == size) {
    each<3>(args, sizes, steps, [&] {
      const Line<T> line{args[0], steps[3]};
      T best = line[0];
      intptr_t at = 0;
      for (intptr_t i = 1; i < n; ++i)
        if (How::of(line[i], best)) best = line[i], at = i;
      number<T>(args[1]) = best;
      number<int64_t>(args[2]) = at;
    });
    return;
  }
  T best[SIDE_BY_SIDE];
  int64_t places[SIDE_BY_SIDE];
  for (intptr_t k = 0; k < sizes[0]; k += SIDE_BY_SIDE) {
    const intptr_t m = std::min(SIDE_BY_SIDE, sizes[0] - k);
    extremes<How>(args[0] + k * size, steps[3], n, best, places, m);
    for (intptr_t j = 0; j < m; ++j) {
      number<T>(args[1] + (k + j) * steps[1]) = best[j];
      number<int64_t>(args[2] + (k + j) * steps[2]) = places[j];
    }
  }
}

constexpr intptr_t FEW = 24;  // elements that are put in one by one
// (n),()->(n),(n): elements in order, and their places; equal ones stay in theirs. By the flag from
// the greatest; NaN is above all.
template <class T>
void ordered(char** args, const intptr_t* sizes, const intptr_t* steps, void*) {
  const intptr_t n = sizes[1];
  std::vector<Place<T>> places(n);
  each<4>(args, sizes, steps, [&] {
    const Line<T> line{args[0], steps[4]}, values{args[2], steps[5]};
    const Line<int64_t> indices{args[3], steps[6]};
    const auto sort = [&](auto before) {
      for (intptr_t i = 0; i < n; ++i) {
        const Place<T> place{line[i], i};
        intptr_t at = i;
        if (n <= FEW)
          for (; at > 0 && before(place, places[at - 1]); --at) places[at] = places[at - 1];
        places[at] = place;
      }
      if (n > FEW) std::stable_sort(places.begin(), places.end(), before);
    };
    if (number<bool>(args[1])) {
      sort([](const Place<T>& a, const Place<T>& b) { return Above::of(a.value, b.value); });
    } else {
      sort([](const Place<T>& a, const Place<T>& b) {
        return (a.value < b.value) | ((b.value != b.value) & (a.value == a.value));
      });
    }
    for (intptr_t i = 0; i < n; ++i) values[i] = places[i].value, indices[i] = places[i].index;
  });
}

}  // namespace

#define OF_LINES(NAME, LOOP) \
  {NAME, "(n)->(),()", 1, 2, 3, {q, q, q, f, f, q, d, d, q}, {LOOP(int64_t), LOOP(float), LOOP(double)}}
#define GREATEST(T) extreme<Above, T>
#define LEAST(T) extreme<Below, T>
#define MODE(T) mode<T>
extern const Universal ORDERS[] = {
    {"middle", "(n),()->(),()", 2, 2, 3, {q, b, q, q, f, b, f, q, d, b, d, q},
     {middle<int64_t>, middle<float>, middle<double>}},
    {"half", "(n),()->()", 2, 1, 3, {q, b, q, f, b, f, d, b, d}, {half<int64_t>, half<float>, half<double>}},
    {"ordered", "(n),()->(n),(n)", 2, 2, 3, {q, b, q, q, f, b, f, q, d, b, d, q},
     {ordered<int64_t>, ordered<float>, ordered<double>}},
    OF_LINES("mode", MODE),
    OF_LINES("greatest", GREATEST),
    OF_LINES("least", LEAST),
    {}};
