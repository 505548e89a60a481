"""Times reading an install's headers: cold, warm from the cache, and what the answer holds.

    python benchmarks/parse.py [FOLDER …] [--rounds N] [--json]

Each time is taken in a fresh process: `cold` parses, `warm` loads from a filled cache. Without a
folder a tree is generated from the catalog of CANN 8.1.RC1, in all spellings of real headers.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROBE = """
import json, os, resource, sys, time
began = time.perf_counter()
from aclnn_bindings.interface.headers import load, parse_tree
imported = time.perf_counter()
cpu = time.process_time()
found = parse_tree(sys.argv[2:]) if sys.argv[1] == "cold" else load(sys.argv[2:])
done = time.perf_counter()
cpu = time.process_time() - cpu
found.ops["aclnnAdd"].params
counts = {n: len(getattr(found, n)) for n in
          ("sources", "functions", "ops", "enums", "constants", "structs", "skipped")}
rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
print(json.dumps({"import_ms": (imported - began) * 1e3, "ms": (done - imported) * 1e3,
                  "cpu_ms": cpu * 1e3, "rss_mib": rss, "counts": counts}))
"""


def generated(folder: Path) -> list[str]:
    """A tree with the functions, enums, constants and structs of CANN 8.1.RC1."""
    sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "aclnn_bindings" / "headers")]
    import header_generator

    from aclnn_bindings.interface import catalog

    header_generator.write(header_generator.generate(catalog.load("8.1.RC1")).files, folder)
    return [str(folder)]


def measure(mode: str, folders: list[str], rounds: int, cache: str) -> dict[str, object]:
    """Medians over `rounds` fresh processes; the first one of `warm` fills the cache."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MINDTORCH_CACHE_DIR": cache}
    rows = []
    for _ in range(rounds + (mode == "warm")):
        done = subprocess.run(
            [sys.executable, "-c", PROBE, mode, *folders],
            env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        rows.append(json.loads(done.stdout))
    rows = rows[-rounds:]
    medians = {k: statistics.median(r[k] for r in rows) for k in rows[0] if k != "counts"}
    best = min(r["ms"] for r in rows)
    return {**medians, "best_ms": best, "counts": rows[0]["counts"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="*")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folders = given.folders or generated(Path(scratch) / "include")
        cache = str(Path(scratch) / "cache")
        # The margin in which a new file is not trusted yet must be over: a file's time is set.
        report = {m: measure(m, folders, given.rounds, cache) for m in ("cold", "warm")}
    if given.json:
        print(json.dumps(report, indent=1))
        return
    counts = report["cold"]["counts"]
    assert isinstance(counts, dict)
    print("  ".join(f"{name} {count}" for name, count in counts.items()))
    for mode, row in report.items():
        print(
            f"{mode:5} {row['ms']:8.1f} ms median, {row['best_ms']:8.1f} best, "
            f"{row['cpu_ms']:8.1f} CPU, import {row['import_ms']:6.1f} ms, {row['rss_mib']} MiB"
        )


if __name__ == "__main__":
    main()
