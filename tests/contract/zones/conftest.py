"""The cases are no tests themselves, but their assertions shall say as much when they fail."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("tests.contract.zones.cases")
