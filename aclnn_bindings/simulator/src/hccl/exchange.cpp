// How data moves between ranks: in rounds through everybody's window, with a phase between laying
// out and reading; and in pieces through the mailboxes of pairs.
#include "hccl/exchange.h"

#include <algorithm>
#include <cstdio>

#include "ascendcl/config.h"
#include "ascendcl/hardware_faults.h"
#include "hccl/fold.h"

namespace aclsim {
namespace {

// A rank's device as the driver counts them; ranks of one host see the same devices.
int device_of(const Communicator& comm, uint32_t rank) {
  return config().visible[comm.segment.header->seats[rank].device.load()];
}
LinkFault fault_between(const Communicator& comm, uint32_t from, uint32_t to) {
  return from == to ? LinkFault::None : link_fault(device_of(comm, from), device_of(comm, to));
}

// Runs the phases of one call. Every rank goes through the same ones.
class Rounds {
 public:
  Rounds(Exchange& exchange, Stream* stream)
      : x_(exchange), comm_(*exchange.comm), segment_(comm_.segment), stream_(stream),
        slices_(std::max<uint64_t>(exchange.give.size(), 1)),
        slice_(kWindow / slices_ / 64 * 64) {}

  aclError run() {
    if (!agree()) return code_;
    for (uint64_t round = 0; round < rounds_ && code_ == ACL_SUCCESS; ++round) one(round * slice_);
    return code_;
  }

 private:
  // Everybody says that they are this far, and waits for the rest.
  bool phase() {
    uint32_t mine = ++comm_.step;
    std::atomic<uint32_t>& step = segment_.header->seats[comm_.rank].step;
    step.store(mine);
    wake_waiters(&step);
    int seconds = timeout_seconds("HCCL_EXEC_TIMEOUT", 1836);
    for (uint32_t r = 0; r < segment_.ranks; ++r) {
      const std::atomic<uint32_t>& theirs = segment_.header->seats[r].step;
      const LinkFault fault = fault_between(comm_, r, comm_.rank);
      if (fault == LinkFault::Dead) return lose(r, Wait::Lost, seconds);
      auto there = [&] {
        return fault == LinkFault::None && static_cast<int32_t>(theirs.load() - mine) >= 0;
      };
      Wait ended = await(segment_, r, theirs, there, stream_, seconds);
      if (ended != Wait::Done) return lose(r, ended, seconds);
    }
    return true;
  }

  bool lose(uint32_t rank, Wait how, int seconds) {
    char text[256];
    const char* name = collective_name(x_.kind());
    if (how == Wait::TimedOut) {
      snprintf(text, sizeof text, "%s: rank %u did not come within %d seconds (HCCL_EXEC_TIMEOUT).",
               name, rank, seconds);
      return fail(ACL_ERROR_RT_FFTS_PLUS_TIMEOUT, HCCL_E_TIMEOUT, text);
    }
    if (how == Wait::Aborted) return fail(ACL_ERROR_RT_STREAM_ABORT, HCCL_E_UNAVAIL, nullptr);
    snprintf(text, sizeof text, "%s: rank %u is gone, or its part failed.", name, rank);
    return fail(ACL_ERROR_RT_SUSPECT_REMOTE_ERROR, HCCL_E_REMOTE, text);
  }

  bool fail(aclError code, HcclResult error, const char* text) {
    code_ = code;
    comm_.error.store(error);
    segment_.header->failed.store(1);
    if (text && stream_) set_stream_error(stream_, code, text);
    return false;
  }

  // Publishes what this rank calls and compares it with the others' calls.
  bool agree() {
    Seat& mine = segment_.header->seats[comm_.rank];
    mine.operation = x_.operation;
    mine.operation.rounds = own_rounds();
    for (uint32_t r = 0; r < segment_.ranks; ++r) {
      mine.bytes_to[r] = x_.give.empty() ? 0 : x_.give[x_.give.size() == 1 ? 0 : r].bytes;
    }
    if (!phase()) return false;
    for (uint32_t r = 0; r < segment_.ranks; ++r) {
      if (!same(r, segment_.header->seats[r].operation)) return false;
      rounds_ = std::max(rounds_, segment_.header->seats[r].operation.rounds);
    }
    return rounds_ > 0 || phase();  // nobody overwrites what another still reads
  }

