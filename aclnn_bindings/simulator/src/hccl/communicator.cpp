// Making, asking and ending communicators.
#include "hccl/communicator.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <thread>

#include "ascendcl/device.h"

namespace aclsim {
namespace {

using Clock = std::chrono::steady_clock;

struct Communicators {
  std::mutex mutex;
  std::set<Communicator*> live;
};
Communicators& communicators() {
  static Communicators* made = new Communicators;
  return *made;
}

// What a root info says: a mark, and the file where the ranks meet.
constexpr uint64_t kMark = 0x4C434348414D4953ULL;
struct Meeting {
  uint64_t mark;
  ShareId file;
};

HcclResult null_argument(const char* function, const char* what) {
  return refused(HCCL_E_PTR, "%s failed because %s cannot be a NULL pointer.", function, what);
}
#define HCCL_REQUIRE(pointer) \
  if (!(pointer)) return null_argument(__func__, #pointer)

std::string default_name(ShareId id) {
  char text[40];
  snprintf(text, sizeof text, "aclsim_%016llx", static_cast<unsigned long long>(id));
  return text;
}

// Older clients pass shorter structures: the first word of the header is the size.
std::string configured_name(const HcclCommConfig* config, ShareId id) {
  if (!config) return default_name(id);
  uint64_t size = 0;
  memcpy(&size, config->reserved, sizeof size);
  bool has_name = size >= offsetof(HcclCommConfig, hcclCommName) + sizeof config->hcclCommName;
  std::string given(config->hcclCommName, has_name ? strnlen(config->hcclCommName,
                                                             sizeof config->hcclCommName) : 0);
  return given.empty() ? default_name(id) : given;
}

// Takes a place; the others may still be on their way.
HcclResult make(const char* function, ShareId id, uint32_t ranks, uint32_t rank, int32_t device,
                const HcclCommConfig* config, Communicator** out) {
  auto made = std::make_unique<Communicator>();
  HcclResult code = join_segment(function, id, ranks, rank, static_cast<uint32_t>(device),
                                 &made->segment);
  if (code != HCCL_SUCCESS) return code;
  made->rank = rank;
  made->device = device;
  made->name = configured_name(config, id);
  std::lock_guard<std::mutex> lock(communicators().mutex);
  *out = made.release();
  communicators().live.insert(*out);
  return HCCL_SUCCESS;
}

void end(Communicator* comm) {
  {
    std::lock_guard<std::mutex> lock(communicators().mutex);
    communicators().live.erase(comm);
  }
  while (comm->busy()) std::this_thread::sleep_for(std::chrono::microseconds(200));
  leave_segment(&comm->segment, comm->rank);
  delete comm;
}

HcclResult join(const char* function, ShareId id, uint32_t ranks, uint32_t rank,
                const HcclCommConfig* config, HcclComm* out) {
  int32_t device = 0;
  if (aclrtGetDevice(&device) != ACL_SUCCESS) {
    return refused(HCCL_E_RUNTIME, "%s failed because the thread has no device. Call "
                   "aclrtSetDevice first.", function);
  }
  Communicator* made = nullptr;
  HcclResult code = make(function, id, ranks, rank, device, config, &made);
  if (code != HCCL_SUCCESS) return code;
  code = await_ranks(function, made->segment);
  if (code == HCCL_SUCCESS) {
    *out = made;
  } else {
    end(made);
  }
  return code;
}

// Rank 0 of a rank table waits at an address that all ranks work out from the table, and tells
// who comes where to meet. Abstract addresses end with their process.
struct Address {
  sockaddr_un name = {};
  socklen_t length = 0;
  explicit Address(const std::string& table) {
    name.sun_family = AF_UNIX;
    int n = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "aclsim-hccl-%u-%zx", getuid(),
                     std::hash<std::string>()(table));
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + n);
  }
};

HcclResult tell_ranks(const Address& address, ShareId id, uint32_t ranks) {
  int door = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  timeval limit = {timeout_seconds("HCCL_CONNECT_TIMEOUT", 120), 0};
  setsockopt(door, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  bool good = bind(door, reinterpret_cast<const sockaddr*>(&address.name), address.length) == 0 &&
              listen(door, static_cast<int>(ranks)) == 0;
  for (uint32_t told = 1; good && told < ranks; ++told) {
    int guest = accept(door, nullptr, nullptr);
    good = guest >= 0 && write(guest, &id, sizeof id) == sizeof id;
    if (guest >= 0) close(guest);
  }
  close(door);
  if (good) return HCCL_SUCCESS;
  return refused(HCCL_E_TIMEOUT, "HcclCommInitClusterInfo: not all ranks of the table came, or "
                 "another group of this table is being made.");
}

HcclResult ask_rank_0(const Address& address, ShareId* id) {
  int seconds = timeout_seconds("HCCL_CONNECT_TIMEOUT", 120);
  auto end = Clock::now() + std::chrono::seconds(seconds);
  do {
    int door = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool there = connect(door, reinterpret_cast<const sockaddr*>(&address.name),
                         address.length) == 0;
    bool told = there && read(door, id, sizeof *id) == sizeof *id;
    close(door);
    if (told) return HCCL_SUCCESS;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  } while (!seconds || Clock::now() < end);
  return refused(HCCL_E_TIMEOUT, "HcclCommInitClusterInfo: rank 0 did not come within %d seconds "
                 "(HCCL_CONNECT_TIMEOUT).", seconds);
}

// A rank table lists every rank once, as "rank_id": "<n>" (HCCL's cluster information file).
uint32_t ranks_of(const std::string& table) {
  const std::string name = "\"rank_id\"";
  uint32_t ranks = 0;
  for (size_t at = table.find(name); at != table.npos; at = table.find(name, at + 1)) {
    int end = 0;
    sscanf(table.c_str() + at + name.size(), " : \"%*[0-9]\"%n", &end);
    ranks += end > 0;
  }
  return ranks;
}

HcclResult join_table(const char* function, const char* path, uint32_t rank,
                      const HcclCommConfig* config, HcclComm* out) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  uint32_t ranks = file ? ranks_of(text.str()) : 0;
  if (!ranks) {
    return refused(file ? HCCL_E_PARA : HCCL_E_OPEN_FILE_FAILURE,
                   "%s failed because %s is not a rank table that can be read.", function, path);
  }
  Address address(std::string(path) + text.str());
  ShareId id = 0;
  int own = -1;
  if (rank == 0) own = make_segment_file(&id);
  HcclResult code = rank == 0 ? tell_ranks(address, id, ranks) : ask_rank_0(address, &id);
  if (code == HCCL_SUCCESS) code = join(function, id, ranks, rank, config, out);
  if (own >= 0) close(own);
  return code;
}

// The first member makes the file and says so in the parent's table; the others look there.
std::atomic<uint64_t>* subgroup_place(Communicator* parent, uint64_t identity) {
  uint64_t turn = parent->subgroups[identity]++;
  uint64_t key = identity * 0x9E3779B97F4A7C15ULL + turn + 1;
  for (uint64_t i = 0; i < kSubgroups; ++i) {
    Subgroup& place = parent->segment.header->subgroups[(key + i) % kSubgroups];
    uint64_t none = 0;
    if (place.key.compare_exchange_strong(none, key) || none == key) return &place.file;
  }
  return nullptr;
}

HcclResult join_subgroup(Communicator* parent, uint32_t count, const uint32_t* ranks,
                         uint64_t identity, uint32_t rank, const HcclCommConfig* config,
                         HcclComm* out) {
  std::atomic<uint64_t>* place = subgroup_place(parent, identity);
  if (!place) return refused(HCCL_E_UNAVAIL, "HcclCreateSubCommConfig: too many groups.");
  int own = -1;
  if (rank == 0) {
    ShareId id = 0;
    own = make_segment_file(&id);
    place->store(own >= 0 ? id : 0);
  }
  int seconds = timeout_seconds("HCCL_CONNECT_TIMEOUT", 120);
  auto end = Clock::now() + std::chrono::seconds(seconds);
  while (!place->load() && alive(parent->segment, ranks[0]) && (!seconds || Clock::now() < end)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  HcclResult code = place->load() ? join("HcclCreateSubCommConfig", place->load(), count, rank,
                                         config, out)
                                  : refused(HCCL_E_TIMEOUT, "HcclCreateSubCommConfig: rank %u, the "
                                            "group's first, did not come.", ranks[0]);
  if (own >= 0) close(own);
  return code;
}

template <class Number>
bool all_differ(const Number* numbers, uint32_t count) {
  return std::set<Number>(numbers, numbers + count).size() == count;
}

std::atomic<int32_t> deterministic{0};

}  // namespace

uint64_t Order::take() {
  std::lock_guard<std::mutex> lock(mutex_);
  return given_++;
}
bool Order::is_turn(uint64_t ticket) {
  std::lock_guard<std::mutex> lock(mutex_);
  return current_ == ticket;
}
bool Order::await_turn(uint64_t ticket, const Stream* stream) {
  std::unique_lock<std::mutex> lock(mutex_);
  while (current_ != ticket && !(stream && stream->aborted.load())) {
    changed_.wait_for(lock, std::chrono::milliseconds(20));
  }
  return current_ == ticket;
}
void Order::finish(uint64_t ticket) {
  std::lock_guard<std::mutex> lock(mutex_);
  finished_.insert(ticket);
  while (finished_.erase(current_)) ++current_;
  changed_.notify_all();
}
bool Order::empty() {
  std::lock_guard<std::mutex> lock(mutex_);
  return current_ == given_;
}

bool Communicator::busy() {
  bool any = !collectives.empty();
  for (uint32_t r = 0; r < segment.ranks; ++r) any |= !outgoing[r].empty() || !incoming[r].empty();
  return any;
}

HcclResult refused(HcclResult code, const char* format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  note_error("EI0003", text);
  return code;
}

Communicator* find_communicator(const char* function, HcclComm handle, HcclResult* code) {
  auto* comm = static_cast<Communicator*>(handle);
  if (!handle) {
    *code = null_argument(function, "comm");
    return nullptr;
  }
  std::lock_guard<std::mutex> lock(communicators().mutex);
  if (communicators().live.count(comm)) return comm;
  *code = refused(HCCL_E_PARA, "%s failed because %p is not a live communicator.", function,
                  handle);
  return nullptr;
}

Communicator* find_named(const char* name, int32_t device) {
  std::lock_guard<std::mutex> lock(communicators().mutex);
  for (Communicator* one : communicators().live) {
    if (one->name == name && one->device == device) return one;
  }
  return nullptr;
}

}  // namespace aclsim

