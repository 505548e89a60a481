"""Installs broken in one way each: what probe calls the cause, and that it is not a false alarm.

A row names the damage, then what must stand in the most severe cause. Rows that only files tell of
load nothing; those that load or call are few here, and the rest runs with `-m slow`.
"""

import errno
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import fake_cann
import pytest

from aclnn_bindings.diagnose.causes import Cause, causes
from aclnn_bindings.diagnose.probe import Request, probe
from aclnn_bindings.install import file_queries

Damage = Callable[[Path, dict[str, str]], None]
ELF32 = b"\x7fELF\x01\x01\x01" + bytes(45)


@dataclass(frozen=True)
class Row:
    """One damage; `what` and `fix` are parts of the first cause, "" where nothing may be wrong."""

    name: str
    damage: Damage
    what: str = ""
    fix: str = ""
    run: bool = False
    severity: str = "error"
    slow: bool = False
    home: str = ""
    headers: bool = False


def gone(path: str) -> Damage:
    def damage(root: Path, environ: dict[str, str]) -> None:
        target = root / path
        shutil.rmtree(target) if target.is_dir() else target.unlink()

    return damage


def holds(path: str, data: bytes) -> Damage:
    def damage(root: Path, environ: dict[str, str]) -> None:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)

    return damage


def linked(path: str, to: str) -> Damage:
    def damage(root: Path, environ: dict[str, str]) -> None:
        target = root / path
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target)
        target.unlink(missing_ok=True)
        target.symlink_to(to)

    return damage


def built(path: str, source: str, *needed: str, **defines: str) -> Damage:
    def damage(root: Path, environ: dict[str, str]) -> None:
        libraries = [root / name for name in needed]
        fake_cann.compile_library(root / path, source, libraries, defines)

    return damage


def runtime(**defines: str) -> Damage:
    return built("lib64/libascendcl.so", fake_cann.RUNTIME, **defines)


def says(name: str, value: str) -> Damage:
    def damage(root: Path, environ: dict[str, str]) -> None:
        environ[name] = value.format(root=root, beside=root.parent)

    return damage


def both(*damages: Damage) -> Damage:
    def damage(root: Path, environ: dict[str, str]) -> None:
        for one in damages:
            one(root, environ)

    return damage


def another_install(root: Path, environ: dict[str, str]) -> None:
    second = fake_cann.copy(root, root.parent / "9.0.0")
    environ["LD_LIBRARY_PATH"] = f"{second}/lib64:{root}/lib64"


def _semicolons(root: Path, environ: dict[str, str]) -> None:
    environ["LD_LIBRARY_PATH"] = environ["LD_LIBRARY_PATH"].replace(":", ";")


def another_below_a_link(root: Path, environ: dict[str, str]) -> None:
    (root.parent / "latest").symlink_to(root)
    environ["LD_LIBRARY_PATH"] = f"{root.parent}/latest/lib64"


def of_a_driver(root: Path, environ: dict[str, str]) -> None:
    """The runtime needs a library of the driver, which is there and off the loader's path."""
    place = root.parent / "Ascend"
    hal = fake_cann.compile_library(place / "driver/lib64/driver/libascend_hal.so", "int hal;")
    fake_cann.compile_library(root / "lib64/libascendcl.so", fake_cann.RUNTIME, (hal,))


def needing_a_codec(root: Path, environ: dict[str, str]) -> None:
    codec = fake_cann.compile_library(root / "tmp/libvdec.so", "int codec;")
    fake_cann.compile_library(root / "lib64/libacl_dvpp_mpi.so", "int media;", (codec,))
    codec.unlink()


def host_kernels(symbol: str) -> Damage:
    """Host kernels that need `symbol`."""

    def damage(root: Path, _environ: dict[str, str]) -> None:
        source = f'int f(void) __asm__("{symbol}"); int g(void) {{ return f(); }}'
        library = root / "opp/built-in/op_impl/host_cpu/libops_host_cpu.so"
        library.parent.mkdir(parents=True)
        fake_cann.compile_library(library, source)

    return damage


