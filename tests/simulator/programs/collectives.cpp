// Collectives between processes, and between the devices of one: collectives <part> <ranks> [file].
#include <hccl/hccl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <map>
#include <numeric>
#include <string>

#include "kit.h"

struct Shared {
  HcclRootInfo info, second;
  std::atomic<int> ready;
};
static Shared* shared;
static const char* table;
static uint32_t rank, ranks;

// One rank: a device, a stream, a communicator.
struct Member : Kit {
  HcclComm comm = nullptr;
  Member() {
    uint32_t devices = 0;
    MUST(aclrtGetDeviceCount(&devices));
    if (rank) {
      while (!shared->ready.load()) usleep(100);
    } else {
      MUST(HcclGetRootInfo(&shared->info));
      shared->ready.store(1);
    }
    MUST(HcclCommInitRootInfo(ranks, &shared->info, rank, &comm));
  }
  void finish() {
    MUST(HcclCommDestroy(comm));
    end();
  }
  void wait() { MUST(aclrtSynchronizeStream(stream)); }
};

template <class T>
static T* upload(const std::vector<T>& values) {
  void* at = Kit::device(values.size() * sizeof(T) + 1);
  MUST(aclrtMemcpy(at, values.size() * sizeof(T), values.data(), values.size() * sizeof(T),
                   ACL_MEMCPY_HOST_TO_DEVICE));
  return static_cast<T*>(at);
}
template <class T>
static std::vector<T> download(const T* at, size_t count) {
  std::vector<T> values(count);
  MUST(aclrtMemcpy(values.data(), count * sizeof(T), at, count * sizeof(T),
                   ACL_MEMCPY_DEVICE_TO_HOST));
  return values;
}

// Rank r holds r + 1 + i % 3 at place i: small enough for every dtype.
template <class T>
static std::vector<T> mine_at(uint32_t r, size_t count) {
  std::vector<T> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<T>(r + 1 + i % 3);
  return values;
}
template <class T>
static T expected(HcclReduceOp op, size_t i) {
  double result = op == HCCL_REDUCE_PROD ? 1 : op == HCCL_REDUCE_SUM ? 0 : 1 + i % 3;
  for (uint32_t r = 0; r < ranks; ++r) {
    double value = r + 1 + i % 3;
    if (op == HCCL_REDUCE_SUM) result += value;
    if (op == HCCL_REDUCE_PROD) result *= value;
    if (op == HCCL_REDUCE_MAX) result = std::max(result, value);
    if (op == HCCL_REDUCE_MIN) result = std::min(result, value);
  }
  return static_cast<T>(result);
}

template <class T>
static void reduce_as(Member& m, HcclDataType dtype, size_t count) {
  for (int op = HCCL_REDUCE_SUM; op <= HCCL_REDUCE_MIN; ++op) {
    T* in = upload(mine_at<T>(rank, count));
    T* out = upload(std::vector<T>(count));
    MUST(HcclAllReduce(in, out, count, dtype, HcclReduceOp(op), m.comm, m.stream));
    m.wait();
    std::vector<T> seen = download(out, count);
    for (size_t i = 0; i < count; ++i) CHECK(seen[i] == expected<T>(HcclReduceOp(op), i));
    MUST(HcclAllReduce(in, in, count, dtype, HcclReduceOp(op), m.comm, m.stream));  // in place
    m.wait();
    CHECK(download(in, count) == seen);
    MUST(aclrtFree(in));
    MUST(aclrtFree(out));
  }
}

