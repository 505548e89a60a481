"""The Dockerfile's files and commands are those of this repository; its RUN does what it says."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import click
import pytest
from mindtorch_npu.main import group

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docs/Dockerfile"
GUIDE = ROOT / "docs/wheels.md"
PROJECT = ROOT / "pyproject.toml"
NAME = "mindtorch-npu"

pytestmark = pytest.mark.skipif(not FILE.exists(), reason="only a source tree has the documents")


def instructions() -> list[tuple[str, str]]:
    """(instruction, what follows) in order, with continued lines joined."""
    text = re.sub(r"^#.*\n", "", FILE.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    return [(line.split(None, 1)[0], line.split(None, 1)[1]) for line in text.splitlines()]


def the(name: str) -> str:
    """What follows the one instruction of this name."""
    (text,) = [rest for instruction, rest in instructions() if instruction == name]
    return text


def test_it_copies_what_the_guide_tells_to_carry() -> None:
    source, target = the("COPY").split()
    guide = GUIDE.read_text()
    assert f"pip download -d {source} " in guide
    assert f"(cd {source} && sha256sum *.whl > files.txt)" in guide
    assert the("RUN").startswith(f"cd {target} && sha256sum -c files.txt && ")
    assert the("RUN").endswith(f" && rm -r {target}")


def test_it_installs_this_project_as_the_guide_and_the_trial_do() -> None:
    (install,) = re.findall(r"pip install (.*?) &&", the("RUN"))
    options = {"--no-cache-dir", "--no-index", "--find-links", ".", NAME}
    assert set(install.split()) == options
    trial = (ROOT / ".ci/try-wheels").read_text()
    for option in ("--no-index", "--find-links", NAME):
        assert option in trial
        assert option in GUIDE.read_text()


def test_its_command_is_one_of_ours() -> None:
    program, *words = json.loads(the("CMD"))
    assert f'\n[project.scripts]\n{program} = "' in PROJECT.read_text()
    assert f"/bin/{program} /usr/local/bin/" in the("RUN")
    assert group.get_command(click.Context(group), words[0]) is not None
    assert group.get_command(click.Context(group), "no-such-command") is None


def test_its_name_is_the_projects() -> None:
    assert f'\nname = "{NAME}"\n' in PROJECT.read_text()


def test_its_image_is_the_one_that_the_guide_names() -> None:
    default = the("ARG").partition("=")[2]
    assert the("FROM") == "quay.io/ascend/cann:${CANN}"
    assert f"--build-arg CANN={default} " in GUIDE.read_text()
    python = default.rpartition("-py")[2]
    assert f"--python-version {python} " in GUIDE.read_text()


def stand_in(folder: Path) -> None:
    """A wheel of our name whose program prints its arguments, and the list of files."""
    folder.mkdir()
    wheel = folder / "mindtorch_npu-9-py3-none-any.whl"
    info = "mindtorch_npu-9.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("stand_in.py", "import sys\ndef main(): print(*sys.argv[1:])\n")
        archive.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: mindtorch-npu\nVersion: 9\n"
        )
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        scripts = "[console_scripts]\nmindtorch-npu = stand_in:main\n"
        archive.writestr(f"{info}/entry_points.txt", scripts)
        archive.writestr(f"{info}/RECORD", "")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    (folder / "files.txt").write_text(f"{digest}  {wheel.name}\n")


def run(tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """The file's RUN, with its folders below `tmp_path`."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "python").mkdir()
    (tmp_path / "python/python3").symlink_to(sys.executable)
    command = the("RUN")
    for place, here in (("/tmp/carry", "carry"), ("/opt/mindtorch", "venv"),
                        ("/usr/local/bin/", "bin/")):  # fmt: skip
        assert place in command
        command = command.replace(place, str(tmp_path / here) + ("/" if here[-1] == "/" else ""))
    path = f"{tmp_path}/python:{os.environ['PATH']}"
    environ = {"PATH": path, "HOME": str(tmp_path)}
    return subprocess.run(
        ["bash", "-c", command], env=environ, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_its_commands_install_what_is_carried(tmp_path: Path) -> None:
    """Ten seconds: `pytest -m slow tests/packaging/test_dockerfile.py`."""
    stand_in(tmp_path / "carry")
    done = run(tmp_path)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "carry").exists()
    program, *words = json.loads(the("CMD"))
    told = subprocess.run([tmp_path / "bin" / program, *words], capture_output=True, text=True)
    assert told.stdout.split() == words


def test_a_damaged_file_stops_it(tmp_path: Path) -> None:
    if not shutil.which("sha256sum"):
        pytest.skip("coreutils are not installed")
    stand_in(tmp_path / "carry")
    wheel = next((tmp_path / "carry").glob("*.whl"))
    wheel.write_bytes(wheel.read_bytes() + b"x")
    done = run(tmp_path)
    assert done.returncode != 0
    assert "FAILED" in done.stdout
    assert not (tmp_path / "venv").exists()
