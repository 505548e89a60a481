// The collectives of the C interface: what each call gives and gets, checked and put on a stream.
#include <hccl/hccl.h>

#include "ascendcl/capture.h"
#include "ascendcl/device.h"
#include "ascendcl/memory.h"
#include "ascendcl/strict.h"
#include "hccl/exchange.h"
#include "hccl/fold.h"
#include "per_thread.h"

namespace aclsim {
namespace {

using Counts = const uint64_t*;

// Memory of a call: known to the simulator, and marked as used in strict mode.
HcclResult hold(const char* function, const char* what, const Part& part,
                std::vector<std::shared_ptr<Allocation>>* held) {
  if (part.bytes == 0) return HCCL_SUCCESS;
  Extent extent = part.at ? find_extent(part.at, part.bytes) : Extent{};
  if (!part.at) {
    return refused(HCCL_E_PTR, "%s failed because %s cannot be a NULL pointer.", function, what);
  }
  if (!extent.block || extent.bytes < part.bytes) {
    const char* finding = extent.block ? "view-past-allocation" : "pointer-outside-device-memory";
    if (strict()) {
      report_memory(finding, function, part.at, part.bytes,
                    extent.block ? extent.block->origin : nullptr,
                    "Pass device memory that is still allocated and large enough.");
    }
    return refused(HCCL_E_PARA, "%s failed because %s %p is not device memory of %llu bytes.",
                   function, what, static_cast<void*>(part.at),
                   static_cast<unsigned long long>(part.bytes));
  }
  if (strict()) {
    extent.block->in_use.fetch_add(1);
    held->push_back(std::move(extent.block));
  }
  return HCCL_SUCCESS;
}

void let_go(std::vector<std::shared_ptr<Allocation>>* held) {
  for (auto& block : *held) block->in_use.fetch_sub(1);
  held->clear();
}

Stream* stream_of(const char* function, aclrtStream handle, const Communicator& comm,
                  HcclResult* code) {
  aclError found = ACL_SUCCESS;
  Stream* stream = find_stream(thread(), handle, function, &found);
  if (!stream) {
    *code = HCCL_E_RUNTIME;
  } else if (stream->context->device != comm.device) {
    *code = refused(HCCL_E_PARA, "%s failed because the stream belongs to device %d and the "
                    "communicator to device %d.", function, stream->context->device, comm.device);
    return nullptr;
  }
  return stream;
}

// One call of a collective while it is put together.
class CollectiveCall {
 public:
  CollectiveCall(const char* function, HcclComm handle, Collective kind) : function_(function) {
    x_ = new Exchange;
    x_->comm = find_communicator(function, handle, &code_);
    x_->operation.kind = static_cast<uint32_t>(kind);
  }
  ~CollectiveCall() {
    if (!x_) return;
    let_go(&x_->held);
    delete x_;
  }

  bool good() const { return code_ == HCCL_SUCCESS; }
  uint32_t ranks() const { return x_->comm->segment.ranks; }
  uint32_t rank() const { return x_->comm->rank; }
  bool is_root() const { return rank() == x_->operation.root; }
  uint64_t width() const { return element_bytes(x_->dtype()); }

  void dtype(HcclDataType given) {
    x_->operation.dtype = given;
    if (good() && !element_bytes(given)) {
      code_ = refused(HCCL_E_NOT_SUPPORT, "%s does not support dtype %d.", function_, given);
    }
  }
  void reduce(HcclReduceOp op) {
    x_->operation.reduce = op;
    if (good() && (op < HCCL_REDUCE_SUM || op > HCCL_REDUCE_MIN)) {
      code_ = refused(HCCL_E_PARA, "%s failed because op %d is no HcclReduceOp.", function_, op);
    } else if (good() && !can_reduce(x_->dtype())) {
      code_ = refused(HCCL_E_NOT_SUPPORT, "%s does not reduce dtype %u.", function_,
                      x_->operation.dtype);
    }
  }
  void root(uint32_t given) {
    x_->operation.root = given;
    if (good() && given >= ranks()) {
      code_ = refused(HCCL_E_PARA, "%s failed because root %u is not below %u ranks.", function_,
                      given, ranks());
    }
  }
  void count(uint64_t given) { x_->operation.count = given; }
  void need(const void* pointer, const char* what) {
    if (good() && !pointer) {
      code_ = refused(HCCL_E_PTR, "%s failed because %s cannot be a NULL pointer.", function_,
                      what);
    }
  }

