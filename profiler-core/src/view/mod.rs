//! Costs as plain data and text, for people and machines.