static void reductions() {
  Member m;
  for (size_t count : {size_t{1}, size_t{7}, size_t{1000}}) {
    reduce_as<int8_t>(m, HCCL_DATA_TYPE_INT8, count);
    reduce_as<int16_t>(m, HCCL_DATA_TYPE_INT16, count);
    reduce_as<int32_t>(m, HCCL_DATA_TYPE_INT32, count);
    reduce_as<int64_t>(m, HCCL_DATA_TYPE_INT64, count);
    reduce_as<uint64_t>(m, HCCL_DATA_TYPE_UINT64, count);
    reduce_as<float>(m, HCCL_DATA_TYPE_FP32, count);
    reduce_as<double>(m, HCCL_DATA_TYPE_FP64, count);
  }
  reduce_as<float>(m, HCCL_DATA_TYPE_FP32, 3000001);  // more than one round
  // Sixteen bits: 1 in float16 is 0x3C00, in bfloat16 0x3F80; their sums over ranks are exact.
  const uint16_t ones[] = {0x3C00, 0x3F80}, twos[] = {0x4000, 0x4000};
  const HcclDataType types[] = {HCCL_DATA_TYPE_FP16, HCCL_DATA_TYPE_BFP16};
  for (int k = 0; k < 2 && ranks == 2; ++k) {
    uint16_t* at = upload(std::vector<uint16_t>(9, ones[k]));
    MUST(HcclAllReduce(at, at, 9, types[k], HCCL_REDUCE_SUM, m.comm, m.stream));
    m.wait();
    CHECK(download(at, 9) == std::vector<uint16_t>(9, twos[k]));
    MUST(aclrtFree(at));
  }
  m.finish();
}

static void movements() {
  Member m;
  for (size_t count : {size_t{0}, size_t{1}, size_t{1001}, size_t{2500000}}) {
    int32_t* one = upload(std::vector<int32_t>(count, rank));
    int32_t* all = upload(std::vector<int32_t>(count * ranks, -1));
    MUST(HcclAllGather(one, all, count, HCCL_DATA_TYPE_INT32, m.comm, m.stream));
    m.wait();
    std::vector<int32_t> seen = download(all, count * ranks);
    for (size_t i = 0; i < seen.size(); ++i) CHECK(seen[i] == int32_t(i / count));
    MUST(HcclBroadcast(one, count, HCCL_DATA_TYPE_INT32, 1, m.comm, m.stream));
    m.wait();
    CHECK(download(one, count) == std::vector<int32_t>(count, 1));
    // Every part of `all` becomes rank * 10 + destination.
    std::vector<int32_t> parts(count * ranks);
    for (size_t i = 0; i < parts.size(); ++i) parts[i] = rank * 10 + int32_t(i / count);
    int32_t* from = upload(parts);
    MUST(HcclAlltoAll(from, count, HCCL_DATA_TYPE_INT32, all, count, HCCL_DATA_TYPE_INT32, m.comm,
                      m.stream));
    m.wait();
    seen = download(all, count * ranks);
    for (size_t i = 0; i < seen.size(); ++i) CHECK(seen[i] == int32_t(i / count * 10 + rank));
    MUST(HcclScatter(rank == 1 ? from : nullptr, one, count, HCCL_DATA_TYPE_INT32, 1, m.comm,
                     m.stream));
    m.wait();
    CHECK(download(one, count) == std::vector<int32_t>(count, 10 + rank));
    MUST(HcclReduceScatter(from, one, count, HCCL_DATA_TYPE_INT32, HCCL_REDUCE_SUM, m.comm,
                           m.stream));
    m.wait();
    int32_t sum = ranks * rank + 10 * ranks * (ranks - 1) / 2;
    CHECK(download(one, count) == std::vector<int32_t>(count, sum));
    MUST(HcclReduce(from, rank == 1 ? all : nullptr, count, HCCL_DATA_TYPE_INT32, HCCL_REDUCE_MAX, 1,
                    m.comm, m.stream));
    m.wait();
    if (rank == 1) CHECK(download(all, count) == std::vector<int32_t>(count, 10 * (ranks - 1)));
    for (void* at : {one, all, from}) MUST(aclrtFree(at));
  }
  MUST(HcclBarrier(m.comm, m.stream));
  m.wait();
  m.finish();
}

