"""A planted flip strikes one launch in N, however many processes launch."""

from compiled import run


def test_a_flip_in_four_launches_does_not_strike_the_first_of_every_process() -> None:
    """It did: whoever judged one case a process met any flip at once."""
    struck = int(run("flips", "96", ACLSIM_FAULTS="add:flip@4").out)
    assert 6 <= struck <= 45  # 24 of 96 by the binomial law, 4.2 standard deviations to both sides


def test_a_flip_in_every_launch_strikes_each() -> None:
    assert run("flips", "4", ACLSIM_FAULTS="add:flip@1").out.strip() == "4"
