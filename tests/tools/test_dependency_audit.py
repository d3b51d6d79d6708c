"""What `make audit` says: of flaws, of withdrawn versions, of packages nobody could ask about, and of none."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

import audit

WANTED = {"numpy": "2.0", "typing-extensions": "4.0"}
CLEAN = [{"name": "numpy", "version": "2.0", "vulns": []}, {"name": "typing_extensions", "version": "4.0", "vulns": []}]


def test_all_looked_up_and_nothing_known() -> None:
    status, text, figures = audit.flaws_verdict(WANTED, CLEAN)
    assert (status, text) == (0, "2 of 2 packages looked up, 0 known vulnerabilities.")
    assert figures == {"looked up for vulnerabilities": 2, "known vulnerabilities": 0}


def test_a_flaw_is_named_with_its_cure() -> None:
    flaw = {"id": "CVE-1", "fix_versions": ["2.1"]}
    status, text, _ = audit.flaws_verdict(WANTED, [{**CLEAN[0], "vulns": [flaw]}])
    assert status == 1
    assert text.startswith("numpy 2.0: CVE-1, fixed in 2.1\n1 of 2 packages looked up, 1 known")
    assert "NOT looked up: typing-extensions 4.0." in text


def test_what_was_not_asked_is_not_called_clean() -> None:
    status, text, figures = audit.flaws_verdict(WANTED, [])
    assert status == 2
    assert "No service of known vulnerabilities answered." in text
    assert "NOT looked up: numpy 2.0, typing-extensions 4.0." in text
    assert figures["known vulnerabilities"] is None


def entry(name: str, version: str, withdrawn: bool = False) -> dict[str, Any]:
    return {"metadata": {"name": name, "version": version}, "is_yanked": withdrawn}


def test_the_index_has_all_and_one_is_behind() -> None:
    found = [entry("numpy", "2.0"), entry("typing_extensions", "4.0")]
    status, text, _ = audit.index_verdict(WANTED, found, [entry("numpy", "2.1"), found[1]])
    assert status == 0
    assert text == (
        "2 of 2 packages on the index, 0 of them withdrawn.\nBehind the newest version: numpy 2.0 (newest 2.1)."
    )


def test_a_withdrawn_version_is_a_finding() -> None:
    status, text, figures = audit.index_verdict(
        WANTED, [entry("numpy", "2.0", True), entry("typing_extensions", "4.0")], []
    )
    assert status == 1
    assert "Withdrawn: numpy 2.0." in text
    assert figures["withdrawn"] == 1


def test_what_the_index_lacks_is_said() -> None:
    status, text, _ = audit.index_verdict(WANTED, [entry("numpy", "2.0")], [])
    assert status == 2
    assert "Not found: typing-extensions 4.0." in text


def program(file: Path, text: str) -> None:
    """A program that stands in for a tool of the registry."""
    file.write_text("#!/usr/bin/env python3\nimport json, sys\n" + text)
    file.chmod(file.stat().st_mode | stat.S_IXUSR)


def test_the_second_service_is_asked_about_what_the_first_does_not_know(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    constraints = tmp_path / "constraints.txt"
    constraints.write_text("numpy==2.0\ntyping_extensions==4.0\n")
    monkeypatch.setattr(audit, "CONSTRAINTS", constraints)
    program(
        tmp_path / "pip",
        "names = sys.argv[sys.argv.index('--report') + 2:]\n"
        "pairs = [(name + '==9').split('==')[:2] for name in names]\n"
        "entries = [{'metadata': {'name': n, 'version': v}, 'is_yanked': False} for n, v in pairs]\n"
        "json.dump({'install': entries}, open(sys.argv[sys.argv.index('--report') + 1], 'w'))\n",
    )
    program(
        tmp_path / "pip-audit",
        "first = 'pypi' in sys.argv\n"
        "answer = {'skip_reason': 'not found'} if first else {'version': '2.0', 'vulns': []}\n"
        "numpy = {'name': 'numpy', **answer}\n"
        "other = {'name': 'typing-extensions', 'version': '4.0', 'vulns': []}\n"
        "print(json.dumps({'dependencies': [numpy, other]}))\n",
    )
    assert audit.main([str(tmp_path)]) == 0
    assert "2 of 2 packages looked up, 0 known vulnerabilities." in capsys.readouterr().out
    program(tmp_path / "pip-audit", "sys.exit('no service')\n")
    assert audit.main([str(tmp_path)]) == 2
    assert "NOT looked up: numpy 2.0, typing-extensions 4.0." in capsys.readouterr().out


def test_every_pin_is_wanted() -> None:
    found = audit.pinned(audit.CONSTRAINTS.read_text())
    assert found["numpy"]
    assert len(found) == len(audit.CONSTRAINTS.read_text().split())
