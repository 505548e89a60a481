// Version questions: of the ACL interface, and of packages below ASCEND_HOME_PATH.
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "ascendcl/error.h"

using namespace aclsim;

namespace {

// The `Version=` line of $ASCEND_HOME_PATH/share/info/<package>/version.info; '-' and '_' in the
// name are interchangeable (aclsysGetVersionStr document).
std::string package_version(const char* package) {
  const char* home = getenv("ASCEND_HOME_PATH");
  if (!home || !*home) return "";
  for (char other : {'\0', '-', '_'}) {
    std::string name = package;
    for (char& c : name) {
      if (other && (c == '-' || c == '_')) c = other;
    }
    std::ifstream file(std::string(home) + "/share/info/" + name + "/version.info");
    std::string line;
    while (std::getline(file, line)) {
      if (line.compare(0, 8, "Version=") == 0) {
        size_t end = line.find_last_not_of(" \r\t");
        return line.substr(8, end - 7);
      }
    }
  }
  return "";
}

ACLSIM_NOINLINE aclError no_version(const char* function, const char* package) {
  return failed(ACL_ERROR_INVALID_FILE, "EH0002",
                "%s failed because share/info/%s/version.info below ASCEND_HOME_PATH cannot be "
                "read.", function, package);
}

}  // namespace

ACLSIM_API aclError aclrtGetVersion(int32_t* majorVersion, int32_t* minorVersion,
                                    int32_t* patchVersion) {
  ACLSIM_REQUIRE(majorVersion);
  ACLSIM_REQUIRE(minorVersion);
  ACLSIM_REQUIRE(patchVersion);
  *majorVersion = ACL_MAJOR_VERSION;
  *minorVersion = ACL_MINOR_VERSION;
  *patchVersion = ACL_PATCH_VERSION;
  return ACL_SUCCESS;
}

ACLSIM_API aclError aclsysGetVersionStr(char* pkgName, char* versionStr) {
  thread();
  ACLSIM_REQUIRE(pkgName);
  ACLSIM_REQUIRE(versionStr);
  std::string version = package_version(pkgName);
  if (version.empty()) return no_version(__func__, pkgName);
  snprintf(versionStr, ACL_PKG_VERSION_MAX_SIZE, "%s", version.c_str());
  return ACL_SUCCESS;
}

ACLSIM_API aclError aclsysGetCANNVersion(aclCANNPackageName name, aclCANNPackageVersion* version) {
  thread();
  ACLSIM_REQUIRE(version);
  static const char* const packages[] = {"runtime", "runtime", "compiler", "hccl",
                                         "toolkit", "opp", "opp_kernel", "driver"};
  if (name < ACL_PKG_NAME_CANN || name > ACL_PKG_NAME_DRIVER) {
    return bad_value(__func__, "name", "unknown", "an aclCANNPackageName");
  }
  std::string text = package_version(packages[name]);
  if (text.empty()) return no_version(__func__, packages[name]);
  memset(version, 0, sizeof *version);
  snprintf(version->version, sizeof version->version, "%s", text.c_str());
  char* parts[] = {version->majorVersion, version->minorVersion, version->releaseVersion,
                   version->patchVersion};
  size_t begin = 0;
  for (char* part : parts) {
    if (begin > text.size()) break;
    size_t end = text.find('.', begin);
    if (end == std::string::npos) end = text.size();
    snprintf(part, ACL_PKG_VERSION_PARTS_MAX_SIZE, "%s", text.substr(begin, end - begin).c_str());
    begin = end + 1;
  }
  return ACL_SUCCESS;
}