// Rank r gives r + 1 elements to everybody, and d + 1 elements go to rank d.
static void uneven() {
  Member m;
  std::vector<uint64_t> counts(ranks), places(ranks);
  for (uint32_t r = 0; r < ranks; ++r) {
    counts[r] = r + 1;
    places[r] = r ? places[r - 1] + counts[r - 1] : 0;
  }
  uint64_t total = places.back() + counts.back();
  float* one = upload(std::vector<float>(rank + 1, rank));
  float* all = upload(std::vector<float>(total, -1));
  MUST(HcclAllGatherV(one, rank + 1, all, counts.data(), places.data(), HCCL_DATA_TYPE_FP32, m.comm,
                      m.stream));
  m.wait();
  std::vector<float> seen = download(all, total);
  for (uint32_t r = 0; r < ranks; ++r) CHECK(seen[places[r]] == r && seen[places[r] + r] == r);
  MUST(HcclReduceScatterV(all, counts.data(), places.data(), one, rank + 1, HCCL_DATA_TYPE_FP32,
                          HCCL_REDUCE_SUM, m.comm, m.stream));
  m.wait();
  CHECK(download(one, rank + 1) == std::vector<float>(rank + 1, rank * ranks));
  std::vector<uint64_t> same(ranks, rank + 1), at(ranks);
  for (uint32_t r = 0; r < ranks; ++r) at[r] = r * (rank + 1);
  float* in = upload(std::vector<float>((rank + 1) * ranks, -1));
  MUST(HcclAlltoAllV(all, counts.data(), places.data(), HCCL_DATA_TYPE_FP32, in, same.data(),
                     at.data(), HCCL_DATA_TYPE_FP32, m.comm, m.stream));
  m.wait();
  CHECK(download(in, (rank + 1) * ranks) == std::vector<float>((rank + 1) * ranks, rank));
  std::vector<uint64_t> matrix(ranks * ranks);
  for (uint32_t s = 0; s < ranks; ++s) {
    for (uint32_t d = 0; d < ranks; ++d) matrix[s * ranks + d] = d + 1;
  }
  MUST(aclrtMemset(in, (rank + 1) * ranks * 4, 0, (rank + 1) * ranks * 4));
  MUST(HcclAlltoAllVC(all, matrix.data(), HCCL_DATA_TYPE_FP32, in, HCCL_DATA_TYPE_FP32, m.comm,
                      m.stream));
  m.wait();
  CHECK(download(in, (rank + 1) * ranks) == std::vector<float>((rank + 1) * ranks, rank));
  for (void* p : {one, all, in}) MUST(aclrtFree(p));
  m.finish();
}

static void messages() {
  Member m;
  const size_t count = 200001;  // several pieces
  uint32_t next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
  float* out = upload(std::vector<float>(count, rank));
  float* in = upload(std::vector<float>(count, -1));
  HcclSendRecvItem items[] = {{HCCL_SEND, out, count, HCCL_DATA_TYPE_FP32, next},
                              {HCCL_RECV, in, count, HCCL_DATA_TYPE_FP32, before}};
  MUST(HcclBatchSendRecv(items, 2, m.comm, m.stream));
  m.wait();
  CHECK(download(in, count) == std::vector<float>(count, before));
  MUST(aclrtMemset(in, count * 4, 0, count * 4));
  bool open = false;
  MUST(HcclGroupStart());
  MUST(HcclGroupStatusGet(&open));
  CHECK(open);
  MUST(HcclSend(out, count, HCCL_DATA_TYPE_FP32, next, m.comm, m.stream));
  MUST(HcclRecv(in, count, HCCL_DATA_TYPE_FP32, before, m.comm, m.stream));
  MUST(HcclGroupEnd());
  CHECK(HcclGroupEnd() == HCCL_E_PARA);
  m.wait();
  CHECK(download(in, count) == std::vector<float>(count, before));
  // One after the other, rank 0 first, and an empty message.
  if (rank == 0) MUST(HcclSend(out, 0, HCCL_DATA_TYPE_FP32, 1, m.comm, m.stream));
  if (rank == 1) MUST(HcclRecv(in, 0, HCCL_DATA_TYPE_FP32, 0, m.comm, m.stream));
  m.wait();
  MUST(aclrtFree(out));
  MUST(aclrtFree(in));
  m.finish();
}

