"""The cache of parsed headers: same answers, never stale, safe with damage and with company."""

import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import header_generator
import pytest

from aclnn_bindings.interface import catalog
from aclnn_bindings.interface.headers import cache, load, parse_tree
from aclnn_bindings.interface.signature import Declarations


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of the test's own."""
    monkeypatch.setenv("MINDTORCH_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / "headers"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with two headers whose times are old enough to be trusted."""
    root = tmp_path / "include"
    header_generator.write(
        {"a.h": b"#define N 3\nint f(int a[N]);", "b/b.h": b"int g(void);"}, root
    )
    settle(root)
    return root


def settle(root: Path) -> None:
    """Makes files look long unchanged; ctime cannot be set, so the clock's margin is."""
    for path in root.rglob("*.h"):
        os.utime(path, ns=(10**18, 10**18))


@pytest.fixture
def no_margin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_SETTLED_NS", 0)


def equal(a: Declarations, b: Declarations) -> bool:
    tables = ("functions", "enums", "constants", "typedefs", "structs", "ops")
    same = all(dict(getattr(a, t)) == dict(getattr(b, t)) for t in tables)
    return same and list(a.skipped) == list(b.skipped) and list(a.sources) == list(b.sources)


def test_the_cache_is_closed_to_others_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        cache._Cache(str(tmp_path / "mindtorch-npu" / "headers")).make()
    finally:
        os.umask(before)
    assert not (tmp_path / "mindtorch-npu").stat().st_mode & 0o022
    assert not (tmp_path / "mindtorch-npu" / "headers").stat().st_mode & 0o077


def test_cached_declarations_equal_parsed_ones(folder: Path, tmp_path: Path) -> None:
    root = tmp_path / "include"
    header_generator.write(header_generator.generate(catalog.load("8.1.RC1")).files, root)
    parsed = parse_tree([root])
    assert equal(load([root]), parsed)
    assert equal(load([root]), parsed)
    assert list(folder.glob("*.rows"))


def test_second_load_reads_no_header(
    folder: Path, tree: Path, no_margin: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    load([tree])
    monkeypatch.setattr(cache, "read_all", lambda headers: pytest.fail("a header was read"))
    assert set(load([tree]).functions) == {"f", "g"}


def test_headers_of_an_archive_from_a_clock_ahead_are_read_once(
    folder: Path, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in tree.rglob("*.h"):
        os.utime(path, (4e9, 4e9))
    after = cache.time.time_ns() + 10 * cache._SETTLED_NS
    monkeypatch.setattr(cache.time, "time_ns", lambda: after)
    first = load([tree])
    assert list(folder.glob("*.index"))
    monkeypatch.setattr(cache, "read_all", None)
    assert set(load([tree]).functions) == set(first.functions) == {"f", "g"}


def test_changed_header_is_seen_though_its_size_and_time_are_the_same(
    folder: Path, tree: Path
) -> None:
    assert "f" in load([tree]).functions
    (tree / "a.h").write_text("#define N 4\nint h(int a[N]);")
    settle(tree)
    assert load([tree]).functions["h"].params[0].type == "int[4]"


def test_added_and_removed_headers_are_seen(folder: Path, tree: Path, no_margin: None) -> None:
    load([tree])
    (tree / "c.h").write_text("int k(void);")
    assert "k" in load([tree]).functions
    (tree / "c.h").unlink()
    assert "k" not in load([tree]).functions


def test_touched_but_equal_header_is_not_parsed_again(
    folder: Path, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from aclnn_bindings.interface.headers import tree as reader

    load([tree])
    os.utime(tree / "a.h")
    monkeypatch.setattr(reader, "build", lambda *_: pytest.fail("the parser ran"))
    assert "f" in load([tree]).functions


DAMAGE = {
    "empty": lambda data: b"",
    "cut": lambda data: data[: len(data) // 2],
    "one byte changed": lambda data: data[:-9] + bytes([data[-9] ^ 1]) + data[-8:],
    "junk": lambda data: b"\x00\xff" * 500,
    "other format": lambda data: b"mindtorch-headers-0 00\n[]",
    "grown": lambda data: data + b"\n[]",
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("kind", ["rows", "index"])
def test_damaged_cache_is_rebuilt(
    folder: Path, tree: Path, no_margin: None, damage: str, kind: str
) -> None:
    expected = load([tree])
    (path,) = folder.glob(f"*.{kind}")
    good = path.read_bytes()
    path.write_bytes(DAMAGE[damage](good))
    assert equal(load([tree]), expected)
    assert equal(load([tree]), expected)
    assert path.read_bytes() == good


def test_another_parser_does_not_use_the_rows(
    folder: Path, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load([tree])
    monkeypatch.setattr(cache, "_parser_digest", lambda: b"another parser")
    load([tree])
    assert len(list(folder.glob("*.rows"))) == 2


def test_folder_that_cannot_be_written_is_done_without(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("MINDTORCH_CACHE_DIR", str(blocked))
    assert set(load([tree]).functions) == {"f", "g"}


def test_folder_is_the_users_and_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MINDTORCH_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert cache.cache_folder() == "/x/mindtorch-npu"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/h")
    assert cache.cache_folder() == "/h/.cache/mindtorch-npu"


def test_without_cache_nothing_is_written(folder: Path, tree: Path) -> None:
    assert "f" in load([tree], cache=False).functions
    assert not folder.exists()


def test_old_files_are_removed(folder: Path, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_MAX_FILES", 2)
    for number in range(8):
        (tree / "a.h").write_text(f"int f{number}(void);")
        load([tree])
    assert 1 <= len(list(folder.iterdir())) <= 5


def _load_and_list(root: str, folder: str, rounds: int, queue: object) -> None:
    os.environ["MINDTORCH_CACHE_DIR"] = folder
    for number in range(rounds):
        if number % 3 == 0:
            for path in Path(folder).rglob("*.rows"):
                path.unlink(missing_ok=True)
        names = sorted(load([root]).functions)
        if names != ["f", "g"]:
            queue.put(names)  # type: ignore[attr-defined]
            return
    queue.put("right")  # type: ignore[attr-defined]


def test_many_processes_may_load_and_rebuild_at_once(folder: Path, tree: Path) -> None:
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    arguments = (str(tree), str(folder.parent), 30, queue)
    workers = [context.Process(target=_load_and_list, args=arguments) for _ in range(4)]
    for worker in workers:
        worker.start()
    answers = [queue.get(timeout=120) for _ in workers]
    for worker in workers:
        worker.join()
    assert answers == ["right"] * 4
    assert not [p for p in folder.iterdir() if p.name.startswith(".")]


def _parse_and_count(root: str, folder: str, gate: object, queue: object) -> None:
    from aclnn_bindings.interface.headers import tree as reader

    os.environ["MINDTORCH_CACHE_DIR"] = folder
    build, built = reader.build, []
    reader.build = lambda *given: built.append(time.sleep(0.3)) or build(*given)
    gate.wait(timeout=60)  # type: ignore[attr-defined]
    load([root])
    queue.put(len(built))  # type: ignore[attr-defined]


def test_processes_that_start_together_parse_once(folder: Path, tree: Path) -> None:
    context = multiprocessing.get_context("spawn")
    queue, gate = context.Queue(), context.Barrier(3)
    arguments = (str(tree), str(folder.parent), gate, queue)
    workers = [context.Process(target=_parse_and_count, args=arguments) for _ in range(3)]
    for worker in workers:
        worker.start()
    built = [queue.get(timeout=120) for _ in workers]
    for worker in workers:
        worker.join()
    assert sum(built) == 1
    assert sorted(p.suffix for p in folder.iterdir() if p.suffix != ".index") == [".rows"]


def test_of_an_include_folder_only_the_public_parts_are_read(tmp_path: Path) -> None:
    files = {
        "acl/acl.h": b"int aclInit(void);",
        "aclnnop/level2/aclnn_x.h": b"int aclnnX(void);",
        "experiment/runtime/rt.h": b"int aclrtInternal(void);",
        "securec.h": b"int aclSecure(void);",
    }
    header_generator.write(files, tmp_path)
    assert set(load([tmp_path], cache=False).functions) == {"aclInit", "aclnnX"}
    assert set(load([tmp_path / "experiment"], cache=False).functions) == {"aclrtInternal"}


def test_links_that_loop_are_passed_by(tmp_path: Path) -> None:
    header_generator.write({"aclnnop/aclnn_x.h": b"int aclnnX(void);"}, tmp_path)
    (tmp_path / "aclnnop/round").symlink_to("round")
    (tmp_path / "aclnnop/up").symlink_to("..")
    assert "aclnnX" in load([tmp_path], cache=False).functions


def test_warm_load_imports_no_parser(folder: Path, tree: Path, no_margin: None) -> None:
    load([tree])
    code = (
        "import sys; from aclnn_bindings.interface.headers import load; "
        f"found = load([{str(tree)!r}]); assert 'f' in found.functions; "
        "print('aclnn_bindings.interface.headers.tree' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "False"


def test_same_header_in_two_folders_counts_once_and_another_of_its_name_is_kept(
    folder: Path, tmp_path: Path
) -> None:
    one, two, three = (tmp_path / n for n in ("one", "two", "three"))
    header_generator.write({"a.h": b"int f(void);"}, one)
    header_generator.write({"a.h": b"int f(void);"}, two)
    header_generator.write({"a.h": b"int g(void);"}, three)
    found = load([one, two, three, one])
    assert set(found.functions) == {"f", "g"}
    assert list(found.sources) == ["a.h", str(three / "a.h")]


def test_pruning_removes_only_the_cache_s_own_files(folder: Path) -> None:
    folder.mkdir(parents=True)
    foreign = [folder / f"thesis-{i}.tex" for i in range(100)]
    for path in foreign:
        path.write_text("mine")
    (folder / "kept").mkdir()
    (folder / ("0" * 32 + ".rows")).symlink_to(foreign[0])
    own = [folder / f"{i:032x}.rows" for i in range(1, 90)]
    for path in own:
        path.write_bytes(b"")
    cache._Cache(str(folder)).prune()
    assert all(path.read_text() == "mine" for path in foreign)
    assert sum(path.exists() for path in own) == 2 * cache._MAX_FILES


def test_a_cache_folder_that_is_a_link_is_neither_written_nor_read(tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.mkdir()
    link = tmp_path / "headers"
    link.symlink_to(target)
    held = cache._Cache(str(link))
    held.write("0" * 32 + ".rows", cache._sealed("text"))
    assert list(target.iterdir()) == []
    real = cache._Cache(str(target))
    (tmp_path / "planted").write_bytes(cache._sealed("text"))
    (target / "a.rows").symlink_to(tmp_path / "planted")
    assert real.text("a.rows") is None


@pytest.mark.parametrize("kind", ["pipe", "endless", "folder", "link"])
def test_what_lies_in_a_cache_file_s_place_is_passed_by(
    kind: str, folder: Path, tree: Path, no_margin: None
) -> None:
    """Nobody writes to the pipe, and the file is larger than memory."""
    before = load([tree])
    for path in [*folder.iterdir()]:
        path.unlink()
        if kind == "pipe":
            os.mkfifo(path)
        elif kind == "endless":
            path.touch()
            os.truncate(path, 1 << 42)
        elif kind == "folder":
            path.mkdir()
        else:
            path.symlink_to("/dev/zero")
    assert equal(load([tree]), before)


def test_no_lock_is_made_behind_a_link(tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.mkdir()
    (tmp_path / "headers").symlink_to(target)
    with cache._Cache(str(tmp_path / "headers")).alone("0" * 32):
        assert list(target.iterdir()) == []
    target.joinpath("1" * 32 + ".lock").symlink_to(tmp_path / "made")
    with cache._Cache(str(target)).alone("1" * 32):
        assert not (tmp_path / "made").exists()


def test_an_interrupt_as_a_file_takes_its_place_is_raised(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "replace", _interrupted(os.replace))
    with pytest.raises(KeyboardInterrupt):
        cache._Cache(str(folder)).write("0" * 32 + ".rows", cache._sealed("text"))
    assert [path.name for path in folder.iterdir()] == ["0" * 32 + ".rows"]


def _interrupted(function: Callable[..., None]) -> Callable[..., None]:
    """`function`, behind which a signal comes."""

    def run(*arguments: object) -> None:
        function(*arguments)
        raise KeyboardInterrupt

    return run
