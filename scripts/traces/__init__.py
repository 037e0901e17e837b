"""What is recorded for the diagrams, one module a lesson: `record()` gives its trace as JSON values."""
