"""Each kind of defect, planted into the simulator, is caught by a verdict, and by which one."""

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from mindtorch_npu.conformance.cases.cases import CaseFilter
from mindtorch_npu.conformance.record import journal
from mindtorch_npu.conformance.record.result import Result
from mindtorch_npu.conformance.run import engine
from mindtorch_npu.conformance.run.pool import Pool, Setup

import aclnn_bindings
from aclnn_bindings.install.library import bundled_simulator

pytestmark = pytest.mark.skipif(bundled_simulator() is None, reason="the simulator is not built")


def checked(
    tmp_path, op, fault="", timeout=120.0, only=(), second_oracle=False, **plan
) -> list[Result]:
    """All results of a quick check of ops on the simulator with a fault, or of `only` some."""
    environ = {"ACLSIM_FAULTS": fault} if fault else {}
    setup = Setup("npu:0", None, True, str(tmp_path / "run.jsonl"), timeout, environ,
                  second_oracle=second_oracle)  # fmt: skip
    ops = (op,) if isinstance(op, str) else op
    request = engine.RunRequest(ops, CaseFilter(**plan), setup, jobs=1, only=only)
    run = engine.begin(request, tmp_path / "run.jsonl")
    return list(run.results())


def verdicts(results: list[Result]) -> set[str]:
    return {r.verdict for r in results}


@pytest.mark.parametrize("op", ["add", "matmul", "index_put"])
def test_without_a_fault_nothing_fails(tmp_path, op):
    found = checked(tmp_path, op)
    assert [r.case for r in found if r.failing] == []
    assert "PASS" in verdicts(found)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("op", "fault", "case", "says"),
    [
        ("add", "add:tail", "add/functional/s0", "a second run differs"),
        ("add", "add:zeros", "add/functional/s0", "are zero where the reference is not"),
        ("matmul", "matmul:zeros", "matmul/functional/s0", "are zero where the reference is not"),
        ("add", "add:workspace", "add/functional/s0", "a second run differs"),
        ("add", "add:random", "add/functional/s0", "a second run differs"),
    ],
)
def test_guard_objects(tmp_path, op, fault, case, says):
    found = {r.case: r for r in checked(tmp_path, op, fault, only=(case,))}
    assert found[case].failing
    assert any(says in g for g in found[case].guards), found[case].guards


def test_write_past_the_end_turns_a_pass_into_mistrusted(tmp_path):
    results = checked(tmp_path, "add", "add:past,adds:past", forms=("out",))
    # An out that aliases an input, or is converted to, is written through a block of its own.
    guarded = [r for r in results if "/alias=out" not in r.case and "/promote=" not in r.case]
    assert verdicts(guarded) == {"MISTRUSTED"}
    assert {r.guards for r in guarded} == {("1 element outside of the output changed",)}


def guards_of(results: list[Result]) -> list[str]:
    """What objects to each case that has elements."""
    return [" ".join(r.guards) for r in results if r.verdict not in ("SKIP", "UNSUPPORTED")]


@pytest.mark.parametrize("op", ["index_select", "aclnnIndexSelect"])
@pytest.mark.parametrize(
    ("fault", "says"), [("past", "from 0 after|outside"), ("ends", "before its start|outside")]
)
def test_an_element_past_an_end_is_seen_in_nearly_every_case(tmp_path, op, fault, says):
    results = checked(tmp_path, op, f"indexselect:{fault}", forms=("functional",))
    objections = guards_of(results)
    seen = [text for text in objections if re.search(says, text)]
    assert len(seen) > 0.85 * len(objections), set(objections)


@pytest.mark.parametrize("op", ["index_select", "aclnnIndexSelect"])
def test_a_byte_past_the_workspace_is_seen(tmp_path, op):
    case = f"{op}/functional/s0"
    (result,) = checked(tmp_path, op, "indexselect:spill", only=(case,))
    assert result.verdict == "MISTRUSTED"
    assert re.fullmatch(r"a workspace of \d+ bytes was overrun; bytes that changed: 1 from 0 "
                        "after its end", result.reason)  # fmt: skip


def test_an_element_past_an_input_that_counts_is_seen(tmp_path):
    results = checked(tmp_path, "neg", "neg:ahead", dtypes=("float32",), forms=("functional",))
    judged = [r for r in results if r.verdict not in ("SKIP", "UNSUPPORTED")]
    empty = [r for r in judged if not r.measure["elements"]]
    # Sentinels are NaN: the one past the end says nothing where a NaN is expected.
    unseen = [r.case for r in judged if not r.failing and "values=nan" not in r.case]
    assert unseen == [r.case for r in empty]


