"""Reports in every form come from one record, and say the same."""

import json
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest
from browser import browser, missing
from mindtorch_npu import exits, main, pages
from mindtorch_npu.commands.report import html
from mindtorch_npu.conformance.record import journal
from mindtorch_npu.conformance.record.result import VERDICTS, Result
from test_probe_command import problems

SCHEMA = json.loads((Path(main.__file__).parent / "commands/report/check.schema.json").read_text())
MEASURE = {
    "elements": 12, "different": 2, "nonfinite": 0, "max_ulp": 7.5, "mean_ulp": 0.4, "bias": -0.1,
    "max_absolute": 1e-3, "max_relative": 2e-3, "mean_relative": 1e-5, "root_mean_square": 1e-4,
    "ratio": 9.25, "histogram": [10, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0],
    "worst": {"index": [1, 2], "got": "6.5", "expected": "6", "inputs": {"input 0": "2.5"}},
}  # fmt: skip
ENVIRONMENT = {
    "device": "npu:0", "mindtorch_npu": "0.1.0", "python": "3.11", "numpy": "2", "host": "Linux",
    "cpus": 2, "switches": {}, "install": "/opt/cann", "kind": "cann", "cann": "9.1.0",
    "soc": "Ascend910B2", "modes": {"HF32": "off"},
}  # fmt: skip
RESULTS = (
    Result("add/out/s0", "add", "out", "PASS", "float32", "T0", "T1", seconds=0.002),
    Result("mul/out/s0/float16", "mul", "out", "FAIL", "float16", "T3", "T1", seconds=0.003,
           reason="ULP bound: 7.5 > 1 ULP; at [1, 2] got 6.5 <b>", measure=MEASURE,
           outcomes=(("T1", "ULP bound", False, "7.5 > 1 ULP"),), inputs=("float16[3, 4]",)),
    Result("exp/out/s0", "exp", "out", "CRASH", reason="signal 11 (SIGSEGV)"),
    Result("exp/meta/s0", "exp", "meta", "SKIP", reason="nothing to compare"),
    Result("sum/out/s0", "sum", "out", "XFAIL", issue="known & expected"),
)  # fmt: skip


@pytest.fixture
def book(tmp_path):
    """A journal of one result per kind."""
    return written(tmp_path / "run.jsonl", RESULTS)


def written(path, results, planned=None):
    made = journal.Journal(path)
    options = {"what": "all", "level": "quick", "seed": 0}
    made.write("run", journal.header(ENVIRONMENT, options, planned or len(results)))
    for result in results:
        made.result(result)
    made.write("end", {"seconds": 2.0, "replaced": 1, "interrupted": False})
    made.close()
    return path


def leave(*words):
    with pytest.raises(SystemExit) as ended:
        main.main([str(w) for w in words])
    return ended.value.code


def test_json_keeps_its_schema_and_reads_back(book, tmp_path):
    out = tmp_path / "report.json"
    assert leave("report", "--from", book, "--json", out) == exits.PROBLEMS
    data = json.loads(out.read_text())
    assert list(problems(data, SCHEMA, SCHEMA)) == []
    for name in ("result", "passes"):
        known = set(SCHEMA["$defs"][name]["properties"])
        assert all(set(r) <= known for r in data[{"result": "results"}.get(name, name)]), name
    assert set(SCHEMA["$defs"]["result"]["properties"]["verdict"]["enum"]) == set(VERDICTS)
    assert journal.read(out).results == journal.read(book).results


def test_every_pass_reads_back_from_a_json_report(tmp_path):
    passing = [
        Result(f"add/out/{rest}", "add", "out", "PASS", dtype, "T1", "T2", seconds=0.0025,
               measure={"max_ulp": ulp} if ulp else None, device=device)
        for rest, dtype, ulp, device in (("s0", "float32", 0, ""), ("a=1/b=2", "", 0.5, "npu:1"))
    ] + [Result("add/meta", "add", "meta", "PASS")]  # fmt: skip
    out = tmp_path / "report.json"
    book = written(tmp_path / "run.jsonl", passing)
    leave("report", "--from", book, "--json", out)
    assert journal.read(out).results == journal.read(book).results


def test_a_report_with_whole_names_in_its_rows_reads_too(book, tmp_path):
    out = tmp_path / "report.json"
    leave("report", "--from", book, "--json", out)
    data = json.loads(out.read_text())
    for group in data["passes"]:
        words = group.pop("words")
        group["cases"] = [
            ["/".join(words[at] for at in parts), words[dtype], words[tier], *rest]
            for parts, dtype, tier, *rest in group["cases"]
        ]
    out.write_text(json.dumps(data, indent=1))
    assert journal.read(out).results == journal.read(book).results


