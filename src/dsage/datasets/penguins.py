"""The Palmer penguins: a small table with classes and missing values."""

from __future__ import annotations

from importlib import resources

import pandas as pd

_CLASSES = ("species", "island", "sex")


def load_penguins() -> pd.DataFrame:
    """Return measurements of 344 penguins, with missing values as they are.

    Adult penguins of three species, nesting on three islands near Palmer Station, Antarctica, from
    2007 to 2009. Two penguins were not measured, and the sex of eleven is unknown.

    Returns
    -------
    pandas.DataFrame
        ``species`` (Adelie, Chinstrap, Gentoo), ``island`` (Biscoe, Dream, Torgersen) and ``sex``
        (female, male) are categories; ``bill_length_mm``, ``bill_depth_mm``,
        ``flipper_length_mm``, ``body_mass_g`` and ``year`` are numbers.

    References
    ----------
    Horst, Hill & Gorman (2020). palmerpenguins: Palmer Archipelago (Antarctica) penguin data. R
    package, doi:10.5281/zenodo.3960218. The data are in the public domain (CC0 1.0).

    Gorman, Williams & Fraser (2014). Ecological sexual dimorphism and environmental variability
    within a community of Antarctic penguins (genus Pygoscelis). PLoS ONE 9(3): e90081.

    Examples
    --------
    >>> penguins = load_penguins()
    >>> penguins.shape
    (344, 8)
    >>> penguins.isna().sum()[["sex", "body_mass_g"]].to_dict()
    {'sex': 11, 'body_mass_g': 2}
    """
    with (resources.files("dsage.datasets") / "penguins.csv").open(encoding="utf-8") as file:
        table = pd.read_csv(file)
    return table.astype(dict.fromkeys(_CLASSES, "category"))
