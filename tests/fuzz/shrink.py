"""Reduction of a failing case: remove calls, then arguments, then motion, then digits."""

import time

import numpy as np

from .case import Call

NEEDED = ("body", "site", "spatial_tendon")  # what other calls name


def shrink(case, check, seconds=60.0):
    """Return the smallest case found in the given time for which the sentence of `check(case)` begins with the same word."""
    until, word = time.monotonic() + seconds, check(case).split()[0]

    def fails(candidate):
        said = check(candidate)
        return said is not None and said.split()[0] == word

    changed = True
    while changed:
        changed = False
        for candidate in _smaller(case):
            if time.monotonic() > until:
                return case
            if fails(candidate):
                case, changed = candidate, True
                break
    return case


def _smaller(case):
    """Yield slightly smaller cases, the largest reductions first."""
    for k in reversed(range(len(case.calls))):
        yield case.changed(calls=_without(case.calls, k))
        if case.calls[k].method == "body":
            yield case.changed(calls=_bridged(case.calls, k))
    for steps in {1, 2} - {case.steps}:
        if steps < case.steps:
            yield case.changed(steps=steps)
    for k, call in enumerate(case.calls):
        for name in call.options:
            fewer = {key: x for key, x in call.options.items() if key != name}
            yield case.changed(calls=_replaced(case.calls, k, call._replace(options=fewer)))
    for field in ("v", "u"):
        for name, x in getattr(case, field).items():
            if np.any(x):
                yield case.changed(**{field: getattr(case, field) | {name: [0.0] * len(x)}})
    for digits in (1, 2, 3):
        for k, call in enumerate(case.calls):
            options = {key: _rounded(x, digits) for key, x in call.options.items()}
            args = tuple(_rounded(x, digits) for x in call.args)
            if options != call.options or args != call.args:
                yield case.changed(calls=_replaced(case.calls, k, call._replace(args=args, options=options)))
        for field in ("q", "v", "u"):
            rounded = {name: _rounded(x, digits) for name, x in getattr(case, field).items()}
            if field != "q" and rounded != getattr(case, field):
                yield case.changed(**{field: rounded})


def _without(calls, k):
    """Return the case without call k and calls that need it."""
    gone = {calls[k].args[0]} if calls[k].method in NEEDED else set()
    out = []
    for j, call in enumerate(calls):
        if j == k or call.names & gone:
            gone |= {call.args[0]} if call.method in NEEDED else set()
        else:
            out.append(call)
    return tuple(out)


def _bridged(calls, k):
    """Return the case without body k; its children are attached to its parent."""
    name, above = calls[k].args[0], calls[k].args[1:]

    def moved(call):
        return call._replace(args=(call.args[0], *above)) if call.method == "body" and name in call.args[1:] else call

    kept = [moved(call) for j, call in enumerate(calls) if j != k]
    return tuple(call for call in kept if name not in call.names)


def _replaced(calls, k, call: Call):
    return (*calls[:k], call, *calls[k + 1 :])


def _rounded(x, digits):
    if isinstance(x, float):
        return float(f"{x:.{digits}g}")
    return [_rounded(a, digits) for a in x] if isinstance(x, list) else x