def test_a_damaged_group_of_passes_is_named(book, tmp_path, capsys):
    out = tmp_path / "report.json"
    leave("report", "--from", book, "--json", out)
    for passes in ([3], [{"cases": [["a"]]}], {"op": "add"}, [{"op": 3, "cases": []}, {}],
                   [{"words": ["T0"], "cases": [[[0], 0, 7, 0.1]]}]):  # fmt: skip
        data = json.loads(out.read_text())
        out.write_text(json.dumps({**data, "passes": passes}, indent=1))
        assert leave("report", "--from", out) == exits.USAGE
        assert str(out) in capsys.readouterr().err


def test_reports_of_many_passes_are_small(tmp_path):
    """4,000 cases of 100 operators; 91,172 stay below 3 MB of HTML, 7 of JSON, 4 of JUnit."""
    rests = [f"dtype=float32/layout=transposed/values=special/row={n}/call=13" for n in range(40)]
    results = [Result(f"op{i}/functional/{rest}", f"op{i}", "functional", "PASS", "float32", "T0",
                      "T1", seconds=n / 1e5, inputs=("float32[3, 4]",), measure=MEASURE)
               for i in range(100) for n, rest in enumerate(rests)]  # fmt: skip
    book = written(tmp_path / "run.jsonl", results)
    pages = {form: tmp_path / f"report.{form}" for form in ("html", "json", "junit")}
    words = [w for form, path in pages.items() for w in (f"--{form}", path)]
    assert leave("report", "--from", book, *words) == exits.OK
    sizes = {form: path.stat().st_size / 4000 * 91_172 / 1e6 for form, path in pages.items()}
    assert sizes["html"] < 3, sizes
    assert sizes["json"] < 7, sizes
    assert sizes["junit"] < 4, sizes


def test_junit_counts_and_escapes(book, tmp_path):
    out = tmp_path / "junit.xml"
    leave("report", "--from", book, "--junit", out)
    root = ElementTree.parse(out).getroot()
    assert {k: root.get(k) for k in ("tests", "failures", "errors", "skipped")} == {
        "tests": "5", "failures": "1", "errors": "1", "skipped": "2",
    }  # fmt: skip
    assert root.find(".//testcase[@name='exp/meta SKIP']/skipped") is not None
    failure = root.find(".//testcase[@name='mul/out/s0/float16']/failure")
    assert failure is not None
    assert "mindtorch-npu check mul --case mul/out/s0/float16 --seed 0" in (failure.text or "")


def test_markdown_and_terminal_say_the_same(book, tmp_path, capsys):
    out = tmp_path / "report.md"
    leave("report", "--from", book, "--md", out)
    capsys.readouterr()
    leave("report", "--from", book)
    shown = capsys.readouterr().out
    for text in ("mul/out/s0/float16", "signal 11", "7.5 ULP at [1, 2] from 2.5",
                 "5 cases of 4 operators in 2.0 s"):  # fmt: skip
        assert text in shown
        assert text.replace("[", "\\[") in out.read_text()


def test_a_journal_is_shown_by_its_name_alone(book, capsys):
    assert leave("report", "--from", book) == exits.PROBLEMS
    named = capsys.readouterr().out
    assert leave("report", book) == exits.PROBLEMS
    assert capsys.readouterr().out == named
    assert leave("report", book, book) == exits.USAGE
    assert "--merge" in capsys.readouterr().err


def test_narrow_pipe_loses_no_failure(book, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    leave("report", "--from", book)
    shown = capsys.readouterr().out
    commands = [line for line in shown.splitlines() if "again: " in line]
    assert "mindtorch-npu check mul --case mul/out/s0/float16 --seed 0" in "".join(commands)
    assert all(len(line) <= 60 for line in shown.splitlines() if line not in commands)
    assert "mul/out/s0/float16" in shown


def test_other_file_is_a_usage_error(tmp_path, capsys):
    wrong = tmp_path / "x.jsonl"
    wrong.write_text("{}\n")
    assert leave("report", "--from", wrong) == exits.USAGE
    assert "no journal" in capsys.readouterr().err


def test_comparison_names_regressions_and_leaves_with_four(book, tmp_path, capsys):
    fixed = tuple(r.with_(verdict="PASS", tier="T0") for r in RESULTS[:3]) + RESULTS[4:]
    other = written(tmp_path / "other.jsonl", fixed)
    assert leave("report", "--compare", other, book) == exits.REGRESSIONS
    shown = capsys.readouterr().out
    assert "regression (2)" in shown
    assert "only after (1)" in shown
    assert "2 regressions" in shown
    assert leave("report", "--compare", book, other) == exits.OK
    assert "fixed (2)" in capsys.readouterr().out


def test_a_run_that_was_cut_off_is_not_judged(tmp_path, capsys):
    passes = tuple(r for r in RESULTS if r.verdict == "PASS")
    path = written(tmp_path / "run.jsonl", passes, 5)
    assert leave("report", path) == exits.NOT_JUDGED
    assert f"{len(passes)} of 5 cases have a result" in capsys.readouterr().err
    assert leave("report", "--compare", path, path) == exits.NOT_JUDGED
    five = tuple(passes[0].with_(case=f"add/out/s{i}") for i in range(5))
    lines = written(tmp_path / "other.jsonl", five).read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))
    assert leave("report", path) == exits.NOT_JUDGED
    assert "the run has no end" in capsys.readouterr().err
    assert leave("report", "--compare", path, written(tmp_path / "none.jsonl", ())) == (
        exits.NOT_JUDGED
    )
    assert "no case in common" in capsys.readouterr().err


