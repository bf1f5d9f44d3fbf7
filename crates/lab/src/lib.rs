//! The laboratory beside the product: measurements of Foxy from outside, over real sockets.

pub mod linear;
