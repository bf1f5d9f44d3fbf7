//! Configuration: texts from files, variables and flags become one typed tree, or a list of all problems.
//!
//! The table [`SETTINGS`] determines how settings are read, and also their messages, their defaults and
//! `docs/config.md`. So these always agree.
//! [`read`] reads the configuration files and the `FOXY__` variables before [`Config::build`].
//! `Config::build` reads only files that settings name, such as certificates, and the variables that name
//! parents.

mod access_rules;
mod admin_access;
mod build;
mod certificates;
mod changes;
mod clients;
mod environment;
mod files;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzzing;
mod group;
mod kind;
mod local_responses;
mod log;
mod log_template;
mod logins;
mod machine;
mod mirrors;
mod objects;
mod origin;
mod origin_tls;
mod origins;
mod parents;
mod partition_configs;
mod pattern;
mod plan;
mod problem;
mod proxy_settings;
mod rates;
mod raw;
mod reference;
mod rewriting;
mod rules;
mod sections;
mod setting;
mod shared;
mod site;
mod stores;
mod suggest;
mod table;
mod token_file;
mod values;
mod versions;

pub use admin_access::{AdminRights, AdminSocket, Right};
pub use build::{
    Config, LogConfig, LogFormat, LogLevel, LogTarget, ScrubConfig, SiteConfig, StoreConfig,
};
pub(crate) use clients::Users;
pub use files::read;
pub use group::{GroupUse, MemoryGroup};
pub use kind::{Kind, Value};
pub use log::{LogClients, LogQueries, LogService};
pub use log_template::{LogField, LogPart, LogTemplate};
pub use machine::{Machine, ThisMachine};
pub use origin::{OriginEntry, OriginUrl};
pub(crate) use plan::human;
pub use problem::Problem;
pub use raw::{RawConfig, RawSetting, Section, parse};
pub use reference::reference;
pub use sections::SECTIONS;
pub(crate) use shared::SharedListener;
pub(crate) use stores::one_store;
pub use suggest::nearest;
pub use table::{SETTINGS, Setting};
pub use token_file::TokenFile;

#[cfg(test)]
mod tests;
