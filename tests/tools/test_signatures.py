"""The settings that type checkers and editors see are those of the registry."""

from __future__ import annotations

import signatures
from murp.settings import Setting


def test_the_file_is_what_the_registry_says() -> None:
    written = signatures.FILE.read_text(encoding="utf-8")
    assert written == signatures.text(), "run `python tools/signatures.py`"


def test_a_new_setting_changes_the_file() -> None:
    from murp.config import Config

    Config.settings["of_a_test"] = Setting(1, "nothing", name="of_a_test")
    try:
        assert '    of_a_test: int\n    """nothing"""' in signatures.text()
    finally:
        del Config.settings["of_a_test"]
