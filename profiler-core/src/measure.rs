//! Units, scaling, and the text of every number that people see.
