// Processes of one launch each: in how many a planted flip strikes.
#include <sys/wait.h>
#include <unistd.h>

#include "kit.h"

// Whether the sum of ones is not two.
static int strikes() {
  Kit kit;
  Addition add;
  const std::vector<float> ones(8, 1.0f);
  for (void* at : {add.a, add.b}) {
    MUST(aclrtMemcpy(at, 32, ones.data(), 32, ACL_MEMCPY_HOST_TO_DEVICE));
  }
  MUST(add.plan());
  MUST(add.run(kit.stream));
  MUST(aclrtSynchronizeStream(kit.stream));
  for (float sum : Kit::back(add.out, 8)) {
    if (sum != 2.0f) return 1;
  }
  return 0;
}

int main(int, char** argv) {
  int struck = 0;
  for (int i = atoi(argv[1]); i > 0; --i) {
    const pid_t child = fork();
    if (!child) _exit(strikes());
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    CHECK(WEXITSTATUS(status) <= 1);
    struck += WEXITSTATUS(status);
  }
  printf("%d\n", struck);
  return 0;
}
