"""Draws docs/terminal.svg from the first session of docs/first-steps.md, so that the picture is as true as the text.

Run: python docs/make_terminal.py
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WIDTH, LINE, LEFT, TOP = 960, 22, 20, 52


def session() -> list[str]:
    """The lines of the first console session."""
    match = re.search(
        r"```console\n(.*?)```", (ROOT / "docs" / "first-steps.md").read_text(encoding="utf-8"), re.DOTALL
    )
    if match is None:
        raise SystemExit("docs/first-steps.md has no console session")
    return match[1].splitlines()


def draw(lines: list[str]) -> str:
    height = TOP + LINE * len(lines) + 8
    text = []
    for number, line in enumerate(lines):
        colour = "#7ee787" if line.startswith("$") else "#ffa657" if "but" in line else "#e6edf3"
        text.append(
            f'<text x="{LEFT}" y="{TOP + LINE * number}" fill="{colour}" xml:space="preserve">{escape(line)}</text>'
        )
    dots = "".join(
        f'<circle cx="{24 + 20 * i}" cy="20" r="6" fill="{c}"/>'
        for i, c in enumerate(("#ff5f56", "#ffbd2e", "#27c93f"))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        f'role="img" aria-label="A terminal session with glasshouse tabulate and glasshouse check">\n'
        f'<rect width="{WIDTH}" height="{height}" rx="10" fill="#0d1117"/>{dots}\n'
        f'<g font-family="ui-monospace, Menlo, Consolas, monospace" font-size="14">\n'
        + "\n".join(text)
        + "\n</g>\n</svg>\n"
    )


if __name__ == "__main__":
    (ROOT / "docs" / "terminal.svg").write_text(draw(session()), encoding="utf-8")
