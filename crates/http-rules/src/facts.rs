//! The caching facts of a stored response: the facts about the response that decisions need. They are
//! collected when the response is stored, so that a later hit parses no fields of the response. The facts are
//! a plain struct with a fixed form of 64 bytes, which is kept with the response in memory and on disk. (The
//! documents of the on-disk format call these bytes the rules digest.)
//!
//! ```text
//! 0        version (1)             16..24  response_time   i64 ms
//! 1        lifetime source         24..32  initial age     i64 ms
//! 2..4     flags                   32..40  date            i64 ms (i64::MIN: none)
//! 4..6     status                  40..48  last-modified   i64 ms (i64::MIN: none)
//! 6        generation of the rules 48..52  lifetime        u32 s
//! 7        zero                    52..56  stale-while-revalidate, 56..60 stale-if-error
//! 8..16    request_time   i64 ms           (u32 s; u32::MAX: none)
//! 60..64   zero                                                            little-endian
//! ```
//!
//! The generation states which rules decided about storing the response. 1 means the stricter rules about
//! cookies, heuristic lifetimes and variants ([`crate::old`]). 0 means the earlier rules.

use foxy_base::WallTime;

use crate::reason::LifetimeSource;

/// Size of the encoded form in bytes.
pub const FACTS_BYTES: usize = 64;
const VERSION: u8 = 1;
/// The generation of today's rules.
const GENERATION: u8 = 1;
const NO_TIME: i64 = i64::MIN;
const NO_SECONDS: u32 = u32::MAX;

/// Yes-or-no facts of a stored response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u16);

impl Flags {
    /// `must-revalidate`: the response must never be served stale (RFC 9111 section 5.2.2.2).
    pub const MUST_REVALIDATE: Self = Self(1);
    /// The response has `proxy-revalidate`, or its lifetime comes from `s-maxage` (sections 5.2.2.8 and
    /// 5.2.2.10).
    pub const PROXY_REVALIDATE: Self = Self(1 << 1);
    /// `no-cache` without a list: the response must be validated before each use (section 5.2.2.4).
    pub const NO_CACHE: Self = Self(1 << 2);
    /// `immutable` (RFC 8246).
    pub const IMMUTABLE: Self = Self(1 << 3);
    /// The lifetime is heuristic (RFC 9111 section 4.2.2).
    pub const HEURISTIC: Self = Self(1 << 4);
    /// The response has an ETag that can be sent as If-None-Match.
    pub const HAS_ETAG: Self = Self(1 << 5);
    /// The response has a valid Last-Modified.
    pub const HAS_LAST_MODIFIED: Self = Self(1 << 6);
    /// The response has a Vary list.
    pub const VARY: Self = Self(1 << 7);
    /// Only a part of the body is stored.
    pub const PARTIAL: Self = Self(1 << 8);
    /// The response's ETag is strong and well-formed, so parts of the response may be combined.
    pub const STRONG_ETAG: Self = Self(1 << 9);
    /// An unsafe request has invalidated the response: it must be validated before the next use (RFC 9111
    /// section 4.4).
    pub const INVALIDATED: Self = Self(1 << 10);
    /// A soft purge covered the response: it is stale from now on, but stale use is still permitted.
    pub const SOFT_PURGED: Self = Self(1 << 11);
    /// The response has no explicit lifetime, but content of its type is usually the same for all users. So a
    /// heuristic lifetime also applies to requests with Cookie.
    pub const STATIC_TYPE: Self = Self(1 << 12);
    /// The response has a cookie that may be shared only because of a rule of the operator
    /// (`store_set_cookie`). Without that rule, the response is not used.
    pub const COOKIE_BY_RULE: Self = Self(1 << 13);
    /// The response needs validation for each request, and a request without credentials fetched it. Without
    /// this flag, a response that needs validation for each request may be the page of one user. Records of
    /// an older Foxy do not have this flag.
    pub const FETCHED_ANONYMOUSLY: Self = Self(1 << 14);
    /// The response was stored under the rules of an older Foxy. The encoded form has no bit for this flag:
    /// the generation of the rules contains the same information.
    pub const OLD_RULES: Self = Self(1 << 15);
    /// Each of these flags forbids every stale use.
    pub const FORBID_STALE: Self = Self(
        Self::MUST_REVALIDATE.0 | Self::PROXY_REVALIDATE.0 | Self::NO_CACHE.0 | Self::INVALIDATED.0,
    );
    const KNOWN: u16 = (1 << 15) - 1;

    /// True if all flags of `other` are set.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// True if any flag of `other` is set.
    #[must_use]
    pub const fn any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Sets the flags of `other` if `on`.
    pub const fn set(&mut self, other: Self, on: bool) {
        if on {
            self.0 |= other.0;
        }
    }

