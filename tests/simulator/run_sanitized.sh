#!/usr/bin/env bash
# Builds the native parts with ASan and UBSan (or TSan: SANITIZER=thread) in a folder of its own and
# runs on them the programs of the simulator's tests and the tests that close what threads use.
# KERNELS names the libaclsim_kernels.a of a plain build, which is linked; without it one is made here.
# FULL=1 without KERNELS sanitizes the kernels too, adds their suites and those of the launch extension,
# and, without TSan, every kernel at random (fuzz_kernels.py): an hour and more.
# `run_sanitized.sh --whole` runs everything, by ASan and UBSan, then by TSan, part by part, and lists at
# its end which parts failed: many hours of one core. PARTS chooses some of
# them; what BUILD holds already is not built again.
# PYTHON names an interpreter with the test dependencies, BUILD a folder to keep the build in, where
# a later run goes on; JOBS how many compilers run at once.
# PART runs one part of it: build, runtime, closing, native, layers, readers and, with FULL=1, launch,
# ops:K/N (part K of N of the kernels' suites), fuzz:FIRST-LAST (seeds of fuzz_kernels.py). All parts but
# build want BUILD.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

whole() { # each part in a process of its own: a failing one does not stop the others
  local build=${BUILD:-$(mktemp -d)} sanitizer part failed=()
  local parts=(build runtime closing native layers launch ops:{1..8}/8 fuzz:1-8 readers)
  if [[ ${PARTS:-} ]]; then read -ra parts <<<"$PARTS"; fi
  for sanitizer in address,undefined thread; do
    for part in "${parts[@]}"; do
      [[ $sanitizer == thread && $part == fuzz:* ]] && continue
      echo "== $sanitizer $part (${SECONDS}s)"
      # No comma in the folder: -Wl,-rpath-link,FOLDER ends at one.
      SANITIZER=$sanitizer FULL=1 PART=$part BUILD=$build/${sanitizer/,/-} \
        tests/simulator/run_sanitized.sh || failed+=("$sanitizer:$part")
    done
  done
  echo "== done (${SECONDS}s), failed: ${failed[*]:-none}"
  ((${#failed[@]} == 0))
}
if [[ ${1:-} == --whole ]]; then
  whole
  exit
fi

python=${PYTHON:-python3}
sanitizer=${SANITIZER:-address,undefined}
option=$([[ $sanitizer == thread ]] && echo MINDTORCH_TSAN || echo MINDTORCH_SANITIZE)
part=${PART:-all}
if [[ $part != all && $part != build && ! -f ${BUILD:-}/root/built ]]; then
  echo "PART=$part: run PART=build with the same BUILD first" >&2
  exit 2
fi
build=${BUILD:-$(mktemp -d)}
tree=$build/root

PATH="$(dirname "$python"):$PATH"
if [[ $part == all || $part == build ]]; then
  "$python" -m pip install -q cmake ninja
  make() { # FOLDER TARGET OPTION...
    cmake -S . -B "$1" -G Ninja -DPython_EXECUTABLE="$python" -DMINDTORCH_UNITY=ON "${@:3}" >/dev/null
    cmake --build "$1" --target "$2" -j "${JOBS:-$(nproc)}" >"$1/log" || { tail -n 40 "$1/log" >&2; exit 1; }
  }
  kernels=${KERNELS:-}
  if [[ ! ${FULL:-}$kernels ]]; then
    make "$build/plain" aclsim_kernels
    kernels=$build/plain/aclnn_bindings/simulator/libaclsim_kernels.a
  fi
  make "$build" all "-D$option=ON" "-DMINDTORCH_KERNELS=$kernels"
  cmake --install "$build" --prefix "$tree" >/dev/null
  touch "$tree/built"
fi

# The Python parts beside the sanitized ones; an editable install of the tree steps aside.
tar -c --exclude='*.so' --exclude=aclnn_bindings/simulator/cann \
  aclnn_bindings mindtorch cli build_backend benchmarks tests pyproject.toml | tar -x -C "$tree"
cat >"$tree/sitecustomize.py" <<'PY'
import sys
sys.meta_path[:] = [f for f in sys.meta_path if type(f).__name__ != "ScikitBuildRedirectingFinder"]
PY

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
    TSAN_OPTIONS="ignore_noninstrumented_modules=1 exitcode=66 die_after_fork=0" PYTHONMALLOC=malloc \
    "$python" "$@"
}
suites() { (cd "$tree" && sanitized -m pytest -n "${JOBS:-$(nproc)}" -p no:cacheprovider -o timeout=3000 "$@"); }

runtime() { # programs in C++, built with the sanitizer
  ACLSIM_TEST_INSTALL="$tree/aclnn_bindings/simulator/cann" \
  ACLSIM_TEST_FLAGS="-fsanitize=$sanitizer" \
    "$python" -m pytest -n "${JOBS:-$(nproc)}" -p no:cacheprovider tests/simulator/test_runtime.py \
    tests/simulator/test_strict.py
}
native() { # kernels over host memory; without FULL only what calls them is sanitized
  local few=(-k "topk or gather or cat or thread or forked or indices or switch")
  [[ ${FULL:-} ]] && few=()
  suites "${few[@]}" tests/mindtorch/test_native_kernels.py
  suites tests/mindtorch/test_slots.py
}
layers() { # the interceptor in its own processes; the programs that it watches are built plain
  # One test runs a plain program without the layers, which cannot load a sanitized library.
  suites -k "not costs_a_jump" tests/layers/test_many_threads.py tests/layers/test_recording.py \
    tests/layers/test_inprocess.py
}
readers() { # damaged files and headers
  (cd "$tree" && sanitized tests/cli/fuzz_files.py --rounds 500)
}
closing() { suites tests/aclnn_bindings/test_closed_in_use.py; }
launch() { suites tests/aclnn_bindings/test_launch_*.py tests/aclnn_bindings/test_runtime_*.py; }
ops() { # K/N
  local all=(tests/simulator/ops/test_*.py tests/simulator/test_{product_kernels,kernel_fuzz,parameter_sizes}.py tests/cli/conformance/test_every_kernel.py) mine=() i
  for ((i = ${1%/*} - 1; i < ${#all[@]}; i += ${1#*/})); do mine+=("${all[i]}"); done
  suites "${mine[@]}"
}
fuzz() { # FIRST-LAST
  (cd "$tree" && PYTORCH_NO_NPU_MEMORY_CACHING=1 sanitized tests/simulator/fuzz_kernels.py \
    --seeds $(seq "${1%-*}" "${1#*-}") --rounds 40)
}

case $part in
  build) ;;
  runtime | closing | native | layers | launch | readers) "$part" ;;
  ops:* | fuzz:*) "${part%%:*}" "${part#*:}" ;;
  all)
    runtime
    closing
    native
    if [[ ${FULL:-} ]]; then
      launch
      ops 1/1
      [[ $sanitizer == thread ]] || fuzz 1-1
    fi
    ;;
  *)
    echo "PART=$part: build, runtime, closing, native, layers, launch, readers, ops:K/N or fuzz:FIRST-LAST" >&2
    exit 2
    ;;
esac
