"""Journals of many hosts become one: in any order, twice the same once, nothing lost in silence."""

from __future__ import annotations

import itertools
import json

import pytest
from journals import ENVIRONMENT, result, write
from mindtorch_npu.conformance.record import journal
from mindtorch_npu.fleet import files, merge, parts
from mindtorch_npu.fleet.parts import ForeignJournalError

CASES = [f"add/functional/s{i}" for i in range(6)]


def merged(*paths):
    return merge.merge(parts.read(paths))


@pytest.fixture
def three(tmp_path):
    """Three hosts: a shard each; the second was cut off, so that the third ran its case too."""
    first = write(tmp_path / "a.jsonl", "host1", map(result, CASES[:2]), CASES[:2], shard="1/3")
    second = write(tmp_path / "b.jsonl", "host2", [result(CASES[2])], CASES[2:4], {}, shard="2/3")
    third = write(
        tmp_path / "c.jsonl", "host3",
        [result(CASES[4]), result(CASES[5], "FAIL", reason="1 ULP"), result(CASES[2], "FAIL")],
        CASES[4:], shard="3/3",
    )  # fmt: skip
    return [first, second, third]


def told(fleet):
    data = files.data(fleet)
    return json.dumps(data, sort_keys=True)


def test_any_order_gives_the_same(three):
    assert len({told(merged(*order)) for order in itertools.permutations(three)}) == 1


def test_twice_the_same_gives_once(three, tmp_path):
    copy = tmp_path / "copy of a.jsonl"
    copy.write_bytes(three[0].read_bytes())
    once, twice = merged(*three), merged(*three, copy, *three)
    assert once.results == twice.results
    assert once.counts().by_verdict == twice.counts().by_verdict == {"PASS": 3, "FAIL": 2}


def test_an_early_copy_of_a_journal_takes_nothing_away(three, tmp_path):
    early = tmp_path / "early.jsonl"
    early.write_text("".join(three[2].read_text().splitlines(keepends=True)[:4]))
    assert merged(early, *three).results == merged(*three).results


def test_a_case_that_ran_twice_counts_once_and_at_its_worst(three):
    fleet = merged(*three)
    key = (CASES[2], 0, "")
    assert fleet.results[key].verdict == "FAIL"
    assert [(a.node, b.node) for a, b in fleet.twice] == [("host3", "host2")]


def test_a_planned_case_without_a_result_is_named_with_its_host(three):
    assert merged(*three).lost == {(CASES[3], 0, ""): "not begun on host2"}
    assert merged(*three).failing


def test_a_case_under_way_when_its_host_died_is_named(tmp_path):
    path = write(tmp_path / "a.jsonl", "host1", [result(CASES[0])], CASES[:2], {})
    with path.open("a") as file:
        run = json.loads(path.read_text().splitlines()[0])["run"]
        file.write(json.dumps({"kind": "start", "run": run, "case": CASES[1], "seed": 0}) + "\n")
    assert merged(path).lost == {(CASES[1], 0, ""): "under way on host1"}


def test_a_lost_case_that_ran_elsewhere_is_not_lost(three, tmp_path):
    again = write(tmp_path / "d.jsonl", "host4", [result(CASES[3])], [CASES[3]])
    assert not merged(*three, again).lost


def test_the_host_that_only_directs_a_cluster_is_no_host_of_the_report(tmp_path):
    notes = [("place", {"node": n, "environment": ENVIRONMENT, "skew": 0.0}) for n in ("n1", "n2")]
    own = [result(CASES[i], node=f"n{i + 1}", device="npu:0") for i in range(2)]
    fleet = merged(write(tmp_path / "a.jsonl", "head", own, CASES[:2], notes=notes))
    assert [node for node, _ in fleet.environments()] == ["n1", "n2"]
    assert "2 hosts" in files.as_markdown(fleet)


def test_a_part_without_a_journal_is_missing(three):
    assert [str(s) for s in merged(three[0], three[2]).missing] == ["2/3"]


