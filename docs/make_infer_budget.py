"""How whole budgets read, and Table 5 from a sweep: computed here, written into docs/infer.md, checked by a test.

Run: python docs/make_infer_budget.py
"""

from __future__ import annotations

from pathlib import Path

from made_part import put_part  # beside this file

import glasshouse as gh

PAGE = Path(__file__).resolve().parent / "infer.md"
PRINTED = {"paper-2020": "17.91", "pl94-2020": ""}  # epsilon at delta 1e-10, as Kazan and Reiter print it (2.3)
TABLE_5 = {"1/2": ("0.524", "1.05"), "1/5": ("0.225", "1.13"), "1/10": ("0.117", "1.17"), "1/50": ("0.024", "1.21"),
           "1/864": ("0.0014", "1.22")}  # fmt: skip
RHO = "0.0992263542"


def budgets() -> list[str]:
    lines = [
        "| budget | rho, exact | neighbours | epsilon at delta 1e-10 | printed | tighter | power at 0.01: Gaussian, "
        "any mechanism, by epsilon | at 0.05 |",
        "|---" * 8 + "|",
    ]
    for name, printed in PRINTED.items():
        found, other = (gh.infer.epsilon(allocation=name, significance=level).summary for level in (0.01, 0.05))
        powers = [
            ", ".join(f"{power:.4f}" for power in (one.power, one.power_bound, one.power_of_epsilon))
            for one in (found, other)
        ]
        lines.append(
            f"| `{name}` | {found.rho} | {found.neighbours} | {found.epsilon:.5f} | {printed} | "
            f"{found.epsilon_tight:.5f} | {powers[0]} | {powers[1]} |"
        )
    return lines


def swept() -> list[str]:
    """Table 5, from one call of `infer sweep`."""
    rows = gh.infer.sweep(rho=RHO, prior=",".join(TABLE_5)).sweep.sort("prior", descending=True).iter_rows(named=True)
    lines = [
        "| prior | posterior: printed, ours | risk R: printed, ours | the likelier value is right |",
        "|---|---|---|---|",
    ]
    for (prior, (belief, risk)), row in zip(TABLE_5.items(), rows, strict=True):
        lines.append(
            f"| {prior} | {belief}, {row['posterior']:.5f} | {risk}, {row['risk']:.4f} | {row['correct']:.3g} |"
        )
    return lines


def made() -> str:
    return "\n".join(
        [*budgets(), "", f"`glasshouse infer sweep --rho {RHO} --prior {','.join(TABLE_5)}`:", "", *swept()]
    )


if __name__ == "__main__":
    put_part(PAGE, __file__, made())
    for name in ("map", "average"):
        gh.infer.sweep().figure(name).save(PAGE.with_name(f"infer-sweep-{name}.svg"))
