#include "ascendcl/error.h"

#include <sys/time.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <ctime>
#include <deque>
#include <mutex>

namespace aclsim {

constexpr size_t kKept = 64;

struct ErrorLog {
  std::deque<std::string> pending;  // newest first
  std::string handed;               // what the last aclGetRecentErrMsg returned
};

namespace {

std::mutex process_mutex;
ErrorLog* process_log = nullptr;  // set once aclInit asks for one log per process

const char* title(const char* id) {
  struct Title {
    const char* id;
    const char* text;
  };
  // Titles that documents show; others of a family share the family's.
  static const Title titles[] = {
      {"EH0007", "Invalid_Argument"},        {"EH0008", "Invalid_Argument_Null_Pointer"},
      {"EE1006", "Not_Supported"},           {"EE1016", "Not_Supported"},
      {"EE1002", "Stream_Synchronize_Timeout"}, {"EE1010", "Invalid_Argument_Context"},
      {"EE1018", "Call_Sequence_Error"},     {"EE1023", "Resource_Error"},
      {"EZ1001", "AclNN_Parameter_Error"},   {"EZ9903", "AclNN_Runtime_Error"},
      {"EZ9999", "AclNN_Inner_Error"},       {"EE9999", "Inner_Error"},
  };
  for (const Title& t : titles) {
    if (strcmp(t.id, id) == 0) return t.text;
  }
  return "Invalid_Argument";
}

std::string stamp() {
  timeval now;
  gettimeofday(&now, nullptr);
  tm local;
  localtime_r(&now.tv_sec, &local);
  char text[96];
  size_t n = snprintf(text, sizeof text, "[PID: %d] ", static_cast<int>(getpid()));
  n += strftime(text + n, sizeof text - n, "%Y-%m-%d-%H:%M:%S", &local);
  snprintf(text + n, sizeof text - n, ".%03d.%03d ", static_cast<int>(now.tv_usec / 1000),
           static_cast<int>(now.tv_usec % 1000));
  return text;
}

ErrorLog& log_of(ThreadState* state) {
  if (process_log) return *process_log;
  if (!state->errors) state->errors = new ErrorLog;
  return *state->errors;
}

}  // namespace

void drop_errors(ErrorLog* log) { delete log; }

void errors_per_process(bool shared) {
  std::lock_guard<std::mutex> lock(process_mutex);
  if (shared && !process_log) process_log = new ErrorLog;
}

void note_error(const char* id, const char* text) {
  ErrorLog& log = log_of(thread());
  std::string line = stamp() + title(id) + "(" + id + "): " + text + "\n";
  std::unique_lock<std::mutex> lock(process_mutex, std::defer_lock);
  if (process_log) lock.lock();
  log.pending.push_front(std::move(line));
  if (log.pending.size() > kKept) log.pending.pop_back();
}

aclError failed(aclError code, const char* id, const char* format, ...) {
  char text[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  note_error(id, text);
  thread()->last_error = code;
  return code;
}

const char* aclnn_error_id(aclnnStatus code) {
  return code / 100000 == 1 ? "EZ1001" : code / 100000 == 3 ? "EZ9903" : "EZ9999";
}

}  // namespace aclsim

using namespace aclsim;

// Returns and clears the pending messages; null when there are none. The text stays valid until
// the next call of the same thread (aclGetRecentErrMsg document).
ACLSIM_API const char* aclGetRecentErrMsg() {
  ErrorLog& log = log_of(thread());
  std::unique_lock<std::mutex> lock(process_mutex, std::defer_lock);
  if (process_log) lock.lock();
  if (log.pending.empty()) return nullptr;
  std::string text = log.pending.front();
  if (log.pending.size() > 1) text += "TraceBack (most recent call last):\n";
  for (size_t i = 1; i < log.pending.size(); ++i) text += "        " + log.pending[i];
  log.pending.clear();
  log.handed = std::move(text);
  return log.handed.c_str();
}

namespace {
aclError last_error(const char* function, aclrtLastErrLevel level, bool clear) {
  if (level != ACL_RT_THREAD_LEVEL) return bad_value(function, "level", "other", "ACL_RT_THREAD_LEVEL");
  ThreadState* state = thread();
  aclError code = state->last_error;
  if (clear) state->last_error = ACL_SUCCESS;
  return code;
}
}  // namespace

ACLSIM_API aclError aclrtGetLastError(aclrtLastErrLevel level) {
  return last_error(__func__, level, true);
}
ACLSIM_API aclError aclrtPeekAtLastError(aclrtLastErrLevel level) {
  return last_error(__func__, level, false);
}
