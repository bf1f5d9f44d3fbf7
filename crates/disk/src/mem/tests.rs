//! Faults, power cuts and step mode of the memory disk.