  // Elements from `first` on, of a buffer that is given or that receives.
  void give(const void* buffer, uint64_t first, uint64_t elements) {
    add(&x_->give, "sendBuf", buffer, first, elements);
  }
  void get(const void* buffer, uint64_t first, uint64_t elements) {
    add(&x_->get, "recvBuf", buffer, first, elements);
  }
  void get_nothing() { x_->get.push_back({}); }

  HcclResult submit_on(aclrtStream handle) {
    Stream* stream = good() ? stream_of(function_, handle, *x_->comm, &code_) : nullptr;
    if (!good()) return code_;
    Exchange* x = x_;
    x_ = nullptr;  // the task owns it now
    x->ticketed = !recording(stream);  // what is captured takes its turn when it is run
    if (x->ticketed) x->ticket = x->comm->collectives.take();
    Task* task = make_task([x](Stream* on) { return run_exchange(*x, on); }, true, [x] {
      if (x->ticketed) x->comm->collectives.finish(x->ticket);
      let_go(&x->held);
      delete x;
    });
    Doing doing({Work::Exchange, x->operation.dtype, x->operation.count, x->comm->name.c_str()});
    return submit(stream, task, function_) == ACL_SUCCESS ? HCCL_SUCCESS : HCCL_E_RUNTIME;
  }

 private:
  void add(std::vector<Part>* parts, const char* what, const void* buffer, uint64_t first,
           uint64_t elements) {
    if (!good()) return;
    auto* base = static_cast<char*>(const_cast<void*>(buffer));
    Part part = {base ? base + first * width() : nullptr, elements * width()};
    code_ = hold(function_, what, part, &x_->held);
    parts->push_back(part);
  }

  const char* function_;
  CallSpan span_{function_};
  HcclResult code_ = HCCL_SUCCESS;
  Exchange* x_;
};

HcclResult post(const char* function, Communicator* comm, const HcclSendRecvItem* items,
                uint32_t count, aclrtStream handle);

// HcclGroupStart to HcclGroupEnd: messages of a thread wait to be sent together, so that their
// order does not matter.
struct Grouped {
  HcclComm comm;
  aclrtStream stream;
  std::vector<HcclSendRecvItem> items;
};
struct Group {
  int depth = 0;
  std::vector<Grouped> waiting;
};
Group& group() { return aclnn_bindings::per_thread<Group>(); }

HcclResult check_message(const char* function, const Communicator& comm,
                         const HcclSendRecvItem& item) {
  if (item.sendRecvType != HCCL_SEND && item.sendRecvType != HCCL_RECV) {
    return refused(HCCL_E_PARA, "%s failed because type %d is neither send nor receive.", function,
                   item.sendRecvType);
  }
  if (item.remoteRank >= comm.segment.ranks) {
    return refused(HCCL_E_PARA, "%s failed because rank %u is not below %u ranks.", function,
                   item.remoteRank, comm.segment.ranks);
  }
  if (!element_bytes(item.dataType)) {
    return refused(HCCL_E_NOT_SUPPORT, "%s does not support dtype %d.", function, item.dataType);
  }
  return HCCL_SUCCESS;
}

void take_tickets(Messages* messages) {
  for (Message& m : messages->all) {
    m.ticket = (m.send ? messages->comm->outgoing : messages->comm->incoming)[m.peer].take();
  }
  messages->ticketed = true;
}

void end_messages(Messages* messages) {
  for (Message& m : messages->all) {
    Order& order = (m.send ? messages->comm->outgoing : messages->comm->incoming)[m.peer];
    if (messages->ticketed && !m.finished) order.finish(m.ticket);
  }
  let_go(&messages->held);
  delete messages;
}

constexpr uint32_t kMixedTypes = 0xFFFF;
Work work_of(const HcclSendRecvItem* items, uint32_t count, const std::string& group) {
  Work work = {Work::Exchange, count ? static_cast<uint32_t>(items[0].dataType) : kMixedTypes, 0,
               group.c_str()};
  for (uint32_t i = 0; i < count; ++i) {
    if (items[i].dataType != items[0].dataType) work.how = kMixedTypes;
    work.amount += items[i].count;
  }
  return work;
}

HcclResult post(const char* function, Communicator* comm, const HcclSendRecvItem* items,
                uint32_t count, aclrtStream handle) {
  HcclResult code = HCCL_SUCCESS;
  Stream* stream = stream_of(function, handle, *comm, &code);
  if (!stream) return code;
  auto* messages = new Messages;
  messages->comm = comm;
  for (uint32_t i = 0; i < count && code == HCCL_SUCCESS; ++i) {
    const HcclSendRecvItem& item = items[i];
    code = check_message(function, *comm, item);
    if (code != HCCL_SUCCESS) break;
    Part part = {static_cast<char*>(item.buf), item.count * element_bytes(item.dataType)};
    code = hold(function, "buf", part, &messages->held);
    messages->all.push_back({item.sendRecvType == HCCL_SEND, part, item.remoteRank, item.dataType});
  }
  if (code != HCCL_SUCCESS) return end_messages(messages), code;
  if (!recording(stream)) take_tickets(messages);
  Task* task = make_task([messages](Stream* on) { return run_messages(*messages, on); }, true,
                         [messages] { end_messages(messages); });
  Doing doing(work_of(items, count, comm->name));
  return submit(stream, task, function) == ACL_SUCCESS ? HCCL_SUCCESS : HCCL_E_RUNTIME;
}

HcclResult send_or_receive(const char* function, const HcclSendRecvItem& item, HcclComm handle,
                           aclrtStream stream) {
  HcclResult code = HCCL_SUCCESS;
  Communicator* comm = find_communicator(function, handle, &code);
  if (comm) code = check_message(function, *comm, item);
  if (code != HCCL_SUCCESS) return code;
  if (!group().depth) return post(function, comm, &item, 1, stream);
  for (Grouped& one : group().waiting) {
    if (one.comm == handle && one.stream == stream) return one.items.push_back(item), code;
  }
  group().waiting.push_back({handle, stream, {item}});
  return HCCL_SUCCESS;
}

}  // namespace
}  // namespace aclsim

