"""Takes the pictures of docs/audit.md: the report of an audit in a browser, as wide as a desktop and as a phone.

Run after `make audit`:  python docs/make_audit_page.py out/audit/report.html   (needs Debian's chromium)
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

DOCS = Path(__file__).resolve().parent
PICTURES = {
    "audit-desktop.png": (1280, 900, "light"),
    "audit-phone.png": (390, 844, "light"),
    "audit-dark.png": (1280, 900, "dark"),
}


def main(page: Path) -> None:
    chromium = shutil.which("chromium") or sys.exit("chromium is not installed")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for name, (width, height, scheme) in PICTURES.items():
            tab = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
            tab.goto(page.resolve().as_uri())
            tab.screenshot(path=DOCS / name)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
