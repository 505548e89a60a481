"""Journals of many hosts become one: in any order, twice the same once, nothing lost in silence."""

import gzip
import itertools
import json
import random
import time
import tracemalloc
from collections import Counter

import fsspec
import pytest
import zstandard
from journals import ENVIRONMENT, result, write
from mindtorch_npu import exits
from mindtorch_npu.conformance.record import journal, votes
from mindtorch_npu.fleet import advice, columns, files, host_faults, merge, page, stores
from mindtorch_npu.main import group

CASES = [f"add/functional/s{i}" for i in range(6)]


@pytest.fixture(params=["msgspec", "json"])
def decoder(request, monkeypatch):
    """Journals are read alike without msgspec."""
    if request.param == "json":
        monkeypatch.setattr(columns, "find_spec", lambda name: None)


def merged(*paths):
    return merge.merge(paths)


@pytest.fixture
def three(tmp_path, decoder):
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


def judged(fleet):
    return {case: fleet.tally.verdict(case) for case in sorted(fleet.tally.cases)}


def test_any_order_gives_the_same(three):
    assert len({told(merged(*order)) for order in itertools.permutations(three)}) == 1


def test_twice_the_same_gives_once(three, tmp_path):
    copy = tmp_path / "copy of a.jsonl"
    copy.write_bytes(three[0].read_bytes())
    once, twice = merged(*three), merged(*three, copy, *three)
    assert judged(once) == judged(twice)
    assert once.counts().by_verdict == twice.counts().by_verdict == {"PASS": 3, "FAIL": 2}


def test_an_early_copy_of_a_journal_takes_nothing_away(three, tmp_path):
    early = tmp_path / "early.jsonl"
    early.write_text("".join(three[2].read_text().splitlines(keepends=True)[:4]))
    assert judged(merged(early, *three)) == judged(merged(*three))


def test_a_case_that_ran_twice_counts_once_and_at_its_worst(three):
    fleet = merged(*three)
    assert fleet.tally.verdict(CASES[2]) == "FAIL"
    assert [(a.place, b.place) for a, b in fleet.twice] == [("host3 npu:0", "host2 npu:0")]


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


def test_journals_of_another_version_are_left_out_by_name(three, tmp_path):
    other = write(tmp_path / "d.jsonl", "host4", [result(CASES[3])],
                  environment={"mindtorch_npu": "0.2.0"})  # fmt: skip
    fleet = merged(*three, other)
    assert [(u.source, u.why.split(" of ")[0]) for u in fleet.unread] == [
        (str(other), "written by version 0.2.0")
    ]
    assert judged(fleet)[CASES[3]] == ""
    assert fleet.incomplete


NEWER = '{"kind":"result","verdict":"MAYBE","case":"add/functional/s0","op":"add"}\n'


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no header line"),
        ('{"kind": "result"}\n', "no header line"),
        ("HEAD".replace("HEAD", '{"kind":"run","schema":"mindtorch-npu/check/9"}\n'), "format"),
        ("HEAD" + NEWER, "verdict 'MAYBE' is none of"),
        ('HEAD{"kind":"result","verdict":"PASS","form":"functional","case":7}\n', "none of ours"),
        ('HEAD{"kind":"plan","seed":0}\n', "a 'plan' line is none of ours"),
        ("\x1f\x8b broken", "cannot be read"),
    ],
)
def test_what_cannot_be_read_is_named_and_the_others_are_merged(three, tmp_path, text, why):
    """Journals are empty at their start; one of them made a merge refuse all the others."""
    path = tmp_path / "d.jsonl"
    header = three[0].read_text().splitlines(keepends=True)[0].replace("1/3", "3/3")
    path.write_bytes(text.replace("HEAD", header).encode("latin-1"))
    fleet = merged(*three, path)
    assert [u.source for u in fleet.unread] == [str(path)]
    assert why in fleet.unread[0].why
    assert judged(fleet)[CASES[0]] == "PASS"
    assert ("unread journal", str(path)) in [(r.name, r.place) for r in host_faults.rows(fleet)]


