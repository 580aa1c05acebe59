//! perflens: the cost of every line of code, on that line.
