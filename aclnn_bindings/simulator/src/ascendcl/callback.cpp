// Host functions on streams: run by an internal thread, or by a thread that subscribed to them.
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>

#include "ascendcl/device.h"

namespace aclsim {
namespace {

struct Waiting {
  aclrtCallback run;
  void* data;
  std::shared_ptr<std::atomic<bool>> done;  // null: the stream does not wait
};

struct Mailbox {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Waiting> queue;
  int streams = 0;
};

struct Mailboxes {
  std::mutex mutex;
  std::map<uint64_t, std::shared_ptr<Mailbox>> by_thread;
};
Mailboxes& mailboxes() {
  static Mailboxes* made = new Mailboxes;
  return *made;
}

std::shared_ptr<Mailbox> mailbox(uint64_t id, bool create) {
  std::lock_guard<std::mutex> lock(mailboxes().mutex);
  auto& all = mailboxes().by_thread;
  auto at = all.find(id);
  if (at != all.end()) return at->second;
  return create ? all[id] = std::make_shared<Mailbox>() : nullptr;
}

void deliver(uint64_t id, aclrtCallback run, void* data, bool block) {
  std::shared_ptr<Mailbox> box = mailbox(id, false);
  if (!box) return;
  std::shared_ptr<std::atomic<bool>> done;
  if (block) done = std::make_shared<std::atomic<bool>>(false);
  std::unique_lock<std::mutex> lock(box->mutex);
  box->queue.push_back({run, data, done});
  box->changed.notify_all();
  if (block) box->changed.wait(lock, [&] { return done->load(); });
}

}  // namespace
}  // namespace aclsim

using namespace aclsim;

ACLSIM_API aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc fn, void* args) {
  ACLSIM_REQUIRE(fn);
  ACLSIM_STREAM(on, stream);
  return submit(on, make_task([=](Stream*) -> aclError {
    fn(args);
    return ACL_SUCCESS;
  }, true), "HOST_FUNC");
}

ACLSIM_API aclError aclrtSubscribeReport(uint64_t threadId, aclrtStream stream) {
  ACLSIM_STREAM(on, stream);
  if (on->report_thread) {
    return failed(ACL_ERROR_RT_STREAM_SUBSCRIBE, "EE1018",
                  "%s failed because the stream has a subscriber already.", __func__);
  }
  on->report_thread = threadId;
  std::shared_ptr<Mailbox> box = mailbox(threadId, true);
  std::lock_guard<std::mutex> lock(box->mutex);
  ++box->streams;
  return ACL_SUCCESS;
}

ACLSIM_API aclError aclrtUnSubscribeReport(uint64_t threadId, aclrtStream stream) {
  ACLSIM_STREAM(on, stream);
  if (on->report_thread != threadId) {
    return failed(ACL_ERROR_RT_THREAD_SUBSCRIBE, "EE1018",
                  "%s failed because the thread does not subscribe to the stream.", __func__);
  }
  on->report_thread = 0;
  std::shared_ptr<Mailbox> box = mailbox(threadId, false);
  if (!box) return ACL_SUCCESS;
  std::lock_guard<std::mutex> lock(box->mutex);
  --box->streams;
  return ACL_SUCCESS;
}

ACLSIM_API aclError aclrtLaunchCallback(aclrtCallback fn, void* userData,
                                        aclrtCallbackBlockType blockType, aclrtStream stream) {
  ACLSIM_REQUIRE(fn);
  if (blockType != ACL_CALLBACK_NO_BLOCK && blockType != ACL_CALLBACK_BLOCK) {
    return bad_value(__func__, "blockType", "unknown", "ACL_CALLBACK_NO_BLOCK or ACL_CALLBACK_BLOCK");
  }
  ACLSIM_STREAM(on, stream);
  uint64_t reader = on->report_thread;
  if (!reader) {
    return failed(ACL_ERROR_RT_STREAM_NO_CB_REG, "EE1018",
                  "%s failed because no thread subscribes to the stream. Call "
                  "aclrtSubscribeReport first.", __func__);
  }
  bool block = blockType == ACL_CALLBACK_BLOCK;
  return submit(on, make_task([=](Stream*) -> aclError {
    deliver(reader, fn, userData, block);
    return ACL_SUCCESS;
  }, true));
}

// Runs one waiting callback on the calling thread; -1 waits for ever.
ACLSIM_API aclError aclrtProcessReport(int32_t timeout) {
  thread();
  if (timeout < -1 || timeout == 0) {
    return failed(ACL_ERROR_RT_PARAM_INVALID, "EE1003",
                  "%s failed because timeout %d is invalid. Expected value: -1 or more than 0.",
                  __func__, timeout);
  }
  std::shared_ptr<Mailbox> box = mailbox(static_cast<uint64_t>(pthread_self()), false);
  if (!box) {
    return failed(ACL_ERROR_RT_THREAD_SUBSCRIBE, "EE1018",
                  "%s failed because this thread subscribes to no stream.", __func__);
  }
  std::unique_lock<std::mutex> lock(box->mutex);
  auto any = [&] { return !box->queue.empty(); };
  if (timeout < 0) {
    box->changed.wait(lock, any);
  } else if (!box->changed.wait_for(lock, std::chrono::milliseconds(timeout), any)) {
    // An answer more than a failure: threads ask in a loop, and a message left behind would be
    // printed as the cause of whatever fails next.
    return thread()->last_error = ACL_ERROR_RT_WAIT_TIMEOUT;
  }
  Waiting next = box->queue.front();
  box->queue.pop_front();
  lock.unlock();
  next.run(next.data);
  if (next.done) {
    lock.lock();
    next.done->store(true);
    box->changed.notify_all();
  }
  return ACL_SUCCESS;
}
