"""HCCL between processes and between the devices of one, one part per program run."""

import json
import re
from pathlib import Path

import pytest
from compiled import Outcome, run


def ranks(part: str, count: int, *arguments: str, **environment: str) -> Outcome:
    """Run a part of programs/collectives.cpp on `count` ranks."""
    return run("collectives", part, str(count), *arguments, ACLSIM_DEVICES="8", **environment)


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("part", ["reductions", "movements", "uneven", "messages", "order"])
def test_every_rank_gets_what_the_collective_promises(part: str, count: int) -> None:
    outcome = ranks(part, count)
    assert outcome.code == 0, outcome.out + outcome.err
    assert "done" in outcome.out


def test_subgroups_exchange_among_themselves() -> None:
    outcome = ranks("subgroups", 4)
    assert outcome.code == 0, outcome.out + outcome.err


def test_wrong_arguments_are_refused_at_once_and_harm_nobody() -> None:
    outcome = ranks("refusals", 2)
    assert outcome.code == 0, outcome.out + outcome.err


def test_communicators_take_what_their_configuration_says() -> None:
    outcome = ranks("configurations", 2)
    assert outcome.code == 0, outcome.out + outcome.err


def test_the_devices_of_one_process_work_together() -> None:
    outcome = ranks("devices", 3)
    assert outcome.code == 0, outcome.out + outcome.err


def test_a_rank_that_dies_is_named_to_those_that_wait() -> None:
    outcome = ranks("lost_rank", 2)
    assert outcome.code == 0, outcome.out + outcome.err
    assert "HcclAllReduce: rank 1 is gone" in outcome.out


def test_a_planted_link_spoils_what_goes_over_it_and_nothing_else() -> None:
    assert ranks("devices", 3, ACLSIM_FAULTS="npu0-npu2/link:corrupt@1").code != 0
    assert ranks("devices", 3, ACLSIM_FAULTS="npu6-npu7/link:dead").code == 0
    for kind in ("dead", "silent"):
        fault = f"npu0-npu2/link:{kind}"
        spoiled = ranks("devices", 3, ACLSIM_FAULTS=fault, HCCL_EXEC_TIMEOUT="1")
        # Whose wait ends first has a timeout, the others the code of a lost rank.
        assert re.search(r"aclrtSynchronizeStream\(streams\[d\]\) -> 5070(48|57)", spoiled.out)


def test_a_rank_that_stays_away_is_waited_for_as_long_as_asked() -> None:
    outcome = ranks("late_rank", 2, HCCL_EXEC_TIMEOUT="1")
    assert outcome.code == 0, outcome.out + outcome.err
    assert "HcclRecv: rank 1 did not come within 1 seconds" in outcome.out


def test_a_rank_that_never_joins_is_named() -> None:
    outcome = ranks("missing_rank", 2, HCCL_CONNECT_TIMEOUT="1")
    assert outcome.code == 0, outcome.out + outcome.err
    assert "ranks 1 did not come" in outcome.out


def test_ranks_that_call_different_things_learn_which() -> None:
    outcome = ranks("different_calls", 2)
    assert outcome.code == 0, outcome.out + outcome.err
    assert "rank 0 called HcclAllReduce (count 4" in outcome.out
    assert "rank 1 called HcclAllReduce (count 3" in outcome.out


def test_a_rank_table_brings_ranks_together(tmp_path: Path) -> None:
    devices = [{"device_id": str(r), "rank_id": str(r)} for r in range(3)]
    table = tmp_path / "ranks.json"
    servers = [{"server_id": "127.0.0.1", "device": devices}]
    table.write_text(json.dumps({"version": "1.0", "status": "completed", "server_list": servers}))
    outcome = ranks("rank_table", 3, str(table))
    assert outcome.code == 0, outcome.out + outcome.err


def test_collectives_keep_strict_mode_clean_and_name_memory_that_is_none() -> None:
    assert ranks("movements", 2, ACLSIM_STRICT="report").kinds() == []
    found = ranks("refusals", 2, ACLSIM_STRICT="report").kinds()
    assert set(found) == {"pointer-outside-device-memory"}