    /// These flags and the flags of `other`.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The caching facts of a stored response. They decide whether it may be reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachingFacts {
    /// Status code.
    pub status: u16,
    /// Yes-or-no facts.
    pub flags: Flags,
    /// Time at which the request was sent to the origin. After a validation, it is the time of the
    /// validation's request.
    pub request_time: WallTime,
    /// Time at which the head of the response arrived.
    pub response_time: WallTime,
    /// corrected_initial_age in milliseconds (RFC 9111 section 4.2.3), never negative.
    pub initial_age_ms: i64,
    /// Freshness lifetime in seconds (RFC 9111 section 4.2.1).
    pub lifetime_s: u32,
    /// Source of the lifetime.
    pub source: LifetimeSource,
    /// Value of stale-while-revalidate in seconds.
    pub stale_while_revalidate_s: Option<u32>,
    /// Value of stale-if-error in seconds.
    pub stale_if_error_s: Option<u32>,
    /// The Date field, if valid.
    pub date: Option<WallTime>,
    /// The Last-Modified field, if valid.
    pub last_modified: Option<WallTime>,
}

impl CachingFacts {
    /// True if each use needs validation: the response was never fresh, or has no-cache.
    pub(crate) const fn needs_validation_each_time(&self) -> bool {
        self.lifetime_s == 0 || self.flags.has(Flags::NO_CACHE)
    }

    /// True if the response may have been made for one user: each use needs validation, and the flag
    /// [`Flags::FETCHED_ANONYMOUSLY`] is not set.
    pub(crate) const fn is_for_one_user(&self) -> bool {
        self.needs_validation_each_time() && !self.flags.has(Flags::FETCHED_ANONYMOUSLY)
    }

    /// True if the response's Last-Modified may be sent to validate the response. It is not sent if the
    /// response may be for one user. Pages of different users often have the same date, so the origin could
    /// answer 304 although the stored page belongs to another user. An entity tag distinguishes such pages.
    pub(crate) const fn is_validated_by_date(&self) -> bool {
        self.flags.has(Flags::HAS_LAST_MODIFIED) && !self.is_for_one_user()
    }

    /// Encodes the facts in their fixed form.
    #[must_use]
    pub fn encode(&self) -> [u8; FACTS_BYTES] {
        let mut out = [0; FACTS_BYTES];
        let time = |t: Option<WallTime>| t.map_or(NO_TIME, |t| t.0.max(NO_TIME + 1));
        let seconds = |s: Option<u32>| s.map_or(NO_SECONDS, |s| s.min(NO_SECONDS - 1));
        out[0] = VERSION;
        out[1] = self.source as u8;
        out[2..4].copy_from_slice(&(self.flags.0 & Flags::KNOWN).to_le_bytes());
        out[4..6].copy_from_slice(&self.status.to_le_bytes());
        if !self.flags.has(Flags::OLD_RULES) {
            out[6] = GENERATION;
        }
        out[8..16].copy_from_slice(&self.request_time.0.to_le_bytes());
        out[16..24].copy_from_slice(&self.response_time.0.to_le_bytes());
        out[24..32].copy_from_slice(&self.initial_age_ms.to_le_bytes());
        out[32..40].copy_from_slice(&time(self.date).to_le_bytes());
        out[40..48].copy_from_slice(&time(self.last_modified).to_le_bytes());
        out[48..52].copy_from_slice(&self.lifetime_s.to_le_bytes());
        out[52..56].copy_from_slice(&seconds(self.stale_while_revalidate_s).to_le_bytes());
        out[56..60].copy_from_slice(&seconds(self.stale_if_error_s).to_le_bytes());
        out
    }

    /// Reads the fixed form. Returns `None` for an unknown version, and for values that no encoder writes.
    /// Then the caller makes the facts again from the stored fields, or treats the record as a miss.
    #[must_use]
    pub fn decode(bytes: &[u8; FACTS_BYTES]) -> Option<Self> {
        let flags = u16::from_le_bytes([bytes[2], bytes[3]]);
        let initial_age_ms = i64_at(bytes, 24);
        let zeros = bytes[7] == 0 && bytes[60..64] == [0; 4] && bytes[6] <= GENERATION;
        if bytes[0] != VERSION || flags & !Flags::KNOWN != 0 || initial_age_ms < 0 || !zeros {
            return None;
        }
        let mut flags = Flags(flags);
        flags.set(Flags::OLD_RULES, bytes[6] != GENERATION);
        let time = |at| {
            Some(i64_at(bytes, at))
                .filter(|t| *t != NO_TIME)
                .map(WallTime)
        };
        let seconds = |at| Some(u32_at(bytes, at)).filter(|s| *s != NO_SECONDS);
        Some(Self {
            status: u16::from_le_bytes([bytes[4], bytes[5]]),
            flags,
            request_time: WallTime(i64_at(bytes, 8)),
            response_time: WallTime(i64_at(bytes, 16)),
            initial_age_ms,
            lifetime_s: u32_at(bytes, 48),
            source: *LifetimeSource::ALL.get(usize::from(bytes[1]))?,
            stale_while_revalidate_s: seconds(52),
            stale_if_error_s: seconds(56),
            date: time(32),
            last_modified: time(40),
        })
    }
}

fn i64_at(bytes: &[u8; FACTS_BYTES], at: usize) -> i64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    i64::from_le_bytes(word)
}

fn u32_at(bytes: &[u8; FACTS_BYTES], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

#[cfg(test)]
mod tests;
