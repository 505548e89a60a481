// What happens before what: a clock per stream, and for each stream, event and the host how far of
// every stream's work they know to be done (vector clocks, as FastTrack keeps them for threads:
// Flanagan and Freund, PLDI 2009). All host threads are one: how they order each other is unseen.
#pragma once

#include <cstdint>
#include <unordered_map>

namespace layers {

using StreamKey = uint64_t;
using Clock = std::unordered_map<StreamKey, uint64_t>;

class Order {
 public:
  // The time of a new task, which knows what its stream and the host know.
  uint64_t launch(StreamKey stream);
  void record(uint64_t event, StreamKey stream);
  void wait(StreamKey stream, uint64_t event);
  void host_waits_for_stream(StreamKey stream);
  void host_waits_for_event(uint64_t event);
  void host_waits_for_all();
  void forget_event(uint64_t event) { events_.erase(event); }
  // Whether the task of `stream` at `time` is done before what `stream_now`, or the host, does next.
  bool before(StreamKey stream, uint64_t time, StreamKey now) const;
  bool done(StreamKey stream, uint64_t time) const;
  bool captured(StreamKey stream) const { return captured_.count(stream) != 0; }
  void capture(StreamKey stream, bool on);

 private:
  static void join(Clock* into, const Clock& from);
  std::unordered_map<StreamKey, Clock> streams_;
  std::unordered_map<uint64_t, Clock> events_;
  std::unordered_map<StreamKey, bool> captured_;
  Clock host_;
};

}  // namespace layers
