"""The fleet's page in a browser: 1,000 devices on a narrow screen, light and dark."""

import pytest
from browser import browser, missing
from journals import result, write
from mindtorch_npu.fleet import merge, page

CASES = [f"op{i}/functional/dtype=float32/row=65537/rank=3" for i in range(3)]


@pytest.fixture(scope="module")
def thousand(tmp_path_factory):
    """The page of 100 hosts with ten devices, of which one differs."""
    folder = tmp_path_factory.mktemp("page")
    books = [
        write(folder / f"{h}.jsonl", f"node-{h:03d}.cluster.example.com",
              [result(case, device=f"npu:{d}", digest=f"{9 if (h, d) == (50, 7) else 1:016x}")
               for case in CASES for d in range(10)], compare=True,
              environment={"chips": {f"npu:{d}": {"serial": f"1024{h:04d}{d}"} for d in range(10)}})
        for h in range(100)
    ]  # fmt: skip
    path = folder / "fleet.html"
    path.write_text(page.html(merge.merge(books)))
    return path


@pytest.mark.skipif(bool(missing()), reason=missing() or "a browser is there")
def test_a_thousand_devices_fit_a_phone_in_light_and_dark(thousand, tmp_path):
    seen = set()
    with browser(tmp_path / "profile") as tab:
        for scheme in ("light", "dark"):
            tab.show_as(400, 900, scheme)
            tab.open(thousand.as_uri())
            assert tab.script("return [innerWidth, document.documentElement.scrollWidth]") == [
                400, 400
            ]  # fmt: skip
            seen.add(tab.script("return getComputedStyle(document.body).backgroundColor"))
            rows = tab.script("return document.querySelectorAll('#table tbody tr').length")
            assert rows == 1  # the one that differs; healthy ones are folded
            assert tab.errors() == []
    assert len(seen) == 2


def test_the_page_has_one_main_landmark_and_a_map_whose_hosts_can_be_reached(thousand):
    text = thousand.read_text()
    assert text.count("<main>") == text.count("</main>") == 1
    assert "id=map role=group aria-label=" in text  # an image may hold nothing that takes focus