@pytest.mark.parametrize("op", ["exp", "aclnnExp"])
def test_memory_that_two_launches_share_is_seen_on_a_second_stream(tmp_path, op):
    (result,) = checked(tmp_path, op, "exp:race", only=(f"{op}/functional/s0",))
    assert result.verdict == "MISTRUSTED"
    assert "in flight on another stream 1 of" in result.reason


def test_the_second_worker_of_a_device_has_kernels_of_several_threads(monkeypatch):
    monkeypatch.delenv("ACLSIM_THREADS", raising=False)
    lanes = [lane.setup.environ for lane in Pool(Setup(), 3)._groups["npu:0"]]
    assert [environ.get("ACLSIM_THREADS") for environ in lanes] == [None, "3", None]


def test_dropped_last_k_breaks_the_componentwise_ratio_and_exact_integers(tmp_path):
    plan = {"second_oracle": True, "dtypes": ("float32",)}
    found = {r.case: r for r in checked(tmp_path, "matmul", "matmul:lastk", **plan)}
    assert found["matmul/functional/s0"].verdict == "FAIL"
    assert "componentwise ratio" in found["matmul/functional/s0"].reason
    if find_spec("torch"):
        assert found["matmul/functional/s0"].reason.endswith("torch agrees with the reference")
    integer = [r for r in found.values() if "/values=integer" in r.case and "k=1/" not in r.case]
    assert "FAIL" in verdicts(integer)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("case", "fault"),
    [
        ("mm/functional/s0/float32", "mm:hf32"),
        ("aclnnBatchMatMul/functional/s0", "batchmatmul:hf32"),
        ("aclnnConvolution/functional/s0", "convolution:hf32"),
    ],
)
def test_hf32_where_full_precision_was_asked_for_fails(tmp_path, case, fault):
    op = case.partition("/")[0]
    assert verdicts(checked(tmp_path, op, only=(case,))) == {"PASS"}
    (tmp_path / "run.jsonl").unlink()
    assert verdicts(checked(tmp_path, op, fault, only=(case,))) == {"FAIL"}


HALVES = ("float16", "bfloat16")


def test_low_precision_accumulation_breaks_the_componentwise_ratio(tmp_path):
    found = {r.case: r for r in checked(tmp_path, "matmul", "matmul:lowacc", dtypes=HALVES)}
    for dtype in HALVES:
        long = [r for r in found.values() if r.dtype == dtype and r.verdict == "FAIL"]
        assert any("componentwise ratio" in r.reason for r in long), dtype


def test_lost_nan_is_a_nan_out_of_place(tmp_path):
    found = {r.case: r for r in checked(tmp_path, "add", "add:nan", dtypes=("float32",))}
    special = [r for r in found.values() if "values=special" in r.case]
    assert any("NaN or Inf out of place" in r.reason for r in special)


META = "add/meta/s5"  # runs nothing on the device


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("fault", "verdict", "says"),
    [
        ("crash", "CRASH", "signal 11 (SIGSEGV)"),
        ("code", "ERROR", "answered 561"),
        ("trap", "ERROR", "507015"),
    ],
)
def test_lost_case_is_recorded_and_the_run_goes_on(tmp_path, fault, verdict, says):
    both = f"add:{fault},adds:{fault}"  # the operators that add calls for a tensor and a scalar
    found = checked(tmp_path, "add", both, only=("add/out/s0/uint8", "add/out/s1/uint8", META))
    lost = [r for r in found if r.form == "out"]
    assert verdicts(lost) == {verdict}
    assert all(says in r.reason for r in lost), lost[0].reason
    assert verdicts([r for r in found if r.form != "out"]) == {"PASS"}


def test_hang_is_killed_and_the_run_goes_on(tmp_path):
    only = ("add/method/s0/uint8", META)
    results = checked(tmp_path, "add", "add:hang,adds:hang", 10.0, only)
    assert {(r.form, r.verdict) for r in results} == {("method", "HANG"), ("meta", "PASS")}


def test_journal_names_what_crashed_before_it_ran(tmp_path):
    results = checked(tmp_path, "add", "add:crash,adds:crash", only=("add/method/s0/uint8",))
    case = next(r.case for r in results if r.verdict == "CRASH")
    assert f"{case} --seed 0" in journal.read(tmp_path / "run.jsonl").started


