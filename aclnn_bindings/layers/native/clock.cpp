#include "clock.h"

#include <cstdio>
#include <cstring>
#include <ctime>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace layers {
namespace {

uint64_t monotonic_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

#if defined(__x86_64__)
// The counter is as good as the kernel's clock where the kernel itself takes its time from it.
bool counter_is_clock() {
  char source[16] = "";
  if (FILE* file = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re")) {
    if (!fgets(source, sizeof source, file)) source[0] = 0;
    fclose(file);
  }
  return !strncmp(source, "tsc", 3);
}

// Both clocks at one moment, and how fast the counter went since the one before. Read again after
// `span` ticks, so that an error of the rate cannot grow and the kernel's corrections are followed.
struct Anchor {
  uint64_t ticks, ns;
  uint64_t rate;  // ns per tick, 32 bits of fraction
  uint64_t span;  // 0: the rate is not known
};
thread_local Anchor anchor LAYER_TLS = {0, 0, 0, 0};

constexpr uint64_t kLeastNs = 1000000;    // between two anchors, so that their rate is good
constexpr uint64_t kApartTicks = 1000;    // of reading the counter, the clock and the counter
constexpr uint64_t kSlowest = 20ull << 32, kFastest = 1ull << 27;  // believable rates

// What the clock says; an anchor from it where nothing came in between.
__attribute__((noinline)) uint64_t anchored_ns() {
  static const bool usable = counter_is_clock();
  uint64_t before = __rdtsc();
  uint64_t ns = monotonic_ns();
  if (!usable) return ns;
  uint64_t after = __rdtsc();
  uint64_t ticks = before + (after - before) / 2;
  if (after - before > kApartTicks) {
    anchor.span = 0;
    return ns;
  }
  uint64_t ran_ns = ns - anchor.ns, ran = ticks - anchor.ticks;
  if (anchor.ns && ran_ns < kLeastNs) return ns;
  bool sane = anchor.ns && ticks > anchor.ticks && ran_ns < 1ull << 32;
  uint64_t rate = sane ? (ran_ns << 32) / ran : 0;
  sane = sane && rate > kFastest && rate < kSlowest;
  anchor = {ticks, ns, rate, sane ? (2 * kLeastNs << 32) / rate : 0};
  return ns;
}
#endif

}  // namespace

uint64_t now_ns() {
#if defined(__x86_64__)
  uint64_t since = __rdtsc() - anchor.ticks;
  if (since >= anchor.span) return anchored_ns();
  return anchor.ns + (since * anchor.rate >> 32);
#else
  return monotonic_ns();
#endif
}

}  // namespace layers