def test_another_version_is_refused_by_name(three, tmp_path):
    other = write(tmp_path / "d.jsonl", "host4", [result(CASES[3])],
                  environment={"mindtorch_npu": "0.2.0"})  # fmt: skip
    with pytest.raises(ForeignJournalError, match=r"d\.jsonl by 0\.2\.0"):
        merged(*three, other)


def test_another_format_is_refused_by_name(three, tmp_path):
    path = tmp_path / "new.jsonl"
    path.write_text(three[0].read_text().replace("check/1", "check/9"))
    with pytest.raises(ForeignJournalError, match=r"new\.jsonl: format 'mindtorch-npu/check/9'"):
        merged(path)


def test_what_is_no_journal_is_refused(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"kind": "result"}\n')
    with pytest.raises(journal.JournalError, match="no header line"):
        merged(path)


def test_two_runs_in_one_file_are_told_apart_line_by_line(three, tmp_path):
    lines = [path.read_text().splitlines() for path in three[:2]]
    both = tmp_path / "both.jsonl"
    mixed = [line for pair in itertools.zip_longest(*lines) for line in pair if line]
    both.write_text("\n".join(mixed) + "\n")
    assert merged(both).results == merged(*three[:2]).results


def test_prometheus_text_is_what_its_parser_takes(three):
    text = files.prometheus(merged(*three))
    samples = [line for line in text.splitlines() if not line.startswith("#")]
    assert 'mindtorch_npu_check_results{node="host1",device="npu:0",verdict="PASS"} 2' in samples
    assert "mindtorch_npu_fleet_lost_cases 1" in samples
    assert all(float(line.rpartition(" ")[2]) >= 0 for line in samples)
    named = {line.split("{")[0].split(" ")[0] for line in samples}
    typed = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    assert named <= typed


def test_devices_that_differ_alike_are_one_finding_and_few_others_are_named(tmp_path):
    """Three hosts with another driver among forty: one finding, not 24 with 288 names each."""
    odd = {"host3", "host4", "host5"}
    paths = [
        write(tmp_path / f"{n}.jsonl", f"host{n}",
              [result(CASES[0], device=f"npu:{d}", digest="bb" if f"host{n}" in odd else "aa")
               for d in range(8)], compare=True)
        for n in range(40)
    ]  # fmt: skip
    fleet = merged(*paths)
    assert len(fleet.deviations) == 24
    page = files.page(fleet)
    assert "24 devices of 3 hosts (host3, host4, host5) differ: deterministic difference" in page
    assert "and 288 more" in page
    assert page.count(" differ:") == 1
    assert max(len(d["against"]) for d in files.data(fleet)["deviations"]) == 8


def test_labels_are_escaped():
    lines = list(files._metric("m", "h", [({"a": 'x"\\\n'}, 1)]))
    assert lines[-1] == 'm{a="x\\"\\\\\\n"} 1'


def test_the_page_shows_text_of_journals_as_text(tmp_path):
    bad = result(CASES[0], "FAIL", reason="<script>alert(1)</script>")
    page = files.page(merged(write(tmp_path / "a.jsonl", "<b>host</b>", [bad])))
    assert "<script>" not in page
    assert "&lt;b&gt;host&lt;/b&gt;" in page


@pytest.mark.parametrize("change", [
    {"seed": None}, {"seed": 1e400}, {"cases": None}, {"cases": 3}, {"seed": [1]},
])  # fmt: skip
def test_a_line_of_another_shape_is_refused_by_name(tmp_path, change):
    path = tmp_path / "a.jsonl"
    write(path, "n", [result("add/out/1")], plan=["add/out/1"])
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    plan = next(line for line in lines if line["kind"] == "plan")
    plan.update(change)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(journal.JournalError, match="a 'plan' line is none of ours"):
        parts.read([path])


def test_a_line_that_is_nested_too_deep_is_a_torn_one(tmp_path):
    path = tmp_path / "a.jsonl"
    write(path, "n", [result("add/out/1")])
    with path.open("a") as file:
        file.write("[" * 100_000 + "\n")
    assert parts.read([path])[0].torn == 1