using namespace aclsim;

ACLSIM_API HcclResult HcclGetRootInfo(HcclRootInfo* rootInfo) {
  HCCL_REQUIRE(rootInfo);
  Meeting meeting = {kMark, 0};
  // Stays open: who holds the root info may come at any time.
  if (make_segment_file(&meeting.file) < 0) {
    return refused(HCCL_E_MEMORY, "HcclGetRootInfo failed because the host has no room for shared "
                   "memory.");
  }
  memset(rootInfo, 0, sizeof *rootInfo);
  memcpy(rootInfo->internal, &meeting, sizeof meeting);
  return HCCL_SUCCESS;
}

namespace {
HcclResult meet(const char* function, uint32_t ranks, const HcclRootInfo* root, uint32_t rank,
                const HcclCommConfig* config, HcclComm* out) {
  if (!root) return null_argument(function, "rootInfo");
  if (!out) return null_argument(function, "comm");
  Meeting meeting;
  memcpy(&meeting, root->internal, sizeof meeting);
  if (meeting.mark == kMark) return join(function, meeting.file, ranks, rank, config, out);
  return refused(HCCL_E_PARA, "%s failed because rootInfo is none that HcclGetRootInfo made.",
                 function);
}
}  // namespace

ACLSIM_API HcclResult HcclCommInitRootInfoConfig(uint32_t nRanks, const HcclRootInfo* rootInfo,
                                                 uint32_t rank, const HcclCommConfig* config,
                                                 HcclComm* comm) {
  HCCL_REQUIRE(config);
  return meet(__func__, nRanks, rootInfo, rank, config, comm);
}
ACLSIM_API HcclResult HcclCommInitRootInfo(uint32_t nRanks, const HcclRootInfo* rootInfo,
                                           uint32_t rank, HcclComm* comm) {
  return meet(__func__, nRanks, rootInfo, rank, nullptr, comm);
}

