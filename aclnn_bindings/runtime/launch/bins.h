// Owns free blocks ordered by size: exact bins below 2 MiB, quarter octaves above; knows no ACL.
#pragma once

#include <cstdint>
#include <vector>

namespace launch {

struct Pool;
struct Stream;

constexpr uint64_t kGranule = 512;
constexpr uint64_t kSmallLimit = 1 << 20;
constexpr uint64_t kSmallSegment = 2 << 20;

struct Block {
  uint64_t address;
  uint64_t bytes;      // a multiple of kGranule
  uint64_t requested;  // what was asked for; meaningful while used
  Pool* pool;
  Block* before;  // neighbours in the segment, by address
  Block* after;
  Block* bin_before;
  Block* bin_after;
  std::vector<Stream*>* users;  // other streams that used it since it was allocated
  uint32_t pending;             // events that must complete before it is free
  uint64_t guard;  // what its guards hold, see guard.cpp; 0: it has none
  uint8_t purpose;
  bool quarantined;  // freed, and kept until its guards are looked at
  bool small;
  bool used;
};

inline int lowest(uint64_t word) { return __builtin_ctzll(word); }

// Free blocks of a small segment, one bin per multiple of 512 bytes; best fit in constant time.
class SmallBins {
 public:
  void put(Block* block) {
    const uint64_t bin = block->bytes / kGranule - 1;
    push(heads_[bin], block);
    words_[bin / 64] |= uint64_t{1} << (bin % 64);
    summary_ |= uint64_t{1} << (bin / 64);
  }

  void remove(Block* block) {
    const uint64_t bin = block->bytes / kGranule - 1;
    unlink(heads_[bin], block);
    if (heads_[bin]) return;
    words_[bin / 64] &= ~(uint64_t{1} << (bin % 64));
    if (!words_[bin / 64]) summary_ &= ~(uint64_t{1} << (bin / 64));
  }

  // The smallest block of at least `bytes`, most recently freed first; null if there is none.
  Block* find(uint64_t bytes) const {
    const uint64_t bin = bytes / kGranule - 1;
    if (heads_[bin]) return heads_[bin];
    const uint64_t rest = words_[bin / 64] & (~uint64_t{0} << (bin % 64));
    if (rest) return heads_[bin / 64 * 64 + lowest(rest)];
    if (bin / 64 == 63) return nullptr;
    const uint64_t above = summary_ & (~uint64_t{0} << (bin / 64 + 1));
    if (!above) return nullptr;
    const int word = lowest(above);
    return heads_[word * 64 + lowest(words_[word])];
  }

  template <class Visit>
  void each(Visit visit) const {
    for (Block* head : heads_)
      for (Block* block = head; block; block = block->bin_after) visit(block);
  }

  static void push(Block*& head, Block* block) {
    block->bin_before = nullptr;
    block->bin_after = head;
    if (head) head->bin_before = block;
    head = block;
  }

  static void unlink(Block*& head, Block* block) {
    (block->bin_before ? block->bin_before->bin_after : head) = block->bin_after;
    if (block->bin_after) block->bin_after->bin_before = block->bin_before;
  }

 private:
  static constexpr uint64_t kBins = kSmallSegment / kGranule;
  static_assert(kBins == 64 * 64, "one summary word covers the bins");
  uint64_t summary_ = 0;
  uint64_t words_[64] = {};
  Block* heads_[kBins] = {};
};

// Free blocks of large segments: four bins per power of two, best fit within a bin.
class LargeBins {
 public:
  void put(Block* block) {
    const int bin = bin_of(block->bytes);
    SmallBins::push(heads_[bin], block);
    mask_ |= uint64_t{1} << bin;
  }

  void remove(Block* block) {
    const int bin = bin_of(block->bytes);
    SmallBins::unlink(heads_[bin], block);
    if (!heads_[bin]) mask_ &= ~(uint64_t{1} << bin);
  }

  Block* find(uint64_t bytes) const {
    for (uint64_t left = mask_ & (~uint64_t{0} << bin_of(bytes)); left; left &= left - 1) {
      if (Block* best = best_in(heads_[lowest(left)], bytes)) return best;
    }
    return nullptr;
  }

  template <class Visit>
  void each(Visit visit) const {
    for (Block* head : heads_)
      for (Block* block = head; block; block = block->bin_after) visit(block);
  }

 private:
  static int bin_of(uint64_t bytes) {
    const int octave = 63 - __builtin_clzll(bytes | kSmallLimit);
    const int quarter = static_cast<int>(bytes >> (octave - 2)) & 3;
    const int bin = (octave - 20) * 4 + quarter;
    return bytes < kSmallLimit ? 0 : bin > 63 ? 63 : bin;
  }

  static Block* best_in(Block* head, uint64_t bytes) {
    Block* best = nullptr;
    for (Block* block = head; block; block = block->bin_after) {
      if (block->bytes == bytes) return block;
      if (block->bytes > bytes && (!best || block->bytes < best->bytes)) best = block;
    }
    return best;
  }

  uint64_t mask_ = 0;
  Block* heads_[64] = {};
};

// Blocks by address: open addressing with linear probing, deletion by shifting back.
class BlockIndex {
 public:
  Block* find(uint64_t address) const {
    if (slots_.empty()) return nullptr;
    for (uint64_t at = home(address); slots_[at]; at = (at + 1) & mask_)
      if (slots_[at]->address == address) return slots_[at];
    return nullptr;
  }

  void insert(Block* block) {
    if ((count_ + 1) * 2 > slots_.size()) grow();
    place(block);
    ++count_;
  }

  void erase(const Block* block) {
    uint64_t hole = home(block->address);
    while (slots_[hole] != block) hole = (hole + 1) & mask_;
    for (uint64_t at = (hole + 1) & mask_; slots_[at]; at = (at + 1) & mask_) {
      if (((at - home(slots_[at]->address)) & mask_) < ((at - hole) & mask_)) continue;
      slots_[hole] = slots_[at];
      hole = at;
    }
    slots_[hole] = nullptr;
    --count_;
  }

  void clear() {
    slots_.clear();
    count_ = 0;
  }

 private:
  uint64_t home(uint64_t address) const {
    return ((address / 64) * 0x9E3779B97F4A7C15u >> 20) & mask_;
  }

  void place(Block* block) {
    uint64_t at = home(block->address);
    while (slots_[at]) at = (at + 1) & mask_;
    slots_[at] = block;
  }

  void grow() {
    std::vector<Block*> old;
    old.swap(slots_);
    slots_.assign(old.empty() ? 1024 : old.size() * 2, nullptr);
    mask_ = slots_.size() - 1;
    for (Block* block : old)
      if (block) place(block);
  }

  std::vector<Block*> slots_;
  uint64_t mask_ = 0;
  uint64_t count_ = 0;
};

}  // namespace launch
