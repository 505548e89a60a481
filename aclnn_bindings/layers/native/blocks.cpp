#include "blocks.h"

#include <algorithm>

#include "tracking.h"

namespace layers {
namespace {

constexpr size_t kMostAccesses = 4096;   // of one block; older ones are then forgotten
constexpr int64_t kMostElements = 65536; // that are looked at one by one

int64_t elements_of(const Geometry& g) {
  int64_t count = 1;
  for (int64_t n : g.shape) count *= n;
  return count;
}

bool dense(const Geometry& g) {
  int64_t low = 0, high = 0;
  for (size_t i = 0; i < g.shape.size(); ++i)
    (g.strides[i] < 0 ? low : high) += (g.shape[i] - 1) * g.strides[i];
  return high - low + 1 <= elements_of(g);
}

// Addresses of a view's elements, sorted.
std::vector<uintptr_t> addresses_of(const Access& access) {
  const Geometry& g = *access.geometry;
  auto size = static_cast<int64_t>(element_size(g.dtype));
  std::vector<uintptr_t> found{access.base + static_cast<uintptr_t>(g.offset * size)};
  for (size_t i = 0; i < g.shape.size(); ++i) {
    size_t before = found.size();
    for (int64_t n = 1; n < g.shape[i]; ++n)
      for (size_t k = 0; k < before; ++k)
        found.push_back(found[k] + static_cast<uintptr_t>(n * g.strides[i] * size));
  }
  std::sort(found.begin(), found.end());
  return found;
}

bool has_gaps(const Access& access) {
  return access.geometry && !dense(*access.geometry) &&
         elements_of(*access.geometry) <= kMostElements;
}

// Whether any element of `view` lies in [start, end).
bool reaches(const std::vector<uintptr_t>& view, uintptr_t size, uintptr_t start, uintptr_t end) {
  auto at = std::lower_bound(view.begin(), view.end(), start > size ? start - size + 1 : 0);
  return at != view.end() && *at < end;
}

// Ranges overlap; of views with gaps, whether elements do. Only asked when order is missing.
bool share_bytes(const Access& a, const Access& b) {
  if (a.end <= b.start || b.end <= a.start) return false;
  const Access* gapped = has_gaps(a) ? &a : has_gaps(b) ? &b : nullptr;
  if (!gapped) return true;
  const Access& other = gapped == &a ? b : a;
  std::vector<uintptr_t> view = addresses_of(*gapped);
  uintptr_t size = element_size(gapped->geometry->dtype);
  if (!has_gaps(other)) return reaches(view, size, other.start, other.end);
  uintptr_t step = element_size(other.geometry->dtype);
  for (uintptr_t at : addresses_of(other))
    if (reaches(view, size, at, at + step)) return true;
  return false;
}

}  // namespace

bool extent_of(const TensorUse& use, uintptr_t* start, uintptr_t* end) {
  if (!use.geometry || !use.data) return false;
  const Geometry& g = *use.geometry;
  auto size = static_cast<int64_t>(element_size(g.dtype));
  if (!size || elements_of(g) <= 0) return false;
  int64_t low = g.offset, high = g.offset;
  for (size_t i = 0; i < g.shape.size(); ++i)
    (g.strides[i] < 0 ? low : high) += (g.shape[i] - 1) * g.strides[i];
  auto base = reinterpret_cast<uintptr_t>(use.data);
  *start = base + static_cast<uintptr_t>(low * size);
  *end = base + static_cast<uintptr_t>((high + 1) * size);
  return true;
}

void Blocks::add(uintptr_t start, uint64_t size, bool device, OriginPtr made) {
  uintptr_t end = start + size;
  auto first = freed_.upper_bound(start);
  if (first != freed_.begin()) --first;
  while (first != freed_.end() && first->first < end)
    first = first->second > start ? freed_.erase(first) : std::next(first);
  live_[start] = Block{start, end, device, std::move(made), {}};
}

Block* Blocks::find(uintptr_t address) {
  auto after = live_.upper_bound(address);
  if (after == live_.begin()) return nullptr;
  --after;
  return address < after->second.end ? &after->second : nullptr;
}

bool Blocks::was_freed(uintptr_t address) const {
  auto after = freed_.upper_bound(address);
  if (after == freed_.begin()) return false;
  --after;
  return address < after->second;
}

void Blocks::remove(uintptr_t start) {
  auto found = live_.find(start);
  if (found == live_.end()) return;
  freed_[start] = found->second.end;
  live_.erase(found);
}

const Access* Blocks::touch(Block* block, Access access, const Order& order) {
  auto& all = block->accesses;
  const Access* race = nullptr;
  size_t kept = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    Access& old = all[i];
    bool ordered = order.before(old.stream, old.time, access.stream);
    if (!ordered && !race && (old.write || access.write) && share_bytes(old, access)) {
      conflict_ = old;
      race = &conflict_;
    }
    bool covered = ordered && access.start <= old.start && old.end <= access.end &&
                   (access.write || !old.write) && !access.geometry;
    if (order.done(old.stream, old.time) || covered) continue;
    if (kept != i) all[kept] = std::move(old);
    ++kept;
  }
  all.resize(kept);
  if (all.size() >= kMostAccesses) all.erase(all.begin(), all.begin() + kMostAccesses / 2);
  all.push_back(std::move(access));
  return race;
}

}  // namespace layers