  uint64_t own_rounds() const {
    uint64_t most = 0;
    for (const Part& part : x_.give) most = std::max(most, part.bytes);
    return (most + slice_ - 1) / slice_;
  }

  bool same(uint32_t rank, const Operation& theirs) {
    const Operation& mine = x_.operation;
    bool agreed = theirs.kind == mine.kind && theirs.dtype == mine.dtype &&
                  theirs.reduce == mine.reduce && theirs.root == mine.root &&
                  theirs.count == mine.count;
    uint64_t sent = segment_.header->seats[rank].bytes_to[comm_.rank];
    const Part* expected = x_.get.empty() ? nullptr : &x_.get[reducing() ? 0 : rank];
    bool sized = !expected || !expected->at || expected->bytes == sent;
    if (agreed && sized) return true;
    char text[256];
    snprintf(text, sizeof text, "Ranks differ: rank %u called %s (count %llu, dtype %u, root %u), "
             "rank %u called %s (count %llu, dtype %u, root %u) and sends it %llu bytes.",
             comm_.rank, collective_name(x_.kind()), static_cast<unsigned long long>(mine.count),
             mine.dtype, mine.root, rank, collective_name(static_cast<Collective>(theirs.kind)),
             static_cast<unsigned long long>(theirs.count), theirs.dtype, theirs.root,
             static_cast<unsigned long long>(sent));
    return fail(ACL_ERROR_RT_AICPU_EXCEPTION, HCCL_E_PARA, text);
  }

  bool reducing() const { return x_.kind() <= Collective::ReduceScatterV; }

  void one(uint64_t from) {
    for (uint64_t s = 0; s < x_.give.size(); ++s) {
      char* to = segment_.window(comm_.rank) + s * slice_;
      uint64_t bytes = share(x_.give[s], from);
      if (bytes) memcpy(to, x_.give[s].at + from, bytes);
    }
    if (!phase()) return;
    if (x_.kind() == Collective::AllReduce || x_.kind() == Collective::Reduce) {
      fold_together(from);
    } else if (reducing()) {
      fold_own(from);
    } else {
      read_all(from);
    }
    phase();
  }

  uint64_t share(const Part& part, uint64_t from) const {
    return part.bytes > from ? std::min(part.bytes - from, slice_) : 0;
  }

  void read_all(uint64_t from) {
    for (uint32_t r = 0; r < x_.get.size(); ++r) {
      const Part& part = x_.get[r];
      uint64_t bytes = part.at ? share(part, from) : 0;
      const char* in = segment_.window(r) + (laid_out() > 1 ? comm_.rank * slice_ : 0);
      if (bytes) memcpy(part.at + from, in, bytes);
      arrive(r, part.at + from, bytes);
    }
  }

  // Bytes that came from a rank, or hold something of its.
  void arrive(uint32_t rank, char* at, uint64_t bytes) const {
    if (rank == comm_.rank) return;
    cross_link(device_of(comm_, rank), device_of(comm_, comm_.rank), at, bytes);
  }

  // Slices in the window of a rank that gives.
  uint32_t laid_out() const {
    switch (x_.kind()) {
      case Collective::Scatter:
      case Collective::AllToAll:
      case Collective::AllToAllV:
      case Collective::AllToAllVC: return segment_.ranks;
      default: return 1;
    }
  }

  void inputs(uint64_t offset, const void** in) const {
    for (uint32_t r = 0; r < segment_.ranks; ++r) in[r] = segment_.window(r) + offset;
  }

  void fold_own(uint64_t from) {
    const Part& part = x_.get[0];
    uint64_t bytes = share(part, from);
    const void* in[kMostRanks];
    inputs(comm_.rank * slice_, in);
    fold(part.at + from, in, segment_.ranks, bytes / element_bytes(x_.dtype()), x_.dtype(),
         x_.reduce());
    for (uint32_t r = 0; r < segment_.ranks; ++r) arrive(r, part.at + from, bytes);
  }

