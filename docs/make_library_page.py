"""How is Glasshouse used from a notebook? Runs the walk-through, and writes the notebook and the page about it.

python docs/make_library_page.py         # examples/library/walkthrough.ipynb and docs/library.md
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOK, PAGE = ROOT / "examples" / "library" / "walkthrough.ipynb", ROOT / "docs" / "library.md"
PICTURE = ROOT / "docs" / "library-solvar.svg"

# text and code in turn
CELLS = (
    """# Glasshouse from a notebook

Every command of Glasshouse is a function: `glasshouse vary tables.parquet --scenario sf1-person` is
`gh.vary("tables.parquet", scenario="sf1-person")`, with the same options and the same answers. A function takes
files or frames (polars, pandas, pyarrow) and gives back a result: frames, a typed summary, pictures. Without
`out` nothing is left on disk.""",
    "import glasshouse as gh",
    """## A county with a known truth

Nobody in it is real. Each file of the county is a frame.""",
    "county = gh.synthesize(persons=1500, seed=1)\ncounty.cef.head(3)",
    """## What an office would publish

The records are counted into the 34 tables of a census. A result can be handed to the next function as it is; it
knows its scenario.""",
    'tables = gh.tabulate(county.cef, scenario="sf1-person")\ntables.tables.head(3)',
    "Can all these numbers be true? They can; with one changed, `check` would name those that contradict each other.",
    "gh.check(tables).summary.agrees",
    """## What the tables give away

`vary` measures how different another set of records could be while every published number stays true. The share
of records that are the same in every such set is certain: proved, not estimated.""",
    "found = gh.vary(tables)\nfound.summary.headline.share_certain",
    "Place by place, as a frame; `solvar` is the share of a place's records that could differ.",
    'found.places.select("block", "population", "solvar", "certain", "proof").head(5)',
    "A result has its pictures.",
    "found.figure()",
    """## Other frames, other tables

Frames of pandas and pyarrow are taken as they are. Here an office publishes three tables only; the summary says
what is then not told at all.""",
    'few = gh.vary(tables.tables.to_pandas(), scenario="sf1-person", only=["P1", "P8", "P12"])\n'
    "few.summary.headline.share_certain, few.summary.not_compared",
    """## A protection, and the same attack again

Half of the households trade places with others nearby. The tables of the swapped records are attacked in the
same way.""",
    "swapped = gh.protect.swap(county.cef, rate=0.5, coordinates=county.blocks, seed=1)\n"
    'again = gh.vary(gh.tabulate(swapped.records, scenario="sf1-person"))\n'
    "swapped.summary.share, again.summary.headline.share_certain",
    """Certain is now a statement about the swapped file, not about people. Who could be identified is asked of both:
the records that were rebuilt are linked to a list of names, and what they tell is held against the truth and
against guessing.""",
    """import polars as pl

def found_exposed(records, varied):
    rebuilt = gh.reconstruct(gh.tabulate(records, scenario="sf1-person"))
    linked = gh.reidentify(rebuilt, truth=county.cef, published=records, vary=varied,
                           attacker={"perfect": county.attacker_perfect})
    rates = linked.rates.filter(band="all", data="rHDF_bt", group="nonmodal-unique")
    return rates.select("putative", "confirmed", "precision", "low", "high", "baseline")

pl.concat([found_exposed(county.cef, found), found_exposed(swapped.records, again)])""",
    """## One noisy count

What does an adversary believe about one person who sees a single count with noise?""",
    "gh.infer.posterior(rho=0.1, prior=0.5, noisy=2)",
    """## Files, long runs, mistakes

`out="solvar"` writes the files of a command and resumes a run that was interrupted; `found.write("folder")`
writes them later. `with gh.aloud(): ...` shows progress. A mistake is an `InputError` of one line, the same as
in the terminal.""",
    "try:\n    gh.vary(tables, level='trakt')\nexcept gh.InputError as mistake:\n    print(mistake)",
)


def notebook() -> nbformat.NotebookNode:
    """The walk-through, not run yet."""
    cells = []
    for number, (text, code) in enumerate(zip(CELLS[::2], CELLS[1::2], strict=True)):
        cells += [nbformat.v4.new_markdown_cell(text), nbformat.v4.new_code_cell(code)]
        cells[-2]["id"], cells[-1]["id"] = f"text-{number}", f"code-{number}"
    made = nbformat.v4.new_notebook(cells=cells)
    made.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return made


def run(made: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The same with its outputs; nothing of the machine or the time stays in it."""
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(made, timeout=600, resources={"metadata": {"path": folder}}).execute()
    for cell in made.cells:
        cell.metadata.clear()
    made.metadata.pop("language_info", None)
    return made


def page(made: nbformat.NotebookNode) -> str:
    """The walk-through as a page: what was typed, and what came back in text."""
    parts = []
    for cell in made.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        for output in cell.outputs:
            data = output.get("data", {})
            if "image/svg+xml" in data:
                PICTURE.write_text(data["image/svg+xml"], encoding="utf-8")
                parts.append(f"![How many records could differ, by the size of the block]({PICTURE.name})")
            else:
                text = output.get("text") or data.get("text/plain", "")
                parts.append(f"```\n{text.rstrip()}\n```")
    parts.append(
        "---\n\nMade by `docs/make_library_page.py`; the same as a notebook: "
        "[examples/library/walkthrough.ipynb](../examples/library/walkthrough.ipynb). Every function and its options: "
        "[reference](reference.md)."
    )
    return "\n\n".join(parts) + "\n"


def differences(done: nbformat.NotebookNode, kept: nbformat.NotebookNode) -> list[str]:
    """Cells that are not as they are kept: what was typed, or what came back."""
    found = []
    for number, (now, before) in enumerate(zip(done.cells, kept.cells, strict=True)):
        if now.source != before.source or now.get("outputs", []) != before.get("outputs", []):
            found.append(f"cell {number}: {before.source.splitlines()[0]}")
    return found


if __name__ == "__main__":
    done = run(notebook())
    if "--check" in sys.argv[1:]:
        again = nbformat.reads(nbformat.writes(done), as_version=4)  # as a file spells it
        wrong = differences(again, nbformat.read(NOTEBOOK, as_version=4))
        sys.exit("\n".join(wrong) if wrong else 0)
    NOTEBOOK.parent.mkdir(exist_ok=True)
    nbformat.write(done, NOTEBOOK)
    PAGE.write_text(page(done), encoding="utf-8")
