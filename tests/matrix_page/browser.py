"""Chromium without a window, as far as these tests need it."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import Any

import pytest

# As root in a container, without a GPU and without asking anybody for updates.
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-dev-shm-usage", "--hide-scrollbars"),
)


class Browser:
    """A Chromium without a window."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def devtools(self, command: str, **arguments: Any) -> Any:
        """A command of the DevTools protocol."""
        return self.driver.execute_cdp_cmd(command, arguments)

    def show(
        self, page: Path, width: int = 1280, *, media: str = "", scheme: str = "light"
    ) -> None:
        """Open a page in a window of this width, on a screen or as it is printed."""
        self.devtools(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=740,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.devtools("Emulation.setEmulatedMedia", media=media, features=features)
        self.driver.get(page.as_uri())

    def ask(self, script: str, *arguments: Any) -> Any:
        """The value of a function body, evaluated by the browser on the page."""
        return self.driver.execute_script(script, *arguments)

    def find(self, selector: str) -> Any:
        """The first element of a CSS selector."""
        return self.driver.find_element("css selector", selector)

    def close(self) -> None:
        """End it."""
        with contextlib.suppress(Exception):
            self.driver.quit()


def start() -> Browser:
    """Debian's Chromium, or whatever is named so; skips the test where there is none."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium (group dev)")
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("needs chromium and chromedriver: `make browser` installs them")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in FLAGS:
        options.add_argument(flag)
    service = webdriver.chrome.service.Service(driver)
    return Browser(webdriver.Chrome(options=options, service=service))
