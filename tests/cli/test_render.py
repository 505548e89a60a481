"""Documents of blocks, shown on terminals of any width and written as Markdown."""

import io
import re
from typing import Literal

import pytest
from mindtorch_npu import render
from mindtorch_npu.render import Cell, Code, Facts, Grid, Heading, Item, Items, Line
from rich.console import Console

BLOCKS: list[render.Block] = [
    Line(Cell("all is well", "good")),
    Heading("Things"),
    Facts([("root", "/usr/local"), ("state", Cell("bad | worse", "bad"))]),
    Grid(("name", "count"), [("a", "1"), (Cell("b", "warn"), "22")], frozenset({1})),
    Items([Item(Cell("first", "bad"), [("fix", "do this"), ("seen", "x < y")])]),
    Code("int f(void);"),
]


def shown(width: int, terminal: bool = False) -> str:
    out = io.StringIO()
    made = render.console(out)
    colour: Literal["standard"] | None = "standard" if terminal else None
    on = Console(
        file=out,
        width=width,
        force_terminal=terminal,
        color_system=colour,
        theme=render._THEME,
        highlight=False,
    )
    assert made.file is out
    render.show(BLOCKS, on)
    return out.getvalue()


def test_a_pipe_gets_plain_text() -> None:
    assert shown(60) == (
        "all is well\n\nThings\n  root   /usr/local\n  state  bad | worse\n"
        "  name  count\n  a         1\n  b        22\n"
        " 1. first\n    fix: do this\n    seen: x < y\n  int f(void);\n"
    )


def test_a_terminal_gets_colour() -> None:
    assert "\x1b[32mall is well" in shown(60, terminal=True)


@pytest.mark.parametrize("width", [24, 40])
def test_narrow_terminals_wrap_instead_of_cutting(width: int) -> None:
    text = shown(width)
    assert max(map(len, text.splitlines())) <= width
    assert "/usr/local" in text


@pytest.mark.parametrize("terminal", [False, True])
def test_no_line_ends_within_a_word_that_is_to_be_copied(terminal: bool) -> None:
    path = "/tmp/" + "long/" * 20 + "case.rec"
    details = [("why", "some words " * 6), ("again", f"check --from {path} --simulator")]
    out = io.StringIO()
    on = Console(file=out, width=40, force_terminal=terminal, color_system=None)
    render.show([Items([Item("first", [*details, ("map", f"{path}\n  x")])])], on)
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    assert f"    again: check --from {path} --simulator" in lines
    assert lines[-2:] == [f"    map: {path}", "      x"]
    assert max(len(line) for line in lines if path not in line) <= 40


def test_markdown_escapes_what_it_would_misread() -> None:
    text = render.markdown(BLOCKS)
    assert "| name | count |\n| --- | ---: |\n| a | 1 |" in text
    assert "bad \\| worse" in text
    assert "   - seen: x &lt; y" in text
    assert "```c\nint f(void);\n```" in text
    assert "\n\n\n" not in text


def test_escape_codes_of_a_message_do_not_reach_the_terminal() -> None:
    blocks = [
        render.Line("a\x1b[2Jb\x9bc"),
        render.Items([render.Item("t", [("why", "\x1b]0;x")])]),
    ]
    assert "\x1b" not in render.markdown(blocks)
    on = render.console(io.StringIO())
    render.show(blocks, on)
    assert not set("\x1b\x9b") & set(on.file.getvalue())  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "text",
    [
        "[here](javascript:alert(1))",
        "\\[here](javascript:alert(1))",
        "![x](http://host/x)",
        "[a]: javascript:alert(1)",
        "<img src=x onerror=alert(1)>",
        "a | b",
        "*loud*",
    ],
)
def test_markdown_of_foreign_text_has_no_markup_of_its_own(text: str) -> None:
    blocks = [
        Line(text), Heading(text), Facts([(text, text)]), Grid((text,), [(text,)]),
        Items([Item(text, [(text, text)])]),
    ]  # fmt: skip
    for line in render.markdown(blocks).splitlines():
        bare = re.sub(r"\\(.)", "", line.replace("\\\\", ""))  # what no backslash escapes
        assert not re.search(r"[\[<]", bare), line


def test_markdown_of_code_ends_where_the_code_does() -> None:
    text = render.markdown([Code("a\n```\n[b](javascript:c)")])
    assert text.startswith("````c\n")
    assert text.rstrip().endswith("\n````")


@pytest.mark.parametrize("columns", ["0", "1", "19"])
def test_a_width_that_shows_nothing_is_none(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job without a terminal may set COLUMNS=0; a report of it would be blank."""
    monkeypatch.setenv("COLUMNS", columns)
    assert render.console(io.StringIO()).width == 120


def test_a_table_in_a_pipe_has_the_width_it_needs(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    out = io.StringIO()
    row = ("w" * 90, "1234 (1200–1300)", "why it is as it is, in some more words than fit")
    render.show([render.Grid(("workload", "device µs", "reason"), [row])], render.console(out))
    head, line = out.getvalue().splitlines()
    assert head.split("  ")[-1].strip() == "reason"
    assert [part in line for part in row] == [True] * 3


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_a_table_that_is_too_wide_is_split_and_loses_nothing(width: int) -> None:
    columns = ("workload", "device µs", "host µs", "e2e µs", "cold µs", "n", "why")
    row = ("add float32 64x64", "109366 (109366–109366)", "6.18 (6.18–6.18)",
           "103890 (103844–103936)", "203890 (103844–203936)", "12", "other programs")  # fmt: skip
    out = io.StringIO()
    on = Console(file=out, width=width, theme=render._THEME, color_system=None)
    render.show([Grid(columns, [row], frozenset(range(1, 6)))], on)
    text = out.getvalue()
    assert max(map(len, text.splitlines())) <= width
    assert [cell for cell in (*columns, *row) if cell not in text] == []
