"""Variables of CANN, HCCL and torch_npu: values that documents do not allow are told by probe."""

from __future__ import annotations

from pathlib import Path

import fake_cann
import pytest

from aclnn_bindings.diagnose import variables
from aclnn_bindings.diagnose.causes import causes
from aclnn_bindings.diagnose.probe import Request, probe

# Variable, value, a part of what is said; "" where the value is allowed.
STATES = (
    ("ASCEND_RT_VISIBLE_DEVICES", "", "is empty"),
    ("ASCEND_RT_VISIBLE_DEVICES", "0,0", "twice"),
    ("ASCEND_RT_VISIBLE_DEVICES", "0-3", "no list of device numbers"),
    ("ASCEND_RT_VISIBLE_DEVICES", "npu:0", "no list of device numbers"),
    ("ASCEND_RT_VISIBLE_DEVICES", "0, 1", ""),
    ("HCCL_CONNECT_TIMEOUT", "10", "120 to 7200"),
    ("HCCL_CONNECT_TIMEOUT", "120s", "no number"),
    ("HCCL_CONNECT_TIMEOUT", "1800", ""),
    ("HCCL_EXEC_TIMEOUT", "-1", "0 to"),
    ("HCCL_EXEC_TIMEOUT", "0", ""),
    ("HCCL_BUFFSIZE", "200MB", "no number"),
    ("HCCL_BUFFSIZE", "0", "1 to"),
    ("HCCL_BUFFSIZE", "9" * 40, "no number"),
    ("HCCL_IF_BASE_PORT", "70000", "1024 to 65520"),
    ("HCCL_IF_IP", "192.0.2.77", "no address of this host"),
    ("HCCL_IF_IP", "eth0", "no address"),
    ("HCCL_IF_IP", "127.0.0.1", ""),
    ("HCCL_SOCKET_IFNAME", "enp999s0f9", "no interface of this host"),
    ("HCCL_SOCKET_IFNAME", "=l", "no interface of this host"),
    ("HCCL_SOCKET_IFNAME", "l", ""),
    ("HCCL_SOCKET_IFNAME", "=lo", ""),
    ("HCCL_SOCKET_IFNAME", "^lo", ""),
    ("GLOO_SOCKET_IFNAME", "bond999", "no interface of this host"),
    ("HCCL_SOCKET_FAMILY", "IPv4", "'IPv4'"),
    ("HCCL_RDMA_TIMEOUT", "99", "5 to 24"),
    ("RANK_TABLE_FILE", "/none/rank.json", "does not exist"),
    ("PYTORCH_NPU_ALLOC_CONF", "expandable_segments", "without a value"),
    ("PYTORCH_NPU_ALLOC_CONF", "expandable_segment:True", "nobody knows"),
    ("PYTORCH_NPU_ALLOC_CONF", "expandable_segments:True,max_split_size_mb:128", ""),
    ("TASK_QUEUE_ENABLE", "5", "0 to 2"),
    ("ASCEND_GLOBAL_LOG_LEVEL", "9", "0 to 4"),
    ("OMP_NUM_THREADS", "0", "1 to"),
    ("ASCEND_PROCESS_LOG_PATH", __file__, "no folder"),
    ("ASCEND_CACHE_PATH", __file__, "no folder"),
    ("ASCEND_WORK_PATH", "/none/work", ""),
    ("ASCEND_AICPU_PATH", "/none/cann", "does not exist"),
    ("ATB_HOME_PATH", "/none/atb", "does not exist"),
)
NOTES = (
    ("ASCEND_LAUNCH_BLOCKING", "1"), ("ASCEND_GLOBAL_LOG_LEVEL", "0"), ("INF_NAN_MODE_ENABLE", "0"),
)  # fmt: skip


@pytest.mark.parametrize(("name", "value", "said"), STATES)
def test_a_value_that_documents_do_not_allow_is_told(name: str, value: str, said: str) -> None:
    words = [what for row, what in variables.misset({name: value}) if row.severity != "note"]
    assert len(words) == bool(said), words
    assert all(word.startswith(name) and said in word for word in words)


@pytest.mark.parametrize(("name", "value"), NOTES)
def test_a_setting_with_a_price_is_a_note(name: str, value: str) -> None:
    ((row, _what),) = variables.misset({name: value})
    assert row.severity == "note"


def test_variables_are_compared() -> None:
    both = {"HCCL_EXEC_TIMEOUT": "60", "HCCL_CONNECT_TIMEOUT": "600"}
    assert [w for _, w in variables.misset(both)] == [
        "HCCL_EXEC_TIMEOUT (60) is below HCCL_CONNECT_TIMEOUT (600)"
    ]
    both = {"PYTORCH_NPU_ALLOC_CONF": "page_size:1g", "PYTORCH_ALLOC_CONF": "x"}
    assert any("beside" in what for _, what in variables.misset(both))


def test_a_rank_table_is_read(tmp_path: Path) -> None:
    table = tmp_path / "table.json"
    for text, said in (("{", "no JSON"), ("[]", "no rank table"), ('{"server_list": []}', "")):
        table.write_text(text)
        words = [what for _, what in variables.misset({"RANK_TABLE_FILE": str(table)})]
        assert bool(words) == bool(said)
        assert all(said in word for word in words)


def test_probe_tells_it_and_what_to_do(tmp_path: Path) -> None:
    root = fake_cann.copy(fake_cann.whole(), tmp_path / "8.1.RC1")
    environ = {**fake_cann.environment(root), "HCCL_BUFFSIZE": "200MB"}
    (cause,) = causes(probe(Request(root, run=False, bases=()), environ), environ)
    assert (cause.severity, "megabytes" in cause.fix) == ("warning", True)


def test_kernels_without_their_index_are_told(tmp_path: Path) -> None:
    root = fake_cann.copy(fake_cann.whole(), tmp_path / "8.1.RC1")
    environ = fake_cann.environment(root)
    index = root / "opp/built-in/op_impl/ai_core/tbe/kernel/config"
    (index / "ascend910b").mkdir(parents=True)
    (cause,) = causes(probe(Request(root, run=False, bases=()), environ), environ)
    assert "binary_info_config.json" in cause.what
    (index / "ascend910b/binary_info_config.json").write_text("{}")
    assert causes(probe(Request(root, run=False, bases=()), environ), environ) == ()


def test_every_row_has_a_rule_and_a_source() -> None:
    for row in variables.rows():
        assert row.rule in variables.RULES
        assert row.fix
        assert row.source
