"""Why a sampler was chosen, in words."""

import pytest

from dsage.samplers.info import Basis, Decision


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {},
            (
                "B has the lowest held-out energy score, 0.5000, and no simpler sampler is within one "
                "standard error of it."
            ),
        ),
        (
            {"best_msev": 0.25},
            (
                "B has the lowest held-out energy score of those whose MSEv is not clearly higher, "
                "0.5000, and no simpler sampler is within one standard error of it."
            ),
        ),
        (
            {"chosen": "A", "difference": 0.125, "se": 0.125},
            (
                "A is the simplest sampler whose held-out energy score is within one standard error "
                "(0.1250 <= 0.1250) of the lowest, 0.5000 of B."
            ),
        ),
        (
            {"chosen": "A", "difference": 0.125, "se": 0.0625},
            (
                "A is the simplest sampler whose held-out energy score is within 0.5 % (0.1250) of the "
                "lowest, 0.5000 of B."
            ),
        ),
        (
            {"chosen": "A", "best_msev": 0.25, "msev_difference": 0.5, "msev_se": 0.25},
            (
                "A is the simplest sampler whose held-out energy score is within one standard error "
                "(0.0000 <= 0.0000) of the lowest, 0.5000 of B, and whose MSEv is within 0.1 % "
                "(0.5000) of B's, 0.2500."
            ),
        ),
        (
            {"out": ("C", "D"), "skipped": ("E",), "is_cut": True},
            (
                "B has the lowest held-out energy score, 0.5000, and no simpler sampler is within one "
                "standard error of it. Clearly worse in MSEv: C, D. Not tried, since it would take too "
                "long: E. The comparison ran out of time: another run may compare more."
            ),
        ),
        (
            {"basis": Basis.FEW_ROWS},
            "B is the simplest sampler for such columns: there are too few rows to score samplers.",
        ),
    ],
)
def test_decisions_are_told_in_sentences(options, words):
    decision = Decision(**({"chosen": "B", "best": "B", "best_score": 0.5} | options))
    assert decision.words() == words
    assert decision.is_simpler == (decision.chosen == "A")
