//! Helpers of the black-box tests.
