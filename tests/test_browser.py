"""Does the page answer its reader? In a real browser, from a disk: sliders, explorer, tips, keyboard, phone, paper.

Debian's chromium is driven by playwright; where one of them is missing these tests are skipped.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from glasshouse.attack.infer.onelevel import marginal, posterior
from glasshouse.report.render.page import page as html
from tests.report_sample import EVIL, sample, tradeoff

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")

DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}
Page = Any  # playwright's, which may not be there
Opening = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("report") / "audit.html"
    path.write_text(html(sample()), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def opened(browser: Any, address: str) -> Iterator[Opening]:
    """Opens the page; afterwards nothing may have been said on the console, and nothing else asked for."""
    contexts, said, asked = [], [], []

    def open_page(viewport: dict[str, int] = DESKTOP, **more: Any) -> Page:
        context = browser.new_context(viewport=viewport, **more)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(5000)
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(address)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert said == []
    assert set(asked) <= {address}


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_opens_from_a_disk_and_fits(opened: Opening, viewport: dict[str, int]) -> None:
    page = opened(viewport)
    assert page.title() == sample().title
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.locator(".pictures.wide").first.is_visible() == (viewport is DESKTOP)
    assert page.locator(".pictures.narrow").first.is_visible() == (viewport is PHONE)
    assert page.locator("nav.side").is_visible() == (viewport is DESKTOP)
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.slow
def test_text_on_a_phone_is_not_scaled_down(opened: Opening) -> None:
    page = opened(PHONE)
    scales = page.evaluate(
        """[...document.querySelectorAll(".pictures.narrow svg")].map(
            (one) => one.getBoundingClientRect().width / one.viewBox.baseVal.width)"""
    )
    assert min(scales) > 0.95


def test_first_screen_shows_the_verdicts(opened: Opening) -> None:
    page = opened()
    for verdict in page.locator(".verdict .big").all():
        assert verdict.bounding_box()["y"] < DESKTOP["height"]
    page = opened(PHONE)
    lefts = {round(one.bounding_box()["x"]) for one in page.locator(".verdict").all()}
    assert len(lefts) == 1  # one below the other


# Sliders


@pytest.mark.parametrize(
    ("prior", "rho", "u"), [(0.5, 0.11, 1), (0.01, 0.001, -20), (0.99, 10, 20), (0.037, 2.5, 3), (0.8, 0.0421, 0)]
)
def test_sliders_compute_what_the_program_computes(opened: Opening, prior: float, rho: float, u: int) -> None:
    page = opened()
    for name, value in (("prior", prior), ("rho", rho), ("u", u)):
        page.fill(f"#noise-sliders-{name}", str(value))
    rate = 0.5 * rho  # the scale of the sample
    expected = marginal([rate], prior)

    def out(name: str) -> float:
        return float(page.get_attribute(f'[data-out="{name}"]', "data-value"))

    assert out("average") == pytest.approx(expected.posterior, abs=1e-9, rel=1e-9)
    assert out("ratio") == pytest.approx(expected.ratio, abs=1e-9, rel=1e-9)
    assert out("posterior") == pytest.approx(posterior(rate, prior, u, 0).posterior, abs=1e-9, rel=1e-9)
    assert page.inner_text('[data-out="average"]') == f"{expected.posterior:.1%}"
    rows = page.locator(".noise tbody tr").all()
    levels = [("Nation", 0.52), ("County", 0.11), ("Tract", 0.07), ("Block group", 0.031), ("Block", 0.008)]
    for row, (name, level) in zip(rows, levels, strict=True):
        assert row.locator("th").inner_text() == name
        shown = float(row.locator("[data-value]").get_attribute("data-value"))
        assert shown == pytest.approx(marginal([0.5 * level], prior).posterior, abs=1e-9)


def test_moving_a_slider_moves_its_number(opened: Opening) -> None:
    page = opened()
    slider = page.locator('[data-for="rho"]')
    slider.focus()
    before = page.get_attribute('[data-out="average"]', "data-value")
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    rho = float(page.input_value("#noise-sliders-rho"))
    assert rho == pytest.approx(0.11 * 10**0.05, rel=0.02)
    after = page.get_attribute('[data-out="average"]', "data-value")
    assert before != after
    assert float(after) == pytest.approx(marginal([0.5 * rho], 0.5).posterior, abs=1e-9)
    deviation = float(page.get_attribute('[data-out="deviation"]', "data-value"))
    assert deviation == pytest.approx((1 / rho) ** 0.5, rel=1e-6)  # wide noise is as the continuous one


@pytest.mark.slow
def test_nonsense_in_a_field_changes_nothing(opened: Opening) -> None:
    page = opened()
    before = page.get_attribute('[data-out="average"]', "data-value")
    page.fill("#noise-sliders-prior", "")
    assert page.get_attribute('[data-out="average"]', "data-value") == before
    page.fill("#noise-sliders-prior", "7")
    assert float(page.get_attribute('[data-out="ratio"]', "data-value")) < 1.02  # as if 0.99


# The explorer


def test_explorer_changes_axes_and_finds_the_front(opened: Opening) -> None:
    page = opened()
    points = page.locator(".explorer .point")
    assert points.count() == 10
    hollow = [
        one.get_attribute("aria-label") for one in points.all() if "better in both" in one.get_attribute("aria-label")
    ]
    assert [label.split(" (")[0] for label in hollow] == ["Swap 10%", "Swap 30%", "Suppress below 3"]
    assert page.locator(".explorer .plot").get_attribute("aria-label").startswith("Certain against Relative error")
    page.select_option('[data-axis="y"]', label="Sentences")
    page.select_option('[data-axis="x"]', label="Mean error")
    assert page.locator(".explorer .plot").get_attribute("aria-label").startswith("Sentences against Mean error")
    assert points.count() == 9  # one has a hidden number
    assert "settings without both numbers are not drawn" in page.inner_text(".explorer .keys")


def test_explorer_tips_and_comparison(opened: Opening) -> None:
    page = opened()
    page.locator('.explorer .point[data-row="1"] .mark').hover()
    tip = page.locator(".tip")
    assert tip.is_visible()
    assert "Swap 2%" in tip.inner_text() and "Relative error: 0.4%" in tip.inner_text()
    page.locator('.explorer .point[data-row="1"] .mark').click()
    page.locator('.explorer .point[data-row="7"] .mark').click()
    assert page.input_value('[data-pick="A"]') == "1" and page.input_value('[data-pick="B"]') == "7"
    [block] = tradeoff()
    a, b = block.table.rows[1], block.table.rows[7]  # type: ignore[union-attr]
    found = {
        int(one.get_attribute("data-difference")): one.inner_text().replace("\N{MINUS SIGN}", "-")
        for one in page.locator("[data-difference]").all()
    }
    for column in (2, 3, 5, 7):  # shares and points
        assert found[column] == f"{100 * (b[column].value - a[column].value):+.1f} points"  # type: ignore[union-attr]
    assert found[4] == f"{b[4].value - a[4].value:+,}"  # type: ignore[union-attr]
    assert found[6] == "+4.3" and found[8] == "0"
    better = [row.inner_text().split("\t")[-1] for row in page.locator(".explorer tbody tr").all()]
    assert better == ["B is better ▶"] * 3 + ["◀ A is better"] * 3 + ["= the same"]
    page.select_option('[data-pick="B"]', label="Noise, rho 0.01")
    assert page.locator('[data-difference="4"]').inner_text() == "\N{EN DASH}"  # hidden


@pytest.mark.slow
def test_explorer_with_the_keyboard(opened: Opening) -> None:
    page = opened()
    page.locator('.explorer .point[data-row="4"]').focus()
    assert "Round to 3" in page.locator(".tip").inner_text()
    page.keyboard.press("Enter")
    assert page.input_value('[data-pick="A"]') == "4"
    assert page.evaluate("document.activeElement.dataset.row") == "4"
    page.locator('.explorer .point[data-row="5"]').focus()
    page.keyboard.press(" ")
    assert page.locator("[data-difference]").count() == 7
    assert page.locator('.explorer .point[data-row="5"]').get_attribute("aria-pressed") == "true"


# Pictures and numbers


def test_pictures_speak_when_pointed_at(opened: Opening) -> None:
    page = opened()
    page.locator("#block-sizes-chart .wide [aria-label^='50-99 persons']").first.hover()
    assert page.inner_text(".tip") == "50-99 persons\ncertain: 96.9% (96.1% to 97.6%)\npublished 2010: 12.6%"
    page.mouse.move(5, 500)
    assert page.locator(".tip").is_hidden()
    page.locator("#block-areas-map [aria-label^='28-01']").hover()
    assert page.inner_text(".tip").startswith("28-01, District 1")
    page.locator("#block-groups-chart .wide").focus()
    page.keyboard.press("ArrowRight")
    assert page.inner_text(".tip").startswith("Everyone")
    page.keyboard.press("Escape")
    assert page.locator(".tip").is_hidden()


@pytest.mark.slow
def test_pictures_speak_when_touched(opened: Opening) -> None:
    page = opened(PHONE, has_touch=True)
    page.locator("#block-reasons-chart .narrow [aria-label^='Household']").first.tap()
    assert "8,812" in page.inner_text(".tip")


def test_a_number_says_what_it_is(opened: Opening) -> None:
    page = opened()
    box = page.locator(".box")
    page.locator(".verdict .big").first.click()
    said = box.inner_text()
    for part in ("Records the tables make certain", "35.0%", "34.5% to 35.6%", "same in every data set"):
        assert part in said
    assert "Higher is worse" in said and "Source: areas.parquet; line 2 of numbers.csv" in said
    page.keyboard.press("Escape")
    assert box.is_hidden()
    assert page.evaluate("document.activeElement.className") == "big"
    cell = page.locator("#table-rules td[data-n]").last
    cell.click()
    assert "Noise is added to every count, rho = 1: Cells against it" in box.inner_text()
    assert f"line {cell.get_attribute('data-n')} of numbers.csv" in box.inner_text()
    page.locator("h1").click()
    assert box.is_hidden()
    assert EVIL not in page.content()


@pytest.mark.slow
def test_tables_with_the_keyboard(opened: Opening) -> None:
    page = opened()
    page.locator("#block-areas-map summary").click()
    page.locator("#block-areas-map .scroll").focus()
    page.keyboard.press("Enter")
    first = page.evaluate("document.activeElement.textContent")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.cellIndex") == 3
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("document.activeElement.textContent") != first
    page.keyboard.press("Enter")
    assert "Persons that the tables count" in page.inner_text(".box")
    page.keyboard.press("Escape")
    assert page.locator(".box").is_hidden()
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.className") == "scroll"


def test_the_keyboard_reaches_the_page(opened: Opening) -> None:
    page = opened()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    assert page.locator(".skip").bounding_box()["x"] >= 0
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "theme"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('nav').className") == "side"
    page.keyboard.press("Enter")
    page.wait_for_function("location.hash === '#where'")  # the page moves a moment after the key


@pytest.mark.slow
def test_the_menu_of_a_phone(opened: Opening) -> None:
    page = opened(PHONE, reduced_motion="reduce")
    page.locator(".menu summary").click()
    page.locator(".menu a", has_text="Definitions").click()
    assert abs(page.locator("#definitions").bounding_box()["y"]) < 150
    assert not page.locator(".menu ul").is_visible()


# Looks

CONTRAST = """(selector) => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = (rgb) => rgb.slice(0, 3).map((c) => c / 255)
    .map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, k) => sum + c * [0.2126, 0.7152, 0.0722][k], 0);
  return [...document.querySelectorAll(selector)].filter((one) => one.getClientRects().length).map((one) => {
    let behind = one;
    while (behind && (parse(getComputedStyle(behind).backgroundColor)[3] ?? 1) === 0) behind = behind.parentElement;
    const style = getComputedStyle(one);
    const front = parse(one.closest("svg") ? style.fill : style.color);
    const ends = [light(front), light(parse(getComputedStyle(behind).backgroundColor))];
    return (Math.max(...ends) + 0.05) / (Math.min(...ends) + 0.05);
  });
}"""
TEXTS = (
    "body", "p", "h1", "h2", "h3", "th", "td", "a", ".about", ".badge", ".lead", ".big", ".beside", ".meaning", ".tone",
    ".reach", ".source", ".keys li", ".findings strong", ".findings li", ".published", ".veiled", "summary", "button",
    "label", "dt", "dd", "output", "footer", ".pictures svg text", ".plot text", "select",
)  # fmt: skip


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out(opened: Opening, scheme: str) -> None:
    page = opened(color_scheme=scheme)
    page.evaluate("document.querySelectorAll('details.numbers').forEach((one) => { one.open = true; })")
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(20, 23, 26)")
    for what in TEXTS:
        found = page.evaluate(CONTRAST, what)
        assert found and min(found) >= 4.5, what


@pytest.mark.slow
def test_theme_is_as_chosen(opened: Opening) -> None:
    page = opened(color_scheme="dark")
    paper = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(paper)
    button = page.locator(".theme")
    button.click()
    assert button.inner_text() == "Theme: light" and page.evaluate(paper) == "rgb(255, 255, 255)"
    button.click()
    assert button.inner_text() == "Theme: dark" and page.evaluate(paper) == dark
    button.click()
    assert button.inner_text() == "Theme: auto" and page.evaluate(paper) == dark


def test_without_script_everything_is_there_to_read(opened: Opening) -> None:
    page = opened(java_script_enabled=False)
    for name in ("settings", "budget", "claims", "rules"):
        assert page.locator(f"#table-{name}").is_visible()
    assert page.locator(".live").first.is_hidden() and page.locator(".theme").is_hidden()
    assert page.locator("#block-areas-map svg").first.is_visible()
    page.locator("#block-sizes-chart summary").click()
    assert page.locator("#table-sizes").is_visible()


def test_paper_has_the_numbers_and_no_navigation(opened: Opening) -> None:
    page = opened(color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    for what in (".side", ".bar", ".live >> nth=0", ".pictures.narrow >> nth=0"):
        assert page.locator(what).is_hidden()
    assert page.evaluate("document.querySelector('#table-sizes').checkVisibility({ contentVisibilityAuto: true })")
    assert page.locator(".pictures.wide").first.is_visible()
    printed = page.pdf(prefer_css_page_size=True)
    assert printed.startswith(b"%PDF") and len(printed) > 20_000
