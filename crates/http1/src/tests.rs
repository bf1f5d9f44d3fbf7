//! Tests over the whole codec.
