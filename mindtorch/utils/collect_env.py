"""torch.utils.collect_env: what a report of a mistake says of the machine and its libraries.

python -m torch.utils.collect_env
"""

from __future__ import annotations

import locale
import platform
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

TORCH_AVAILABLE = True
_NOT_FOUND = "Could not collect"
# Distributions that reports name.
DEFAULT_PIP_PATTERNS = {
    "torch", "numpy", "mypy", "flake8", "optree", "onnx", "triton", "mindtorch", "ml_dtypes",
}  # fmt: skip
DEFAULT_CONDA_PATTERNS = {"torch", "numpy", "cudatoolkit", "soumith", "mkl", "magma", "optree"}
Run = Callable[[Any], tuple[int, str, str]]


class SystemEnv(NamedTuple):
    """What was found, by name; None for what is not there."""

    torch_version: str | None
    is_debug_build: str | None
    cuda_compiled_version: str | None
    gcc_version: str | None
    clang_version: str | None
    cmake_version: str | None
    os: str | None
    libc_version: str | None
    python_version: str | None
    python_platform: str | None
    is_cuda_available: str | None
    cuda_runtime_version: str | None
    cuda_module_loading: str | None
    nvidia_driver_version: str | None
    nvidia_gpu_models: str | None
    cudnn_version: str | None
    is_xpu_available: str | None
    pip_version: str | None
    pip_packages: str | None
    conda_packages: str | None
    hip_compiled_version: str | None
    hip_runtime_version: str | None
    miopen_runtime_version: str | None
    caching_allocator_config: str | None
    is_xnnpack_available: str | None
    cpu_info: str | None


def run(command: str | list[str]) -> tuple[int, str, str]:
    """(status, output, errors) of a command: a list of words, or a line for a shell."""
    shell = isinstance(command, str)
    try:
        done = subprocess.run(command, capture_output=True, shell=shell, check=False)
    except FileNotFoundError:
        return 127, "", "Command not found"
    encoding = locale.getpreferredencoding()
    output, errors = (b.decode(encoding, "replace").strip() for b in (done.stdout, done.stderr))
    return done.returncode, output, errors


def run_and_read_all(run_lambda: Run, command: str | list[str]) -> str | None:
    """A command's output; None where it fails."""
    status, output, _ = run_lambda(command)
    return output if status == 0 else None


def run_and_parse_first_match(run_lambda: Run, command: str | list[str], regex: str) -> str | None:
    """The pattern's first group in a command's output; None where it fails or has none."""
    output = run_and_read_all(run_lambda, command)
    match = None if output is None else re.search(regex, output)
    return None if match is None else match.group(1)


def run_and_return_first_line(run_lambda: Run, command: str | list[str]) -> str | None:
    """The first line of a command's output; None where it fails."""
    output = run_and_read_all(run_lambda, command)
    return None if output is None else output.split("\n", 1)[0]


def get_gcc_version(run_lambda: Run) -> str | None:
    """The compiler's version."""
    return run_and_parse_first_match(run_lambda, "gcc --version", r"gcc (.*)")


def get_clang_version(run_lambda: Run) -> str | None:
    """The compiler's version."""
    return run_and_parse_first_match(run_lambda, "clang --version", r"clang version (.*)")


def get_cmake_version(run_lambda: Run) -> str | None:
    """CMake's version."""
    return run_and_parse_first_match(run_lambda, "cmake --version", r"cmake (.*)")


def get_platform() -> str:
    """linux, darwin, win32, cygwin or Python's own word."""
    for name in ("linux", "win32", "cygwin", "darwin"):
        if sys.platform.startswith(name):
            return name
    return sys.platform


def get_mac_version(run_lambda: Run) -> str | None:
    """macOS's version."""
    return run_and_parse_first_match(run_lambda, "sw_vers -productVersion", r"(.*)")


def get_lsb_version(run_lambda: Run) -> str | None:
    """A Linux distribution's name, as lsb_release has it."""
    return run_and_parse_first_match(run_lambda, "lsb_release -a", r"Description:\t(.*)")


def check_release_file(run_lambda: Run) -> str | None:
    """A Linux distribution's name, as its file of releases has it."""
    return run_and_parse_first_match(run_lambda, "cat /etc/*-release", r'PRETTY_NAME="(.*)"')


def get_os(run_lambda: Run) -> str | None:
    """The system's name and the machine's architecture."""
    where, machine = get_platform(), platform.machine()
    if where == "darwin":
        version = get_mac_version(run_lambda)
        return None if version is None else f"macOS {version} ({machine})"
    if where == "linux":
        name = get_lsb_version(run_lambda) or check_release_file(run_lambda)
        return f"{name or where} ({machine})"
    return platform.platform() if where == "win32" else where


def get_python_platform() -> str:
    """What `platform.platform` says."""
    return platform.platform()