// A collective waits for what its stream did before, and what comes after waits for it.
static void order() {
  Member m;
  aclrtStream other = nullptr;
  aclrtEvent done = nullptr;
  MUST(aclrtCreateStream(&other));
  MUST(aclrtCreateEventExWithFlag(&done, ACL_EVENT_SYNC));
  int32_t* at = upload(std::vector<int32_t>(4, 0));
  int32_t* copy = upload(std::vector<int32_t>(4, 0));
  for (int round = 0; round < 50; ++round) {
    MUST(aclrtMemsetAsync(at, 16, round % 2 ? 1 : 0, 16, m.stream));
    if (rank == round % ranks) usleep(300);
    MUST(HcclAllReduce(at, at, 4, HCCL_DATA_TYPE_INT32, HCCL_REDUCE_SUM, m.comm, m.stream));
    MUST(aclrtRecordEvent(done, m.stream));
    MUST(aclrtStreamWaitEvent(other, done));
    MUST(aclrtMemcpyAsync(copy, 16, at, 16, ACL_MEMCPY_DEVICE_TO_DEVICE, other));
    // The next collective runs on the other stream, and still after this one.
    MUST(HcclAllReduce(copy, copy, 4, HCCL_DATA_TYPE_INT32, HCCL_REDUCE_MAX, m.comm, other));
    MUST(aclrtSynchronizeStream(other));
    int32_t sum = round % 2 ? int32_t(0x01010101u * ranks) : 0;
    CHECK(download(copy, 4) == std::vector<int32_t>(4, sum));
  }
  MUST(aclrtDestroyEvent(done));
  MUST(aclrtDestroyStream(other));
  MUST(aclrtFree(at));
  MUST(aclrtFree(copy));
  m.finish();
}

static void subgroups() {
  Member m;
  // Even and odd ranks, twice, with names.
  std::vector<uint32_t> members;
  for (uint32_t r = rank % 2; r < ranks; r += 2) members.push_back(r);
  for (int turn = 0; turn < 2; ++turn) {
    HcclCommConfig config = {};
    uint64_t size = sizeof config;
    memcpy(config.reserved, &size, sizeof size);
    std::string name = "half" + std::to_string(rank % 2) + std::to_string(turn);
    strcpy(config.hcclCommName, name.c_str());
    HcclComm half = nullptr, found = nullptr;
    MUST(HcclCreateSubCommConfig(&m.comm, members.size(), members.data(), rank % 2, rank / 2,
                                 &config, &half));
    char text[COMM_NAME_MAX_LENGTH];
    MUST(HcclGetCommName(half, text));
    CHECK(name == text);
    MUST(HcclCommGetHandleWithName(text, &found));
    CHECK(found == half);
    int32_t* at = upload(std::vector<int32_t>(1, rank));
    MUST(HcclAllReduce(at, at, 1, HCCL_DATA_TYPE_INT32, HCCL_REDUCE_SUM, half, m.stream));
    m.wait();
    CHECK(download(at, 1)[0] == int32_t(std::accumulate(members.begin(), members.end(), 0u)));
    MUST(aclrtFree(at));
    MUST(HcclCommDestroy(half));
  }
  HcclComm none = &m;
  MUST(HcclCreateSubCommConfig(&m.comm, 0, nullptr, 7, 0, nullptr, &none));
  CHECK(none == nullptr);
  m.finish();
}

