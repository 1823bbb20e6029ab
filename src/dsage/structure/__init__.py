"""Learn the graph from data."""