using namespace aclsim;

ACLSIM_API HcclResult HcclAllReduce(void* sendBuf, void* recvBuf, uint64_t count,
                                    HcclDataType dataType, HcclReduceOp op, HcclComm comm,
                                    aclrtStream stream) {
  CollectiveCall call(__func__, comm, Collective::AllReduce);
  call.dtype(dataType);
  call.reduce(op);
  call.count(count);
  call.give(sendBuf, 0, count);
  call.get(recvBuf, 0, count);
  return call.submit_on(stream);
}
ACLSIM_API HcclResult HcclReduce(void* sendBuf, void* recvBuf, uint64_t count,
                                 HcclDataType dataType, HcclReduceOp op, uint32_t root,
                                 HcclComm comm, aclrtStream stream) {
  CollectiveCall call(__func__, comm, Collective::Reduce);
  call.dtype(dataType);
  call.reduce(op);
  call.root(root);
  call.count(count);
  call.give(sendBuf, 0, count);
  if (call.good() && call.is_root()) call.get(recvBuf, 0, count);
  return call.submit_on(stream);
}
ACLSIM_API HcclResult HcclReduceScatter(void* sendBuf, void* recvBuf, uint64_t recvCount,
                                        HcclDataType dataType, HcclReduceOp op, HcclComm comm,
                                        aclrtStream stream) {
  CollectiveCall call(__func__, comm, Collective::ReduceScatter);
  call.dtype(dataType);
  call.reduce(op);
  call.count(recvCount);
  for (uint32_t r = 0; call.good() && r < call.ranks(); ++r) {
    call.give(sendBuf, r * recvCount, recvCount);
  }
  call.get(recvBuf, 0, recvCount);
  return call.submit_on(stream);
}
ACLSIM_API HcclResult HcclReduceScatterV(void* sendBuf, const void* sendCounts,
                                         const void* sendDispls, void* recvBuf, uint64_t recvCount,
                                         HcclDataType dataType, HcclReduceOp op, HcclComm comm,
                                         aclrtStream stream) {
  CollectiveCall call(__func__, comm, Collective::ReduceScatterV);
  call.dtype(dataType);
  call.reduce(op);
  call.need(sendCounts, "sendCounts");
  call.need(sendDispls, "sendDispls");
  for (uint32_t r = 0; call.good() && r < call.ranks(); ++r) {
    call.give(sendBuf, Counts(sendDispls)[r], Counts(sendCounts)[r]);
  }
  call.get(recvBuf, 0, recvCount);
  return call.submit_on(stream);
}

