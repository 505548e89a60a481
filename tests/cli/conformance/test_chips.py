"""Identity and health of chips, by a stand-in for npu-smi that prints what documents show.

Formats: npu-smi command reference (hiascend.com, Atlas A2 and A3).
"""

import json
import os
import stat
import sys
import time

import pytest
from mindtorch_npu.conformance.run import chips
from mindtorch_npu.conformance.run.process import Setup
from mindtorch_npu.fleet import advice, merge
from mindtorch_npu.main import group

from aclnn_bindings.install.library import bundled_simulator

NAMES = ("NPU ID", "Chip ID", "Chip Logic ID", "Chip Name")


def table(columns, *rows):
    """A table as `npu-smi info -m` prints it."""
    return "\n".join("\t" + "".join(f"{cell:31}" for cell in row) for row in (columns, *rows))


MAP = table(NAMES, ("3", "0", "0", "Ascend 910B3"), ("3", "1", "-", "Mcu"),
            ("5", "0", "1", "Ascend 910B3"), ("-1", "0", "2", "Ascend 910B3"))  # fmt: skip
# Two chips of a card, and a column more.
MAP_A3 = table((*NAMES[:3], "Chip Phy-ID", "Chip Name"), ("0", "0", "0", "0", "Ascend910"),
               ("0", "1", "1", "1", "Ascend910"), ("0", "2", "-", "-", "Mcu"))  # fmt: skip
ANSWERS = {
    "board": """\
\tNPU ID                         : {card}
\tSerial Number                  : 10241508397{card}
\tSoftware Version               : 25.5.2
\tFirmware Version               : 7.8.0.7.220
\tPCIe Bus Info                  : 0000:C{card}:00.0
\tSlot ID                        : NA
""",
    "board -c": """\
\tNPU ID                         : {card}
\tChip Name                      : 910B3
\tVDie ID                        : 901421D4 02103514
\tPCIe Bus Info                  : 0000:8{card}:00.0
""",
    "temp -c": "\tNPU Temperature (C)            : 39\n\tChip ID                        : 0\n",
    "power -c": "\tNPU Real-time Power(W)         : 103.5\n",
    "usages -c": "\tHBM Capacity(MB)               : 65536\n\tHBM Usage Rate(%)              : 5\n",
    "health -c": "\tHealth                         : OK\n",
    "ecc -c": """\
\tHBM Double Bit Error Count               : 0
\tHBM Single Bit Isolated Pages Count      : 3
""",
    "proc-mem -c": "\tProcess id:{pid}  Process name:python            Process memory(MB):177\n",
}  # fmt: skip
BODY = """\
#!{python}
import os, sys, time
words = sys.argv[1:]
if words == ["info", "-m"]:
    print({mapping!r})
    sys.exit()
kind, card = words[2], words[4]
{extra}
key = kind + (" -c" if "-c" in words else "")
text = {answers!r}.get(key)
if text is None:
    print("This device does not support querying", kind)
    sys.exit(1)
print(text.format(card=card, pid=1))
"""


@pytest.fixture
def tool(tmp_path, monkeypatch):
    """Makes a stand-in, and the command that is asked."""

    def make(mapping=MAP, answers=ANSWERS, extra=""):
        path = tmp_path / "npu-smi"
        path.write_text(BODY.format(python=sys.executable, mapping=mapping, answers=dict(answers),
                                    extra=extra))  # fmt: skip
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv(chips.COMMAND, str(path))
        return path

    monkeypatch.delenv("ASCEND_RT_VISIBLE_DEVICES", raising=False)
    return make


def read(*devices, **fields):
    return chips.read(devices, Setup("npu:0", **fields))


def test_a_chip_has_its_identity_and_its_health(tool):
    tool()
    chip = read("npu:1")["npu:1"]
    (process,) = chip.pop("processes")
    assert chip == {
        "serial": "102415083975", "bus_id": "0000:85:00.0", "firmware": "7.8.0.7.220",
        "driver": "25.5.2", "die": "901421D4 02103514", "model": "910B3",
        "health": {"temperature (C)": 39, "power (W)": 103.5, "HBM usage (%)": 5,
                   "HBM capacity (MB)": 65536, "state": "OK", "hbm double bit error count": 0,
                   "hbm single bit isolated pages count": 3},
    }  # fmt: skip
    assert process == {"pid": 1, "name": "python", "memory_mb": 177, "user": "root"}


@pytest.mark.parametrize(
    ("mapping", "addresses"),
    [
        (MAP, {0: ("3", "0"), 1: ("5", "0")}),
        (MAP_A3, {0: ("0", "0"), 1: ("0", "1")}),
        ("NPU ID   Slot ID   Chip Phy-ID   Chip Name\n2   NA   0   Ascend950", {0: ("2", "")}),
        ("", {}),
        ("dcmi model initialized failed", {}),
    ],
)
def test_logical_devices_are_found_among_cards_and_chips(mapping, addresses):
    found = {i: (a.card, a.number) for i, a in chips.mapping(mapping).items()}
    assert found == addresses


