"""Takes the picture of docs/bounds.md: a table of the page as it is printed, with what is known of one number.

Run:  glasshouse bounds hidden.csv.gz --scenario examples/own-country/scenario --why 3 --out bounds
then:  python docs/make_bounds_picture.py bounds/bounds.html   (needs Debian's chromium)
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

DOCS = Path(__file__).resolve().parent
WIDTH, HEIGHT = 1000, 920
# the number of the first table that fewest numbers give away, with its table at the top
LOOK = """() => {
  const table = document.querySelector("table.printed");
  const reasons = (one) => one.parentElement.querySelectorAll(".reason").length;
  const cells = [...table.querySelectorAll(".cell")].filter(reasons).sort((a, b) => reasons(a) - reasons(b));
  scrollTo({ top: scrollY + table.getBoundingClientRect().top - 190, behavior: "instant" });
  cells[0].focus({ preventScroll: true });
}"""


def main(page: Path) -> None:
    chromium = shutil.which("chromium") or sys.exit("chromium is not installed")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        tab = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        tab.goto(page.resolve().as_uri())
        tab.evaluate(LOOK)
        tab.screenshot(path=DOCS / "bounds-page.png")
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