ACLSIM_API HcclResult HcclCommInitClusterInfoConfig(const char* clusterInfo, uint32_t rank,
                                                    HcclCommConfig* config, HcclComm* comm) {
  HCCL_REQUIRE(clusterInfo);
  HCCL_REQUIRE(config);
  HCCL_REQUIRE(comm);
  return join_table(__func__, clusterInfo, rank, config, comm);
}
ACLSIM_API HcclResult HcclCommInitClusterInfo(const char* clusterInfo, uint32_t rank,
                                              HcclComm* comm) {
  HCCL_REQUIRE(clusterInfo);
  HCCL_REQUIRE(comm);
  return join_table(__func__, clusterInfo, rank, nullptr, comm);
}

// One process with several devices: every communicator is there at once.
ACLSIM_API HcclResult HcclCommInitAll(uint32_t ndev, int32_t* devices, HcclComm* comms) {
  HCCL_REQUIRE(devices);
  HCCL_REQUIRE(comms);
  if (ndev == 0 || !all_differ(devices, ndev)) {
    return refused(HCCL_E_PARA, "%s failed because it takes at least one device, each once.",
                   __func__);
  }
  ShareId id = 0;
  int own = make_segment_file(&id);
  HcclResult code = own < 0 ? HCCL_E_MEMORY : HCCL_SUCCESS;
  uint32_t made = 0;
  for (; made < ndev && code == HCCL_SUCCESS; ++made) {
    Communicator* comm = nullptr;
    bool known = devices[made] >= 0 && devices[made] < config().devices;
    code = known ? make(__func__, id, ndev, made, devices[made], nullptr, &comm)
                 : refused(HCCL_E_PARA, "%s failed because device %d does not exist.", __func__,
                           devices[made]);
    comms[made] = comm;
  }
  if (own >= 0) close(own);
  for (uint32_t i = 0; code != HCCL_SUCCESS && i < made; ++i) {
    if (comms[i]) end(static_cast<Communicator*>(comms[i]));
    comms[i] = nullptr;
  }
  return code;
}