def kernels_of_another_chip(root: Path, environ: dict[str, str]) -> None:
    shutil.rmtree(root / "opp")
    fake_cann.write_kernels(root, "ascend310p")


def a2_kernels(root: Path, environ: dict[str, str]) -> None:
    shutil.rmtree(root / "opp")
    fake_cann.write_kernels(root, "ascend910b")


def deprived(*paths: str) -> Damage:
    """Nobody may read these any more; root may, so the questions are answered for it."""

    def damage(root: Path, environ: dict[str, str]) -> None:
        environ["DENIED"] = ":".join(str(root / path) for path in paths)

    return damage


def stating(**releases: str) -> Damage:
    """Packages that state their release, as `<package>/version.info` does."""

    def damage(root: Path, environ: dict[str, str]) -> None:
        for package, release in releases.items():
            (root / package).mkdir(exist_ok=True)
            (root / package / "version.info").write_text(f"version_dir={release}\r\n")

    return damage


def with_driver(driver: str, firmware: str = "", toolkit: str = "") -> Damage:
    """What the version files of these three say."""

    def damage(root: Path, environ: dict[str, str]) -> None:
        place = root.parent / "Ascend"
        files = (
            (place / "driver", driver),
            (place / "firmware", firmware),
            (root / "acllib", toolkit),
        )
        for folder, text in files:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "version.info").write_text(text)

    return damage


def without_sections(root: Path, environ: dict[str, str]) -> None:
    """Strip the section table, which no loader reads: e_shoff, e_shnum and e_shstrndx are 0."""
    path = root / "lib64/libopapi.so"
    data = bytearray(path.read_bytes())
    data[40:48], data[60:64] = bytes(8), bytes(4)
    path.write_bytes(data)


def a_pipe(path: str) -> Damage:
    def damage(root: Path, environ: dict[str, str]) -> None:
        (root / path).unlink(missing_ok=True)
        os.mkfifo(root / path)

    return damage


def emptied(pattern: str, data: bytes = b"") -> Damage:
    """Every file below `pattern` holds these bytes alone."""

    def damage(root: Path, environ: dict[str, str]) -> None:
        for path in root.glob(pattern):
            if path.is_file():
                path.write_bytes(data)

    return damage


def numbered(path: str) -> Damage:
    def damage(root: Path, environ: dict[str, str]) -> None:
        (root / path).rename(root / f"{path}.1")

    return damage


def killed_by(signal: str) -> str:
    return AT_START + STATIC.format(f"raise({signal})")


DRIVER = "Version=25.0.rc1.1\nascendhal_version=7.35.23\ncompatible_version_fw=[7.0.0,7.7.99]\n"
STATIC = "static void go(void) {{ {0}; }}"
INCLUDES = "#include <signal.h>\n#include <unistd.h>\n#include <stdlib.h>\n#include <stdio.h>\n"
AT_START = INCLUDES + "__attribute__((constructor)) "
AT_END = INCLUDES + "__attribute__((destructor)) "
OTHER = "lib64/libacl_cblas.so"
VISIBLE = says("ASCEND_RT_VISIBLE_DEVICES", "7")


def patched(path: str, at: int, data: bytes) -> Damage:
    """The file's bytes from `at` on are these."""

    def damage(root: Path, environ: dict[str, str]) -> None:
        text = bytearray((root / path).read_bytes())
        text[at : at + len(data)] = data
        (root / path).write_bytes(text)

    return damage


def copied(source: str, to: str) -> Damage:
    def damage(root: Path, environ: dict[str, str]) -> None:
        shutil.copy(root / source, root / to)

    return damage


def of_another_release(part: str) -> Damage:
    """A link of this install leads into the folder of another release."""

    def damage(root: Path, environ: dict[str, str]) -> None:
        other = fake_cann.copy(root, root.parent / "9.0.0")
        fake_cann.write_version(other, "9.0.0")
        shutil.rmtree(root / part)
        (root / part).symlink_to(f"../9.0.0/{part}")

    return damage


