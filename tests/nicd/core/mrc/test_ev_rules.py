"""EVs generated from field rules: the expansion, bit by bit, and the draw."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.errors import RefusedError
from mrcfabric.rng import Rng
from nicd.core.mrc import ev_rules
from nicd.core.mrc.ev_rules import FieldRule

RNG = "rules"


def expanded(text: str, widths: tuple[int, ...], bits: int, ev: int) -> int:
    return ev_rules.expand(ev_rules.parse(text).fields, widths, bits, ev)


@pytest.mark.spec("MRC 1.0", "6")
def test_the_most_significant_bits_go_to_the_first_field() -> None:
    assert expanded("16:0:0xffff 16:0:0xffff", (16, 16), 32, 0x12345678) == 0x12345678
    assert expanded("32:0:0xffffffff", (32,), 32, 0x12345678) == 0x12345678


@pytest.mark.spec("MRC 1.0", "6")
def test_masks_leave_the_rest_of_the_initial_value() -> None:
    # Two fields of four generated bits each, as one byte.
    assert expanded("16:0x0100:0x000f 16:0x0200:0x000f", (16, 16), 32, 0xA5) == 0x010A_0205


@pytest.mark.spec("MRC 1.0", "6")
def test_scattered_mask_bits_take_the_bits_from_high_to_low() -> None:
    assert expanded("16:0x1000:0x0f0f 16:0x2000:0x0f0f", (16, 16), 32, 0xAB_CD) == 0x1A0B_2C0D


@pytest.mark.spec("MRC 1.0", "6")
def test_a_narrow_field_is_extended_on_the_left_and_a_short_value_on_the_right() -> None:
    assert expanded("4:0:0xf 8:0:0xff", (16, 16), 64, 0xABC) == 0x000A_00BC_0000_0000


@pytest.mark.spec("MRC 1.0", "6")
def test_bounds_clip_the_generated_bits_before_they_are_laid_over() -> None:
    rule = "8:0x80:0x0f:3:9"
    assert [expanded(rule, (8,), 8, ev) for ev in (0, 3, 9, 15)] == [0x83, 0x83, 0x89, 0x89]
    assert expanded("8:0x80:0x0f:0:0", (8,), 8, 15) == 0x8F, "both zero: unused"


@given(st.data())
def test_drawn_evs_are_distinct_and_within_bounds(data: st.DataObject) -> None:
    fields = []
    for _ in range(data.draw(st.integers(1, 4))):
        width = data.draw(st.integers(1, 6))
        mask = data.draw(st.integers(0, (1 << width) - 1))
        low, high = sorted(data.draw(st.tuples(*[st.integers(0, (1 << mask.bit_count()) - 1)] * 2)))
        fields.append(FieldRule(width, 0, mask, low, high))
    count = data.draw(st.integers(1, 40))
    evs = ev_rules.generate(fields, count, Rng(RNG, count))
    assert len(set(evs)) == len(evs) <= count
    widths = [field.width for field in fields]
    values = {ev_rules.expand(fields, widths, sum(widths), ev) for ev in evs}
    assert len(values) == len(evs), "nothing was clipped"


def test_all_there_are_when_they_are_few() -> None:
    (rule,) = (ev_rules.parse("16:0x8000:0x7:1:5"),)
    assert sorted(ev_rules.generate(rule.fields, 100, Rng(RNG))) == [1, 2, 3, 4, 5]


def test_more_than_64_bits_can_be_drawn() -> None:
    fields = ev_rules.parse("32:0:0xffffffff 32:0:0xffffffff 32:0:0xffffffff").fields
    evs = ev_rules.generate(fields, 10, Rng(RNG))
    assert len(set(evs)) == 10
    assert max(evs).bit_length() > 80


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "names no field"),
        ("/16:0", "is no rule"),
        ("1,x/16:0", "is no rule"),
        ("1/16:0:1:2:3:4:5", "is no rule"),
        ("1/16", "is no rule"),
        ("33:0", "possible are 1 to 32"),
        ("8:0x100", "initial value 0x100"),
        ("8:0:0x1ff", "mask 0x1ff"),
        ("8:0:0x3:2:1", "no range"),
        ("8:0:0x3:0:4", "no range"),
    ],
)
def test_a_rule_that_cannot_be_is_refused(text: str, reason: str) -> None:
    with pytest.raises(RefusedError, match=reason):
        ev_rules.parse(text)


def test_fields_must_fit_their_format() -> None:
    fields = ev_rules.parse("16:0 16:0").fields
    ev_rules.check_fit(fields, (16, 32))
    with pytest.raises(RefusedError, match="2 fields; the format has 1"):
        ev_rules.check_fit(fields, (16,))
    with pytest.raises(RefusedError, match="field 1 has 16 bits"):
        ev_rules.check_fit(fields, (16, 8))
