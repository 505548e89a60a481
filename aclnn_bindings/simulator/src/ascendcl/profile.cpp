// Writes a session's events, a JSON object a line, as they come; `msprof` (share/msprof) reads them.
#include "ascendcl/profile.h"

#include <pthread.h>
#include <stdio_ext.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <set>
#include <string>

#include <acl/acl_prof.h>

#include "ascendcl/device.h"
#include "ascendcl/profile_session.h"

namespace aclsim {

std::atomic<uint32_t> profile_readers{0};

namespace {

uint64_t clock_ns(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

struct Session {
  std::mutex mutex;
  FILE* file = nullptr;
  std::atomic<uint64_t> devices{0};  // bit per device
  std::atomic<uint64_t> kinds{0};    // ACL_PROF_…
  std::string folder;
  int sequence = 0;
};
Session& session();

// A forked child has no part in its parent's profile, nor in what of it is not written yet.
void leave_profile() {
  profile_readers.store(0);
  if (FILE* file = session().file) {
    __fpurge(file);
    fclose(file);
    session().file = nullptr;
  }
  session().mutex.unlock();
}

Session& session() {
  static auto* whole = [] {
    auto* fresh = new Session;
    pthread_atfork([] { session().mutex.lock(); }, [] { session().mutex.unlock(); }, leave_profile);
    return fresh;
  }();
  return *whole;
}
std::atomic<uint64_t> next_number{1};  // of tasks and of calls
thread_local CallSpan* innermost = nullptr;
thread_local const Work* said = nullptr;  // of the tasks that this thread queues

std::atomic<const ProfileWatcher*> watching{nullptr};
const ProfileWatcher* watcher() {
  if (!(profile_readers.load(std::memory_order_relaxed) & kWatcherReads)) return nullptr;
  return watching.load(std::memory_order_acquire);
}
bool filing() { return profile_readers.load(std::memory_order_relaxed) & kFileReads; }

long thread_number() {
  static thread_local long number = syscall(SYS_gettid);
  return number;
}

__attribute__((format(printf, 1, 2))) void write_line(const char* format, ...) {
  std::lock_guard<std::mutex> lock(session().mutex);
  if (!session().file) return;
  va_list args;
  va_start(args, format);
  vfprintf(session().file, format, args);
  va_end(args);
}

bool make_folder(const std::string& path) {
  return mkdir(path.c_str(), 0750) == 0 || errno == EEXIST;
}

bool write_text(const std::string& path, const std::string& text) {
  FILE* file = fopen(path.c_str(), "w");
  if (!file) return false;
  bool good = fputs(text.c_str(), file) >= 0;
  return fclose(file) == 0 && good;
}

// PROF_<sequence>_<time>_<letters>, the folder name of CANN's profiler.
std::string folder_name(int sequence) {
  uint64_t now = clock_ns(CLOCK_REALTIME);
  time_t seconds = static_cast<time_t>(now / 1000000000u);
  tm local;
  localtime_r(&seconds, &local);
  char stamp[32], name[96], letters[9] = {};
  strftime(stamp, sizeof stamp, "%Y%m%d%H%M%S", &local);
  uint64_t seed = now ^ (static_cast<uint64_t>(getpid()) << 40);
  for (int i = 0; i < 8; ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    letters[i] = static_cast<char>('A' + (seed >> 59) % 26);
  }
  snprintf(name, sizeof name, "PROF_%06d_%s%03d_%s", sequence, stamp,
           static_cast<int>(now / 1000000u % 1000), letters);
  return name;
}

// Wall time in microseconds beside the clock of the events: readers take the difference.
std::string start_info() {
  char text[200];
  snprintf(text, sizeof text,
           "{\"collectionTimeBegin\": \"%" PRIu64 "\", \"clockMonotonicRaw\": \"%" PRIu64 "\"}",
           clock_ns(CLOCK_REALTIME) / 1000, profile_clock());
  return text;
}

bool make_folders(const std::string& root, uint64_t devices) {
  bool good = make_folder(root) && make_folder(root + "/host") && make_folder(root + "/host/data");
  good = good && write_text(root + "/host/start_info", start_info());
  for (int i = 0; i < config().devices; ++i) {
    if (!(devices >> i & 1)) continue;
    std::string device = root + "/device_" + std::to_string(i);
    good = good && make_folder(device) && make_folder(device + "/data");
    good = good && write_text(device + "/start_info." + std::to_string(i), start_info());
  }
  return good;
}

bool wanted(int32_t device) { return session().devices >> device & 1; }

}  // namespace

uint64_t profile_clock() { return clock_ns(CLOCK_MONOTONIC_RAW); }

const char* lasting_text(const char* text) {
  static auto* mutex = new std::mutex;
  static auto* texts = new std::set<std::string>;
  std::lock_guard<std::mutex> lock(*mutex);
  return texts->insert(text).first->c_str();
}

void append_json_text(std::string* to, const char* text) {
  *to += '"';
  for (; *text; ++text) {
    auto c = static_cast<unsigned char>(*text);
    if (c == '"' || c == '\\') *to += '\\';
    if (c < 0x20) {
      char code[8];
      snprintf(code, sizeof code, "\\u%04x", c);
      *to += code;
    } else {
      *to += static_cast<char>(c);
    }
  }
  *to += '"';
}

void profile_watch(const ProfileWatcher* told) {
  watching.store(told, std::memory_order_release);
  if (told) {
    profile_readers.fetch_or(kWatcherReads);
  } else {
    profile_readers.fetch_and(~kWatcherReads);
  }
}

uint64_t wall_time(uint64_t profile_time) {
  static const uint64_t shift = clock_ns(CLOCK_REALTIME) - profile_clock();
  return profile_time + shift;
}

void CallSpan::open(const char* name) {
  name_ = name;
  outer_ = innermost;
  innermost = this;
  correlation_ = next_number.fetch_add(1);
  if (const ProfileWatcher* told = watcher()) told->entered(name, correlation_);
  begin_ = profile_clock();
}
void CallSpan::close() {
  uint64_t end = profile_clock();
  innermost = outer_;
  if (filing()) {
    write_line("{\"call\":\"%s\",\"thread\":%ld,\"begin\":%" PRIu64 ",\"end\":%" PRIu64 "}\n", name_,
               thread_number(), begin_, end);
  }
  if (const ProfileWatcher* told = watcher()) told->left(name_, correlation_, begin_, end);
}
uint64_t current_call() { return innermost ? innermost->correlation_ : 0; }

void Doing::begin() {
  said = &work_;
  said_ = true;
}
void Doing::end() { said = nullptr; }

void DoneAtOnce::tell() {
  const ProfileWatcher* told = watcher();
  if (!told) return;
  aclError code = ACL_SUCCESS;
  Context* context = current_context(thread(), name_, &code);
  if (!context) return;
  told->ran({name_, false, false, context->device, kNoStream, 0, current_call(), begin_,
             profile_clock()}, &work_);
}

// `called` is when the call began that queues it; 0 outside of calls.
static void file_queued(const Task& task, uint64_t called) {
  uint64_t now = profile_clock();
  if (!called && task.name) {
    write_line("{\"call\":\"%s\",\"thread\":%ld,\"begin\":%" PRIu64 ",\"end\":%" PRIu64 "}\n",
               task.name, thread_number(), now, now + 1);
  }
  write_line("{\"queued\":%" PRIu64 ",\"thread\":%ld,\"at\":%" PRIu64 "}\n", task.ticket,
             thread_number(), called ? called : now);
}

void profile_queued(Task* task) {
  task->ticket = next_number.fetch_add(1);
  task->correlation = current_call();
  if (filing()) file_queued(*task, innermost ? innermost->begin_ : 0);
  const ProfileWatcher* told = said ? watcher() : nullptr;
  if (told) told->queued(task->ticket, *said);
}

aclError profile_task(Task* task, Stream* stream, aclError (*run)(Task*, Stream*)) {
  const ProfileWatcher* told = watcher();
  Ran ran = {task->name, task->describe != nullptr, run == task->replay, stream->context->device,
             stream->id, task->ticket, task->correlation, 0, 0};
  bool filed = filing() && wanted(ran.device);
  if (!ran.name || (!filed && !told)) return run(task, stream);
  std::string line = "{\"task\":";
  if (filed) {
    append_json_text(&line, ran.name);  // the task may be gone when it has run
    if (task->describe) task->describe(task, &line);
  }
  ran.begin = profile_clock();
  aclError code = run(task, stream);
  ran.end = profile_clock();
  if (filed) {
    write_line("%s,\"device\":%d,\"stream\":%d,\"ticket\":%" PRIu64 ",\"begin\":%" PRIu64
               ",\"end\":%" PRIu64 "}\n",
               line.c_str(), ran.device, ran.stream, ran.ticket, ran.begin, ran.end);
  }
  if (told) told->ran(ran, nullptr);
  return code;
}

void profile_block(const void* address, uint64_t bytes, bool released, int32_t device,
                   uint64_t begin) {
  const ProfileWatcher* told = watcher();
  if (told) told->allocated({address, bytes, released, device, current_call(), begin, profile_clock()});
}
void profile_note(const Mark& mark) {
  if (const ProfileWatcher* told = watcher()) told->marked(mark);
}

void profile_memory(int32_t device, uint64_t used) {
  if (!(session().kinds & ACL_PROF_TASK_MEMORY) || !wanted(device)) return;
  write_line("{\"memory\":%" PRIu64 ",\"device\":%d,\"at\":%" PRIu64 "}\n", used, device,
             profile_clock());
}

void profile_mark(const char* domain, const char* message, uint64_t begin, uint64_t end) {
  std::string line = "{\"mark\":";
  append_json_text(&line, message);
  line += ",\"domain\":";
  append_json_text(&line, domain);
  write_line("%s,\"thread\":%ld,\"begin\":%" PRIu64 ",\"end\":%" PRIu64 "}\n", line.c_str(),
             thread_number(), begin, end);
}

ProfileCode profile_open(const std::string& folder, uint64_t devices, uint64_t kinds) {
  std::lock_guard<std::mutex> lock(session().mutex);
  if (session().file) return ProfileCode::Running;
  std::string root = folder + "/" + folder_name(++session().sequence);
  if (!make_folders(root, devices)) return ProfileCode::NoFile;
  FILE* file = fopen((root + "/host/data/aclsim.jsonl").c_str(), "w");
  if (!file) return ProfileCode::NoFile;
  setvbuf(file, nullptr, _IOFBF, 1 << 18);
  fprintf(file, "{\"process\":%d,\"wall\":%" PRIu64 ",\"clock\":%" PRIu64 ",\"kinds\":%" PRIu64 "}\n",
          getpid(), clock_ns(CLOCK_REALTIME), profile_clock(), kinds);
  session().file = file;
  session().devices = devices;
  session().kinds = kinds;
  session().folder = root;
  profile_readers.fetch_or(kFileReads);
  return ProfileCode::Good;
}

bool profile_close() {
  profile_readers.fetch_and(~kFileReads);
  std::lock_guard<std::mutex> lock(session().mutex);
  if (!session().file) return false;
  fclose(session().file);
  session().file = nullptr;
  write_text(session().folder + "/host/end_info", start_info());
  return true;
}

void profile_end() {
  if (profile_readers & kFileReads) profile_close();
}

void profile_from_environment() {
  const char* folder = getenv("ACLSIM_PROFILE");
  if (!folder || !*folder || profile_readers) return;
  uint64_t every = config().devices >= 64 ? ~uint64_t{0} : (uint64_t{1} << config().devices) - 1;
  constexpr uint64_t kinds = ACL_PROF_ACL_API | ACL_PROF_TASK_TIME | ACL_PROF_TASK_MEMORY;
  if (!make_folder(folder) || profile_open(folder, every, kinds) != ProfileCode::Good) {
    fprintf(stderr, "aclsim: ACLSIM_PROFILE=%s cannot be written; nothing is profiled\n", folder);
    return;
  }
  atexit(profile_end);
}

}  // namespace aclsim