def get_libc_version() -> str:
    """The C library's name and version; N/A on other systems than Linux."""
    return "-".join(platform.libc_ver()) if get_platform() == "linux" else "N/A"


def get_cpu_info(run_lambda: Run) -> str:
    """What lscpu says; the processor's name where there is none."""
    return run_and_read_all(run_lambda, ["lscpu"]) or platform.processor()


def get_pip_packages(run_lambda: Run, patterns: Any = None) -> tuple[str, str]:
    """(pip3, lines `name==version`) of distributions whose names match."""
    patterns = DEFAULT_PIP_PATTERNS if patterns is None else patterns
    command = [sys.executable, "-mpip", "list", "--format=freeze"]
    lines = (run_and_read_all(run_lambda, command) or "").splitlines()
    names = [line for line in lines if any(pattern in line for pattern in patterns)]
    return f"pip{sys.version_info.major}", "\n".join(names)


def get_conda_packages(run_lambda: Run, patterns: Any = None) -> str | None:
    """Lines of conda's list that match; None without conda."""
    patterns = DEFAULT_CONDA_PATTERNS if patterns is None else patterns
    output = run_and_read_all(run_lambda, ["conda", "list"])
    if output is None:
        return None
    lines = [line for line in output.splitlines() if not line.startswith("#")]
    return "\n".join(line for line in lines if any(pattern in line for pattern in patterns))


def get_cachingallocator_config() -> dict[str, str]:
    """The variables that set how device memory is kept."""
    import os

    names = ("PYTORCH_ALLOC_CONF", "PYTORCH_NPU_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
    return {name: os.environ[name] for name in names if name in os.environ}


def get_cuda_module_loading_config() -> str:
    """N/A: there is no CUDA."""
    return "N/A"


def is_xnnpack_available() -> str:
    """False."""
    return "False"


def get_env_info() -> SystemEnv:
    """All that is found."""
    import mindtorch
    from mindtorch import version

    bits = sys.maxsize.bit_length() + 1
    python = f"{sys.version.replace(chr(10), ' ')} ({bits}-bit runtime)"
    pip, packages = get_pip_packages(run)
    allocator = get_cachingallocator_config()
    return SystemEnv(
        torch_version=str(mindtorch.__version__), is_debug_build=str(version.debug),
        cuda_compiled_version=version.cuda or "None", gcc_version=get_gcc_version(run),
        clang_version=get_clang_version(run), cmake_version=get_cmake_version(run), os=get_os(run),
        libc_version=get_libc_version(), python_version=python,
        python_platform=get_python_platform(), is_cuda_available="False",
        cuda_runtime_version=None, cuda_module_loading=get_cuda_module_loading_config(),
        nvidia_driver_version=None, nvidia_gpu_models=None, cudnn_version=None,
        is_xpu_available="False", pip_version=pip, pip_packages=packages,
        conda_packages=get_conda_packages(run), hip_compiled_version="N/A",
        hip_runtime_version="N/A", miopen_runtime_version="N/A",
        caching_allocator_config=", ".join(f"{k}={v}" for k, v in allocator.items()) or "N/A",
        is_xnnpack_available=is_xnnpack_available(), cpu_info=get_cpu_info(run),
    )  # fmt: skip


env_info_fmt = """\
PyTorch version: {torch_version}
Is debug build: {is_debug_build}
CUDA used to build PyTorch: {cuda_compiled_version}
ROCM used to build PyTorch: {hip_compiled_version}

OS: {os}
GCC version: {gcc_version}
Clang version: {clang_version}
CMake version: {cmake_version}
Libc version: {libc_version}

Python version: {python_version}
Python platform: {python_platform}
Is CUDA available: {is_cuda_available}
CUDA runtime version: {cuda_runtime_version}
CUDA_MODULE_LOADING set to: {cuda_module_loading}
GPU models and configuration: {nvidia_gpu_models}
Nvidia driver version: {nvidia_driver_version}
cuDNN version: {cudnn_version}
Is XPU available: {is_xpu_available}
HIP runtime version: {hip_runtime_version}
MIOpen runtime version: {miopen_runtime_version}
Is XNNPACK available: {is_xnnpack_available}
Caching allocator config: {caching_allocator_config}

CPU:
{cpu_info}

Versions of relevant libraries:
{pip_packages}
{conda_packages}"""


def pretty_str(envinfo: SystemEnv) -> str:
    """What was found as a text, a fact a line."""
    facts = {n: _NOT_FOUND if v is None else v for n, v in envinfo._asdict().items()}
    for name, label in (("pip_packages", envinfo.pip_version), ("conda_packages", "conda")):
        lines = getattr(envinfo, name)
        facts[name] = "\n".join(f"[{label}] {line}" for line in (lines or _NOT_FOUND).splitlines())
    return env_info_fmt.format(**facts).strip()


def get_pretty_env_info() -> str:
    """The report."""
    return pretty_str(get_env_info())


def main() -> None:
    """Print the report."""
    print("Collecting environment information...")
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
