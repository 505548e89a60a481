#!/usr/bin/env bash
# Builds the simulator with ASan and UBSan (or TSan: SANITIZER=thread) in a folder of its own and runs
# the programs of its tests on it. PYTHON names an interpreter with the test dependencies.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

python=${PYTHON:-python3}
sanitizer=${SANITIZER:-address,undefined}
option=$([[ $sanitizer == thread ]] && echo MINDTORCH_TSAN || echo MINDTORCH_SANITIZE)
build=${BUILD:-$(mktemp -d)}

"$python" -m pip install -q cmake ninja
PATH="$(dirname "$python"):$PATH"
cmake -S . -B "$build" -G Ninja -DPython_EXECUTABLE="$python" -DCMAKE_BUILD_TYPE=Release "-D$option=ON" >/dev/null
cmake --build "$build" -j "$(nproc)" >/dev/null
cmake --install "$build" --prefix "$build/root" >/dev/null

ACLSIM_TEST_INSTALL="$build/root/aclnn_bindings/simulator/install" \
ACLSIM_TEST_FLAGS="-fsanitize=$sanitizer" \
  "$python" -m pytest -p no:cacheprovider tests/simulator/test_runtime.py tests/simulator/test_strict.py
