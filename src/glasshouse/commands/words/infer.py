"""How the commands of `glasshouse infer` read numbers and say what they found."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from glasshouse.errors import InputError


def read_number(text: str, what: str) -> float:
    from glasshouse.mechanism.account import fraction

    return float(fraction(text, what))


def read_rate(rho: str, neighbours: str) -> float:
    from glasshouse.mechanism.gaussian import rate_of

    return rate_of(read_number(rho, "rho"), neighbours)


def read_level(text: str, neighbours: str) -> Any:
    from glasshouse.attack.infer.hierarchy import Level

    parts = text.split(":")
    try:
        numbers = [int(part) for part in parts[1:]]
    except ValueError:
        numbers = []
    if len(numbers) not in (1, 3):
        raise InputError(
            f"--level {text}: expected RHO:NOISY or RHO:NOISY:OTHERS:NOISY_OTHERS, whole numbers but for rho"
        )
    return Level(read_rate(parts[0], neighbours), *numbers)


def about(attack: str | None) -> dict[str, str]:
    """What the prior is a belief about, when that was said."""
    from glasshouse.attack.infer.onelevel import ATTACKS
    from glasshouse.errors import unknown

    if attack is None:
        return {}
    if attack not in ATTACKS:
        raise unknown("attack", attack, ATTACKS)
    return {"attack": attack, "belief": ATTACKS[attack]}


def belief_in_truth(posterior: float, true1: int | None, known: int) -> dict[str, float]:
    """How much belief the true count gets, when it is told."""
    if true1 is None:
        return {}
    if true1 not in (known, known + 1):
        raise InputError(f"the true count is {true1}; expected {known} or {known + 1}")
    return {"belief_in_truth": posterior if true1 == known + 1 else 1 - posterior}


def check_words(**words: str) -> None:
    """Refuse options that are no known word, also where they make no difference."""
    from glasshouse.attack.infer.onelevel import TIES
    from glasshouse.attack.infer.twolevel import MODES
    from glasshouse.errors import unknown

    choices = {"mode": MODES, "ties": tuple(TIES), "noise_sum": ("exact", "approx")}
    for option, word in words.items():
        if word not in choices[option]:
            raise unknown(option.replace("_", "-"), word, choices[option])


def only_with_rho2(**options: float | None) -> None:
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise InputError(f"--{given[0].replace('_', '-')} speaks of the level above, whose --rho2 is missing")


def spelled(said: Mapping[str, Any]) -> list[str]:
    return [f"{key.replace('_', ' ')}: {value}" for key, value in said.items()]


def say_posterior(found: Any, as_json: bool, more: Mapping[str, Any]) -> int:
    top = [list(pair) for pair in found.top]
    said = {"posterior": found.belief.posterior, "ratio": found.belief.ratio, "x2": top, **more}
    lines = [f"posterior {found.belief.posterior:.6f}, ratio {found.belief.ratio:.6f}; the count at the top:"]
    lines += [f"    {k:>4}  {mass:.4f}" for k, mass in found.top if mass >= 5e-5]
    lines += spelled(more)
    return say(said, as_json, lines)


def plan_lines(one: Any, kind: str) -> list[str]:
    heading = {"alone": "each level on its own", "unique": "a target unique from the finest level up to each"}[kind]
    lines = [f"prior {one.prior:g}, {heading}:"]
    for row in one.levels:
        if row.standard_deviation is None:
            lines.append(f"    {row.level:<14} rho 0: nothing is released")
            continue
        noise = f"noise sd {row.standard_deviation:.3f}"
        risk = f"average posterior {row.posterior:.4f}  ratio {row.ratio:.3f}"
        lines.append(f"    {row.level:<14} rho {row.rho:.6f}  {noise}  {risk}")
    lines.append(
        f"    total rho {one.total:.6f}: epsilon {one.epsilon:.4f} (tighter {one.epsilon_tight:.4f}); "
        f"membership test at significance 0.01: power {one.power:.4f}, at most {one.power_bound:.4f}"
    )
    return lines


def say(said: Mapping[str, Any], as_json: bool, lines: list[str] | None = None) -> int:
    if as_json:
        print(json.dumps(said))
    else:
        print("\n".join(lines if lines is not None else [f"{key} {value}" for key, value in said.items()]))
    return 0
