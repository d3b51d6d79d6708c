"""What `make audit` says: of flaws, of packages nobody could ask about, and of none."""

from __future__ import annotations

import audit

WANTED = {"numpy": "2.0", "typing-extensions": "4.0"}
CLEAN = [{"name": "numpy", "version": "2.0", "vulns": []}, {"name": "typing_extensions", "version": "4.0", "vulns": []}]


def test_all_looked_up_and_nothing_known() -> None:
    assert audit.verdict(WANTED, CLEAN) == (0, "2 of 2 packages looked up, 0 known vulnerabilities.")


def test_a_flaw_is_named_with_its_cure() -> None:
    flaw = {"id": "CVE-1", "fix_versions": ["2.1"]}
    status, text = audit.verdict(WANTED, [{**CLEAN[0], "vulns": [flaw]}])
    assert status == 1
    assert text.startswith("numpy 2.0: CVE-1, fixed in 2.1\n1 of 2 packages looked up, 1 known")
    assert "NOT looked up: typing-extensions 4.0." in text


def test_what_was_not_asked_is_not_called_clean() -> None:
    for found in ([], [{"name": name, "skip_reason": "not found"} for name in WANTED]):
        status, text = audit.verdict(WANTED, found)
        assert status == 2
        assert "0 of 2 packages looked up" in text
        assert "NOT looked up: numpy 2.0, typing-extensions 4.0." in text


def test_every_pin_is_wanted() -> None:
    found = audit.pinned(audit.CONSTRAINTS.read_text())
    assert found["numpy"]
    assert len(found) == len(audit.CONSTRAINTS.read_text().split())
