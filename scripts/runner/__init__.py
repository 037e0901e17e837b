"""Python that runs in the page: Triton's interpreter on simulated memory, and what is told of a run."""