def test_a_journal_may_begin_with_a_byte_order_mark(book, tmp_path):
    marked = tmp_path / "marked.jsonl"
    marked.write_bytes(b"\xef\xbb\xbf" + book.read_bytes())
    assert leave("report", marked) == exits.PROBLEMS
    assert journal.read(marked).results == journal.read(book).results
    assert leave("report", "--merge", marked) == exits.PROBLEMS


def test_page_is_self_contained_and_cannot_be_broken_by_its_data(book):
    hostile = RESULTS[1].with_(reason="</script><script>document.title='broken'</script>")
    record = journal.read(book)
    record.results["hostile"] = hostile
    page = html.page(record)
    assert "</script><script>document.title" not in page
    for outside in ("http://", "https://", "@import", "src="):
        assert outside not in page.replace('"http://www.w3.org/2000/svg"', ""), outside


def test_page_tells_without_a_script_what_failed_where_and_how_to_run_it_again(book):
    page = html.page(journal.read(book))
    static = page[: page.index("<script")]
    for text in ("<noscript>", "6.5 &lt;b&gt;", ">0/1<", 'id="mul/out/s0/float16"', "signal 11",
                 "mindtorch-npu check mul --case mul/out/s0/float16 --seed 0", "T1", "fails",
                 "Ascend910B2", "known &amp; expected"):  # fmt: skip
        assert text in static, text
    figure = static[static.index("<figure>") : static.index("</figure>")]
    assert figure.count("<rect") == len(MEASURE["histogram"])
    causes, operators, failures = (
        static.index(t) for t in ("Operators with failures", "Failures (2)", "All cases")
    )
    assert causes < operators < failures


@pytest.mark.skipif(bool(missing()), reason=missing() or "a browser is there")
def test_page_filters_sorts_and_fits_a_telephone_in_a_browser(book, tmp_path):
    page = tmp_path / "page.html"
    leave("report", "--from", book, "--html", page)
    with browser(tmp_path / "profile") as tab:
        tab.open(page.as_uri())
        rows = ("return [...document.querySelectorAll('#rows tr')]"
                ".map(r => r.cells[1].textContent.split(/ |ULP|sig|noth|known/)[0])")  # fmt: skip
        for _ in range(100):  # unpacked by then
            if len(tab.script(rows)) == 5:
                break
            time.sleep(0.05)
        assert set(tab.script(rows)) == {r.case for r in RESULTS}
        assert tab.script("return document.title") == "check all · level quick · seed 0"
        tab.click("#verdicts button[data-verdict=FAIL]")
        assert tab.script(rows) == ["mul/out/s0/float16"]
        tab.click("#rows a")
        assert tab.script("return document.querySelector(':target').id") == "mul/out/s0/float16"
        tab.click("#clear")
        tab.type("#case", "exp")
        assert sorted(tab.script(rows)) == ["exp/meta/s0", "exp/out/s0"]
        tab.click("button[data-key=case]")
        assert tab.script(rows) == ["exp/meta/s0", "exp/out/s0"]
        tab.show_as(400, 1000, "light")
        assert tab.script("return document.documentElement.scrollWidth") <= 400
        assert tab.errors() == []


def test_scripts_of_pages_never_make_markup_of_text():
    for script in (Path(pages.__file__).parent / "templates").glob("*.js"):
        for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write"):
            assert way not in script.read_text(), script


def test_junit_carries_no_name_that_xml_refuses(tmp_path):
    made = journal.Journal(tmp_path / "run.jsonl")
    made.write("run", journal.header({**ENVIRONMENT, "a\x1bb": "c\ufffe"}, {"what": "all"}, 1))
    made.result(Result("add/out/s0", "add", "out", "PASS"))
    made.write("end", {"seconds": 2.0, "replaced": 0, "interrupted": False})
    made.close()
    page = tmp_path / "junit.xml"
    leave("report", "--from", tmp_path / "run.jsonl", "--junit", page)
    names = [p.get("name") for p in ElementTree.fromstring(page.read_text()).iter("property")]
    assert "a?b" in names


def test_junit_carries_no_character_that_xml_refuses(tmp_path):
    result = Result("add/out/s0", "add", "out", "FAIL", reason="a\ufffe\x1bb")
    page = tmp_path / "junit.xml"
    written(tmp_path / "run.jsonl", (result,))
    assert leave("report", "--from", tmp_path / "run.jsonl", "--junit", page) == 1
    assert "a??b" in page.read_text()
    ElementTree.fromstring(page.read_text())
