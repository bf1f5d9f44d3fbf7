//! Position of a sector: zone, cylinder, head, and angle on the platter.

use super::SECTOR;

/// A zone: cylinders with the same number of sectors per track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// Number of cylinders of the zone.
    pub cylinders: u32,
    /// Sectors of each track in the zone.
    pub sectors: u32,
}

/// Returns `count` zones of about equal width. Their sectors per track fall evenly from `outer` to `inner`.
/// Such zones are for drives whose manual states only the outer and the inner value.
#[must_use]
pub fn even_zones(cylinders: u32, count: u32, outer: u32, inner: u32) -> Vec<Zone> {
    let count = count.clamp(1, cylinders.max(1));
    (0..count)
        .map(|i| {
            let from = u64::from(cylinders) * u64::from(i) / u64::from(count);
            let to = u64::from(cylinders) * u64::from(i + 1) / u64::from(count);
            let fall = u64::from(outer.saturating_sub(inner)) * u64::from(i);
            let sectors = outer - (fall / u64::from((count - 1).max(1))) as u32;
            Zone {
                cylinders: (to - from) as u32,
                sectors: sectors.max(1),
            }
        })
        .collect()
}

/// A track, with the data that a transfer needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Track {
    pub(super) cylinder: u32,
    pub(super) head: u32,
    /// Sectors of the track.
    pub(super) sectors: u64,
    /// First sector of the drive that is on this track.
    pub(super) first: u64,
    /// Angle of the track's sector 0, in revolutions.
    pub(super) angle: f64,
}

/// The fractional part of a positive number. Unlike `fract`, this function needs no library call.
pub(super) fn fraction(value: f64) -> f64 {
    value - (value as u64) as f64
}

#[derive(Clone, Copy, Debug)]
struct ZoneStart {
    sector: u64,
    cylinder: u32,
    sectors: u32,
}

/// The map from sectors to positions. Sectors fill a cylinder before the next cylinder begins.
#[derive(Clone, Debug)]
pub(super) struct Geometry {
    zones: Vec<ZoneStart>,
    /// The drive is divided into parts of `1 << part` sectors. For each part, this list contains the zone of
    /// its first sector.
    parts: Vec<u16>,
    part: u32,
    heads: u32,
    cylinders: u32,
    sectors: u64,
    track_skew: f64,
    cylinder_skew: f64,
}

impl Geometry {
    /// Creates the map. Skews are in revolutions. A skew is the angle by which sector 0 of a track comes
    /// later than sector 0 of the previous track. With this skew, a switch of head or cylinder does not lose
    /// a full revolution.
    pub(super) fn new(zones: &[Zone], heads: u32, track_skew: f64, cylinder_skew: f64) -> Self {
        let mut starts = Vec::with_capacity(zones.len());
        let (mut sector, mut cylinder) = (0u64, 0u32);
        for zone in zones {
            starts.push(ZoneStart {
                sector,
                cylinder,
                sectors: zone.sectors,
            });
            sector += u64::from(zone.cylinders) * u64::from(heads) * u64::from(zone.sectors);
            cylinder += zone.cylinders;
        }
        // The drive is divided into a few thousand parts. The table of their zones replaces a search for the
        // zone of a sector.
        let part = 64u32.saturating_sub(sector.leading_zeros() + 12).max(8);
        let zone = |at: u64| starts.partition_point(|z: &ZoneStart| z.sector <= at << part);
        let parts = (0..=sector >> part).map(|at| zone(at).saturating_sub(1) as u16);
        Self {
            parts: parts.collect(),
            part,
            zones: starts,
            heads,
            cylinders: cylinder,
            sectors: sector,
            track_skew,
            cylinder_skew,
        }
    }

    pub(super) const fn cylinders(&self) -> u32 {
        self.cylinders
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.sectors * SECTOR
    }

    /// The track of a sector. For a sector beyond the end of the drive, this is the track of the last sector.
    pub(super) fn track(&self, sector: u64) -> Track {
        let sector = sector.min(self.sectors.saturating_sub(1));
        let mut index = usize::from(self.parts[(sector >> self.part) as usize]);
        while self
            .zones
            .get(index + 1)
            .is_some_and(|z| z.sector <= sector)
        {
            index += 1;
        }
        let zone = self.zones[index];
        let per_track = u64::from(zone.sectors);
        let track = (sector - zone.sector) / per_track;
        let heads = u64::from(self.heads);
        let cylinder = zone.cylinder + (track / heads) as u32;
        let head = (track % heads) as u32;
        let switches = f64::from(cylinder) * f64::from(self.heads - 1) + f64::from(head);
        let angle = switches * self.track_skew + f64::from(cylinder) * self.cylinder_skew;
        Track {
            cylinder,
            head,
            sectors: per_track,
            first: zone.sector + track * per_track,
            angle: fraction(angle),
        }
    }

    /// The track after `track`; at the end of the drive, `track` itself.
    pub(super) fn next(&self, track: &Track) -> Track {
        self.track(track.first + track.sectors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Geometry {
        let zones = [
            Zone {
                cylinders: 2,
                sectors: 10,
            },
            Zone {
                cylinders: 3,
                sectors: 6,
            },
        ];
        Geometry::new(&zones, 2, 0.1, 0.25)
    }

    #[test]
    fn every_sector_has_one_place() {
        let map = small();
        assert_eq!(map.bytes(), (40 + 36) * SECTOR);
        let (mut sector, mut tracks) = (0, 0);
        while sector < 76 {
            let track = map.track(sector);
            assert_eq!(track.first, sector);
            assert_eq!(map.track(sector + track.sectors - 1), track);
            assert_eq!((track.cylinder, track.head), (tracks / 2, tracks % 2));
            sector += track.sectors;
            tracks += 1;
        }
        assert_eq!(tracks, 10);
        assert_eq!(map.track(1_000).cylinder, 4);
    }

    #[test]
    fn skews_add_up_over_switches() {
        let map = small();
        assert!((map.track(10).angle - 0.1).abs() < 1e-9);
        assert!((map.track(20).angle - 0.35).abs() < 1e-9);
        assert!((map.track(40).angle - 0.70).abs() < 1e-9);
    }

    #[test]
    fn even_zones_cover_all_cylinders_and_both_ends() {
        let zones = even_zones(101, 7, 130, 80);
        assert_eq!(zones.iter().map(|z| z.cylinders).sum::<u32>(), 101);
        assert_eq!((zones[0].sectors, zones[6].sectors), (130, 80));
        assert_eq!(
            even_zones(3, 1, 9, 5),
            [Zone {
                cylinders: 3,
                sectors: 9
            }]
        );
    }
}