@pytest.mark.parametrize(
    ("op", "fault", "factor"),
    [
        ("sum", "reducesum:long@1024", "row=1025"),
        ("cumsum", "cumsum:long@64", "row=65"),
        ("neg", "neg:minuszero", "values="),
        ("mul", "mul:cutoff", "dtype="),
        ("clone", "inplacecopy:dense", "layout"),
        ("add", "add:default", "call="),
    ],
)
def test_planted_condition_is_found_and_named(tmp_path, op, fault, factor):
    found = [
        r
        for r in checked(tmp_path, op, fault, forms=FORMS_OF.get(op, ("functional",)))
        if r.failing
    ]
    assert found, "no case failed"
    shrunk = [r.cause for r in found if r.cause]
    assert shrunk, "no failure was shrunk"
    assert any(factor in cause["case"] for cause in shrunk), [c["case"] for c in shrunk]


FORMS_OF = {"add": ("inplace", "out")}


def test_cause_names_the_row_length_from_which_results_are_wrong(tmp_path):
    found = [r for r in checked(tmp_path, "cumsum", "cumsum:long@300", forms=("functional",))
             if r.cause]  # fmt: skip
    sizes = [r.cause["sizes"].get("row") for r in found]
    assert [300, 301] in sizes
    assert any("row length > 300" in r.cause["text"] for r in found)
    assert any("any dtype" in r.cause["text"] for r in found)
    assert any(r.pattern["text"].startswith("one element, at") for r in found)


REFUSED = """
import aclnn_bindings, mindtorch
try:
    (mindtorch.ones(2, 2, device="npu") @ mindtorch.ones(2, 2, device="npu")).tolist()
except Exception as error:
    print(error)
"""


def refusal(fault: str) -> str:
    """What a product of matrices says where `fault` is planted; empty where it runs."""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "ACLSIM_FAULTS": fault}
    words = [sys.executable, "-c", REFUSED]
    return subprocess.run(words, env=environ, capture_output=True, text=True, check=True).stdout


def test_what_is_no_fault_refuses_every_call():
    wrong = {
        "matmul:zeroes": "'matmul:zeroes' is no fault: the kinds are tail, zeros,",
        "matmul": "'matmul' is no fault: expected OPERATOR:KIND",
        "npux/add:zeros": "expected npuN before the slash",
    }
    for fault, says in wrong.items():
        assert says in refusal(f"matmul:slow@1,{fault}"), fault


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("add:long@many", "expected a whole number after @"),
        ("add:long", "long needs a number: long@N"),
        ("add:flip", "flip needs a number"),
        ("add:flip@0", "the number after @ is 1 to"),
        ("add:slow@0", "the number after @ is 1 to"),
        ("add:stuck@128", "the number after @ is 0 to 127"),
        ("add:zeros@3", "zeros takes no number"),
        ("add:zeros@", "zeros takes no number"),
        ("ad:zeros", "there is no operator aclnnad"),
        ("aclnnAdds2:zeros", "there is no operator"),
        ("a*:zeros", "there is no operator"),
        (":zeros", "expected an operator's name"),
        ("npu9/add:zeros", "there are 2 devices"),
        ("npu1/add:lastk", "lastk acts in phase 1, which knows no device"),
        ("add:zeros,aclnnADD:nan", "'add:zeros' before it strikes in its place"),
        ("*:zeros,add:nan", "'*:zeros' before it strikes in its place"),
        ("add:zeros,npu1/add:nan", "'add:zeros' before it strikes in its place"),
        (" ", "expected OPERATOR:KIND"),
        (",", "expected OPERATOR:KIND"),
        ("npu1/memory:stuck", "stuck needs a number"),
        ("npu1/memory:flip@3", "the kinds of memory are stuck"),
        ("npu9/memory:stuck@3", "there are 2 devices"),
        ("npu1/memory:stuck@99999999", "the device has no memory there"),
        ("npu0-npu2/link:dead", "there are 2 devices"),
        ("npu1-npu1/link:dead", "a link joins two devices"),
        ("npu0-npu1/link:corrupt", "corrupt needs a number"),
        ("npu0-npu1/link:silent@3", "silent takes no number"),
        ("npu0-npu1/link:slow", "the kinds of a link are dead, silent, corrupt"),
    ],
)
def test_a_fault_that_would_never_strike_is_refused(plans, fault, says):
    assert says in plans(fault)


