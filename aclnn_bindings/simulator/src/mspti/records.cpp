// Callbacks of the client are never called by a thread that works for it: a thread of this library
// hands buffers on, or the one that flushes.
#include "mspti/records.h"

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

namespace aclsim::mspti {
namespace {

// So many bytes wait before the thread takes them: few wakes, and little memory.
constexpr size_t kWaitingBytes = size_t{1} << 18;

struct Buffer {
  uint8_t* at = nullptr;
  size_t size = 0, most = 0;  // `most`: records; 0 for no limit
  size_t used = 0, records = 0;
};

struct Desk {
  std::mutex mutex;  // guards all but `buffer`
  std::condition_variable changed;
  std::vector<uint8_t> waiting;
  msptiBuffersCallbackRequestFunc request = nullptr;
  msptiBuffersCallbackCompleteFunc complete = nullptr;
  uint32_t period = 0;
  bool served = false;  // its thread runs
  std::mutex delivery;  // guards `buffer`; taken before `mutex`
  Buffer buffer;
};
Desk& desk();

// A forked child has none of its parent's records and no thread; it may begin its own.
void begin_again() {
  desk().waiting.clear();
  desk().buffer = {};
  desk().served = false;
  desk().mutex.unlock();
  desk().delivery.unlock();
}

Desk& desk() {
  static auto* whole = [] {
    auto* fresh = new Desk;
    pthread_atfork([] { desk().delivery.lock(), desk().mutex.lock(); },
                   [] { desk().mutex.unlock(), desk().delivery.unlock(); }, begin_again);
    return fresh;
  }();
  return *whole;
}

struct Callbacks {
  msptiBuffersCallbackRequestFunc request;
  msptiBuffersCallbackCompleteFunc complete;
};

void hand_on(const Callbacks& callbacks) {
  Buffer full = desk().buffer;
  desk().buffer = {};
  if (full.at) callbacks.complete(full.at, full.size, full.used);
}

// A place for that many bytes, or null: the client gave no buffer, or too small a one.
uint8_t* place_for(const Callbacks& callbacks, size_t bytes) {
  Buffer& buffer = desk().buffer;
  bool full = buffer.used + bytes > buffer.size || (buffer.most && buffer.records == buffer.most);
  if (buffer.at && full) hand_on(callbacks);
  if (!buffer.at) callbacks.request(&buffer.at, &buffer.size, &buffer.most);
  if (!buffer.at) return nullptr;
  if (bytes > buffer.size) return hand_on(callbacks), nullptr;
  uint8_t* place = buffer.at + buffer.used;
  buffer.used += bytes;
  ++buffer.records;
  return place;
}

thread_local bool delivering = false;

void deliver(bool whole) {
  if (delivering) return;  // a callback flushes
  std::lock_guard<std::mutex> lock(desk().delivery);
  delivering = true;
  std::vector<uint8_t> taken;
  Callbacks callbacks;
  {
    std::lock_guard<std::mutex> inner(desk().mutex);
    taken.swap(desk().waiting);
    callbacks = {desk().request, desk().complete};
  }
  for (size_t at = 0; callbacks.request && at < taken.size();) {
    msptiActivityKind kind;
    memcpy(&kind, &taken[at], sizeof kind);
    size_t bytes = record_bytes(kind);
    if (uint8_t* place = place_for(callbacks, bytes)) memcpy(place, &taken[at], bytes);
    at += bytes;
  }
  if (whole && callbacks.complete) hand_on(callbacks);
  delivering = false;
}

void serve() {
  for (;;) {
    {
      std::unique_lock<std::mutex> lock(desk().mutex);
      auto enough = [] { return desk().waiting.size() >= kWaitingBytes; };
      if (desk().period) {
        desk().changed.wait_for(lock, std::chrono::milliseconds(desk().period), enough);
      } else {
        desk().changed.wait(lock, [&] { return enough() || desk().period; });
      }
    }
    deliver(false);
  }
}

}  // namespace

size_t record_bytes(msptiActivityKind kind) {
  switch (kind) {
    case MSPTI_ACTIVITY_KIND_MARKER: return sizeof(msptiActivityMarker);
    case MSPTI_ACTIVITY_KIND_KERNEL: return sizeof(msptiActivityKernel);
    case MSPTI_ACTIVITY_KIND_HCCL: return sizeof(msptiActivityHccl);
    case MSPTI_ACTIVITY_KIND_MEMORY: return sizeof(msptiActivityMemory);
    case MSPTI_ACTIVITY_KIND_MEMSET: return sizeof(msptiActivityMemset);
    case MSPTI_ACTIVITY_KIND_MEMCPY: return sizeof(msptiActivityMemcpy);
    case MSPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: return sizeof(msptiActivityExternalCorrelation);
    case MSPTI_ACTIVITY_KIND_COMMUNICATION: return sizeof(msptiActivityCommunication);
    case MSPTI_ACTIVITY_KIND_API:
    case MSPTI_ACTIVITY_KIND_ACL_API:
    case MSPTI_ACTIVITY_KIND_NODE_API:
    case MSPTI_ACTIVITY_KIND_RUNTIME_API: return sizeof(msptiActivityApi);
    default: return 0;
  }
}

void give_callbacks(msptiBuffersCallbackRequestFunc request,
                    msptiBuffersCallbackCompleteFunc complete) {
  std::lock_guard<std::mutex> lock(desk().mutex);
  desk().request = request;
  desk().complete = complete;
  if (!desk().served) std::thread(serve).detach();
  desk().served = true;
}

void flush() { deliver(true); }

void flush_every(uint32_t milliseconds) {
  std::lock_guard<std::mutex> lock(desk().mutex);
  desk().period = milliseconds;
  desk().changed.notify_all();
}

void append_bytes(const void* record, size_t bytes) {
  auto* from = static_cast<const uint8_t*>(record);
  std::lock_guard<std::mutex> lock(desk().mutex);
  if (!desk().request) return;  // nobody would read it
  desk().waiting.insert(desk().waiting.end(), from, from + bytes);
  if (desk().waiting.size() >= kWaitingBytes) desk().changed.notify_all();
}

}  // namespace aclsim::mspti
