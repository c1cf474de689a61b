"""How does a page get the part that a script makes? It stands between two marks; the first names the script."""

from __future__ import annotations

from pathlib import Path

END = "<!-- end -->"


def part_of(page: Path, script: str) -> str:
    """What stands on a page between the marks of a script."""
    return page.read_text(encoding="utf-8").split(_begin(script))[1].split(END)[0]


def put_part(page: Path, script: str, made: str) -> None:
    """Put what a script made on a page, in place of what it made before."""
    text = page.read_text(encoding="utf-8")
    before, rest = text.split(_begin(script))
    page.write_text(f"{before}{_begin(script)}{made.rstrip()}\n{END}{rest.split(END, 1)[1]}", encoding="utf-8")


def _begin(script: str) -> str:
    return f"<!-- made by docs/{Path(script).name} -->\n"