@pytest.mark.parametrize("state", ["failing", "incomplete", "whole"])
def test_a_merge_leaves_with_what_it_knows(three, tmp_path, state, capsys):
    good = write(tmp_path / "g.jsonl", "host1", map(result, CASES[:2]), CASES[:2])
    (tmp_path / "empty.jsonl").touch()
    paths = {"failing": three, "incomplete": [good, tmp_path / "empty.jsonl"], "whole": [good]}
    code = group.main(["report", "--merge", *map(str, paths[state])], standalone_mode=False)
    assert code == {"failing": 1, "incomplete": 5, "whole": 0}[state]
    assert ("not read" in capsys.readouterr().err) == (state == "incomplete")


def test_a_missing_shard_leaves_with_5(tmp_path):
    one = write(tmp_path / "a.jsonl", "host1", map(result, CASES[:2]), CASES[:2], shard="1/2")
    assert group.main(["report", "--merge", str(one)], standalone_mode=False) == exits.NOT_JUDGED


@pytest.mark.parametrize("odd", [{"selection": "bb"}, {"seed": 7}, {"level": "full"}])
def test_a_shard_of_another_selection_or_seed_completes_nothing(tmp_path, odd):
    stated = {} if "selection" not in odd else {"selection": "aa"}
    paths = [
        write(tmp_path / f"{i}.jsonl", f"host{i}", [result(CASES[i])], [CASES[i]],
              **{"shard": f"{i}/3", **stated, **(odd if i == 2 else {})})
        for i in (1, 2, 3)
    ]  # fmt: skip
    fleet = merged(*paths)
    assert [str(s) for s in fleet.missing] == ["2/3"]
    rows = [(r.name, r.place) for r in host_faults.rows(fleet)]
    assert ("other selection", "host2") in rows


@pytest.mark.parametrize("end", [
    {"seconds": 0.0, "interrupted": True, "stopped": "no device: none is there"}, {},
])  # fmt: skip
@pytest.mark.parametrize("again", [False, True])
def test_a_part_that_names_no_case_completes_none_and_hinders_no_other_try(tmp_path, end, again):
    """As of a node without a device, whose selection may be another one, or killed at its start."""
    books = [
        write(tmp_path / "a.jsonl", "host1", map(result, CASES[:2]), CASES[:2], shard="1/2",
              selection="s"),
        write(tmp_path / "b.jsonl", "host2", [], end=end, shard="2/2", selection="other"),
    ]  # fmt: skip
    if again:
        books.append(write(tmp_path / "c.jsonl", "host3", map(result, CASES[2:]), CASES[2:],
                           shard="2/2", selection="s"))  # fmt: skip
    fleet = merged(*books)
    assert [str(shard) for shard in fleet.missing] == ([] if again else ["2/2"])
    assert (fleet.incomplete, fleet.foreign_shards) == (not again, [])
    assert merged(books[1]).incomplete


def test_a_shard_without_cases_is_a_complete_one(tmp_path):
    one = write(tmp_path / "a.jsonl", "host1", map(result, CASES[:2]), CASES[:2], shard="1/2")
    none = write(tmp_path / "b.jsonl", "host2", [], shard="2/2")
    fleet = merged(one, none)
    assert not fleet.missing
    assert not fleet.incomplete


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.ZstdCompressor().compress])
def test_compressed_journals_are_read_as_they_are(three, tmp_path, pack):
    packed = []
    for path in three:
        packed.append(tmp_path / f"{path.name}.packed")
        packed[-1].write_bytes(pack(path.read_bytes()[:300]) + pack(path.read_bytes()[300:]))
    assert judged(merged(*packed)) == judged(merged(*three))


def test_a_compressed_journal_that_is_cut_off_says_so(three, tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(three[0].read_bytes())[:-12])
    assert "cannot be read" in merged(path, *three[1:]).unread[0].why


