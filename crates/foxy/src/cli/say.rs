//! Output of commands for people.

use std::fmt::Arguments;
use std::io::{self, Write};

/// `println!` for answers to people: see [`print`].
macro_rules! say {
    () => { $crate::cli::say::print(format_args!("\n")) };
    ($($what:tt)*) => { $crate::cli::say::print(format_args!("{}\n", format_args!($($what)*))) };
}
/// `print!` for answers to people: see [`print`].
macro_rules! say_all {
    ($($what:tt)*) => { $crate::cli::say::print(format_args!($($what)*)) };
}
pub(crate) use {say, say_all};

/// Prints text. If the reader has closed the output (`| head`), the program ends without a message. If the
/// text cannot be written for another reason, the program reports this and ends with exit code 1.
pub(crate) fn print(text: Arguments<'_>) {
    let mut out = io::stdout().lock();
    let Err(error) = out.write_fmt(text).and_then(|()| out.flush()) else {
        return;
    };
    if error.kind() == io::ErrorKind::BrokenPipe {
        std::process::exit(0);
    }
    eprintln!("foxy: cannot write the answer: {error}");
    std::process::exit(1);
}
