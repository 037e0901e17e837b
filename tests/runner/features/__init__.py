"""One small kernel for each operation of tl that a learner would reach for: programs to run and compare.

Each file stands alone. A function `feature_<name>` launches a kernel and returns the tensors that it made;
scripts/runner/features.py runs a file's text, scripts/runner_parity.py compares the results.
"""
