// What the ranks of one communicator share: a file in memory with a place for every rank to say
// how far it is, windows that collectives pass data through, and mailboxes for pairs of ranks.
#pragma once

#include <hccl/hccl_types.h>

#include <atomic>
#include <cstdint>
#include <functional>

#include "ascendcl/sharing.h"
#include "ascendcl/stream.h"

namespace aclsim {

constexpr uint32_t kMostRanks = 128;
constexpr uint64_t kWindow = 4 << 20;     // bytes that one rank lays out per round
constexpr uint64_t kMailbox = 256 << 10;  // bytes of a message that travel at once
constexpr uint32_t kSubgroups = 4096;

// What a collective is: ranks compare theirs before they exchange data.
struct Operation {
  uint32_t kind, dtype, reduce, root;
  uint64_t count;   // 0 where ranks may differ
  uint64_t rounds;  // what this rank needs; the most of all is done
};

// A rank's own place; others only read it.
struct Seat {
  std::atomic<uint32_t> step;  // phases that this rank has finished, futex
  std::atomic<uint32_t> bell;  // rung by who posted to, or took from, this rank's mailboxes
  std::atomic<int32_t> pid;    // 0: not here yet, -1: gone
  std::atomic<uint32_t> device;
  Operation operation;
  uint64_t bytes_to[kMostRanks];  // what this rank sends to each, for the receivers to compare
};

// One direction between two ranks: `sent` pieces were put in, `taken` were taken out.
struct Mailbox {
  std::atomic<uint32_t> sent, taken;
  uint64_t bytes;      // of this piece
  uint64_t total;      // of the whole message
  uint32_t dtype;
};

struct Subgroup {
  std::atomic<uint64_t> key;
  std::atomic<uint64_t> file;
};

struct Header {
  std::atomic<uint32_t> ranks, arrived, failed;
  Seat seats[kMostRanks];
  Subgroup subgroups[kSubgroups];
};

// The mapping of one rank. Layout: header, windows of all ranks, mailboxes and their contents.
struct Segment {
  int file = -1;
  ShareId id = 0;
  uint32_t ranks = 0;
  Header* header = nullptr;

  char* window(uint32_t rank) const;
  Mailbox& mailbox(uint32_t from, uint32_t to) const;
  char* contents(uint32_t from, uint32_t to) const;
};

// The file alone, before anybody knows how many ranks there will be.
int make_segment_file(ShareId* id);
// Maps the file for `ranks` ranks and takes `rank`'s place in it.
HcclResult join_segment(const char* function, ShareId id, uint32_t ranks, uint32_t rank,
                        uint32_t device, Segment* segment);
void leave_segment(Segment* segment, uint32_t rank);
// Waits until every rank has come (HCCL_CONNECT_TIMEOUT seconds, 120 by default).
HcclResult await_ranks(const char* function, const Segment& segment);

// Seconds that the environment asks for, or the default; 0 stands for ever.
int timeout_seconds(const char* variable, int fallback);

// How a wait inside a collective ended.
enum class Wait : uint8_t { Done, Lost, TimedOut, Aborted };
// Waits until `ready`, sleeping on `word`; notices when rank `other` is gone.
Wait await(const Segment& segment, uint32_t other, const std::atomic<uint32_t>& word,
           const std::function<bool()>& ready, const Stream* stream, int timeout_s);
bool alive(const Segment& segment, uint32_t rank);

}  // namespace aclsim