def by_links(root: Path, environ: dict[str, str]) -> None:
    """The install's parts are links, all into one release, as below `latest`."""
    for part in ("lib64", "include", "opp"):
        (root.parent / "9.0.0").mkdir(exist_ok=True)
        (root / part).rename(root.parent / "9.0.0" / part)
        (root / part).symlink_to(f"../9.0.0/{part}")


def cut(path: str) -> Damage:
    """The first half of a text."""

    def damage(root: Path, environ: dict[str, str]) -> None:
        text = (root / path).read_bytes()
        (root / path).write_bytes(text[: len(text) // 2])

    return damage


def from_the_future(root: Path, environ: dict[str, str]) -> None:
    """Extracted where the archive's clock was ahead by years."""
    for path in root.rglob("*"):
        os.utime(path, (4e9, 4e9))


ROWS = (
    Row("nothing is wrong", lambda root, environ: None, run=True),
    Row("files only: nothing is wrong", lambda root, environ: None),
    # what stands where a library should
    Row("no operators", gone("lib64/libopapi.so"), "no operator library", "ops packages"),
    Row("no runtime", gone("lib64/libascendcl.so"), "no runtime library", "runtime package"),
    Row("dangling link", linked("lib64/libopapi.so", "../gone/libopapi.so"), "broken link to ../gone", "again"),
    Row("link to itself", linked("lib64/libopapi.so", "libopapi.so"), "libopapi.so", "again"),
    Row("empty file", holds("lib64/libopapi.so", b""), "is an empty file", "size"),
    Row("a page of an error", holds("lib64/libopapi.so", b"<html>404"), "not an ELF file", "size"),
    Row("git-lfs", holds("lib64/libopapi.so", b"version https://git-lfs.github.com/spec/v1"), "git lfs pull"),
    Row("linker script", holds("lib64/libopapi.so", b"INPUT(-lopapi)"), "linker script"),
    Row("an archive", holds("lib64/libopapi.so", b"\x1f\x8b\x08" + bytes(40)), "not an ELF file"),
    Row("32 bits", holds("lib64/libopapi.so", ELF32), "libopapi.so"),
    Row("only a magic", holds("lib64/libopapi.so", b"\x7fELF"), "libopapi.so", "again"),
    Row("a folder", both(gone("lib64/libopapi.so"), holds("lib64/libopapi.so/x", b"")), "no operator library"),
    Row("a pipe", a_pipe("lib64/libopapi.so"), "libopapi.so is no regular file: a pipe", "again"),
    Row("a device", linked("lib64/libopapi.so", "/dev/zero"), "libopapi.so is no regular file", "again"),
    Row("no link to the numbered file", numbered("lib64/libopapi.so"), "no operator library", "the link to"),
    Row("no link to the runtime's file", numbered("lib64/libascendcl.so"), "no runtime library", "ln -s libascendcl.so.1"),
    Row("hidden symbols", built("lib64/libopapi.so", "int mine;"), "libopapi.so exports no operator", "built with hidden symbols"),
    Row("no section table", without_sections),
    Row("of another architecture", patched("lib64/libopapi.so", 18, b"\xf3\0"), "libopapi.so is built for EM_RISCV", "install the"),
    Row("a program", patched("lib64/libopapi.so", 16, b"\2"), "libopapi.so is a program, not a shared library", "again"),
    Row("an object file", patched("lib64/libopapi.so", 16, b"\1"), "libopapi.so is an object file", "again"),
    Row("a core dump", patched("lib64/libopapi.so", 16, b"\4"), "libopapi.so is a core dump", "again"),
    Row("of another system", patched("lib64/libopapi.so", 7, b"\x09"), "libopapi.so is built for another operating system", "again"),
    Row("no program headers", patched("lib64/libopapi.so", 56, bytes(2)), "libopapi.so is damaged: it has no program headers", "again"),
    Row("program headers elsewhere", patched("lib64/libopapi.so", 32, b"\xff" * 4), "libopapi.so is damaged: its program headers end", "again"),
    Row("the runtime for the operators", copied("lib64/libascendcl.so", "lib64/libopapi.so"), "libopapi.so exports no operator: the file of another", "again"),
    Row("the operators for the runtime", copied("lib64/libopapi.so", "lib64/libascendcl.so"), "libascendcl.so exports no aclInit: the file of another", "again"),
    Row("lib64 of another release", of_another_release("lib64"), "lib64 into 9.0.0, include into 8.1.RC1", "sets every link"),
    Row("headers of another release", of_another_release("include"), "links lead into several releases", "sets every link"),
    Row("kernels of another release", of_another_release("opp"), "links lead into several releases", "sets every link"),
    Row("links into one release", by_links),
    Row("files from the future", from_the_future),
    Row("damaged tool", holds(OTHER, b"junk"), "libacl_cblas.so is not an ELF", severity="warning"),
    # permissions
    Row("closed lib64", deprived("lib64"), "may not read", "HwHiAiUser"),
    Row("closed library", deprived("lib64/libopapi.so"), "Permission denied", "HwHiAiUser"),
    Row("closed include", deprived("include"), "no headers", severity="note"),
    Row("closed entry of the path", both(deprived("../secret"), says("LD_LIBRARY_PATH", "{beside}/secret/x:{root}/lib64"))),
    # headers
    Row("no headers", gone("include"), "no headers: signatures come from the catalog", severity="note"),
    Row("no libraries", gone("lib64"), "headers only"),
    Row("no headers, no version", both(gone("include"), gone("version.cfg")), "796 operators are declared but not exported", severity="warning"),
    Row("a loop below include", linked("include/acl/loop", "loop")),
    Row("a circle below include", linked("include/acl/circle", "..")),
    Row("internal headers", holds("include/experiment/runtime/rt.h", b"int aclrtInternal(void);")),
    Row("empty headers", emptied("include/**/*.h"), "the headers declare nothing: signatures come from the catalog 8.1.RC1", "development package", severity="warning"),
    Row("zeros for headers", emptied("include/**/*.h", bytes(4096)), "the headers declare nothing", "cut short", severity="warning"),
    Row("a page for headers", emptied("include/**/*.h", b"<html>404</html>"), "the headers declare nothing", "cut short", severity="warning"),
    Row("half a header", cut("include/acl/acl.h"), "the headers declare 0 operators, the libraries export 4 more", "cut short", severity="warning"),
    Row("a header in UTF-16", holds("include/acl/acl.h", "int aclInit(const char *p);".encode("utf-16")), "the headers declare 0 operators", "cut short", severity="warning"),
    Row("a header in GBK", holds("include/acl/more.h", "/* 张量 */ int aclMore(int a);".encode("gbk"))),
    Row("a header that includes itself", holds("include/acl/self.h", b'#include "self.h"\nint aclSelf(void);')),
    Row("brackets without end", holds("include/acl/deep.h", b"int f" + b"(" * 5000)),
    Row("a torn version", holds("version.cfg", b"runtime_running_ver")),
    Row("a version of zeros", holds("version.cfg", bytes(100))),
    Row("a version in UTF-16", holds("version.cfg", "runtime_running_version=[7:8.1.RC1]".encode("utf-16"))),
    Row("a folder for a version", both(gone("version.cfg"), holds("version.cfg/x", b""))),
    Row("vendors in binary", holds("opp/vendors/config.ini", bytes(range(256)))),
    Row("a vendor that is not there", holds("opp/vendors/config.ini", b"load_priority=ghost\n"), "custom operators ghost", severity="warning"),
    Row("a pipe below include", a_pipe("include/acl/pipe.h")),
    Row("a pipe for a version", a_pipe("version.cfg")),
    Row("binary header", holds("include/acl/bad.h", bytes(range(256)))),
    Row("drifted header", lambda root, environ: _rewrite(root, "int8_t cubeMathType", "int64_t cubeMathType"), "differs from this version's catalog", "two versions"),
    # the environment
    Row("lib64 given as the home", lambda root, environ: None, home="lib64"),
    Row("include given as the home", lambda root, environ: None, home="include"),
    Row("another toolkit first", another_install, "LD_LIBRARY_PATH reaches another CANN first", "set_env.sh"),
    Row("the same by a link", another_below_a_link),
    Row("stubs first", says("LD_LIBRARY_PATH", "{root}/devlib:{root}/lib64"), "stub libraries first", severity="warning"),
    Row("deleted opp", says("ASCEND_OPP_PATH", "{root}/gone"), "gone does not exist", "unset ASCEND_OPP_PATH"),
    Row("opp of another", says("ASCEND_OPP_PATH", "{beside}"), "is of another install", "unset ASCEND_OPP_PATH"),
    Row("no opp", says("ASCEND_OPP_PATH", ""), "ASCEND_OPP_PATH is not set", "set_env.sh", severity="warning"),
    Row("two homes", says("ASCEND_TOOLKIT_HOME", "{beside}"), "name two installs", severity="warning"),
    Row("driver and firmware fit", with_driver(DRIVER, "Version=7.7.0.1.231\n", "required_driver_ascendhal_version=4.0.0\n")),
    Row("firmware too new", with_driver(DRIVER, "Version=7.8.0.5.216\n"), "driver 25.0.rc1.1 goes with firmware 7.0.0 to 7.7.99, this one is 7.8.0.5.216", "one release", severity="warning"),
    Row("firmware too old", with_driver(DRIVER, "Version=1.84.7.2.220\n"), "this one is 1.84.7.2.220", "one release", severity="warning"),
    Row("driver too old", with_driver("Version=21.0.1\nascendhal_version=3.9\n", toolkit="required_driver_ascendhal_version=4.0.0\n"), "acllib needs ascendhal 4.0.0, the driver 21.0.1 has 3.9", "one release", severity="warning"),
    Row("driver that says nothing", with_driver("Version=custom\n", "Version=7\n", "required_driver_ascendhal_version=x\n")),
    Row("no package there", says("ASCEND_CUSTOM_OPP_PATH", "{beside}/none"), "does not exist", severity="warning"),
    Row("an empty package", says("ASCEND_CUSTOM_OPP_PATH", "{root}"), "libcust_opapi.so does not exist", severity="warning"),
    Row("a folder of the path is a file", says("LD_LIBRARY_PATH", "{root}/version.cfg::{root}/lib64")),
    Row("two releases", stating(runtime="8.1.RC1", opp="8.0.RC3"), "different releases stand together: runtime 8.1.RC1, opp 8.0.RC3", "one release", severity="warning"),
    Row("one release", stating(runtime="8.1.RC1", opp="8.1.RC1")),
    Row("a carriage return", says("ASCEND_OPP_PATH", "{root}/opp\r"), "ASCEND_OPP_PATH holds the end of a line", "sed -i"),
    Row("quotes", says("ASCEND_OPP_PATH", '"{root}/opp"'), "ASCEND_OPP_PATH stands in quotes", "--env-file"),
    Row("a space", says("LD_LIBRARY_PATH", " {root}/lib64"), "LD_LIBRARY_PATH begins or ends with a space", "take it out"),
    Row("semicolons", both(another_install, _semicolons), "LD_LIBRARY_PATH reaches another CANN first", "set_env.sh"),
    Row("relative entry", says("LD_LIBRARY_PATH", "lib64:{root}/lib64"), "holds lib64, which is not absolute", "program starts", severity="note"),
    Row("home folder unwritten", says("LD_LIBRARY_PATH", "~/Ascend/lib64:{root}/lib64"), "the loader knows no ~", "/Ascend/lib64", severity="warning"),
    Row("preloaded stubs", says("LD_PRELOAD", "{root}/devlib/libascendcl.so"), "LD_PRELOAD loads a stub", "100039", severity="warning"),
    Row("preloads nothing", says("LD_PRELOAD", "{root}/gone.so"), "gone.so, which does not exist", "unset LD_PRELOAD", severity="warning"),
    Row("broken lib64", linked("lib64", "aarch64-linux/lib64"), "lib64 is a broken link to aarch64-linux/lib64", "install the package"),
    Row("broken include", linked("include", "../gone"), "include is a broken link to ../gone", "install the package", severity="warning"),
    Row("broken opp", linked("opp", "../gone/opp"), "opp is a link to ../gone/opp, which does not exist", "set_env.sh"),
    Row("closed kernels", deprived("opp/built-in"), "may not read", "HwHiAiUser"),
    Row("empty kernels", emptied("opp/**/*"), "opp holds no kernel for ascend910b", "extracted in part", severity="warning"),
    Row("folders without kernels", gone("opp/built-in/op_impl/ai_core/tbe/kernel/ascend910b/add"), "opp holds no kernel for ascend910b", "Ascend-cann-kernels", severity="warning"),
    # loading
    Row("driver off the path", of_a_driver, "libascend_hal.so not on the loader's path", "driver/lib64/driver", run=True, severity="warning", headers=True),
    Row("optional media", needing_a_codec, "libvdec.so not found", run=True, severity="warning", slow=True),
    Row("crash at exit", built(OTHER, AT_END + STATIC.format("abort()")), run=True),
    Row("no newline", built(OTHER, AT_START + STATIC.format('printf("hello"); fflush(stdout)')), run=True, slow=True),
    Row("forged lines", built(OTHER, AT_START + STATIC.format('puts("{\\"done\\": \\"x\\"}")')), run=True, slow=True),
    Row("closes stdout", built(OTHER, AT_START + STATIC.format("close(1)")), run=True, slow=True),
    Row("exits", built(OTHER, AT_START + STATIC.format("_exit(3)")), "loading libacl_cblas.so ended the process", run=True, severity="warning", slow=True),
    Row("hangs", built("lib64/libopapi.so", AT_START + STATIC.format("sleep(90)")), "loading libopapi.so timed out", run=True, slow=True),
    Row("hangs at the root", built("lib64/libascendcl.so", AT_START + STATIC.format("sleep(90)")), "loading libascendcl.so timed out", run=True, slow=True),
    Row("no memory to load", built("lib64/libopapi.so", killed_by("SIGKILL")), "loading libopapi.so was killed from outside", "--memory", run=True),
    Row("another processor's instructions", built("lib64/libopapi.so", killed_by("SIGILL")), "met an instruction that this processor lacks", "for this processor", run=True, slow=True),
    Row("a file cut short", built(OTHER, killed_by("SIGBUS")), "read memory that nothing stands behind", "--shm-size", run=True, severity="warning", slow=True),
    Row("a real-time signal", built("lib64/libopapi.so", killed_by("SIGRTMIN + 3")), "loading libopapi.so crashed", run=True),
    Row("a strict profile", runtime(ON_INIT="raise(SIGSYS)"), "smoke test: init made a system call that is forbidden", "seccomp", run=True, slow=True),
    Row("lacks its driver", lambda root, environ: _without_driver(root), "libascend_hal.so not found", run=True, slow=True),
    Row("host kernels of another release", host_kernels("_ZN2ge14GetShapeErrMsgEv"), "libops_host_cpu.so needs _ZN2ge14GetShapeErrMsgEv", "two releases"),
    Row("host kernels that need libc alone", host_kernels("puts")),
    # running
    Row("no device", both(runtime(DEVICES="0"), VISIBLE), "smoke test: device failed", "ASCEND_RT_VISIBLE_DEVICES is '7'", run=True),
    Row("memory is a secret", runtime(MEM_CODE="207000"), run=True),
    Row("kernels of another chip", kernels_of_another_chip, "kernel binaries are for ascend310p, this device is an Ascend910B3", "Ascend910B3", run=True),
    Row("a 310P with kernels of an A2", both(runtime(SOC='"Ascend310P3"'), a2_kernels), "kernel binaries are for ascend910b, this device is an Ascend310P3", "for Ascend310P3", run=True),
    Row("no memory to start", runtime(ON_INIT="raise(SIGKILL)"), "smoke test: init was killed from outside", "--memory", run=True, slow=True),
    Row("aclInit crashes", runtime(ON_INIT="abort()"), "smoke test: init crashed", run=True, slow=True),
    Row("aclInit hangs", runtime(ON_INIT="sleep(60)"), "smoke test: init timed out", run=True, slow=True),
)  # fmt: skip


def _rewrite(root: Path, old: str, new: str) -> None:
    header = root / "include/acl/acl.h"
    header.write_text(header.read_text().replace(old, new))


def _without_driver(root: Path) -> None:
    driver = fake_cann.compile_library(root / "tmp/libascend_hal.so", "int hal;")
    fake_cann.compile_library(root / "lib64/libascendcl.so", fake_cann.RUNTIME, (driver,))
    driver.unlink()


def _deny(monkeypatch: pytest.MonkeyPatch, denied: list[str]) -> None:
    """The system's answers for a user who may not enter or read `denied`."""

    def refused(path: object, inside: bool) -> bool:
        text = os.path.normpath(os.fspath(path))  # type: ignore[call-overload]
        return any(text.startswith(f"{one}/") or (inside and text == one) for one in denied)

    def guard(real: Callable[..., object], inside: bool) -> Callable[..., object]:
        def asked(path: object, *rest: object, **more: object) -> object:
            if isinstance(path, (str, os.PathLike)) and refused(path, inside):
                raise PermissionError(13, "Permission denied", str(path))
            return real(path, *rest, **more)

        return asked

    for name, inside in (("stat", False), ("lstat", False), ("listdir", True), ("scandir", True)):
        monkeypatch.setattr(os, name, guard(getattr(os, name), inside))
    monkeypatch.setattr("io.open", guard(open, True))
    for name in ("isdir", "exists", "isfile", "lexists"):
        real = getattr(os.path, name)
        monkeypatch.setattr(
            os.path, name, lambda path, real=real: not refused(path, False) and real(path)
        )
    access = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode, **m: not refused(path, True) and access(path, mode, **m)
    )


def _rows() -> list[object]:
    slow = pytest.mark.slow
    return [pytest.param(row, id=row.name, marks=slow if row.slow else ()) for row in ROWS]


def _ask(row: Row, root: Path, environ: Mapping[str, str]) -> tuple[Cause, ...]:
    seconds = 4.0 if row.slow else 60.0  # slow rows are those whose library never answers
    request = Request(
        root / row.home, headers=root / "include" if row.headers else None, run=row.run, bases=(),
        load_timeout=seconds, smoke_timeout=seconds,
    )  # fmt: skip
    report = probe(request, environ)
    return causes(report, environ)


@pytest.mark.parametrize("row", _rows())
def test_the_cause_is_named(row: Row, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = fake_cann.copy(fake_cann.whole(), tmp_path / "8.1.RC1")
    for module in ("describe", "versions"):
        place = f"aclnn_bindings.install.{module}.driver_place"
        monkeypatch.setattr(place, lambda: tmp_path / "Ascend")
    environ = {**fake_cann.environment(root), "PATH": os.environ["PATH"]}
    row.damage(root, environ)
    if denied := environ.pop("DENIED", ""):
        _deny(monkeypatch, [os.path.normpath(path) for path in denied.split(":")])
    found = _ask(row, root, environ)
    alarms = [cause for cause in found if cause.severity != "note" or row.severity == "note"]
    if not row.what:
        assert [cause for cause in alarms if cause.severity != "note"] == []
        return
    first = next((cause for cause in alarms if row.what in cause.what), None)
    assert first is not None, [cause.what for cause in found]
    assert (first.severity, row.fix in first.fix) == (row.severity, True), first
    worst = [cause.what for cause in found if cause.severity == "error"]
    assert worst[:1] == ([first.what] if row.severity == "error" else []), worst


def test_a_closed_folder_answers_no_to_every_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shut/in").mkdir(parents=True)
    _deny(monkeypatch, [str(tmp_path / "shut")])
    inside = tmp_path / "shut/in"
    assert not file_queries.is_dir(inside)
    assert not file_queries.exists(inside)
    assert file_queries.listed(tmp_path / "shut") == []
    assert file_queries.text(inside / "x") == ""
    assert file_queries.closed(inside) == tmp_path / "shut"
    assert file_queries.closed(tmp_path) is None


HOME_ROWS = (
    ("{root}\r", "ASCEND_HOME_PATH holds the end of a line"),
    ("'{root}'", "ASCEND_HOME_PATH stands in quotes"),
    ("{root} ", "ASCEND_HOME_PATH begins or ends with a space"),
    ("~nobody-of-that-name/cann", "~nobody-of-that-name/cann does not exist"),
    ("{root}/../latest/opp", "latest is a link to 9.9, which does not exist"),
)


@pytest.mark.parametrize(("value", "what"), HOME_ROWS)
def test_a_home_that_leads_nowhere_says_why(value: str, what: str, tmp_path: Path) -> None:
    root = fake_cann.copy(fake_cann.whole(), tmp_path / "8.1.RC1")
    (tmp_path / "latest").symlink_to("9.9")
    environ = {"ASCEND_HOME_PATH": value.format(root=root)}
    report = probe(Request(run=False, bases=()), environ)
    assert report.install is None
    assert what in causes(report, environ)[0].what


@pytest.mark.parametrize("code", [errno.ESTALE, errno.EIO])
def test_a_file_system_that_fails_is_not_called_absent(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.stat

    def stat(path: object, *rest: object, **more: object) -> object:
        if str(path).startswith(str(tmp_path / "nfs")):
            raise OSError(code, os.strerror(code), str(path))
        return real(path, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "stat", stat)
    report = probe(Request(tmp_path / "nfs/cann", run=False, bases=()), {})
    assert os.strerror(code) in report.refusal


@pytest.mark.parametrize(
    ("code", "what", "fix"),
    [
        (errno.EAGAIN, "this system's limits leave no room for a process", "pids-limit"),
        (errno.ENOMEM, "this system's limits leave no room for a process", "--memory"),
        (errno.ENOSPC, "no temporary file can be written", "TMPDIR"),
        (errno.EDQUOT, "no temporary file can be written", "TMPDIR"),
    ],
)
def test_a_system_that_gives_no_process_is_told(
    code: int, what: str, fix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = fake_cann.copy(fake_cann.whole(), tmp_path / "8.1.RC1")
    environ = {**fake_cann.environment(root), "PATH": os.environ["PATH"]}

    def refused(*arguments: object, **options: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("subprocess.Popen", refused)
    first = causes(probe(Request(root, bases=()), environ), environ)[0]
    assert (first.severity, what in first.what, fix in first.fix) == ("error", True, True), first


def test_a_path_in_no_encoding_is_probed_and_called(tmp_path: Path) -> None:
    root = fake_cann.copy(fake_cann.whole(), tmp_path / os.fsdecode(b"8.1.RC1-caf\xe9"))
    environ = {**fake_cann.environment(root), "PATH": os.environ["PATH"]}
    report = probe(Request(root, bases=()), environ)
    assert [step.detail for step in report.smoke if step.state != "ok"] == []
    assert len(report.smoke) > 6
