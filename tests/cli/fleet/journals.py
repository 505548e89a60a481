"""Journals as hosts of a fleet would write them, without a device."""

from mindtorch_npu.conformance.record import journal
from mindtorch_npu.conformance.record.result import Result

ENVIRONMENT = {
    "device": "npu:0", "mindtorch_npu": "0.1.0", "kind": "cann", "install": "/opt/cann",
    "cann": "9.1.0", "driver": "25.2", "firmware": "7.7", "kernels": "9.1.0", "soc": "Ascend910B2",
    "python": "3.11", "numpy": "2", "host": "Linux", "cpus": 2, "switches": {}, "modes": {},
}  # fmt: skip


def result(case, verdict="PASS", **fields):
    op, form = case.split("/")[:2]
    return Result(case, op, form, verdict, "float32", "T0" if verdict == "PASS" else "", **fields)


def write(path, node, results, plan=(), end=None, notes=(), environment=(), **options):
    """A journal of one run; `end` {} writes none."""
    book = journal.Journal(path, journal.new_run())
    stated = {**ENVIRONMENT, **dict(environment)}
    head = journal.header(stated, {"what": "all", "level": "quick", **options}, len(plan))
    book.write("run", {**head, "node": node})
    if plan:
        book.write("plan", {"cases": list(plan), "seed": 0})
    for one in results:
        device = one.device or stated["device"]
        book.write("start", {"case": one.case, "seed": one.seed, "device": device})
        book.result(one)
    for kind, data in notes:
        book.write(kind, data)
    if end is None:
        end = {"seconds": 1.0, "replaced": 0, "interrupted": False}
    if end:
        book.write("end", end)
    book.close()
    return path
