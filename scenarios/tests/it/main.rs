//! Stories of an origin, Foxy and a client. One file each; the name says what it shows.

mod miss_then_hit;
