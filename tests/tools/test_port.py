"""What every tool has in common."""

import pytest

from bot.tools.port import Failed, Ok, Outcome, Retry, outcome_name


@pytest.mark.parametrize(
    ("outcome", "name"), [(Ok(""), "ok"), (Retry(""), "retry"), (Failed(""), "failed")]
)
def test_each_outcome_has_its_name_in_reports(outcome: Outcome, name: str) -> None:
    assert outcome_name(outcome) == name