def test_journals_in_an_object_store_are_read_by_their_address(three):
    fs = fsspec.filesystem("memory")
    for path in three:
        fs.pipe(f"/run/{path.name}", path.read_bytes())
    sources = stores.expanded(["memory://run/*.jsonl"])
    assert len(sources) == 3
    assert judged(merged(*sources)) == judged(merged(*three))
    assert merged("memory://run/none.jsonl").unread


def test_memory_of_a_merge_does_not_grow_with_results(tmp_path):
    """Of compared devices a result takes a bit and its time in a sample."""
    peaks = {}
    for cases in (250, 1000):
        path = write(tmp_path / f"{cases}.jsonl", "host1",
                     (result(f"add/functional/s{i}", device=f"npu:{d}", digest=f"{i:016x}")
                      for i in range(cases) for d in range(8)),
                     compare=True)  # fmt: skip
        tracemalloc.start()
        fleet = merged(path)
        peaks[cases] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert fleet.counts().total == cases * 8
    assert (peaks[1000] - peaks[250]) / (750 * 8) < 150  # with the names of cases, and times of all


def random_journals(folder, compare):
    """Hosts that judge cases several times, fail, differ, and leave some under way."""
    rng, books = random.Random(5), []
    cases = [f"op{i % 7}/functional/s{i}" for i in range(60)]
    verdicts = ["PASS"] * 30 + ["SKIP", "UNSUPPORTED", "FAIL", "XFAIL", "CRASH"]
    for host in range(4):
        results = [
            result(case, rng.choice(verdicts), seed=rng.choice((0, 0, 1)), device=f"npu:{d}",
                   seconds=rng.random(), digest=rng.choice((*[f"{i + 1:016x}"] * 40, "odd")))
            for d in range(8) for i, case in enumerate(rng.choices(cases[:55], k=120))
        ]  # fmt: skip
        end = {} if host == 2 else None
        path = folder / f"{compare}{host}.jsonl"
        books.append(write(path, f"host{host % 3}", results, cases, end, compare=compare))
    return books


@pytest.mark.parametrize("compare", [True, False])
def test_results_in_columns_come_to_the_same_as_one_by_one(tmp_path, monkeypatch, decoder, compare):
    books = random_journals(tmp_path, compare)
    in_columns = merged(*books)
    monkeypatch.setattr(columns, "_RANK", {})  # no verdict is fit for columns
    one_by_one = merged(*books)
    for fleet in (in_columns, one_by_one):
        assert fleet.lost
        assert fleet.counts().failing
    assert judged(in_columns) == judged(one_by_one)
    assert in_columns.counts().by_verdict == one_by_one.counts().by_verdict
    assert in_columns.lost == one_by_one.lost
    assert set(in_columns.deviations) == set(one_by_one.deviations)
    assert in_columns.tally.worst_ops() == one_by_one.tally.worst_ops()
    by_device = [
        {s.name: +Counter(s.counts.by_verdict) for s in f.devices} for f in (in_columns, one_by_one)
    ]
    assert by_device[0] == by_device[1]


def test_journals_that_several_processes_read_come_to_the_same(tmp_path, monkeypatch):
    books = random_journals(tmp_path, True)
    (tmp_path / "broken.jsonl").write_text(books[0].read_text() + NEWER)
    books.append(tmp_path / "broken.jsonl")
    here = told(merged(*books))
    monkeypatch.setattr(columns, "_WORTH", 0)
    monkeypatch.setattr(columns.os, "sched_getaffinity", lambda _: {0, 1})
    assert told(merged(*books)) == here


def test_what_follows_a_line_that_is_none_of_ours_counts(three):
    """One line of a newer version cost all the results behind it."""
    lines = three[0].read_text().splitlines(keepends=True)
    three[0].write_text("".join([lines[0], NEWER, *lines[1:]]))
    fleet = merged(*three)
    assert judged(fleet)[CASES[1]] == "PASS"
    assert "line 2: verdict 'MAYBE'" in fleet.unread[0].why


