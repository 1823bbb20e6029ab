"""The one gate for data: every data frame, array, target and file enters the package here.

=================  ==========================================================================
`frames`           data frames and arrays behind one interface
`columns`          the kind of a column, its values as floats and back
`categories`       the values of class columns, their order and codes
`missing`          missing and infinite values
`layout`, `table`  whole data sets: for samplers and models, and for structure learning
`targets`          targets, class labels and probabilities
`inputs`           rows and targets of a call, checked together
`groups`           groups of features
`files`            tables from files
`registry`         parts that are found by name
=================  ==========================================================================
"""
