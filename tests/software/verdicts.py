"""A pytest plugin: one line of JSON per test in $VERDICTS, and none of it is run twice.

It imports neither torch nor mindtorch, so that both sides run under the same plugin.
"""

import json
import os
from pathlib import Path

FILE = Path(os.environ.get("VERDICTS", os.devnull))
SEVERITY = ("passed", "skipped", "failed")


def told(file):
    """The last word on each test: its verdict and its error.

    `died` is the verdict of a test that started and never ended.
    """
    entries = map(json.loads, file.read_text().splitlines() if file.exists() else ())
    return {entry["test"]: (entry["verdict"], entry["error"]) for entry in entries}


def write(test, verdict, error=""):
    with FILE.open("a") as file:
        file.write(json.dumps({"test": test, "verdict": verdict, "error": error}) + "\n")


def said(report):
    """How a failure puts itself, its beginning."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash else str(report.longrepr or "")
    return text.strip()[:600]


class Verdicts:
    def __init__(self):
        self.of = {}

    def pytest_collection_modifyitems(self, items):
        done = told(FILE)
        items[:] = [item for item in items if item.nodeid not in done]

    def pytest_runtest_logstart(self, nodeid):
        self.of[nodeid] = ("passed", "")
        write(nodeid, "died")

    def pytest_runtest_logreport(self, report):
        if SEVERITY.index(report.outcome) > SEVERITY.index(self.of[report.nodeid][0]):
            self.of[report.nodeid] = (report.outcome, said(report))

    def pytest_runtest_logfinish(self, nodeid):
        write(nodeid, *self.of.pop(nodeid))

    def pytest_collectreport(self, report):
        if report.failed:
            write(report.nodeid, "failed", said(report))


def pytest_configure(config):
    config.pluginmanager.register(Verdicts(), "verdicts-of-tests")
