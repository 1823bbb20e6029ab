"""The one gate for data: frames and arrays, columns, targets, groups, inputs, files."""
