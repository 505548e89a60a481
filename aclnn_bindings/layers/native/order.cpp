#include "order.h"

namespace layers {
namespace {

uint64_t known(const Clock& clock, StreamKey stream) {
  auto found = clock.find(stream);
  return found == clock.end() ? 0 : found->second;
}

}  // namespace

void Order::join(Clock* into, const Clock& from) {
  for (const auto& [stream, time] : from) {
    uint64_t& mine = (*into)[stream];
    if (time > mine) mine = time;
  }
}

uint64_t Order::launch(StreamKey stream) {
  Clock& mine = streams_[stream];
  join(&mine, host_);
  return ++mine[stream];
}

void Order::record(uint64_t event, StreamKey stream) {
  Clock& mine = streams_[stream];
  join(&mine, host_);
  events_[event] = mine;
}

void Order::wait(StreamKey stream, uint64_t event) {
  auto found = events_.find(event);
  if (found != events_.end()) join(&streams_[stream], found->second);
}

void Order::host_waits_for_stream(StreamKey stream) { join(&host_, streams_[stream]); }

void Order::host_waits_for_event(uint64_t event) {
  auto found = events_.find(event);
  if (found != events_.end()) join(&host_, found->second);
}

void Order::host_waits_for_all() {
  for (const auto& entry : streams_) join(&host_, entry.second);
}

bool Order::before(StreamKey stream, uint64_t time, StreamKey now) const {
  if (stream == now || done(stream, time)) return true;
  auto found = streams_.find(now);
  return found != streams_.end() && known(found->second, stream) >= time;
}

bool Order::done(StreamKey stream, uint64_t time) const { return known(host_, stream) >= time; }

void Order::capture(StreamKey stream, bool on) {
  if (on) captured_[stream] = true;
  else captured_.erase(stream);
}

}  // namespace layers