// Ranks that are no members pass no ranks and get no communicator.
ACLSIM_API HcclResult HcclCreateSubCommConfig(HcclComm* comm, uint32_t rankNum, uint32_t* rankIds,
                                              uint64_t subCommId, uint32_t subCommRankId,
                                              HcclCommConfig* config, HcclComm* subComm) {
  HCCL_REQUIRE(comm);
  HCCL_REQUIRE(subComm);
  ACLSIM_COMMUNICATOR(parent, *comm);
  if (!rankIds) {
    *subComm = nullptr;
    return HCCL_SUCCESS;
  }
  bool good = rankNum > 0 && rankNum <= parent->segment.ranks && subCommRankId < rankNum &&
              rankIds[subCommRankId] == parent->rank;
  for (uint32_t i = 0; good && i < rankNum; ++i) good = rankIds[i] < parent->segment.ranks;
  good = good && all_differ(rankIds, rankNum);
  if (!good) {
    return refused(HCCL_E_PARA, "%s failed because rankIds and subCommRankId %u do not name rank "
                   "%u of the communicator's %u.", __func__, subCommRankId, parent->rank,
                   parent->segment.ranks);
  }
  return join_subgroup(parent, rankNum, rankIds, subCommId, subCommRankId, config, subComm);
}

// Waits for the work that was submitted.
ACLSIM_API HcclResult HcclCommDestroy(HcclComm comm) {
  ACLSIM_COMMUNICATOR(mine, comm);
  end(mine);
  return HCCL_SUCCESS;
}

