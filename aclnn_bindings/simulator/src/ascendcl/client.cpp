// Symbols that clients such as torch_npu link to and that no public header declares, and logging.
// Profiling is never on here, so that what would be handed to the profiler has no reader.
#include <cstdarg>
#include <cstdio>
#include <ctime>

#include "ascendcl/error.h"
#include "ascendcl/refuse.h"

using namespace aclsim;

ACLSIM_API int32_t MsprofRegisterCallback(uint32_t, void*) { return 0; }
ACLSIM_API int32_t MsprofReportApi(uint32_t, const void*) { return 0; }
ACLSIM_API int32_t MsprofReportCompactInfo(uint32_t, const void*, uint32_t) { return 0; }
ACLSIM_API int32_t MsprofReportAdditionalInfo(uint32_t, const void*, uint32_t) { return 0; }
ACLSIM_API uint64_t MsprofGetHashId(const char* text, size_t length) {
  uint64_t hash = 14695981039346656037ULL;  // FNV-1a
  for (size_t i = 0; text && i < length; ++i) {
    hash = (hash ^ static_cast<unsigned char>(text[i])) * 1099511628211ULL;
  }
  return hash;
}
ACLSIM_API uint64_t MsprofSysCycleTime() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + now.tv_nsec;
}

ACLSIM_API int32_t rtDevBinaryRegister(const void*, void**) { return refuse(__func__); }
ACLSIM_API int32_t rtDevBinaryUnRegister(void*) { return refuse(__func__); }
ACLSIM_API int32_t rtFunctionRegister(void*, const void*, const char*, const void*, uint32_t) {
  return refuse(__func__);
}
ACLSIM_API int32_t rtGetC2cCtrlAddr(uint64_t*, uint32_t*) { return refuse(__func__); }
ACLSIM_API int32_t rtKernelLaunch(const void*, uint32_t, void*, uint32_t, void*, void*) {
  return refuse(__func__);
}
ACLSIM_API int32_t rtLaunch(const void*) { return refuse(__func__); }

ACLSIM_API void aclAppLog(aclLogLevel logLevel, const char* func, const char* file, uint32_t line,
                          const char* fmt, ...) {
  if (logLevel < ACL_ERROR || !fmt) return;
  char text[1024];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  fprintf(stderr, "[ERROR] %s:%u %s: %s\n", file ? file : "", line, func ? func : "", text);
}