static void refusals() {
  Member m;
  uint32_t size = 0, own = 9;
  MUST(HcclGetRankSize(m.comm, &size));
  MUST(HcclGetRankId(m.comm, &own));
  CHECK(size == ranks && own == rank);
  float host[4] = {};
  float* at = upload(std::vector<float>(4, 0));
  auto reduce = [&](void* p, HcclDataType type, int op) {
    return HcclAllReduce(p, p, 4, type, HcclReduceOp(op), m.comm, m.stream);
  };
  CHECK(reduce(nullptr, HCCL_DATA_TYPE_FP32, 0) == HCCL_E_PTR);
  CHECK(reduce(host, HCCL_DATA_TYPE_FP32, 0) == HCCL_E_PARA);
  CHECK(reduce(at, HCCL_DATA_TYPE_UINT8, 0) == HCCL_E_NOT_SUPPORT);
  CHECK(reduce(at, HCCL_DATA_TYPE_FP32, 9) == HCCL_E_PARA);
  CHECK(HcclBroadcast(at, 4, HCCL_DATA_TYPE_FP32, ranks, m.comm, m.stream) == HCCL_E_PARA);
  CHECK(HcclBarrier(nullptr, m.stream) == HCCL_E_PTR);
  CHECK(HcclBarrier(&m, m.stream) == HCCL_E_PARA);
  CHECK(HcclSend(at, 4, HCCL_DATA_TYPE_FP32, ranks, m.comm, m.stream) == HCCL_E_PARA);
  HcclRootInfo nonsense = {};
  HcclComm none = nullptr;
  CHECK(HcclCommInitRootInfo(ranks, &nonsense, rank, &none) == HCCL_E_PARA);
  CHECK(HcclCommInitClusterInfo("/no/such/table", rank, &none) == HCCL_E_OPEN_FILE_FAILURE);
  HcclResult error = HCCL_E_PARA;
  MUST(HcclGetCommAsyncError(m.comm, &error));
  CHECK(error == HCCL_SUCCESS);  // what was refused at once harms nobody
  MUST(aclrtFree(at));
  m.finish();
}

// Configured communicators, by root info and by rank table, and what neither takes.
static void configurations() {
  Member m;
  HcclCommConfig config;
  HcclCommConfigInit(&config);
  HcclCommConfigInit(nullptr);
  strcpy(config.hcclCommName, "configured");
  HcclRootInfo* root = &shared->second;
  if (rank == 0) MUST(HcclGetRootInfo(root));
  MUST(HcclBarrier(m.comm, m.stream));
  m.wait();
  HcclComm named = nullptr;
  MUST(HcclCommInitRootInfoConfig(ranks, root, rank, &config, &named));
  char text[COMM_NAME_MAX_LENGTH];
  MUST(HcclGetCommName(named, text));
  CHECK(text == std::string("configured"));
  HcclComm none = nullptr;
  CHECK(HcclCommInitRootInfoConfig(ranks, root, rank, nullptr, &none) == HCCL_E_PTR);
  CHECK(HcclCommInitRootInfoConfig(ranks, nullptr, rank, &config, &none) == HCCL_E_PTR);
  CHECK(HcclCommInitRootInfoConfig(ranks, root, rank, &config, nullptr) == HCCL_E_PTR);
  for (uint32_t many : {0u, rank, 0xFFFFFFFFu}) {  // no ranks, none for this one, too many
    CHECK(HcclCommInitRootInfoConfig(many, root, rank, &config, &none) == HCCL_E_PARA);
  }
  CHECK(HcclCommInitRootInfoConfig(ranks, root, rank, &config, &none) == HCCL_E_PARA);  // taken
  MUST(HcclBarrier(m.comm, m.stream));  // the root info ends with the process that made it
  m.wait();
  CHECK(HcclCommInitClusterInfoConfig(nullptr, rank, &config, &none) == HCCL_E_PTR);
  CHECK(HcclCommInitClusterInfoConfig("/no/such/table", rank, nullptr, &none) == HCCL_E_PTR);
  CHECK(HcclCommInitClusterInfoConfig("/no/such/table", rank, &config, &none) ==
        HCCL_E_OPEN_FILE_FAILURE);
  std::vector<uint32_t> twice(ranks, rank);  // one rank, more than once
  CHECK(HcclCreateSubCommConfig(&m.comm, ranks, twice.data(), 5, 0, &config, &none) == HCCL_E_PARA);
  CHECK(HcclGetErrorString(HCCL_E_PARA) != std::string(HcclGetErrorString(HCCL_E_PTR)));
  CHECK(HcclGetErrorString(static_cast<HcclResult>(-1)) == std::string("unknown error"));
  HcclConfigValue value = {1}, seen = {9};
  MUST(HcclSetConfig(HCCL_DETERMINISTIC, value));
  MUST(HcclGetConfig(HCCL_DETERMINISTIC, &seen));
  CHECK(seen.value == 1);
  value.value = 7;
  CHECK(HcclSetConfig(HCCL_DETERMINISTIC, value) == HCCL_E_PARA);
  CHECK(HcclSetConfig(HCCL_CONFIG_RESERVED, seen) == HCCL_E_PARA);
  CHECK(HcclGetConfig(HCCL_CONFIG_RESERVED, &seen) == HCCL_E_PARA);
  CHECK(HcclGetConfig(HCCL_DETERMINISTIC, nullptr) == HCCL_E_PTR);
  CHECK(HcclGetCommConfigCapability() > HCCL_COMM_CONFIG_COMM_NAME);
  MUST(HcclCommDestroy(named));
  CHECK(HcclGetCommName(named, text) == HCCL_E_PARA);  // destroyed
  CHECK(HcclCommDestroy(named) == HCCL_E_PARA);
  m.finish();
}

