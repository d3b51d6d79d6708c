"""Whether a claim of the paper holds, told from leads over seeds and their deviations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from murp.paper.evidence import Spread, signed, signed_spread


def verdict(leads: Sequence[Spread]) -> str:
    """Whether every lead is positive, where one that is no larger than its own deviation decides nothing.

    ``yes``; ``no``, with how many go the other way; else how many are ``within one deviation`` of zero. A lead that
    has no deviation is taken as it is, and the verdict says that it rests on one seed.
    """
    clear = sum(lead.mean > (lead.deviation or 0.0) for lead in leads)
    lost = sum(lead.mean < -(lead.deviation or 0.0) for lead in leads)
    undecided = len(leads) - clear - lost
    if undecided == 0 and lost == 0:
        found = "yes"
    elif len(leads) == 1:
        found = "no" if lost else "within one deviation"
    else:
        parts = [f"{clear} of {len(leads)} yes"] if clear else []
        parts += [f"{lost} no"] if lost else []
        parts += [f"{undecided} within one deviation"] if undecided else []
        found = ("no: " if lost else "") + ", ".join(parts)
    alone = sum(lead.n == 1 for lead in leads)
    return found + (f" ({'' if alone == len(leads) else f'{alone} of them on '}one seed)" if alone else "")


def noted(lead: Spread) -> str:
    """``+.049 ± .009 (2 of 3 seeds, 1 diverged)``; the remark only where seeds are missing."""
    lost = lead.planned - lead.n
    remark = f" ({lead.n} of {lead.planned} seeds, {lost} diverged)" if lead.n and lost else ""
    return signed_spread(lead) + remark


def listed(leads: Mapping[str, Spread], paper: Mapping[str, float] | None = None) -> str:
    """``d=40 +.012 ± .002 (paper +.018), …``"""
    quoted = paper or {}
    return ", ".join(
        f"{name} {noted(lead)}" + (f" (paper {signed(quoted[name])})" if name in quoted else "")
        for name, lead in leads.items()
    )
