"""Of ordinary mistakes the same is said as by torch, on the cpu and on an NPU."""

from __future__ import annotations

from collections import defaultdict

import pytest
from mistakes import KNOWN, both, mistakes, verdict

import mindtorch

SECTIONS = defaultdict(list)
for _mistake in mistakes():
    SECTIONS[_mistake.section].append(_mistake.code)
DIFFERING = defaultdict(set)
for _mistake in mistakes(KNOWN):
    DIFFERING[_mistake.section].add(_mistake.code)


@pytest.mark.parametrize("device", ["cpu", "npu"])
@pytest.mark.parametrize("section", SECTIONS)
def test_mistakes_are_refused_in_torchs_words(section, device):
    torch = pytest.importorskip("torch", reason="torch 2.13 is the oracle")
    differ = {
        code
        for code in SECTIONS[section]
        if verdict(*both(torch, mindtorch, device, code)) != "same"
    }
    known = DIFFERING["both"] | DIFFERING[device]
    assert differ == known & set(SECTIONS[section])


def test_what_differs_is_in_the_table():
    listed = {code for codes in SECTIONS.values() for code in codes}
    assert set().union(*DIFFERING.values()) <= listed
