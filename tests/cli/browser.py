"""Drives headless Chromium by the W3C WebDriver protocol, over plain HTTP."""

import base64
import contextlib
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--window-size=1400,1000",
]  # fmt: skip
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


def missing() -> str:
    """Why no browser can be driven here; "" if one can."""
    for program in ("chromium", "chromedriver"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    return ""


class Browser:
    """One session; `script` runs JavaScript in the page."""

    def __init__(self, base: str, profile: Path) -> None:
        options = {"binary": shutil.which("chromium"),
                   "args": [*FLAGS, f"--user-data-dir={profile}"]}  # fmt: skip
        wanted = {"browserName": "chrome", "goog:chromeOptions": options,
                  "goog:loggingPrefs": {"browser": "ALL"}}  # fmt: skip
        made = _post(f"{base}/session", {"capabilities": {"alwaysMatch": wanted}})
        self.url = f"{base}/session/{made['sessionId']}"

    def open(self, url: str) -> None:
        _post(f"{self.url}/url", {"url": url})

    def script(self, text: str) -> Any:
        return _post(f"{self.url}/execute/sync", {"script": text, "args": []})

    def click(self, selector: str) -> None:
        found = _post(f"{self.url}/element", {"using": "css selector", "value": selector})
        _post(f"{self.url}/element/{found[_ELEMENT]}/click", {})

    def type(self, selector: str, text: str) -> None:
        found = _post(f"{self.url}/element", {"using": "css selector", "value": selector})
        _post(f"{self.url}/element/{found[_ELEMENT]}/value", {"text": text})

    def show_as(self, width: int, height: int, scheme: str = "light") -> None:
        """Show pages as a screen of this size would, in a color scheme."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        for command, params in (
            ("Emulation.setDeviceMetricsOverride", size),
            ("Emulation.setEmulatedMedia", {"features": [feature]}),
        ):
            body = {"cmd": command, "params": params}
            _post(f"{self.url}/chromium/send_command", body)

    def errors(self) -> list[str]:
        log = _post(f"{self.url}/se/log", {"type": "browser"})
        return [entry["message"] for entry in log if entry["level"] == "SEVERE"]

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(_send("GET", f"{self.url}/screenshot", None)))

    def close(self) -> None:
        _send("DELETE", self.url, None)


@contextlib.contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """A browser with a fresh profile; it and its driver end with the block."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    driver = subprocess.Popen(["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL)
    try:
        base = f"http://127.0.0.1:{port}"
        _wait(base)
        session = Browser(base, profile)
        try:
            yield session
        finally:
            session.close()
    finally:
        driver.terminate()
        driver.wait()


def _wait(base: str) -> None:
    end = time.monotonic() + 30
    while True:
        try:
            _send("GET", f"{base}/status", None)
            return
        except (urllib.error.URLError, ConnectionError):
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def _post(url: str, data: Any) -> Any:
    return _send("POST", url, json.dumps(data).encode())


def _send(method: str, url: str, body: bytes | None) -> Any:
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"}, method=method)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=60) as answer:
            return json.load(answer)["value"]
    except urllib.error.HTTPError as error:
        raise RuntimeError(f"{method} {url}: {error.read().decode()[:400]}") from None