ACLSIM_API HcclResult HcclBroadcast(void* buf, uint64_t count, HcclDataType dataType, uint32_t root,
                                    HcclComm comm, aclrtStream stream) {
  CollectiveCall call(__func__, comm, Collective::Broadcast);
  call.dtype(dataType);
  call.root(root);
  call.count(count);
  if (call.good() && call.is_root()) call.give(buf, 0, count);
  for (uint32_t r = 0; call.good() && !call.is_root() && r < call.ranks(); ++r) {
    r == root ? call.get(buf, 0, count) : call.get_nothing();
  }
  return call.submit_on(stream);
}

ACLSIM_API HcclResult HcclAllGather(void* sendBuf, void* recvBuf, uint64_t sendCount,
                                    HcclDataType dataType, HcclComm comm, aclrtStream stream) {
  CollectiveCall call(__func__, comm, Collective::AllGather);
  call.dtype(dataType);
  call.count(sendCount);
  call.give(sendBuf, 0, sendCount);
  for (uint32_t r = 0; call.good() && r < call.ranks(); ++r) {
    call.get(recvBuf, r * sendCount, sendCount);
  }
  return call.submit_on(stream);
}
ACLSIM_API HcclResult HcclAllGatherV(void* sendBuf, uint64_t sendCount, void* recvBuf,
                                     const void* recvCounts, const void* recvDispls,
                                     HcclDataType dataType, HcclComm comm, aclrtStream stream) {
  CollectiveCall call(__func__, comm, Collective::AllGatherV);
  call.dtype(dataType);
  call.need(recvCounts, "recvCounts");
  call.need(recvDispls, "recvDispls");
  call.give(sendBuf, 0, sendCount);
  for (uint32_t r = 0; call.good() && r < call.ranks(); ++r) {
    call.get(recvBuf, Counts(recvDispls)[r], Counts(recvCounts)[r]);
  }
  return call.submit_on(stream);
}

ACLSIM_API HcclResult HcclScatter(void* sendBuf, void* recvBuf, uint64_t recvCount,
                                  HcclDataType dataType, uint32_t root, HcclComm comm,
                                  aclrtStream stream) {
  CollectiveCall call(__func__, comm, Collective::Scatter);
  call.dtype(dataType);
  call.root(root);
  call.count(recvCount);
  for (uint32_t r = 0; call.good() && r < call.ranks(); ++r) {
    const bool from_here = call.is_root();
    from_here ? call.give(sendBuf, r * recvCount, recvCount) : call.give(nullptr, 0, 0);
    r == root ? call.get(recvBuf, 0, recvCount) : call.get_nothing();
  }
  return call.submit_on(stream);
}