  // Each rank reduces a part of everybody's data in its own window; then all read all parts.
  void fold_together(uint64_t from) {
    uint64_t width = element_bytes(x_.dtype()), count = share(x_.give[0], from) / width;
    auto begin = [&](uint32_t r) { return count * r / segment_.ranks; };
    const void* in[kMostRanks];
    uint64_t first = begin(comm_.rank), n = begin(comm_.rank + 1) - first;
    inputs(first * width, in);
    fold(segment_.window(comm_.rank) + first * width, in, segment_.ranks, n, x_.dtype(),
         x_.reduce());
    if (!phase()) return;
    for (uint32_t r = 0; !x_.get.empty() && r < segment_.ranks; ++r) {
      uint64_t at = begin(r) * width;
      const uint64_t bytes = begin(r + 1) * width - at;
      memcpy(x_.get[0].at + from + at, segment_.window(r) + at, bytes);
      arrive(r, x_.get[0].at + from + at, bytes);
    }
  }

  Exchange& x_;
  Communicator& comm_;
  const Segment& segment_;
  Stream* stream_;
  uint64_t slices_, slice_, rounds_ = 0;
  aclError code_ = ACL_SUCCESS;
};

// Moves what can be moved of a set of messages until all are through.
class Post {
 public:
  Post(Messages& messages, Stream* stream)
      : m_(messages), comm_(*messages.comm), segment_(comm_.segment), stream_(stream) {}

  aclError run() {
    int seconds = timeout_seconds("HCCL_EXEC_TIMEOUT", 1836);
    while (Message* waiting = advance()) {
      if (code_ != ACL_SUCCESS) break;
      // Whatever can move has moved: the others are not held up by a link that is dead.
      if (fault(*waiting) == LinkFault::Dead) {
        lose(*waiting, Wait::Lost, seconds, false);
        break;
      }
      const std::atomic<uint32_t>& bell = segment_.header->seats[comm_.rank].bell;
      uint32_t before = bell.load();
      if (any_ready()) continue;
      auto rung = [&] { return bell.load() != before || any_ready(); };
      Wait ended = await(segment_, waiting->peer, bell, rung, stream_, seconds);
      if (ended != Wait::Done) lose(*waiting, ended, seconds);
    }
    return code_;
  }

 private:
  Mailbox& box(const Message& m) const {
    return m.send ? segment_.mailbox(comm_.rank, m.peer) : segment_.mailbox(m.peer, comm_.rank);
  }
  Order& order(const Message& m) const {
    return m.send ? comm_.outgoing[m.peer] : comm_.incoming[m.peer];
  }
  LinkFault fault(const Message& m) const {
    return m.send ? fault_between(comm_, comm_.rank, m.peer)
                  : fault_between(comm_, m.peer, comm_.rank);
  }
  bool posted(const Message& m) const { return m.pieces && m.done >= m.part.bytes; }

  bool ready(const Message& m) const {
    if (m.finished || (m_.ticketed && !order(m).is_turn(m.ticket))) return false;
    if (fault(m) != LinkFault::None) return false;
    const Mailbox& b = box(m);
    bool empty = b.sent.load() == b.taken.load();
    return m.send ? empty : !empty;
  }
  bool any_ready() const {
    return std::any_of(m_.all.begin(), m_.all.end(), [&](const Message& m) { return ready(m); });
  }

  void ring(uint32_t rank) {
    std::atomic<uint32_t>& bell = segment_.header->seats[rank].bell;
    bell.fetch_add(1);
    wake_waiters(&bell);
  }

  void finish(Message& m) {
    m.finished = true;
    if (m_.ticketed) order(m).finish(m.ticket);
    ring(comm_.rank);  // another stream's message may be next in order
  }

  void put(Message& m) {
    if (posted(m)) return finish(m);  // the last piece was taken
    Mailbox& b = box(m);
    b.bytes = std::min(kMailbox, m.part.bytes - m.done);
    b.total = m.part.bytes;
    b.dtype = m.dtype;
    if (b.bytes) memcpy(segment_.contents(comm_.rank, m.peer), m.part.at + m.done, b.bytes);
    m.done += b.bytes;
    ++m.pieces;
    b.sent.fetch_add(1);
    ring(m.peer);
  }

