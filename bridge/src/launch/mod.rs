//! From a verified package to a connected process: one file per dialect of the handshake.
