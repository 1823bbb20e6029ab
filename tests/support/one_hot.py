"""A table like the penguins with one-hot columns, on which a mixture of Gaussians is far off."""

from __future__ import annotations

import numpy as np
import pandas as pd

SPECIES = ("adelie", "chinstrap", "gentoo")
GROUPS = {
    "island": ["island_biscoe", "island_dream", "island_torgersen"],
    "sex": ["sex_female", "sex_male"],
}
# Bill length and depth, flipper length and body mass of females of each species, and by how much
# males are larger.
_CENTERS = np.array(
    [[37.3, 17.6, 187.8, 3370.0], [46.6, 17.6, 191.7, 3530.0], [45.6, 14.2, 212.7, 4680.0]]
)
_LARGER = np.array([3.2, 1.5, 6.5, 650.0])
_SPREADS = np.array([2.1, 0.8, 6.0, 280.0])
# How often each species lives on each island.
_ISLANDS = np.array([[0.3, 0.37, 0.33], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])


def penguins(n_rows=333, seed=0):
    """Rows with one column per island and sex, numbers of 0 and 1, and the species."""
    rng = np.random.default_rng(seed)
    species = rng.choice(3, n_rows, p=[0.44, 0.2, 0.36])
    male = rng.integers(0, 2, n_rows)
    size = rng.normal(size=(n_rows, 1)) * 0.5
    body = _CENTERS[species] + male[:, None] * _LARGER
    body += _SPREADS * (size + np.sqrt(0.75) * rng.normal(size=(n_rows, 4)))
    islands = np.array([rng.choice(3, p=_ISLANDS[each]) for each in species])
    columns = dict(zip(("bill_length", "bill_depth", "flipper", "mass"), body.T, strict=True))
    columns["year"] = rng.integers(2007, 2010, n_rows).astype(float)
    for number, name in enumerate(GROUPS["island"]):
        columns[name] = (islands == number).astype(float)
    columns |= {"sex_female": 1.0 - male, "sex_male": male.astype(float)}
    return pd.DataFrame(columns), pd.Series(np.array(SPECIES)[species], name="species")
