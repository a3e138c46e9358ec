"""Every error has a status, and msgspec's messages lose nothing on the way into a finding."""

from __future__ import annotations

import msgspec
import pytest

from trunkline import errors
from trunkline.api.problems import BodyTooLarge, MalformedBody, finding_of, kind_of
from trunkline.errors import Finding, TrunklineError


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (MalformedBody(), 400),
        (errors.NotAllowed(), 403),
        (errors.NotFound(), 404),
        (errors.Conflict(), 409),
        (errors.AlreadyExists(), 409),
        (errors.DataInUse(), 409),
        (errors.StaleVersion(), 412),
        (BodyTooLarge(), 413),
        (errors.Invalid(), 422),
        (errors.ConfigurationError(), 500),
        (errors.Unavailable(), 503),
        (ValueError(), 500),
    ],
)
def test_an_error_has_the_status_of_its_nearest_ancestor(error: Exception, status: int) -> None:
    assert kind_of(error).status == status


def test_every_error_has_a_fix() -> None:
    def tree(cls: type[TrunklineError]) -> list[type[TrunklineError]]:
        return [cls, *(below for child in cls.__subclasses__() for below in tree(child))]

    assert all(cls.fix for cls in tree(TrunklineError))


def test_a_command_belongs_to_its_fix() -> None:
    assert errors.WrongSchema().fix_command == "trunkline db upgrade"
    assert errors.WrongSchema("Newer.", fix="Use a newer version.").fix_command is None
    error = errors.NotFound(
        "No file.", fix="See: trunkline runs show r1", fix_command="trunkline runs show r1"
    )
    assert error.fix_command == "trunkline runs show r1"


class _Sample(msgspec.Struct):
    numbers: list[int]


@pytest.mark.parametrize(
    ("value", "finding"),
    [
        ({"numbers": [1, "x"]}, Finding(path="numbers[1]", message="Expected `int`, got `str`")),
        ({"numbers": 1}, Finding(path="numbers", message="Expected `array`, got `int`")),
        ({}, Finding(path="", message="Object missing required field `numbers`")),
    ],
)
def test_a_validation_error_becomes_a_finding(value: object, finding: Finding) -> None:
    with pytest.raises(msgspec.ValidationError) as wrong:
        msgspec.convert(value, _Sample)
    assert finding_of(wrong.value) == finding
