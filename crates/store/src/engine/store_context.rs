//! The parts of an engine from which stores and their writers are built.

use std::sync::Arc;

use crate::memory::{EngineCore, Memory};
use crate::purge::Purges;
use crate::put::Puts;
use crate::read::Keys;
use crate::removal::Catalogue;

/// The parts that are needed to open a store and to build its writer.
#[derive(Clone, Debug)]
pub(crate) struct StoreContext {
    pub(crate) core: EngineCore,
    pub(crate) keys: Arc<Keys>,
    pub(crate) memory: Arc<Memory>,
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) purges: Arc<Purges>,
    pub(crate) puts: Arc<Puts>,
}
