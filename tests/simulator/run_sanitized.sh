#!/usr/bin/env bash
# Builds the native parts with ASan and UBSan (or TSan: SANITIZER=thread) in a folder of its own and
# runs on them the programs of the simulator's tests and the tests that close what threads use.
# FULL=1 sanitizes the kernels too, adds their suites and those of the launch extension, and, without
# TSan, every kernel at random (fuzz_kernels.py): an hour and more.
# PYTHON names an interpreter with the test dependencies, BUILD a folder to keep the build in.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

python=${PYTHON:-python3}
sanitizer=${SANITIZER:-address,undefined}
option=$([[ $sanitizer == thread ]] && echo MINDTORCH_TSAN || echo MINDTORCH_SANITIZE)
kernels=$([[ ${FULL:-} ]] && echo ON || echo OFF)
build=${BUILD:-$(mktemp -d)}
tree=$build/root

"$python" -m pip install -q cmake ninja
PATH="$(dirname "$python"):$PATH"
cmake -S . -B "$build" -G Ninja -DPython_EXECUTABLE="$python" -DCMAKE_BUILD_TYPE=Release \
  "-D$option=ON" "-DMINDTORCH_SANITIZE_KERNELS=$kernels" >/dev/null
cmake --build "$build" -j "$(nproc)" >/dev/null
cmake --install "$build" --prefix "$tree" >/dev/null

ACLSIM_TEST_INSTALL="$tree/aclnn_bindings/simulator/cann" \
ACLSIM_TEST_FLAGS="-fsanitize=$sanitizer" \
  "$python" -m pytest -n 0 -p no:cacheprovider tests/simulator/test_runtime.py tests/simulator/test_strict.py

# The Python parts beside the sanitized ones; an editable install of the tree steps aside.
tar -c --exclude='*.so' --exclude=aclnn_bindings/simulator/cann \
  aclnn_bindings mindtorch cli build_backend tests pyproject.toml | tar -x -C "$tree"
cat >"$tree/sitecustomize.py" <<'PY'
import sys
sys.meta_path[:] = [f for f in sys.meta_path if type(f).__name__ != "ScikitBuildRedirectingFinder"]
PY
cd "$tree"

library() { gcc -print-file-name="$1"; }
sanitized() {
  local first=(env)
  local preload
  if [[ $sanitizer == thread ]]; then
    preload="$(library libtsan.so)"
    first=(setarch -R env) # its shadow has a fixed place
  else
    preload="$(library libasan.so) $(library libubsan.so)"
  fi
  "${first[@]}" LD_PRELOAD="$preload $(library libstdc++.so)" PYTHONPATH="$tree:$tree/build_backend" \
    ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
    TSAN_OPTIONS="ignore_noninstrumented_modules=1 exitcode=66" PYTHONMALLOC=malloc \
    "$python" "$@"
}

suites=(tests/aclnn_bindings/test_closed_in_use.py)
if [[ ${FULL:-} ]]; then
  suites+=(tests/aclnn_bindings/test_launch_*.py tests/aclnn_bindings/test_runtime_*.py tests/simulator/test_ops_*.py)
fi
sanitized -m pytest -n 0 -p no:cacheprovider -o timeout=3000 "${suites[@]}"
if [[ ${FULL:-} && $sanitizer != thread ]]; then
  PYTORCH_NO_NPU_MEMORY_CACHING=1 sanitized tests/simulator/fuzz_kernels.py --rounds 40
fi
