//! A second, deliberately dumb computation of every number of a report, to compare with.
