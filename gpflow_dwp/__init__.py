"""Deep Wishart processes on GPflow."""
