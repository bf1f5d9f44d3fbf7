//! Safety rules that can be broken without any effect that a test could notice, each with the reason.

/// Pairs of rule and reason.
pub(super) const EXPLAINED: &[(&str, &str)] = &[
    (
        "journal: a completion ends the tickets of its own write alone",
        "one write is under way at a time, which is a rule of its own; the number guards that",
    ),
    (
        "leave: a store whose removal log was full comes back empty",
        "only a removal between two neighbouring statements could fill it there",
    ),
    (
        "purge: the segment after the open one is of its time too",
        "only a purge between the comparison of a cluster's objects and the move of the log's end, on \
         another thread, meets it",
    ),
    (
        "drain: what is about to be replaced does not move",
        "what waits under a key has taken its entry away, which is looked at first",
    ),
    (
        "read around: the index still leads to what is brought along",
        "it is looked at twice: only a removal between the two, on another thread, meets the second",
    ),
    (
        "write: what was superseded since it was chosen is not written",
        "only a supersession between the choice and the writing of one cluster, on another thread, \
         meets it",
    ),
    (
        "removal log: it does not settle before the floor of an overflow is raised",
        "the floor is raised in the same turn: only a kill between two steps of one turn meets it",
    ),
    (
        "return: its contents are live again when what it missed is durably dead",
        "its superblock is flushed, and the removal log with it, which has all of that: only a full \
         removal log meets it",
    ),
    (
        "return: a store that missed too much to remember is untrusted",
        "a full set names every key, so that nothing of it is loaded either",
    ),
    (
        "reuse: an open header whose flush failed is written again",
        "a store whose flush failed is not written any more, which is a rule of its own",
    ),
    (
        "reuse: the victim's slot is of its present incarnation",
        "two lost writes of one slot are needed, its seal and its open header",
    ),
    (
        "read: a damaged record leaves a tombstone for its key",
        "its record becomes dead as well, which is enough where the place is known",
    ),
    (
        "read: the record is of the hash that was looked up",
        "the key in the record is compared too, which is a rule of its own",
    ),
    (
        "reinsert: the record is of the entry's hash",
        "the record's checksum covers its place, and the entry's its table: they agree",
    ),
    (
        "reinsert: what is being replaced is not written again",
        "what waits under a key has taken its entry away, which is looked at first",
    ),
    (
        "reuse: an open header that could not be written is not taken for written",
        "the open header is read back, which is a rule of its own",
    ),
    (
        "reuse: open headers are written in sequence",
        "an incarnation before one with an open header is a whole round behind at a start, which is a rule of its \
         own: what it held is forgotten",
    ),
    (
        "reuse: entries are dropped in sequence",
        "each waits for its own open header; to drop some earlier only forgets",
    ),
    (
        "seal: no summary vouches for clusters whose flush failed",
        "a store whose flush failed is not written any more and records that its contents are dead, which are rules \
         of their own",
    ),
    (
        "start: the incarnations of the open segment and the next one follow each other",
        "writing can continue before or after an incarnation that is left out: this incarnation is a \
         whole round behind in both cases",
    ),
    (
        "start: what was searched is durable before a summary vouches for it",
        "a summary repeats the removals, and a record that a power cut took fails its checksum: a miss",
    ),
    (
        "mirror: only a registry's consent proves a right to a layer",
        "a denial is forgotten as soon as it comes: only another request between the two, on another \
         thread, meets it",
    ),
    (
        "share: a stored artefact needs the digest that documents name",
        "each look-up compares the digest before: only an object that another fetch stores while the \
         request waits meets it",
    ),
    (
        "smuggling: a connection ends with an answer before the request's end",
        "the head of such an answer announces the end of the connection, which is decided first",
    ),
];

/// Rules that no test guards yet, without a reason in [`EXPLAINED`]. [`check`](super::check) accepts these
/// rules, but `cargo xtask mutants` fails for each of them.
pub(super) const OPEN: &[&str] = &[];

/// The reason why no test notices that this rule is broken, if there is one.
pub(super) fn why(rule: &str) -> Option<&'static str> {
    let known = EXPLAINED.iter().find(|(name, _)| *name == rule);
    known.map(|(_, why)| *why)
}

/// Returns true if this rule is in [`EXPLAINED`] or in [`OPEN`].
pub(super) fn is_known(rule: &str) -> bool {
    why(rule).is_some() || OPEN.contains(&rule)
}