@pytest.mark.parametrize(
    "fault",
    ["add:zeros", "AclnnAdd:zeros", "npu1/add:nan,add:zeros", "add:nan,*:zeros", "*:flip@7",
     "add:zeros,", "npu0/add:zeros,npu1/add:nan", "add:stuck@127", "",
     "npu1/memory:stuck@64,npu0-npu1/link:dead,npu1-npu0/link:corrupt@9,add:zeros"],
)  # fmt: skip
def test_a_fault_that_may_strike_is_planted(plans, fault):
    assert plans(fault) == ""


PLANS = """
#include <cstdio>
#include <cstdlib>
#include "ascendcl/config.h"
#include "ascendcl/memory.h"
#include "nnopbase/fault_plan.h"
#include "nnopbase/kernel_binding.h"
namespace aclsim {
bool binds_key(const std::string&) { return false; }
const char* const operator_keys[] = {"add", "mul"};
const size_t operator_key_count = 2;
const Config& config() {
  static Config two{};
  two.installed = 2, two.memory = uint64_t{1} << 36;
  return two;
}
std::shared_ptr<Allocation> find_allocation(const void*) { return nullptr; }
}
int main() { std::puts(aclsim::fault_plan().error.c_str()); }
"""


@pytest.fixture(scope="module")
def plans(tmp_path_factory):
    """What is wrong with a value of ACLSIM_FAULTS, by the simulator's own parser."""
    folder = tmp_path_factory.mktemp("plans")
    program, source = folder / "plans", folder / "plans.cpp"
    source.write_text(PLANS)
    root = Path(aclnn_bindings.__file__).parent / "simulator"
    install = bundled_simulator()
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++ to build the parser with")
    words = [compiler, "-std=c++17", f"-I{root / 'src'}", f"-I{install / 'include'}",
             f"-I{root / 'include'}", str(source), str(root / "src/nnopbase/fault_plan.cpp"),
             str(root / "src/ascendcl/hardware_faults.cpp"), "-o", str(program)]  # fmt: skip
    subprocess.run(words, check=True)

    def wrong(fault: str) -> str:
        environ = {"ACLSIM_FAULTS": fault}
        done = subprocess.run([program], env=environ, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    return wrong


def test_a_fault_that_cannot_apply_refuses_every_call(tmp_path):
    planted = {
        "neg": ("neg:lastk", "'neg:lastk' cannot apply to aclnnNeg: it multiplies no two matrices"),
        "exp": ("exp:default", "it takes no scalar"),
        "argmax": ("argmax:nan", "it writes no floating-point numbers"),
        "isfinite": ("isfinite:stuck@9", "no result has so many bits"),
        "abs": ("abs:lowacc", "it multiplies no two matrices"),
    }
    faults = ",".join(fault for fault, _ in planted.values())
    only = tuple(f"{op}/functional/s0" for op in planted)
    results = checked(tmp_path, tuple(planted), faults, only=only)
    assert {r.op: r.verdict for r in results} == dict.fromkeys(planted, "ERROR")
    for result in results:
        assert planted[result.op][1] in result.reason


def test_the_last_term_is_lost_of_products_that_are_added(tmp_path):
    found = checked(tmp_path, "addmm", "addmm:lastk", dtypes=("float32",), forms=("functional",))
    assert "FAIL" in verdicts(found)
    assert "ERROR" not in verdicts(found)


LOWER = "aclnnGemm/functional/N=33/alpha=-2.0/cubeMathType=1/dtype=float32"


def test_hf32_is_right_where_the_call_allows_it_and_a_lost_term_is_not(tmp_path):
    assert verdicts(checked(tmp_path, "aclnnGemm", only=(LOWER,))) == {"PASS"}
    (tmp_path / "run.jsonl").unlink()
    assert verdicts(checked(tmp_path, "aclnnGemm", "gemm:lastk", only=(LOWER,))) == {"FAIL"}


@pytest.mark.parametrize(("fault", "verdict"), [("", "PASS"), ("mm:lastk", "FAIL")])
def test_gradients_of_products_are_judged_by_what_a_310p_rounds(
    tmp_path, monkeypatch, fault, verdict
):
    monkeypatch.setenv("ACLSIM_SOC", "Ascend310P3")
    assert verdicts(checked(tmp_path, "mm", fault, only=("mm/grad/s0/float32",))) == {verdict}
