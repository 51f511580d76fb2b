//! Property maps to `google.protobuf.Struct` and back (provider protocol, section 5).
