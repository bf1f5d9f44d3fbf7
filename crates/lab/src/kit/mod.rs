//! Parts shared by all measurements of the laboratory: child processes, ports, an origin with
//! prescribed behaviour, and an HTTP client that reports every byte of an answer.

mod body;
mod buffered_conn;
mod child;
mod client;
mod foxy;
mod head;
pub mod peers;
mod process;
mod report;
mod run;
mod server;
#[cfg(feature = "tls")]
mod tls;

pub use body::Body;
pub use buffered_conn::BufferedConn;
pub use child::{Child, Launch, free_port, wait_for};
pub use client::{Answer, ClientRequest, Progress, Target};
pub use foxy::{Mode, beside, foxy};
pub use head::Head;
pub use process::{Memory, cpu_time, forget_peak, raise_files, room_for_files, thread_times};
pub use report::{number, report_of};
pub use run::{exit, folder, runtime};
pub use server::{AfterResponse, ReceivedRequest, Respond, serve};
#[cfg(feature = "tls")]
pub use tls::{Secured, TlsTarget};
