"""Locked host memory is whole pages, and no registration goes past it."""

from pathlib import Path

import layered

SOURCE = """
#include <cstdint>
#include "sample.h"
int main() {
  Session session;
  char* p = nullptr;
  for (size_t size : {1, 100, 4096, 5000, 300000}) {
    OK_OR_EXIT(aclrtMallocHost(reinterpret_cast<void**>(&p), size));
    printf("%d ", static_cast<int>(reinterpret_cast<uintptr_t>(p) % 4096));
    const size_t pages = (size + 4095) / 4096 * 4096;
    void* device = nullptr;
    printf("%d ", aclrtHostRegister(p, pages + 1, ACL_HOST_REGISTER_MAPPED, &device));
    printf("%d ", aclrtHostRegister(p, pages, ACL_HOST_REGISTER_MAPPED, &device));
    OK_OR_EXIT(aclrtHostUnregister(p));
    printf("%d\\n", aclrtHostRegisterV2(p - 4096, 8192, ACL_HOST_REG_MAPPED));
    OK_OR_EXIT(aclrtFreeHost(p));
  }
  void* device = nullptr;
  char* page = static_cast<char*>(aligned_alloc(4096, 8192));
  char* none = reinterpret_cast<char*>(4096);  // no process has memory there
  for (size_t size : {size_t{4096}, SIZE_MAX, SIZE_MAX - 4095, size_t{1} << 46}) {
    printf("%d ", aclrtHostRegister(none, size, ACL_HOST_REGISTER_MAPPED, &device));
  }
  OK_OR_EXIT(aclrtHostRegister(page, 8192, ACL_HOST_REGISTER_MAPPED, &device));
  printf("%d\\n", aclrtFreeHost(page));  // registered, and of another allocator
  OK_OR_EXIT(aclrtHostUnregister(page));
  const int64_t one = 1;
  printf("%d\\n", aclCreateIntArray(&one, SIZE_MAX) == nullptr);
}
"""
REFUSED = 107000  # ACL_ERROR_RT_PARAM_INVALID


def test_pages_are_registered_and_nothing_past_them(tmp_path: Path) -> None:
    outcome = layered.run("--strict", "--", layered.program(SOURCE, tmp_path))
    *sizes, strange, huge = outcome.out.splitlines()
    assert sizes == [f"0 {REFUSED} 0 {REFUSED}"] * 5
    assert strange == " ".join([str(REFUSED)] * 5)
    assert huge == "1"
    assert outcome.code == 1
    assert "strict: 1 finding\n" in outcome.err
    assert "free-of-unknown-memory in aclrtFreeHost" in outcome.err
