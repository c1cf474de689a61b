"""How is a description of records said in plain English? Phrases are the scenario's, the grammar is here.

"Exactly one household: owner occupied, 2 persons; the householder is Asian alone, 25 to 34 years old." A sentence has
a noun, then clauses; a clause has a beginning ("the householder is") and the phrases of its attributes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from glasshouse.model.schema import EVERYONE, Predicate, Recode, Schema


@dataclass(frozen=True)
class Noun:
    """What records are called: one of them, several, and all of them together."""

    one: str
    many: str
    every: str
    where: Predicate = EVERYONE  # what the word says by itself: a household is occupied


@dataclass(frozen=True)
class Clause:
    """A part of a sentence: attributes that are said together, in this order, after the same beginning."""

    attributes: tuple[str, ...]
    start: str = ""


@dataclass(frozen=True)
class Wording:
    """What a claim about records may say, and the words for it.

    `groups` has for each column the level sets a claim may name, which divide the levels: single levels, or the groups
    of a recode where no table tells levels apart. Claims about the records in `apart` are reported apart.
    """

    columns: tuple[str, ...]
    groups: Mapping[str, tuple[frozenset[int], ...]]
    clauses: tuple[Clause, ...]
    noun: Noun
    phrases: Mapping[str, Mapping[frozenset[int], str]] = field(default_factory=dict)
    labels: Mapping[str, Mapping[frozenset[int], str]] = field(default_factory=dict)  # of recodes' groups
    finer: Mapping[str, str] = field(default_factory=dict)  # not said when this other attribute implies it
    apart: Predicate | None = None
    apart_noun: Noun | None = None
    any_noun: Noun | None = None  # for descriptions that fit records apart and others

    @property
    def records(self) -> tuple[str, str]:
        """What one record is called, and several."""
        return self.noun.one, self.noun.many

    @property
    def apart_title(self) -> str:
        """What the records apart are called; empty if there are none."""
        return self.apart_noun.many if self.apart_noun else ""

    def sentence(self, schema: Schema, predicate: Predicate, m: int) -> str:
        """Say that exactly m records have this description."""
        noun = self.word(schema, predicate)
        return self.counted(noun, m, self._clauses(schema, predicate, noun))

    def counted(self, noun: Noun, m: int, said: str) -> str:
        """A sentence: how many, then what is said of them."""
        count = {0: f"No {noun.one}", 1: f"Exactly one {noun.one}"}.get(m, f"Exactly {m:,} {noun.many}")
        return f"{count}: {said}." if said else f"{count}."

    def said(self, schema: Schema, predicate: Predicate) -> str:
        """The description alone, without a count."""
        noun = self.word(schema, predicate)
        said = self._clauses(schema, predicate, noun)
        if not said:
            return noun.every
        return f"{noun.many}: {said}" if noun is self.apart_noun else said

    def word(self, schema: Schema, predicate: Predicate) -> Noun:
        """The word that is true of every record of the description."""
        if self.apart is None or self.apart_noun is None or self.any_noun is None:
            return self.noun
        apart = schema.levels_within(self.apart)
        if any(levels.isdisjoint(apart[name]) for name, levels in predicate.sets):
            return self.noun
        if schema.covered(predicate & self.apart, ()):
            return self.noun
        return self.apart_noun if schema.covered(predicate, [self.apart]) else self.any_noun

    def _clauses(self, schema: Schema, predicate: Predicate, noun: Noun) -> str:
        told = (self.clause(schema, predicate, noun, clause) for clause in self.clauses)
        return "; ".join(said for said in told if said)

    def clause(self, schema: Schema, predicate: Predicate, noun: Noun, clause: Clause) -> str:
        """What one clause says; empty when the noun says it, or nothing is said of its attributes."""
        levels = predicate.by_attribute
        named = [name for name in clause.attributes if name in levels]
        phrases = [
            self._phrase(schema, name, levels[name])
            for name in named
            if not self._implied(schema, predicate, noun, name)
        ]
        return f"{clause.start} {', '.join(phrases)}".strip() if phrases else ""

    def _implied(self, schema: Schema, predicate: Predicate, noun: Noun, name: str) -> bool:
        """Does the noun say this of an attribute already, or a finer attribute?"""
        sets = predicate.by_attribute
        if schema.levels_within(noun.where)[name] <= sets[name]:
            return True
        finer = self.finer.get(name, "")
        if finer not in sets:
            return False
        return schema.levels_within(Predicate(((finer, sets[finer]),)) & noun.where)[name] <= sets[name]

    def _phrase(self, schema: Schema, name: str, levels: frozenset[int]) -> str:
        phrases, labels = self.phrases.get(name, {}), self.labels.get(name, {})
        if levels in phrases:
            return phrases[levels]
        if levels in labels:
            return labels[levels] if phrases else f"{name} {labels[levels]}"
        if not phrases:
            return schema.describe(Predicate(((name, levels),)))
        return " or ".join(phrases[frozenset([level])] for level in sorted(levels))


def plain_wording(schema: Schema, recodes: Mapping[str, Recode]) -> Wording:
    """The wording of a scenario that gives no words: every attribute by its name, every level by its label."""
    return Wording(
        tuple(attribute.name for attribute in schema.attributes),
        {attribute.name: single_levels(len(attribute)) for attribute in schema.attributes},
        (Clause(tuple(attribute.name for attribute in schema.attributes)),),
        Noun("record", "records", "all records"),
        labels=labels_of_groups(recodes),
    )


def single_levels(count: int) -> tuple[frozenset[int], ...]:
    """Every level in a set of its own."""
    return tuple(frozenset([level]) for level in range(count))


def labels_of_groups(recodes: Mapping[str, Recode]) -> dict[str, dict[frozenset[int], str]]:
    """By attribute, the labels of groups of several levels; of two recodes with the same group, the first one's."""
    found: dict[str, dict[frozenset[int], str]] = {}
    for recode in recodes.values():
        waiting = list(recode.groups)
        while waiting:
            group = waiting.pop(0)
            waiting[:0] = group.parts
            if len(group.levels) > 1:
                found.setdefault(recode.attribute, {}).setdefault(group.levels, group.label)
    return found
