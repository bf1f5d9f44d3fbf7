//! Parts that every measurement of the laboratory needs: child processes, ports, an origin that
//! plays what it is told, and an HTTP client that shows every byte of an answer.

mod child;
mod client;
mod foxy;
mod head;
pub mod peers;
mod server;
mod wire;

pub use child::{Child, Launch, free_port};
pub use client::{Answer, Ask, Door, Progress};
pub use foxy::{Mode, beside, foxy};
pub use head::Head;
pub use server::{Asked, Play, Then, serve};
pub use wire::Wire;