static void say_why(Member& m, int expected_code, HcclResult expected_error) {
  int code = aclrtSynchronizeStream(m.stream);
  const char* text = aclGetRecentErrMsg();
  printf("%d %s\n", code, text ? text : "");
  CHECK(code == expected_code);
  HcclResult error = HCCL_SUCCESS;
  MUST(HcclGetCommAsyncError(m.comm, &error));
  CHECK(error == expected_error);
}

static void lost_rank() {
  Member m;
  float* at = upload(std::vector<float>(4, 1));
  if (rank == 1) _exit(0);  // without a word
  MUST(HcclAllReduce(at, at, 4, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, m.comm, m.stream));
  say_why(m, ACL_ERROR_RT_SUSPECT_REMOTE_ERROR, HCCL_E_REMOTE);
}

static void late_rank() {
  Member m;
  float* at = upload(std::vector<float>(4, 1));
  if (rank == 1) {
    sleep(3);
    _exit(0);
  }
  MUST(HcclRecv(at, 4, HCCL_DATA_TYPE_FP32, 1, m.comm, m.stream));
  say_why(m, ACL_ERROR_RT_FFTS_PLUS_TIMEOUT, HCCL_E_TIMEOUT);
}

static void missing_rank() {
  if (rank == 1) return;
  Kit kit;
  HcclRootInfo info, second;
  HcclComm comm = nullptr;
  MUST(HcclGetRootInfo(&info));
  CHECK(HcclCommInitRootInfo(ranks, &info, 0, &comm) == HCCL_E_TIMEOUT);
  printf("%s\n", aclGetRecentErrMsg());
}

static void different_calls() {
  Member m;
  float* at = upload(std::vector<float>(4, 1));
  if (rank == 0) {
    MUST(HcclAllReduce(at, at, 4, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, m.comm, m.stream));
  } else {
    MUST(HcclAllReduce(at, at, 3, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, m.comm, m.stream));
  }
  say_why(m, ACL_ERROR_RT_AICPU_EXCEPTION, HCCL_E_PARA);
}

