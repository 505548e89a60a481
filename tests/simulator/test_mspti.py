"""Records of libmspti: what a program enabled, as it happened, in buffers of its own."""

import pytest
from compiled import install, run


@pytest.mark.parametrize("part", ["kernels", "memory", "threads", "markers", "small", "callbacks"])
def test_records_say_what_the_program_and_its_devices_did(part: str) -> None:
    install()
    outcome = run(
        "mspti",
        part,
        options=("-Wl,--no-as-needed", "-lmspti", "-lms_tools_ext"),
        ACLSIM_STRICT="report",
    )
    assert (outcome.code, outcome.out) == (0, "done\n"), outcome.out + outcome.err
    assert not outcome.findings
