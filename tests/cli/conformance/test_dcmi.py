"""Identity and health of chips by a stand-in for libdcmi.so, with the prototypes of the documents.

Huawei, DCMI API reference (hiascend.com, Atlas 200I A2, 25.2.0).
"""

import shutil
import subprocess

import pytest
from mindtorch_npu.conformance.run import chips, dcmi
from mindtorch_npu.conformance.run.process import Setup

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler is here")
SETUP = Setup("npu:0", None, True)

LIBRARY = r"""
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct label { char product[256], model[256], maker[256], date[256], serial[256]; };
struct pcie { unsigned ids[4]; int domain; unsigned bus, device, function; char rest[32]; };
struct ecc { int enabled; unsigned counts[6]; };

int dcmi_init(void) { return INIT; }
int dcmi_get_card_id_device_id_from_logicid(int *card, int *device, unsigned logical) {
  if (logical > 1) return -8008;
  *card = 4 + (int)logical;
  *device = 0;
  return 0;
}
#ifndef OLD
int dcmi_get_device_elabel_info(int card, int device, struct label *out) {
  strcpy(out->product, "910B3");
  snprintf(out->serial, sizeof out->serial, "SN%d", card);
  return 0;
}
int dcmi_get_device_pcie_info_v2(int card, int device, struct pcie *out) {
  out->domain = 0; out->bus = 0xC0 + card; out->device = 0; out->function = 0;
  return 0;
}
#endif
int dcmi_get_device_temperature(int card, int device, int *out) { *out = 39; return 0; }
int dcmi_get_device_health(int card, int device, unsigned *out) {
  *out = card == 5 ? 2 : 0;
  return 0;
}
int dcmi_get_device_ecc_info(int card, int device, int type, struct ecc *out) {
  if (type != 2) return -8255;
  out->enabled = 1;
  for (int i = 0; i < 6; ++i) out->counts[i] = i;
  return 0;
}
"""


@pytest.fixture
def library(tmp_path, monkeypatch):
    """Builds the stand-in with macros, and says where it is."""

    def build(**macros):
        macros = {"INIT": "0", **macros}
        words = [f"-D{name}={value}" for name, value in macros.items()]
        path = tmp_path / "libdcmi.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-w", "-x", "c", "-", "-o", str(path), *words],
                       input=LIBRARY, text=True, check=True)  # fmt: skip
        monkeypatch.setenv(dcmi.LIBRARY, str(path))

    return build


def test_chips_have_identity_and_health_where_only_dcmi_is(library):
    library()
    known = chips.read(["npu:0", "npu:1", "npu:2"], SETUP)
    assert set(known) == {"npu:0", "npu:1"}
    assert (known["npu:0"]["serial"], known["npu:0"]["model"]) == ("SN4", "910B3")
    assert known["npu:1"]["bus_id"] == "0000:c5:00.0"
    health = known["npu:1"]["health"]
    assert (health["temperature (C)"], health["state"]) == (39, "Alarm")
    assert health["hbm double bit error count"] == 1
    assert health["hbm double bit isolated pages count"] == 5
    assert not any(name.startswith("ddr") for name in health)


def test_health_after_a_run_has_no_identity(library):
    library()
    assert set(chips.read(["npu:0"], SETUP, identity=False)["npu:0"]) == {"health"}


def test_functions_that_an_older_library_lacks_are_absent(library):
    library(OLD="1")
    known = chips.read(["npu:0"], SETUP)["npu:0"]
    assert set(known) == {"health"}


@pytest.mark.parametrize("how", ["refuses", "hangs", "crashes", "is no library", "is not there"])
def test_a_library_that_cannot_be_used_says_nothing(library, tmp_path, monkeypatch, how):
    monkeypatch.setattr(chips, "_SECONDS", 1.0)
    library(
        INIT={"refuses": "-8005", "hangs": "(sleep(60), 0)", "crashes": "*(int *)0"}.get(how, 0)
    )
    if how == "is no library":
        (tmp_path / "libdcmi.so").write_text("none")
    if how == "is not there":
        (tmp_path / "libdcmi.so").unlink()
    assert chips.read(["npu:0"], SETUP) == {}


def test_an_npu_smi_that_fails_leaves_it_to_dcmi(library, monkeypatch):
    library()
    monkeypatch.setenv(chips.COMMAND, "false")
    assert chips.read(["npu:0"], SETUP)["npu:0"]["serial"] == "SN4"