static void rank_table() {
  Kit kit;
  HcclComm comm = nullptr;
  HcclCommConfig config;
  HcclCommConfigInit(&config);
  MUST(HcclCommInitClusterInfoConfig(table, rank, &config, &comm));
  MUST(HcclCommDestroy(comm));
  MUST(HcclCommInitClusterInfo(table, rank, &comm));
  int32_t* at = upload(std::vector<int32_t>(1, 1));
  MUST(HcclAllReduce(at, at, 1, HCCL_DATA_TYPE_INT32, HCCL_REDUCE_SUM, comm, kit.stream));
  MUST(aclrtSynchronizeStream(kit.stream));
  CHECK(download(at, 1)[0] == int32_t(ranks));
  MUST(aclrtFree(at));
  MUST(HcclCommDestroy(comm));
  kit.end();
}

// One process, one thread, all devices.
static void devices() {
  MUST(aclInit(nullptr));
  std::vector<int32_t> ids(ranks);
  std::iota(ids.begin(), ids.end(), 0);
  std::vector<HcclComm> comms(ranks);
  std::vector<int32_t> twice(ranks, 0), absent(ids);
  absent.back() = 99;
  CHECK(HcclCommInitAll(0, ids.data(), comms.data()) == HCCL_E_PARA);
  CHECK(HcclCommInitAll(ranks, twice.data(), comms.data()) == HCCL_E_PARA);
  CHECK(HcclCommInitAll(ranks, absent.data(), comms.data()) == HCCL_E_PARA);
  CHECK(HcclCommInitAll(ranks, nullptr, comms.data()) == HCCL_E_PTR);
  MUST(HcclCommInitAll(ranks, ids.data(), comms.data()));
  std::vector<aclrtStream> streams(ranks);
  std::vector<int32_t*> at(ranks);
  for (uint32_t d = 0; d < ranks; ++d) {
    MUST(aclrtSetDevice(d));
    MUST(aclrtCreateStream(&streams[d]));
    at[d] = upload(std::vector<int32_t>(5, d + 1));
    MUST(HcclAllReduce(at[d], at[d], 5, HCCL_DATA_TYPE_INT32, HCCL_REDUCE_SUM, comms[d], streams[d]));
  }
  CHECK(HcclBarrier(comms[0], streams[1]) == HCCL_E_PARA);  // a stream of another device
  for (uint32_t d = 0; d < ranks; ++d) {
    MUST(aclrtSetDevice(d));
    MUST(aclrtSynchronizeStream(streams[d]));
    CHECK(download(at[d], 5) == std::vector<int32_t>(5, ranks * (ranks + 1) / 2));
    MUST(HcclCommDestroy(comms[d]));
    MUST(aclrtFree(at[d]));
    MUST(aclrtDestroyStream(streams[d]));
    MUST(aclrtResetDevice(d));
  }
}

int main(int, char** argv) {
  const std::map<std::string, std::function<void()>> parts = {
      {"reductions", reductions}, {"movements", movements},     {"uneven", uneven},
      {"messages", messages},     {"order", order},             {"subgroups", subgroups},
      {"refusals", refusals},     {"configurations", configurations}, {"lost_rank", lost_rank},     {"late_rank", late_rank},
      {"missing_rank", missing_rank}, {"different_calls", different_calls},
      {"rank_table", rank_table}};
  ranks = atoi(argv[2]);
  table = argv[3];
  setvbuf(stdout, nullptr, _IOLBF, 0);
  if (argv[1] == std::string("devices")) {
    devices();
    printf("done\n");
    return 0;
  }
  shared = static_cast<Shared*>(mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                                     MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  std::vector<pid_t> children;
  for (rank = 0; rank < ranks; ++rank) {
    pid_t child = fork();
    if (child == 0) {
      parts.at(argv[1])();
      exit(0);
    }
    children.push_back(child);
  }
  int worst = 0;
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    if (status) worst = 1;
  }
  if (!worst) printf("done\n");
  return worst;
}
