"""Locked host memory is whole pages, and no registration goes past it."""

from __future__ import annotations

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
}
"""
REFUSED = 107000  # ACL_ERROR_RT_PARAM_INVALID


def test_pages_are_registered_and_nothing_past_them(tmp_path: Path) -> None:
    outcome = layered.run("--strict", "--", layered.program(SOURCE, tmp_path))
    assert outcome.out.splitlines() == [f"0 {REFUSED} 0 {REFUSED}"] * 5
    assert outcome.code == 0, outcome.err
