"""Libraries that clients of CANN 8.5 and later link: split operators, model parsers."""

import ctypes
import subprocess
from pathlib import Path
from shutil import which

import pytest

from aclnn_bindings.install.elf import read
from aclnn_bindings.install.library import bundled_simulator

SIMULATOR = bundled_simulator()
pytestmark = pytest.mark.skipif(SIMULATOR is None, reason="the simulator is not built")

PROGRAM = """
#include <aclnnop/aclnn_add.h>
#include <aclnnop/aclnn_gelu.h>
int main(void) {
  uint64_t size = 0;
  aclOpExecutor* executor = 0;
  return aclnnAddGetWorkspaceSize(0, 0, 0, 0, &size, &executor) != 161001 ||
         aclnnGeluGetWorkspaceSize(0, 0, &size, &executor) != 161001;
}
"""
PARSER = """
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <acl/acl.h>
namespace ge {
class AscendString {
 public:
  bool operator<(const AscendString& other) const;
  std::shared_ptr<std::string> name;
};
class Graph {};
uint32_t aclgrphParseONNX(const char*, const std::map<AscendString, AscendString>&, Graph&);
}
int main() {
  ge::Graph graph;
  const uint32_t code = ge::aclgrphParseONNX("model.onnx", {}, graph);
  std::printf("%u %s", code, aclGetRecentErrMsg());
}
"""


def libraries() -> Path:
    return Path(SIMULATOR) / "lib64"


def build(tmp_path: Path, text: str, compiler: str, *flags: str) -> str:
    source = tmp_path / ("program.c" if compiler == "cc" else "program.cpp")
    source.write_text(text)
    program = tmp_path / "program"
    subprocess.run(
        [
            compiler,
            source,
            "-o",
            program,
            f"-I{SIMULATOR}/include",
            f"-L{libraries()}",
            f"-Wl,-rpath,{libraries()}",
            *flags,
        ],
        check=True,
    )
    return str(program)


@pytest.mark.parametrize(
    ("library", "operator"),
    [
        ("math", "aclnnAdd"),
        ("nn", "aclnnMatmul"),
        ("cv", "aclnnGridSampler2D"),
        ("transformer", "aclnnFlashAttentionScore"),
    ],
)
def test_a_split_library_has_the_operators_of_its_kind_and_one_implementation(library, operator):
    path = libraries() / f"libopapi_{library}.so"
    others = [
        read(libraries() / f"libopapi_{other}.so").exports
        for other in ("math", "nn", "cv", "transformer")
        if other != library
    ]
    assert operator in read(path).exports
    assert not any(operator in exports for exports in others)

    def address(of: Path) -> int | None:
        return ctypes.cast(getattr(ctypes.CDLL(str(of)), operator), ctypes.c_void_p).value

    assert address(path) == address(libraries() / "libopapi.so")


@pytest.mark.skipif(which("cc") is None, reason="no C compiler")
def test_a_program_links_the_split_libraries_without_libopapi(tmp_path):
    flags = ("-lopapi_math", "-lopapi_nn", "-lnnopbase", "-lascendcl", "-lop_common")
    assert subprocess.run([build(tmp_path, PROGRAM, "cc", *flags)], check=False).returncode == 0


@pytest.mark.skipif(which("c++") is None, reason="no C++ compiler")
def test_a_parser_of_models_refuses_by_its_name(tmp_path):
    flags = ("-D_GLIBCXX_USE_CXX11_ABI=0", "-lfmk_onnx_parser", "-lgraph", "-lascendcl")
    program = build(tmp_path, PARSER, "c++", *flags)
    said = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    assert said.startswith("4294967295 ")
    assert "aclgrphParseONNX is not supported by the simulator" in said
