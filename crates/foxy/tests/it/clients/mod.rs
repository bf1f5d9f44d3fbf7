//! Real clients use a real Foxy process: curl, git, apt, pip, npm, cargo, go, Maven and Chromium, each used
//! as a new user would use it. If a tool is not installed, the test prints its name and the command to
//! install it.

mod apt;
mod browser;
mod ccache;
mod containers;
mod curl;
mod git;
mod https;
mod names;
pub(crate) mod process;
mod registries;
mod seeking;
mod squid;
mod stores;
mod tls;
mod web;
mod webm;
