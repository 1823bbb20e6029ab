import numpy as np
import pytest

from dsage._random import Streams


def test_same_purpose_and_keys_give_the_same_stream_in_any_order():
    one, other = Streams(7), Streams(7)
    first = one("noise", 1, 2).random(5)
    other("orderings", 4).random(100)
    np.testing.assert_array_equal(other("noise", 1, 2).random(5), first)


def test_streams_differ_by_seed_purpose_and_key():
    draws = [
        Streams(0)("a", 1).random(),
        Streams(1)("a", 1).random(),
        Streams(0)("b", 1).random(),
        Streams(0)("a", 2).random(),
        Streams(0)("a").random(),
    ]
    assert len(set(draws)) == len(draws)


def test_a_generator_is_advanced_so_two_uses_differ_but_replay():
    generator = np.random.default_rng(3)
    one, other = Streams(generator)("a").random(), Streams(generator)("a").random()
    assert one != other
    assert Streams(np.random.default_rng(3))("a").random() == one


def test_none_takes_fresh_entropy():
    assert Streams()("a").random() != Streams()("a").random()


@pytest.mark.parametrize("random_state", ["0", 1.5, True, np.random.RandomState(0)])
def test_random_state_of_another_type_is_refused(random_state):
    with pytest.raises(TypeError, match="random_state must be an int, a numpy Generator or None"):
        Streams(random_state)


def test_negative_seed_is_refused():
    with pytest.raises(ValueError, match="random_state must be non-negative; got -1"):
        Streams(-1)