ACLSIM_API HcclResult HcclGetRankSize(HcclComm comm, uint32_t* rankSize) {
  HCCL_REQUIRE(rankSize);
  ACLSIM_COMMUNICATOR(mine, comm);
  *rankSize = mine->segment.ranks;
  return HCCL_SUCCESS;
}
ACLSIM_API HcclResult HcclGetRankId(HcclComm comm, uint32_t* rank) {
  HCCL_REQUIRE(rank);
  ACLSIM_COMMUNICATOR(mine, comm);
  *rank = mine->rank;
  return HCCL_SUCCESS;
}
// `commName` has room for COMM_NAME_MAX_LENGTH characters.
ACLSIM_API HcclResult HcclGetCommName(HcclComm comm, char* commName) {
  HCCL_REQUIRE(commName);
  ACLSIM_COMMUNICATOR(mine, comm);
  snprintf(commName, COMM_NAME_MAX_LENGTH, "%s", mine->name.c_str());
  return HCCL_SUCCESS;
}
ACLSIM_API HcclResult HcclCommGetHandleWithName(const char* commName, HcclComm* comm) {
  HCCL_REQUIRE(commName);
  HCCL_REQUIRE(comm);
  std::lock_guard<std::mutex> lock(communicators().mutex);
  for (Communicator* one : communicators().live) {
    if (one->name != commName) continue;
    *comm = one;
    return HCCL_SUCCESS;
  }
  return refused(HCCL_E_NOT_FOUND, "%s: no communicator is named %s.", __func__, commName);
}
ACLSIM_API HcclResult HcclGetCommAsyncError(HcclComm comm, HcclResult* asyncError) {
  HCCL_REQUIRE(asyncError);
  ACLSIM_COMMUNICATOR(mine, comm);
  *asyncError = static_cast<HcclResult>(mine->error.load());
  return HCCL_SUCCESS;
}

ACLSIM_API const char* HcclGetErrorString(HcclResult code) {
  static const char* const texts[] = {
      "success", "invalid parameter", "null pointer", "memory error", "internal error",
      "not supported", "not found", "unavailable", "system call failed", "timeout",
      "file cannot be opened", "TCP connection failed", "RoCE connection failed",
      "TCP transfer failed", "RoCE transfer failed", "runtime error", "driver error",
      "profiling error", "CCE error", "network error", "try again", "remote error",
      "suspending", "retry failed", "out of memory"};
  return code >= 0 && code < static_cast<int>(sizeof texts / sizeof *texts) ? texts[code]
                                                                            : "unknown error";
}

// Reductions run in the order of ranks, whatever this says.
ACLSIM_API HcclResult HcclSetConfig(HcclConfig config, HcclConfigValue configValue) {
  if (config != HCCL_DETERMINISTIC) {
    return refused(HCCL_E_PARA, "%s failed because config %d is unknown.", __func__, config);
  }
  if (configValue.value < 0 || configValue.value > 2) {  // off, on, strict
    return refused(HCCL_E_PARA, "%s failed because value %d is invalid. Expected value: 0, 1 or 2.",
                   __func__, configValue.value);
  }
  deterministic.store(configValue.value);
  return HCCL_SUCCESS;
}
ACLSIM_API HcclResult HcclGetConfig(HcclConfig config, HcclConfigValue* configValue) {
  HCCL_REQUIRE(configValue);
  if (config != HCCL_DETERMINISTIC) {
    return refused(HCCL_E_PARA, "%s failed because config %d is unknown.", __func__, config);
  }
  configValue->value = deterministic.load();
  return HCCL_SUCCESS;
}
// Clients ask whether a member of HcclCommConfigCapability is below this.
ACLSIM_API uint32_t HcclGetCommConfigCapability() { return HCCL_COMM_CONFIG_RESERVED; }
