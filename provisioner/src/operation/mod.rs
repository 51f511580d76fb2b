//! One file per operation: calls the rooms in order and owns no rule of its own.
