"""What holds for every page that is made of a terminal's blocks."""

import re

from mindtorch_npu import pages
from mindtorch_npu.render import Grid


def test_tables_of_a_page_are_regions_with_names_of_their_own():
    times = Grid(("workload", "µs"), [("add", "1")])
    rates = Grid(("workload", "GB/s"), [("add", "2")])
    page = pages.page("document.html", title="bench", lead="", blocks=[times, rates], rest="")
    names = re.findall(r'role="region" aria-label="([^"]*)"', page)
    assert names == ["workload, µs", "workload, GB/s"]
