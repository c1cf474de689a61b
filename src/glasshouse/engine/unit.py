"""How is one unit of work done? Timed, and whatever happens: what cannot be done is an answer too, with the reason."""

from __future__ import annotations

import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from glasshouse.attack.published import NothingFits, Unit
from glasshouse.engine.job import Asked, Done, Item, Job, Work
from glasshouse.engine.ledger import Entry, Notes, Refusal
from glasshouse.errors import InputError, MachineFailed
from glasshouse.model.geography import plural
from glasshouse.model.release import Release


def do(job_and_work: tuple[Any, Work], item: Asked) -> Entry:
    """One unit, whatever happens: what cannot be done is an entry too."""
    job, work = job_and_work
    began, cpu = time.perf_counter(), time.process_time()
    done, refused, bug = Done({}), None, False
    try:
        done = work(job, item)
    except NothingFits as why:
        done, refused = Done({}, clock=why.clock), _explained(job, item, why)
    except InputError as error:
        if _is_of_the_machine(error):  # says nothing of the unit, so it is no entry
            raise
        refused = Refusal(str(error))
    except MemoryError:
        raise MemoryError from None
    except OSError as error:
        raise MachineFailed(
            f"{error.filename or item.code}: {error.strerror or error}; run the same command again"
        ) from None
    except Exception as error:  # one bad unit does not stop the others; the exception's text may hold data
        at = error.__traceback__
        while at is not None and at.tb_next is not None:
            at = at.tb_next
        where = f"{Path(at.tb_frame.f_code.co_filename).name}:{at.tb_lineno}" if at else "?"
        refused, bug = Refusal(f"a bug of ours ({type(error).__name__} at {where})"), True
    notes = Notes(
        places=item.places,
        seconds=round(time.perf_counter() - began, 6),
        cpu=round(time.process_time() - cpu, 6),
        process=os.getpid(),
        counts=done.counts,
        clock=done.clock,
        refused=refused,
        bug=bug,
    )
    return Entry(item.code, notes, done.frames)


def _is_of_the_machine(error: BaseException | None) -> bool:
    """Did a disk or a network fail, behind whatever was said of it? A file that is not there is a mistake instead."""
    mistakes = (FileNotFoundError, IsADirectoryError, NotADirectoryError)
    while error is not None:
        broken = isinstance(error, OSError) and error.errno is not None and not isinstance(error, mistakes)
        if broken or isinstance(error, MachineFailed):
            return True
        error = error.__cause__ or error.__context__
    return False


def _explained(job: Any, item: Any, refused: NothingFits) -> Refusal:
    """Why nothing fits: the numbers that cannot all be true."""
    if not isinstance(job, Job) or not isinstance(item, Item):
        return Refusal(str(refused))
    levels = {item.unit.counts.level: item.unit.counts}
    if item.unit.areas is not None:
        levels[item.unit.areas.level] = item.unit.areas
    release = Release(job.scenario.schema, job.scenario.tables, levels)
    findings = job.check.findings(release) if refused.proof else []
    if not findings:
        return Refusal(str(refused))
    first = findings[0]
    more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    cells = tuple({"geoid": finding.geoid, **asdict(cell)} for finding in findings for cell in finding.cells)
    where = "" if first.geoid == item.code else f"{first.level} {first.geoid}: "
    return Refusal(_without_numbers(item.unit) or f"{where}{first.statement}{more}", cells)


def _without_numbers(unit: Unit) -> str | None:
    """An area of which the file says nothing, though its places are not empty."""
    if unit.areas is not None:
        for area in np.flatnonzero((unit.areas.upper == 0).all(axis=1)):
            sums = unit.counts.lower[unit.of == area].sum(axis=0)
            if (sums > 0).any():
                where, inside = f"{unit.areas.level} {unit.areas.places[area]}", plural(unit.counts.level)
                first = int(np.argmax(sums > 0))
                adds = f"{unit.counts.variables[first]} over its {inside} is {sums[first]:,}"
                return f"there is no number of {where}, or all are 0, but {adds}"
    return None
