"""The gate for data: every data frame, array, target and file enters the package here.

======================  =====================================================================
`frames`                data frames and arrays behind one interface
`kinds`                 what a column is, by a rule that the user can override
`columns`               one column: its kind, its values as floats and back
`storage`               how a column is stored, by `numbers`, `times` or `categories`
`natives`               arrays and series of the libraries
`missing`               missing and infinite values
`patterns`, `possible`  columns that depend on others, and values that can occur
`overview`              a table of the columns and their kinds
`layout`, `table`       whole data sets: for samplers and models, and for structure learning
`targets`               targets, class labels and probabilities
`inputs`                rows and targets of a call, checked together
`groups`                groups of features
`files`                 tables from files
`batches`, `disk`       rows on disk, in batches or drawn at random
`registry`              parts that are found by name
`pools`                 the threads of BLAS
======================  =====================================================================
"""

from dsage.data.disk import sample_rows
from dsage.data.kinds import Kind
from dsage.data.overview import describe

__all__ = ["Kind", "describe", "sample_rows"]