def test_devices_are_those_that_the_runtime_shows(tool, monkeypatch):
    tool()
    monkeypatch.setenv("ASCEND_RT_VISIBLE_DEVICES", "1")
    assert read("npu:0", "npu:1")["npu:0"]["serial"] == "102415083975"
    assert "npu:1" not in read("npu:0", "npu:1")
    assert read("npu:0", environ={"ASCEND_RT_VISIBLE_DEVICES": "0"})["npu:0"]["serial"][-1] == "3"


def test_where_a_tool_takes_no_chip_the_card_is_asked(tool):
    tool(answers={k.removesuffix(" -c"): v for k, v in ANSWERS.items() if k != "board"})
    assert read("npu:0")["npu:0"]["health"]["temperature (C)"] == 39


def test_what_is_not_there_is_absent_without_a_word(tool, monkeypatch, tmp_path, capfd):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(chips, "_FOLDERS", "")
    assert read("npu:0") == {}
    monkeypatch.setenv(chips.COMMAND, "")
    assert read("npu:0") == {}
    monkeypatch.setenv(chips.COMMAND, str(tmp_path / "nothing"))
    assert read("npu:0") == {}
    tool(answers={"board": ANSWERS["board"]})
    assert set(read("npu:0")["npu:0"]) == {"serial", "bus_id", "firmware", "driver"}
    tool(mapping="")
    assert read("npu:0") == {}
    assert capfd.readouterr() == ("", "")


def test_a_simulator_has_no_chips_unless_a_tool_is_named(tool, monkeypatch):
    path = tool()
    monkeypatch.delenv(chips.COMMAND)
    monkeypatch.setenv("PATH", f"{path.parent}{os.pathsep}{os.environ['PATH']}")
    assert chips.command(Setup("npu:0"))
    assert chips.command(Setup("npu:0", simulator=True)) == []
    assert chips.command(Setup("cpu")) == []


@pytest.mark.parametrize("when", ["kind == 'ecc' and card == '3'", "True"])
def test_a_tool_that_hangs_costs_seconds_and_one_chip(tool, monkeypatch, when):
    monkeypatch.setattr(chips, "_SECONDS", 1.0)
    # A child that ignores signals holds the output open.
    tool(extra=f"if {when}:\n    os.fork()\n    import signal\n"
               "    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n    time.sleep(60)")  # fmt: skip
    started = time.monotonic()
    found = read("npu:0", "npu:1")
    assert time.monotonic() - started < 20
    if when != "True":
        assert found["npu:0"]["health"]["temperature (C)"] == 39  # what came before
        assert "hbm double bit error count" in found["npu:1"]["health"]
    else:
        assert found == {}


def test_processes_of_this_run_are_not_beside_it(tool):
    tool(extra=f"if kind == 'proc-mem':\n    print('Process id:{os.getpid()}  Process name:python  "
               "Process memory(MB):9')\n    sys.exit()")  # fmt: skip
    assert "processes" not in read("npu:0")["npu:0"]


@pytest.mark.parametrize(
    "text", ["Process id:x", ": 1", "HBM : " + "9" * 400, "a" * 10_000, "\0:\0"]
)
def test_nonsense_is_no_fact(text):
    assert list(chips._processes(text)) == []
    assert all(chips._number(v) is None for v in chips.fields(text).values() if v != "1")


@pytest.mark.skipif(bundled_simulator() is None, reason="the simulator is not built")
def test_a_run_records_chips_before_and_after_and_the_report_names_them(
    tool, tmp_path, monkeypatch
):
    count = tmp_path / "count"
    tool(
        extra=f"""if kind == 'ecc':
    seen = os.path.exists({str(count)!r})
    open({str(count)!r}, 'w').close()
    print('HBM Double Bit Error Count : %d' % (2 * seen))
    sys.exit()"""
    )
    monkeypatch.setenv("ACLSIM_DEVICES", "1")
    path = tmp_path / "run.jsonl"
    words = ["check", "add", "--case", "add/functional/s0/float32", "--simulator", "--journal"]
    assert group.main([*words, str(path)], standalone_mode=False) == 0
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines[0]["environment"]["chips"]["npu:0"]["serial"] == "102415083973"
    assert [line["device"] for line in lines if line["kind"] == "health"] == ["npu:0"]
    fleet = merge.merge([path])
    (one,) = advice.advice(fleet)
    assert (one.action, one.serial) == (advice.TAKE_OUT, "102415083973")
    assert one.evidence == (("hbm double bit error count", "0 before, 2 after"),
                            ("ran beside", "python of root"))  # fmt: skip