ACLSIM_API HcclResult HcclAlltoAll(const void* sendBuf, uint64_t sendCount, HcclDataType sendType,
                                   const void* recvBuf, uint64_t recvCount, HcclDataType recvType,
                                   HcclComm comm, aclrtStream stream) {
  if (sendCount != recvCount || sendType != recvType) {
    return refused(HCCL_E_PARA, "%s failed because counts and dtypes of both sides must be equal.",
                   __func__);
  }
  CollectiveCall call(__func__, comm, Collective::AllToAll);
  call.dtype(sendType);
  call.count(sendCount);
  for (uint32_t r = 0; call.good() && r < call.ranks(); ++r) {
    call.give(sendBuf, r * sendCount, sendCount);
    call.get(recvBuf, r * recvCount, recvCount);
  }
  return call.submit_on(stream);
}
ACLSIM_API HcclResult HcclAlltoAllV(const void* sendBuf, const void* sendCounts,
                                    const void* sdispls, HcclDataType sendType, const void* recvBuf,
                                    const void* recvCounts, const void* rdispls,
                                    HcclDataType recvType, HcclComm comm, aclrtStream stream) {
  CollectiveCall call(__func__, comm, Collective::AllToAllV);
  call.dtype(sendType == recvType ? sendType : HCCL_DATA_TYPE_RESERVED);
  const void* const tables[] = {sendCounts, sdispls, recvCounts, rdispls};
  const char* const names[] = {"sendCounts", "sdispls", "recvCounts", "rdispls"};
  for (int i = 0; i < 4; ++i) call.need(tables[i], names[i]);
  for (uint32_t r = 0; call.good() && r < call.ranks(); ++r) {
    call.give(sendBuf, Counts(sdispls)[r], Counts(sendCounts)[r]);
    call.get(recvBuf, Counts(rdispls)[r], Counts(recvCounts)[r]);
  }
  return call.submit_on(stream);
}
// sendCountMatrix[s * ranks + d]: elements from rank s to rank d; both sides are packed.
ACLSIM_API HcclResult HcclAlltoAllVC(const void* sendBuf, const void* sendCountMatrix,
                                     HcclDataType sendType, const void* recvBuf,
                                     HcclDataType recvType, HcclComm comm, aclrtStream stream) {
  CollectiveCall call(__func__, comm, Collective::AllToAllVC);
  call.dtype(sendType == recvType ? sendType : HCCL_DATA_TYPE_RESERVED);
  call.need(sendCountMatrix, "sendCountMatrix");
  uint64_t out = 0, in = 0;
  for (uint32_t r = 0; call.good() && r < call.ranks(); ++r) {
    uint64_t to = Counts(sendCountMatrix)[uint64_t{call.rank()} * call.ranks() + r];
    uint64_t from = Counts(sendCountMatrix)[uint64_t{r} * call.ranks() + call.rank()];
    call.give(sendBuf, out, to);
    call.get(recvBuf, in, from);
    out += to;
    in += from;
  }
  return call.submit_on(stream);
}

ACLSIM_API HcclResult HcclBarrier(HcclComm comm, aclrtStream stream) {
  CollectiveCall call(__func__, comm, Collective::Barrier);
  return call.submit_on(stream);
}

ACLSIM_API HcclResult HcclSend(void* sendBuf, uint64_t count, HcclDataType dataType,
                               uint32_t destRank, HcclComm comm, aclrtStream stream) {
  return send_or_receive(__func__, {HCCL_SEND, sendBuf, count, dataType, destRank}, comm, stream);
}
ACLSIM_API HcclResult HcclRecv(void* recvBuf, uint64_t count, HcclDataType dataType,
                               uint32_t srcRank, HcclComm comm, aclrtStream stream) {
  return send_or_receive(__func__, {HCCL_RECV, recvBuf, count, dataType, srcRank}, comm, stream);
}
ACLSIM_API HcclResult HcclBatchSendRecv(HcclSendRecvItem* sendRecvInfo, uint32_t itemNum,
                                        HcclComm comm, aclrtStream stream) {
  ACLSIM_COMMUNICATOR(mine, comm);
  if (!sendRecvInfo) {
    return refused(HCCL_E_PTR, "%s failed because sendRecvInfo cannot be a NULL pointer.",
                   __func__);
  }
  return post(__func__, mine, sendRecvInfo, itemNum, stream);
}

ACLSIM_API HcclResult HcclGroupStart() {
  ++group().depth;
  return HCCL_SUCCESS;
}
ACLSIM_API HcclResult HcclGroupEnd() {
  if (!group().depth) {
    return refused(HCCL_E_PARA, "%s failed because no group was started on this thread.", __func__);
  }
  if (--group().depth) return HCCL_SUCCESS;
  std::vector<Grouped> waiting;
  waiting.swap(group().waiting);
  HcclResult first = HCCL_SUCCESS;
  for (Grouped& one : waiting) {
    HcclResult code = HCCL_SUCCESS;
    Communicator* comm = find_communicator(__func__, one.comm, &code);
    if (comm) code = post(__func__, comm, one.items.data(), one.items.size(), one.stream);
    if (first == HCCL_SUCCESS) first = code;
  }
  return first;
}
ACLSIM_API HcclResult HcclGroupStatusGet(bool* isGroupEnabled) {
  if (!isGroupEnabled) {
    return refused(HCCL_E_PTR, "%s failed because isGroupEnabled cannot be a NULL pointer.",
                   __func__);
  }
  *isGroupEnabled = group().depth > 0;
  return HCCL_SUCCESS;
}
