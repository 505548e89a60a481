"""Texts of a journal that somebody else wrote are shown, on every way out, and never obeyed."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from mindtorch_npu.conformance.record import journal
from mindtorch_npu.conformance.record.result import Result
from mindtorch_npu.main import main

EVIL = (
    "<script>alert(1)</script>"
    "\x1b]52;c;aGk=\x07\x1b[2J\x9b31m\u202e\u2028\x85 ]]> --> =cmd|'/c x'!A1"
    " [x](javascript:alert(1)) | ` \\ \x00\x08\x7f"
)
FORMS = {
    "terminal": (), "verbose": ("-v",), "html": ("--html",), "junit": ("--junit",),
    "md": ("--md",), "merged": ("--merge",), "merged html": ("--merge", "--html"),
    "merged md": ("--merge", "--md"), "compared": ("--compare",),
    "metrics": ("--merge", "--prometheus"),
}  # fmt: skip


# A line of Prometheus' text format: a comment, a sample with its labels, or nothing.
_METRIC = re.compile(r'# (HELP|TYPE) .*|[a-z_]+({([a-z_]+="(\\.|[^"\\\x00-\x1f])*",?)*})? \S+|')


def _evil_journal(path: Path, *, shaped: bool) -> None:
    """Every text of it an attack; `shaped` as ours are, else with objects that lack their parts."""
    text = EVIL + "/out/1"
    dtypes = {"failing": [EVIL], "passing": [EVIL]}
    cause = {"case": text, "text": EVIL, **dtypes} if shaped else {EVIL: EVIL}
    pattern = {"text": EVIL, "wrong": EVIL, "blocks": EVIL} if shaped else {EVIL: EVIL}
    head = journal.header({"device": EVIL, "install": EVIL}, {"level": EVIL, "what": EVIL}, 3)
    result = Result(text, EVIL, "out", "FAIL", "float32", "T0", "T0", EVIL, guards=(EVIL,),
                    inputs=(EVIL,), aclnn=EVIL, issue=EVIL, rechecks=(EVIL,), device=EVIL,
                    node=EVIL, digest=EVIL, cause=cause, pattern=pattern)  # fmt: skip
    lost = {"place": EVIL, "reason": EVIL, "what": EVIL} if shaped else {EVIL: EVIL}
    book = journal.Journal(path, EVIL)
    book.write("run", {**head, "node": EVIL, "started": EVIL})
    for case in (text, EVIL + "/out/2"):
        book.write("start", {"case": case, "seed": 0, "device": EVIL})
    book.result(result)
    book.write("lost", lost)
    book.write("end", {"seconds": 1.0, "stopped": EVIL, "interrupted": True})
    book.close()


@pytest.mark.parametrize("shaped", [True, False], ids=["shaped", "shapeless"])
@pytest.mark.parametrize("form", FORMS)
def test_no_text_of_a_journal_is_obeyed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str, shaped: bool
):
    book, page = tmp_path / "run\x1b[2J.jsonl", tmp_path / "page"
    _evil_journal(book, shaped=shaped)
    words = list(FORMS[form])
    written = words and words[-1] in ("--html", "--junit", "--md", "--prometheus")
    source = [str(book)] if "--merge" in words else ["--from", str(book)]
    source = [str(book)] * 2 if form == "compared" else source
    with pytest.raises(SystemExit) as end:
        main(["report", *words, *([str(page)] if written else []), *source])
    told = "".join(capsys.readouterr())
    assert end.value.code in ((0, 1, 4, 5) if shaped else (0, 1, 2, 4, 5)), told
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2028]", told)
    if written and page.exists():
        text = page.read_text("utf-8")
        assert "\x1b" not in text
        if form == "junit":
            ElementTree.fromstring(text)
        elif form.endswith("html"):
            assert "<script>alert" not in text
            assert not re.search(r"""(href|src)=["']?javascript""", text)
        elif form == "metrics":
            assert all(_METRIC.fullmatch(line) for line in text.split("\n"))
        else:
            prose = re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.DOTALL)
            assert "<script>alert" not in prose
            assert not re.search(r"(?<!\\)\[[^\]]*\]\(javascript", prose)
