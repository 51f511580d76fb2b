//! Property paths: which part of a bag a text such as `a.b[0]["c d"]` names (provider protocol, section 7.3).
