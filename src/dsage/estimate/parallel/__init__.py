"""Work for several processors or machines."""
