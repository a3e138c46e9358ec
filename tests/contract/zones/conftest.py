"""Makes failed assertions in the cases as detailed as those in test modules."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("tests.contract.zones.cases")