  void take(Message& m) {
    Mailbox& b = box(m);
    if (b.total != m.part.bytes || b.dtype != static_cast<uint32_t>(m.dtype)) return differ(m, b);
    if (b.bytes) memcpy(m.part.at + m.done, segment_.contents(m.peer, comm_.rank), b.bytes);
    cross_link(device_of(comm_, m.peer), device_of(comm_, comm_.rank), m.part.at + m.done, b.bytes);
    m.done += b.bytes;
    ++m.pieces;
    b.taken.fetch_add(1);
    ring(m.peer);
    if (posted(m)) finish(m);
  }

  // Moves every message that can move; returns one that cannot yet, over a link that works if there
  // is one, or null when all are through.
  Message* advance() {
    Message* waiting = nullptr;
    for (Message& m : m_.all) {
      while (code_ == ACL_SUCCESS && ready(m)) m.send ? put(m) : take(m);
      if (!m.finished && (!waiting || fault(*waiting) == LinkFault::Dead)) waiting = &m;
    }
    return waiting;
  }

  void differ(const Message& m, const Mailbox& b) {
    char text[200];
    snprintf(text, sizeof text, "HcclRecv: rank %u sends %llu bytes of dtype %u, rank %u expects "
             "%llu of dtype %u.", m.peer, static_cast<unsigned long long>(b.total), b.dtype,
             comm_.rank, static_cast<unsigned long long>(m.part.bytes),
             static_cast<uint32_t>(m.dtype));
    fail(ACL_ERROR_RT_AICPU_EXCEPTION, HCCL_E_PARA, text);
  }

  void lose(const Message& m, Wait how, int seconds, bool everywhere = true) {
    char text[160];
    if (how == Wait::Aborted) return fail(ACL_ERROR_RT_STREAM_ABORT, HCCL_E_UNAVAIL, nullptr);
    const char* name = m.send ? "HcclSend" : "HcclRecv";
    if (how == Wait::TimedOut) {
      snprintf(text, sizeof text, "%s: rank %u did not come within %d seconds (HCCL_EXEC_TIMEOUT).",
               name, m.peer, seconds);
      return fail(ACL_ERROR_RT_FFTS_PLUS_TIMEOUT, HCCL_E_TIMEOUT, text);
    }
    snprintf(text, sizeof text, "%s: rank %u is gone, or its part failed.", name, m.peer);
    fail(ACL_ERROR_RT_SUSPECT_REMOTE_ERROR, HCCL_E_REMOTE, text, everywhere);
  }

  void fail(aclError code, HcclResult error, const char* text, bool everywhere = true) {
    code_ = code;
    comm_.error.store(error);
    if (everywhere) segment_.header->failed.store(1);
    if (text) set_stream_error(stream_, code, text);
  }

  Messages& m_;
  Communicator& comm_;
  const Segment& segment_;
  Stream* stream_;
  aclError code_ = ACL_SUCCESS;
};

}  // namespace

const char* collective_name(Collective kind) {
  static const char* const names[] = {
      "HcclAllReduce", "HcclReduce", "HcclReduceScatter", "HcclReduceScatterV", "HcclBroadcast",
      "HcclAllGather", "HcclAllGatherV", "HcclScatter", "HcclAlltoAll", "HcclAlltoAllV",
      "HcclAlltoAllVC", "HcclBarrier"};
  auto n = static_cast<size_t>(kind);
  return n < sizeof names / sizeof *names ? names[n] : "another function";
}

aclError run_exchange(Exchange& exchange, Stream* stream) {
  Order& order = exchange.comm->collectives;
  uint64_t ticket = exchange.ticketed ? exchange.ticket : order.take();
  aclError code = ACL_ERROR_RT_STREAM_ABORT;
  if (order.await_turn(ticket, stream)) code = Rounds(exchange, stream).run();
  if (!exchange.ticketed) order.finish(ticket);  // of a replay: the call's own ends with the call
  return code;
}

aclError run_messages(Messages& messages, Stream* stream) {
  for (Message& m : messages.all) {
    m.done = m.pieces = 0;
    m.finished = false;
  }
  return Post(messages, stream).run();
}

}  // namespace aclsim