def test_notes_are_joined_in_linear_time(tmp_path):
    """16,000 notes took 17 s: each was compared with all others."""
    notes = [("repeat", {"case": f"add/functional/s{i}", "seed": 0, "device": "npu:0",
                         "digests": {"aa": 20}}) for i in range(4000)]  # fmt: skip
    path = write(tmp_path / "a.jsonl", "host1", [result(CASES[0])], notes=notes)
    copy = tmp_path / "b.jsonl"
    copy.write_bytes(path.read_bytes())
    started = time.process_time()
    fleet = merged(path, copy)
    assert len(fleet.parts[0].notes) == 4000
    assert time.process_time() - started < 1.0


def test_a_class_found_by_a_run_stays_in_the_merged_report(tmp_path):
    """ "stuck bit" became "deterministic difference", and its words in hex were gone."""
    note = {"class": "stuck bit", "case": CASES[0], "op": "add", "seed": 0, "place": "npu:1",
            "first": "at [0] got 0x40000000, expected 0x0"}  # fmt: skip
    repeats = [("repeat", {"case": CASES[0], "seed": 0, "device": f"npu:{d}", "digests": {x: 20}})
               for d, x in ((0, "aa"), (1, "bb"))]  # fmt: skip
    path = write(tmp_path / "a.jsonl", "host1",
                 [result(CASES[0], device=f"npu:{d}", digest="bb" if d == 1 else "aa")
                  for d in range(3)],
                 compare=True, notes=[*repeats, ("deviation", note)])  # fmt: skip
    (one,) = merged(path).deviations
    assert (one.kind, one.first) == ("stuck bit", note["first"])


def test_the_trend_of_a_chip_counts_cases_that_differ_and_pass(tmp_path):
    note = votes.Deviation(CASES[0], "add", 0, "npu:1", votes.FLAKY).line()  # as a run writes it
    path = write(tmp_path / "a.jsonl", "host1",
                 [result(CASES[0], device=f"npu:{d}", digest="bb" if d == 1 else "aa")
                  for d in range(3)], compare=True, notes=[("deviation", note)])  # fmt: skip
    days = {stats.device: stats.days for stats in merged(path).devices}
    assert [(judged, bad) for ((_, judged, bad),) in days.values()] == [(1, 0), (1, 1), (1, 0)]


@pytest.mark.parametrize("compare", [True, False])
def test_the_trend_has_every_day_of_the_same_cases_each_file_once(tmp_path, monkeypatch, compare):
    """Last week's journals with today's: a case that a chip judged before shows again."""
    paths = []
    for day, verdicts in (("2026-11-20", ("PASS", "PASS")), ("2026-11-27", ("PASS", "FAIL"))):
        monkeypatch.setattr(journal, "now", lambda day=day: f"{day}T01:00:00+00:00")
        rows = [result(case, verdict, device="npu:0")
                for case, verdict in zip(CASES, verdicts, strict=False)]  # fmt: skip
        paths.append(write(tmp_path / f"{day}.jsonl", "host1", rows, compare=compare))
    (tmp_path / "copy.jsonl").write_bytes(paths[1].read_bytes())
    (stats,) = merged(*paths, tmp_path / "copy.jsonl").devices
    assert stats.days == [("2026-11-20", 2, 0), ("2026-11-27", 2, 1)]


def test_the_page_has_a_chips_health_and_all_that_is_known_of_it(tmp_path):
    chip = {"serial": "0123", "bus_id": "0000:c1:00.0", "health": {"temperature (C)": 40}}
    after = {"health": {"temperature (C)": 61, "power (W)": 310.5, "state": "Warning"},
             "processes": [{"pid": 7, "name": "python", "user": "ann"}]}  # fmt: skip
    path = write(tmp_path / "a.jsonl", "host1", [result(CASES[0], device="npu:0")],
                 environment={"chips": {"npu:0": chip}},
                 notes=[("health", {"device": "npu:0", **after})])  # fmt: skip
    text = page.html(merged(path))
    assert '"health":"61 °C, 310.5 W, Warning"' in text
    for fact in ("bus_id: 0000:c1:00.0", "temperature (C) before: 40", "beside: python of ann"):
        assert fact in text


