"""Owns covering designs of a declaration: few calls in which all pairs of levels meet (at `full`
as many triples as the budget allows), each call as its modes and requirements leave it.

One call at a time, the one of several candidates that meets most new tuples (D. M. Cohen et al.,
"The AETG system", IEEE TSE 23(7), 1997); tuples count on the call as it was settled. Any prefix
is a good design: a budget cuts it.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice, product
from typing import Any, Final

import numpy as np

from .declaration import MOST_ELEMENTS, ConcreteCall, Declaration, factor_named
from .domains import By, Domain, evaluate, everywhere
from .errors import DeclarationError
from .expressions import expression
from .factors import Factor, plain
from .sizes import Role, dims_of, parts_of, volume

Levels = dict[str, str]
# Calls of one operator, candidates for each, and attempts at a pair that requirements forbid.
QUICK_CALLS: Final = 44
FULL_CALLS: Final = 220
# Calls that mix levels at least, however many levels were tried alone; one for each factor at most.
_MIXED: Final = (20, 60)
# Elements of a size that is drawn beside a level which is tried alone, and of one of `full` that
# takes part in calls which mix levels; how often one does.
_SMALL: Final = 70
_ROOM: Final = (2100, 1 << 20)
_SPREAD: Final = 0.25
# The share of other arguments that are drawn beside a level which is tried alone.
_SOME: Final = 1 / 3
_CANDIDATES: Final = (2, 6)
# By how much more a new pair of modes counts than one of sizes, layouts and values.
_MODES: Final = 5
_TRIES: Final = 8
# What is left of the count of a pair that a call was to have and has not.
_FATIGUE: Final = 0.5
# Changes to a call until it is within the cap and its requirements hold.
_ROUNDS: Final = 24
_PLAIN_FIRST: Final = 0.35
# How often each side of a relation is to be met.
_SIDES: Final = (2, 4)
_SEARCH: Final = 400
# Roles that may be any number: such a size can equal another whose levels are none of its own.
_FREE: Final = frozenset(("batch", "rows", "sequence", "tokens"))
# Changes of two levels that are tried where a requirement does not hold.
_MOST_PAIRS: Final = 300
# Calls that are tried for a level that none had.
_LEVEL_TRIES: Final = 6


@dataclass(frozen=True, slots=True)
class Design:
    """The calls of a declaration at a level, and what they leave unmet."""

    calls: tuple[Levels, ...]
    unmet_relations: tuple[tuple[str, bool], ...]
    unmet_levels: tuple[tuple[str, str], ...]


def design(declaration: Declaration, claimed: Sequence[str], full: bool = False) -> Design:
    """The calls: plain, pins, then those that meet most new pairs; then both sides of relations."""
    return _DesignSearch(declaration, claimed, full).run()


def plainest(declaration: Declaration) -> Levels:
    """The plain call, with what its requirements change."""
    if not any(r.kind == "require" for r in declaration.relations):
        return {}
    search = _DesignSearch(declaration, (), False)
    return search.settle(search.plain) or {}


def _is_layout(factor: str) -> bool:
    """Whether a factor says how a tensor lies in memory."""
    return factor == "to" or factor.startswith("layout.")


def _is_argument(factor: str) -> bool:
    """Whether a factor is a size, dtype or argument: no layout, and not what tensors hold."""
    return factor != "values" and not _is_layout(factor)


class _Pairs:
    """Which pairs of levels no call has had, by what they count: those of two modes most."""

    def __init__(self, factors: Sequence[Factor], declaration: Declaration) -> None:
        items = [(f.name, level) for f in factors for level in f.levels]
        self.places = {item: i for i, item in enumerate(items)}
        modes = [_is_argument(f.name) and f.name not in declaration.used_sizes for f in factors]
        counts = [len(f.levels) for f in factors]
        of, mode = np.repeat(np.arange(len(factors)), counts), np.repeat(modes, counts)
        self.counts = (of[:, None] != of) * (1.0 + _MODES * (mode[:, None] & mode))

    def place(self, factor: str, level: str) -> int:
        return self.places[factor, level]

    def _at(self, levels: Levels) -> Any:
        at = np.array([self.places[i] for i in levels.items() if i in self.places], np.intp)
        return at[:, None], at

    def meet(self, levels: Levels) -> None:
        """Count the pairs of a call as met."""
        self.counts[self._at(levels)] = 0

    def miss(self, proposal: Levels, levels: Levels | None) -> None:
        """Count pairs of a proposal less that `levels`, the call that became of it, do not have:
        many of them no call can have."""
        known = [item for item in proposal.items() if item in self.places]
        at = [self.places[item] for item in known]
        lost = [self.places[n, v] for n, v in known if levels is None or levels[n] != v]
        if lost:
            for index in (np.ix_(lost, at), np.ix_(at, lost)):
                self.counts[index] *= _FATIGUE

    def unmet(self, levels: Levels) -> float:
        return float(self.counts[self._at(levels)].sum()) / 2

    def wanting(self, factor: Factor, level: str, others: Sequence[int]) -> str:
        """The level that has most unmet pairs with `others`; `level` where no other has more."""
        first = self.places[factor.name, factor.levels[0]]
        unmet = self.counts[first : first + len(factor.levels), others].sum(1)
        best = int(unmet.argmax())
        at = factor.levels.index(level)
        return level if unmet[at] == unmet[best] else factor.levels[best]


class _DesignSearch:
    def __init__(self, declaration: Declaration, claimed: Sequence[str], full: bool) -> None:
        self.declaration, self.full = declaration, full
        self.factors = declaration.factors(claimed, full)
        self.plain = plain(self.factors)
        self.rng = np.random.default_rng(zlib.crc32(declaration.name.encode()))
        self.calls: dict[tuple[tuple[str, str], ...], Levels] = {}
        self.triples: set[tuple[tuple[str, str], ...]] = set()
        self.sides: dict[tuple[str, bool], int] = {}
        self.both = [r for r in declaration.relations if r.kind == "both"]
        self.budget = FULL_CALLS if full else QUICK_CALLS
        self.reads: dict[str, frozenset[str]] = {}
        self.pairs = _Pairs(self.factors, declaration)
        self.sizes = {f.name: f for f in self.factors
                      if isinstance(declaration.used_sizes.get(f.name), Role)}  # fmt: skip
        # All levels of sizes, those of `full` too, that one call at `quick` has room for.
        self._every = {n: [v for v in role.levels(True) if volume(dims_of(v)) <= _ROOM[full]]
                       for n, role in declaration.used_sizes.items()
                       if n in self.sizes and isinstance(role, Role)}  # fmt: skip

    def run(self) -> Design:
        self._add(self.settle(self.plain))
        for pin in self.declaration.pins:
            self._add(self.settle({**self.plain, **pin.levels}))
        for levels in self._singles():
            self._add(levels)
        self._equate()
        mixed = max(_MIXED[self.full], len(self.factors))
        budget, idle = max(self.budget, len(self.calls) + mixed), 0
        while len(self.calls) < budget and idle < _TRIES:
            best = self._best()
            idle = 0 if best is not None and self._add(best) else idle + 1
        self._balance()
        self._complete()
        unmet = [(r.text, side) for r in self.both for side in (True, False)
                 if not self.sides.get((r.text, side))]  # fmt: skip
        return Design(tuple(self.calls.values()), tuple(unmet), tuple(self._unmet_levels()))

    def _singles(self) -> Iterator[Levels]:
        """Every level once beside plain values and layouts: a cause that needs one level shows
        itself. Sizes differ from call to call, and arguments in every other one, for a level may
        matter where the rest is not plain."""
        singles = ((f.name, level) for f in self.factors
                   if self.full or not _is_layout(f.name) for level in f.levels[1:])  # fmt: skip
        for i, (name, level) in enumerate(singles):
            sizes = {} if name in self.sizes else self._sizes()
            beside = {**sizes, **self._arguments()} if i % 2 else sizes
            settled = self.settle({**self.plain, **beside, name: level})
            if settled is None or settled[name] != level:
                settled = self.settle({**self.plain, name: level})
            if settled is not None:
                yield settled

    def _arguments(self) -> Levels:
        """Levels of some arguments, drawn at random."""
        some = [f for f in self.factors if _is_argument(f.name) and f.name not in self.sizes
                and f.name != "overload" and self.rng.random() < _SOME]  # fmt: skip
        return {f.name: f.levels[int(self.rng.integers(len(f.levels)))] for f in some}

    def _sizes(self) -> Levels:
        """Sizes drawn at random, small, and none of them 1 or 0."""
        levels_: Levels = {}
        for name, every in self._every.items():
            some = [n for n in every if self._is_small(n)]
            if some:
                levels_[name] = some[int(self.rng.integers(len(some)))]
        return levels_

    def _is_small(self, level: str) -> bool:
        dims = dims_of(level)
        return min(dims, default=0) > 1 and volume(dims) <= _SMALL

    def _equate(self) -> None:
        """Calls in which sizes that differ elsewhere are equal, so that reading one by the other's
        steps stays in bounds, and a mistake of that kind shows in values alone."""
        roles = {n: self.declaration.used_sizes[n] for n in self.sizes}
        levels = {n: {v for v in r.levels(True) if v.isdigit() and int(v) > 1}
                  for n, r in roles.items() if isinstance(r, Role)}  # fmt: skip
        free = {n for n, r in roles.items() if isinstance(r, Role) and r.name in _FREE}
        for pair in sorted(combinations(levels, 2)):
            first, second = (levels[n] for n in pair)
            common = first & second or {v for n, other in (pair, pair[::-1]) if n in free
                                        for v in levels[other]}  # fmt: skip
            value = min(common, key=int, default=None)
            if value is None:
                continue
            alike = {n: value for n in levels if value in levels[n]}
            for equal in (alike, {}):
                if not self._equal(pair):
                    self._add(self.settle({**self.plain, **equal, **dict.fromkeys(pair, value)}))

    def _equal(self, pair: tuple[str, str]) -> bool:
        """Whether two sizes are equal, and more than one, in a call that there is."""
        first, second = pair
        return any(c[first] == c[second] != "1" for c in self.calls.values())

    # --- calls as they are ----------------------------------------------------------------------

    def settle(self, levels: Mapping[str, str]) -> Levels | None:
        """The call that levels make: within the cap, its requirements mended; None where one
        cannot be."""
        levels_ = dict(levels)
        for _ in range(_ROUNDS):
            try:
                draw = self.declaration.draw(levels_)
                levels_ = self._known(draw.actual())
                if draw.elements() > MOST_ELEMENTS[self.full]:
                    if not self._shrink(levels_):
                        return None
                    continue
                broken = draw.holds()
            except (DeclarationError, ZeroDivisionError, IndexError, ValueError):
                return None
            if broken is None:
                return levels_
            if not self._mend(levels_, broken.text):
                return None
        return None

    def _known(self, levels: Mapping[str, str]) -> Levels:
        return {f.name: levels.get(f.name, f.levels[0]) for f in self.factors}

    def _shrink(self, levels_: Levels) -> bool:
        """Take the largest size but one down to the next smaller level."""
        order = sorted(self.sizes, key=lambda n: -volume(dims_of(levels_[n])))
        for name in [*order[1:], *order[:1]]:
            now = volume(dims_of(levels_[name]))
            smaller = [n for n in self.sizes[name].levels if volume(dims_of(n)) < now]
            if smaller and now > 4:
                levels_[name] = max(smaller, key=lambda n: volume(dims_of(n)))
                return True
        return False

    def _mend(self, levels_: Levels, text: str) -> bool:
        """Change one or two factors that a requirement reads so that it holds."""
        names = [f for f in self.factors if f.name in self._reads(text)]
        for factor in names:
            for level in factor.levels:
                if self._fits({**levels_, factor.name: level}, text):
                    levels_[factor.name] = level
                    return True
        # In random order: the first that fit are the smallest, and always the same.
        orders = {f.name: [f.levels[i] for i in self.rng.permutation(len(f.levels))] for f in names}
        pairs = ({one: a, two: b} for one, two in combinations(orders, 2)
                 for a, b in product(orders[one], orders[two]))  # fmt: skip
        for pair in islice(pairs, _MOST_PAIRS):
            if self._fits({**levels_, **pair}, text):
                levels_.update(pair)
                return True
        return False

    def _reads(self, text: str) -> frozenset[str]:
        """Factors that an expression depends on, through derived sizes and shapes."""
        if text in self.reads:
            return self.reads[text]
        seen: set[str] = set()
        todo = list(expression(text).names)
        while todo:
            name = todo.pop()
            if name in seen:
                continue
            seen.add(name)
            role = self.declaration.used_sizes.get(name)
            if isinstance(role, str):
                todo += expression(role).names
            elif name in self.declaration.params:
                todo += self._read_by(name)
        seen |= {"dtype", "types"} if "dtype" in text else set()
        self.reads[text] = frozenset(seen)
        return self.reads[text]

    def _read_by(self, param: str) -> list[str]:
        names: list[str] = []
        for domain in everywhere(self.declaration.params[param]):
            names += [n for s in domain.shapes() for p in parts_of(s) for n in p.names]
            names += [n for e in domain.expressions() for n in expression(e).names]
            if isinstance(domain, By):
                names.append(domain.param)
        return names

    def _fits(self, levels: Mapping[str, str], text: str) -> bool:
        try:
            return bool(evaluate(text, self.declaration.draw(levels)))
        except (DeclarationError, ZeroDivisionError, IndexError, ValueError):
            return False

    # --- levels that only a form or a mode has ---------------------------------------------------

    def _unmet_levels(self) -> list[tuple[str, str]]:
        met = {item for levels in self.calls.values() for item in levels.items()}
        return [(f.name, level) for f in self.factors for level in f.levels
                if (f.name, level) not in met]  # fmt: skip

    def _complete(self) -> None:
        """Calls for levels that no call has, in the forms and modes that have them."""
        for name, level in self._unmet_levels():
            ways = list(self._ways(name, level)) or [{}]
            for i in range(_LEVEL_TRIES * len(ways)):
                way = {**ways[i % len(ways)], name: level}
                settled = self.settle({**self._candidate(), **way})
                if settled is not None and settled[name] == level and self._add(settled):
                    break

    def _ways(self, factor: str, level: str) -> Iterator[Levels]:
        """The forms of the call, and the modes, in which a parameter has a level."""
        params = (n for n in self.declaration.inputs if factor_named(n) == factor)
        forms = [o.name for o in self.declaration.overloads] or [""]
        for param in params:
            for form in forms:
                form_level = {"overload": form} if form else {}
                domain = self.declaration.domain(param, form)
                yield from ({**form_level, **modes} for modes in self._modes(domain, level))

    def _modes(self, domain: Domain, level: str) -> Iterator[Levels]:
        if level not in domain.levels(self.full):
            return
        if not isinstance(domain, By):
            inner = [m for d in domain.within() for m in self._modes(d, level)]
            yield from inner or [{}]
            return
        for mode, option in domain.options.items():
            for modes in self._modes(option, level) if option is not None else ():
                mode_level = str(mode).replace(" ", "")
                known = any(f.name == domain.param and mode_level in f.levels for f in self.factors)
                yield {**modes, domain.param: mode_level} if known else modes

    # --- which to take --------------------------------------------------------------------------

    def _triples(self, levels: Levels) -> set[tuple[tuple[str, str], ...]]:
        items = sorted(item for item in levels.items() if _is_argument(item[0]))
        return set(combinations(items, 3)) if self.full else set()

    def _add(self, levels: Levels | None) -> bool:
        """Take a call; False for none and for one that there is already."""
        if levels is None:
            return False
        key = tuple(sorted(levels.items()))
        if key in self.calls:
            return False
        self.calls[key] = levels
        self.pairs.meet(levels)
        self.triples |= self._triples(levels)
        self._count(levels)
        return True

    def _count(self, levels: Levels) -> None:
        draw: ConcreteCall = self.declaration.draw(levels)
        for relation in self.both:
            try:
                side = (relation.text, bool(evaluate(relation.text, draw)))
            except (ZeroDivisionError, IndexError, TypeError):
                continue
            self.sides[side] = self.sides.get(side, 0) + 1

    def _best(self) -> Levels | None:
        """Of several calls, the one with most new tuples; those of modes weigh most."""
        best, most = None, 0.0
        for _ in range(_CANDIDATES[self.full]):
            proposal = self._spread(self._greedy())
            levels = self.settle(proposal)
            self.pairs.miss(proposal, levels)
            if levels is None:
                continue
            new = self.pairs.unmet(levels) + len(self._triples(levels) - self.triples)
            if new > most:
                best, most = levels, new
        return best

    def _greedy(self) -> Levels:
        """Factors in random order, each at the level that has most unmet pairs with those before;
        levels drawn at random decide among equals."""
        levels_ = self._candidate()
        others: list[int] = []
        for at in self.rng.permutation(len(self.factors)):
            factor = self.factors[at]
            if factor.name != "values":
                levels_[factor.name] = self.pairs.wanting(factor, levels_[factor.name], others)
            others.append(self.pairs.place(factor.name, levels_[factor.name]))
        return levels_

    def _spread(self, levels: Levels) -> Levels:
        """The levels with some sizes of `full`: quick has few, and rests of blocks are many."""
        for name, every in self._every.items():
            if every and self.rng.random() < _SPREAD:
                levels[name] = every[int(self.rng.integers(len(every)))]
        return levels

    def _candidate(self) -> Levels:
        """Levels drawn at random."""
        levels_: Levels = {}
        for factor in self.factors:
            at = int(self.rng.integers(len(factor.levels)))
            if factor.name == "values" and self.rng.random() < _PLAIN_FIRST:
                at = 0
            levels_[factor.name] = factor.levels[at]
        return levels_

    def _balance(self) -> None:
        """Calls for the sides of relations that were met too seldom."""
        for relation in self.both:
            for side in (True, False):
                wanting = _SIDES[self.full] - self.sides.get((relation.text, side), 0)
                for _ in range(max(0, wanting)):
                    self._meet(relation.text, side)

    def _meet(self, text: str, side: bool) -> None:
        names = {f.name: f for f in self.factors if f.name in self._reads(text)}
        for attempt in range(_SEARCH // 8):
            levels_ = self._candidate() if attempt % 2 else dict(self.plain)
            for name, factor in names.items():
                levels_[name] = factor.levels[int(self.rng.integers(len(factor.levels)))]
            settled = self.settle(levels_)
            if settled is not None and self._fits(settled, text) is side and self._add(settled):
                return
