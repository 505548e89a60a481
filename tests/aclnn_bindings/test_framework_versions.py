"""What of a Python's packages fails on a CANN is said, from metadata alone."""

from dataclasses import dataclass, field
from pathlib import Path

import fake_cann
import pytest

from aclnn_bindings import Request, causes, probe
from aclnn_bindings.diagnose.frameworks import COMPILER

WHOLE = dict.fromkeys(COMPILER, "1.0")
TORCH = {**WHOLE, "torch": "2.7.1+cpu", "torch_npu": "2.7.1", "numpy": "1.26.4"}


@dataclass(frozen=True)
class Row:
    """A Python, and what is said of it; `release` is that of the toolkit."""

    name: str
    packages: dict[str, str]
    what: str = ""
    fix: str = ""
    release: str = "8.1.RC1"
    environ: dict[str, str] = field(default_factory=dict)


def without(*names: str, **more: str) -> dict[str, str]:
    kept = {name: version for name, version in TORCH.items() if name not in names}
    return {**kept, **{name.replace("_", "-", 1) if name == "vllm_ascend" else name: version
                       for name, version in more.items()}}  # fmt: skip


ROWS = (
    Row("all fits", TORCH),
    Row("no framework", {"numpy": "2.1"}),
    Row("no framework, no compiler", {"torch": "2.9.0"}),
    Row("a rebuild of the same version", without(torch_npu="2.7.1.post2"), release="8.5.0"),
    Row("a rebuild for a newer CANN", without(torch_npu="2.7.1.post2"),
        "was released for CANN 8.5.0", "or torch_npu 2.7.1", "8.3.RC1"),
    Row("torch too new", without(torch="2.12.0"), "torch 2.12.0 and torch_npu 2.7.1", "2.12.0"),
    Row("torch too old", without(torch="2.6.0"), "torch 2.6.0 and torch_npu 2.7.1", "2.6.0"),
    Row("torch_npu of a patch release", without(torch_npu="2.7.0"), "different versions"),
    Row("no torch", without("torch"), "torch_npu 2.7.1 has no torch", "torch==2.7.1"),
    *(Row(f"no {name}", without(name), f"modules are missing: {name}", f"pip install {name}")
      for name in WHOLE),
    Row("no modules at all", without(*WHOLE), "missing: decorator, attrs, psutil", "absl-py"),
    Row("numpy 2 on 8.1", without(numpy="2.0.2"), "numpy 2.0.2 is too new", "numpy<2"),
    Row("numpy 2 on 8.2", without(numpy="2.1.0"), "numpy 2.1.0 is too new", release="8.2.RC1"),
    Row("numpy 2 on 8.3", without(numpy="2.1.0"), release="8.3.RC1"),
    Row("numpy 2 on 9.0", without(numpy="2.1.0"), release="9.0.0"),
    Row("numpy 1 on 9.0", TORCH, release="9.0.0"),
    Row("mindspore without modules", {"mindspore": "2.5.0"}, "modules are missing"),
    Row("mindspore with numpy 2", {**WHOLE, "mindspore": "2.5.0", "numpy": "2.0.0"}, "too new"),
    Row("paddle without modules", {"paddle-custom-npu": "3.0"}, "modules are missing"),
    Row("vllm-ascend without ATB", without(vllm_ascend="0.9.1"), "no NNAL", "nnal/atb/set_env.sh"),
    Row("ATB that is gone", TORCH, "has no lib/libatb.so", "nnal",
        environ={"ATB_HOME_PATH": "{root}/gone"}),
    Row("ATB without a library", TORCH, "has no lib/libatb.so", "nnal",
        environ={"ATB_HOME_PATH": "{root}"}),
    Row("ATB of vllm-ascend is there", without(vllm_ascend="0.11.0"), release="8.3.RC2",
        environ={"ATB_HOME_PATH": "{atb}"}),
    Row("two tritons", {**TORCH, "triton": "3.2.0", "triton-ascend": "3.2.0"},
        "triton 3.2.0 stands beside triton-ascend", "uninstall triton"),
    Row("one triton", {**TORCH, "triton-ascend": "3.2.0"}, release="8.5.0"),
    Row("torch_npu for a newer CANN", without(torch="2.9.0", torch_npu="2.9.0"),
        "torch_npu 2.9.0 was released for CANN 8.5.0, not for CANN 8.1.RC1", "or torch_npu 2.5.1"),
    Row("torch_npu on a newer CANN", TORCH, release="9.1.0"),
    Row("torch_npu on a CANN that its notes name", without(torch="2.6.0", torch_npu="2.6.0"),
        release="8.1.RC1"),
    Row("vllm-ascend of an older CANN", without(vllm_ascend="0.9.1"),
        "vllm-ascend 0.9.1 was released for CANN 8.2.RC1, not for CANN 8.1.RC1",
        "or vllm-ascend 0.9.1rc1"),
    Row("vllm-ascend on a newer CANN", without(vllm_ascend="0.11.0"),
        "released for CANN 8.3.RC2, not for CANN 9.0.0", "install CANN 8.3.RC2", "9.0.0"),
    Row("vllm-ascend with another vllm", without(vllm_ascend="0.11.0", vllm="0.13.0"),
        "released for vllm 0.11.0, not for vllm 0.13.0", "vllm==0.11.0", "8.3.RC2"),
    Row("vllm-ascend with another torch", without(vllm_ascend="0.9.1"),
        "released for torch 2.5.1, not for torch 2.7.1+cpu", "torch==2.5.1", "8.2.RC1"),
    Row("triton-ascend of a newer CANN", {**TORCH, "triton-ascend": "3.2.0"},
        "triton-ascend 3.2.0 was released for CANN 8.5.0", "or triton-ascend 3.2.0rc4", "8.3.RC1"),
    Row("triton-ascend with either candidate", {**TORCH, "triton-ascend": "3.2.0rc4"},
        release="8.3.RC2"),
    Row("mindspore of its CANN", {**WHOLE, "mindspore": "2.7.1"}, release="8.3.RC1"),
    Row("mindspore of a newer CANN", {**WHOLE, "mindspore": "2.7.2"},
        "mindspore 2.7.2 was released for CANN 8.5.0", "or mindspore 2.7.1", "8.3.RC1"),
    Row("a version that no table names", {**WHOLE, "mindspore": "9.9.0"}),
)  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_what_fails_in_a_program_is_said_before(
    row: Row, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = fake_cann.copy(fake_cann.whole(), tmp_path / row.release)
    version = root / "version.cfg"
    version.write_text(version.read_text().replace("8.1.RC1", row.release))
    atb = tmp_path / "atb"
    (atb / "lib").mkdir(parents=True)
    (atb / "lib/libatb.so").touch()
    for module in ("describe", "versions"):
        place = f"aclnn_bindings.install.{module}.driver_place"
        monkeypatch.setattr(place, lambda: tmp_path / "Ascend")
    monkeypatch.setattr("aclnn_bindings.diagnose.frameworks.installed", row.packages.get)
    extra = {name: value.format(root=root, atb=atb) for name, value in row.environ.items()}
    environ = {**fake_cann.environment(root), **extra}
    report = probe(Request(root, run=False, bases=()), environ)
    about = [c for c in causes(report, environ) if c.severity == "warning"]
    if not row.what:
        assert about == []
        return
    first = next((cause for cause in about if row.what in cause.what), None)
    assert first is not None, about
    assert row.fix in first.fix


def test_an_atb_that_is_installed_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = fake_cann.copy(fake_cann.whole(), tmp_path / "ascend-toolkit/8.1.RC1")
    library = tmp_path / "nnal/atb/8.1.RC1/atb/cxx_abi_1/lib/libatb.so"
    library.parent.mkdir(parents=True)
    library.touch()
    packages = without(vllm_ascend="0.9.1")
    monkeypatch.setattr("aclnn_bindings.diagnose.frameworks.installed", packages.get)
    environ = fake_cann.environment(root)
    report = probe(Request(root, run=False, bases=()), environ)
    assert any("not set up in this shell" in cause.what for cause in causes(report, environ))
