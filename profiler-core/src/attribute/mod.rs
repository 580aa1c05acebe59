//! Exact costs of lines, functions and files, and the accounting of every sample.
