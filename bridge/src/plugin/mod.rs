//! Values that describe a plugin. No I/O.
