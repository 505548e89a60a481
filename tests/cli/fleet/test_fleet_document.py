"""The commands of docs/fleet.md: all have options that there are, and a small fleet runs them."""

import glob
import os
import re
import shlex
from pathlib import Path

import click
import pytest
from mindtorch_npu import exits
from mindtorch_npu.main import group

from aclnn_bindings.install.library import bundled_simulator

DOCS = Path(__file__).parents[3] / "docs"
# What makes a command small enough for a test; the rest of it stands as it is.
SMALL = {"--all": "neg --form functional", "add softmax": "neg --form functional",
         "--minutes 60": "--minutes 0.01", "3/8": "2/2"}  # fmt: skip
# Of the first block; what is not here needs a Ray cluster or a recording, or has a test of its own.
RUNS = ("--shard 3/8", "report --merge part", "--compare-devices --device all", "check soak",
        "probe --journal")  # fmt: skip


def commands():
    """Every call of mindtorch-npu in a block of shell, on one line."""
    blocks = re.findall(r"```sh\n(.*?)```", (DOCS / "fleet.md").read_text(), re.DOTALL)
    for line in "\n".join(blocks).replace("\\\n", " ").splitlines():
        if line.startswith("mindtorch-npu "):
            yield line.partition("  #")[0].strip()


def options_of(words):
    """The options that a command takes, by every spelling."""
    command = group.get_command(click.Context(group), words[0])
    command = getattr(command, "modes", {}).get(words[1], command)
    return {option for parameter in command.params for option in parameter.opts}


@pytest.mark.parametrize("line", list(commands()))
def test_commands_of_the_document_have_options_that_there_are(line):
    words = shlex.split(line)[1:]
    named = {word.partition("=")[0] for word in words if word.startswith("--")}
    assert named <= options_of(words)


def run(line):
    """Its exit code, as a shell would have it."""
    words = []
    for word in shlex.split(os.path.expandvars(line))[1:]:
        words += sorted(glob.glob(word)) if "*" in word else [word]
    return group.main(words, standalone_mode=False) or exits.OK


@pytest.mark.slow
@pytest.mark.skipif(bundled_simulator() is None, reason="the simulator is not built")
def test_a_small_fleet_walks_through_the_document(tmp_path, monkeypatch):
    """In the order of the document; part 1 of 2 is missing when the parts are merged."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ACLSIM_DEVICES", "2")
    monkeypatch.setenv("HOSTNAME", "host1")
    codes = {}
    for line in commands():
        step = next((step for step in RUNS if step in line), None)
        if step is not None and step not in codes:
            for large, small in SMALL.items():
                line = line.replace(large, small)
            codes[step] = run(line)
    assert codes == {step: exits.NOT_JUDGED if "merge" in step else exits.OK for step in RUNS}
    assert "shard missing" in (tmp_path / "fleet.html").read_text()
    assert (tmp_path / "probe-host1.jsonl").exists()
