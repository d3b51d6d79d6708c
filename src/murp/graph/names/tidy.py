"""The one rule for names, which every format shares.

1. Blanks at the ends of a name are taken off, byte-order marks too; those within it stay.
2. Names are brought to the Unicode form NFC: é is one character, however it was typed.
3. Nothing else is changed. Upper and lower case differ, ``007`` is not ``7``, quotation marks in a tab-separated file
   belong to the name. The audit counts names that differ in such things only.
4. A name of nothing but blanks is refused.
"""

from __future__ import annotations

import operator
import unicodedata
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from murp.errors import DataError
from murp.graph.findings import EXAMPLES, Finding, noticed

BLANKS = " \t\n\v\f\r\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(
    map(chr, range(0x2000, 0x200B))
)
AT_ONCE = 2**20  # names as Python's texts, which take several times the memory


class BlankName(DataError):
    """A name of nothing but blanks."""


@dataclass(frozen=True, eq=False)
class Tidied:
    """Distinct ``ids`` by the rule, ``codes`` that lead from the given ones to them, and what was changed."""

    ids: pa.Array
    codes: NDArray[np.int32] | None
    findings: list[Finding]


def tidy(text: str) -> str:
    """One name by the rule."""
    return unicodedata.normalize("NFC", text.strip(BLANKS))


def tidy_array(names: pa.Array) -> pa.Array:
    """Many names by the rule, nulls as they are; the same array where nothing is to be done."""
    trimmed = pc.utf8_trim(names, characters=BLANKS)
    # A second time: a form may end with what no longer is a blank, and what was one may have stood behind a mark.
    tidied = pc.utf8_trim(_composed(trimmed), characters=BLANKS)
    return names if tidied.equals(names) else tidied


def _composed(names: pa.Array) -> pa.Array:
    """Names in the form NFC. Not by Arrow's utf8_normalize, which before version 26 returned NFD for every form."""
    if len(names) > AT_ONCE:
        pieces = [names.slice(start, AT_ONCE) for start in range(0, len(names), AT_ONCE)]
        composed = [_composed(piece) for piece in pieces]
        return names if all(map(operator.is_, composed, pieces)) else pa.concat_arrays(composed)
    other = pc.invert(pc.string_is_ascii(names))
    texts = names.filter(other).to_pylist()
    changed = [unicodedata.normalize("NFC", text) for text in texts]
    if changed == texts:
        return names
    return pc.replace_with_mask(names, pc.fill_null(other, False), pa.array(changed, names.type))


def tidy_ids(ids: pa.Array, kind: str, many: str) -> Tidied:
    """The rule for the distinct ids of one ``kind`` of thing."""
    tidied = tidy_array(ids)
    if len(ids) and pc.any(pc.equal(tidied, "")).as_py():
        raise BlankName(f"the name of one {kind} is blank.")
    if tidied is ids:
        return Tidied(ids, None, [])
    coded = tidied.dictionary_encode()
    findings = _findings(ids, tidied, many)
    return Tidied(coded.dictionary, coded.indices.to_numpy().astype(np.int32), findings)


def _findings(ids: pa.Array, tidied: pa.Array, many: str) -> list[Finding]:
    trimmed = pc.utf8_trim(ids, characters=BLANKS)
    kinds = (
        ("blanks_round_names", ids, trimmed, "with blanks at the ends, which were taken off"),
        ("other_unicode_forms", trimmed, tidied, "in another Unicode form than NFC, brought to it"),
    )
    found: list[Finding] = []
    for check, before, after, words in kinds:
        places = np.flatnonzero(pc.not_equal(before, after).to_numpy(False))
        merged = pc.count_distinct(before).as_py() - pc.count_distinct(after).as_py()
        spelled = "was another spelling" if merged == 1 else "were other spellings"
        became = f"; {merged:,} of the {len(ids):,} {many} {spelled} of one" if merged else ""
        show = ascii if check == "other_unicode_forms" else repr  # the forms of a character look the same
        examples = [f"{show(before[i].as_py())} → {after[i].as_py()!r}" for i in places[:EXAMPLES].tolist()]
        found += noticed(check, many, len(places), f"name{{s}} of {many} {words}{became}", examples)
    return found