def test_a_chip_that_gave_other_bits_last_week_is_flaky(tmp_path):
    """Its passing results of two runs have different bits: silent data corruption."""
    weeks = [
        write(tmp_path / f"{week}.jsonl", "host1",
              [result(CASES[0], device=f"npu:{d}", digest="bb" if (week, d) == (1, 2) else "aa")
               for d in range(3)], compare=True)
        for week in range(2)
    ]  # fmt: skip
    (one,) = merged(*weeks).deviations
    assert (one.place, one.kind) == ("host1 npu:2", "flaky")


def test_what_to_take_out_is_said_with_its_evidence(tmp_path):
    path = write(
        tmp_path / "a.jsonl", "host1",
        [result(CASES[0], device=f"npu:{d}", digest="bb" if d == 1 else "aa") for d in range(3)],
        compare=True, environment={"chips": {"npu:1": {"serial": "0123"}}},
        notes=[("repeat", {"case": CASES[0], "seed": 0, "device": "npu:1", "digests": {"bb": 20}}),
               ("lost", {"place": "npu:2", "what": "device hung", "reason": "held", "cases": []})],
    )  # fmt: skip
    told = [(a.action, a.name) for a in advice.advice(merged(path))]
    assert told == [("take out", "host1 npu:1 (serial 0123)"), ("take out", "host1 npu:2")]


def test_error_counters_that_rose_in_a_run_speak_against_a_chip(tmp_path):
    before = {"hbm double bit error count": 0, "temperature": 40}
    after = {**before, "hbm double bit error count": 2}
    path = write(tmp_path / "a.jsonl", "host1", [result(CASES[0], device="npu:0")],
                 notes=[("health", {"device": "npu:0", "health": after})],
                 environment={"chips": {"npu:0": {"serial": "1", "health": before}}})  # fmt: skip
    (one,) = advice.advice(merged(path))
    assert one.evidence == (("hbm double bit error count", "0 before, 2 after"),)


def test_two_runs_in_one_file_are_told_apart_line_by_line(three, tmp_path):
    lines = [path.read_text().splitlines() for path in three[:2]]
    both = tmp_path / "both.jsonl"
    mixed = [line for pair in itertools.zip_longest(*lines) for line in pair if line]
    both.write_text("\n".join(mixed) + "\n")
    assert judged(merged(both)) == judged(merged(*three[:2]))


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
    text = page.html(fleet)
    assert "24 devices of 3 hosts (host3, host4, host5) differ: deterministic difference" in text
    assert "and 288 more" in text
    assert text.count(" differ:") == 1
    assert max(len(d["against"]) for d in files.data(fleet)["deviations"]) == 8


def test_the_page_shows_text_of_journals_as_text(tmp_path):
    bad = result(CASES[0], "FAIL", reason="<script>alert(1)</script>")
    text = page.html(merged(write(tmp_path / "a.jsonl", "<b>host</b>", [bad])))
    assert text.count("<script>") == 1  # its own
    assert "<b>host" not in text
    assert "\\u003cb>host\\u003c/b>" in text


@pytest.mark.parametrize("change", [
    {"seed": None}, {"seed": 1e400}, {"cases": None}, {"cases": 3}, {"seed": [1]},
])  # fmt: skip
def test_a_line_of_another_shape_ends_its_journal_by_name(tmp_path, change):
    path = tmp_path / "a.jsonl"
    write(path, "n", [result("add/out/1")], plan=["add/out/1"])
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    plan = next(line for line in lines if line["kind"] == "plan")
    plan.update(change)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert "a 'plan' line is none of ours" in merged(path).unread[0].why


def test_a_line_that_is_nested_too_deep_is_a_torn_one(tmp_path):
    path = tmp_path / "a.jsonl"
    write(path, "n", [result("add/out/1")])
    with path.open("a") as file:
        file.write("[" * 100_000 + "\n")
    assert merged(path).parts[0].torn == 1
