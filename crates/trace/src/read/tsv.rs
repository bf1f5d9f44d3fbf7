//! Tab-separated logs whose first line names the columns, such as the reduced NASA logs:
//! `host logname time method url response bytes`.

use super::words::{number_or_dash, seconds, status};
use super::{Bad, url};
use crate::{Flags, Method, Request};

/// Position of each column, once the header line has been read.
#[derive(Debug, Default)]
pub(crate) struct Columns(Option<Positions>);

#[derive(Clone, Copy, Debug)]
struct Positions {
    host: usize,
    time: usize,
    method: usize,
    url: usize,
    response: usize,
    bytes: usize,
}

fn columns(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|b| *b == b'\t')
}

impl Columns {
    pub(super) fn parse(&mut self, line: &[u8]) -> Result<Option<Request>, Bad> {
        let Some(at) = self.0 else {
            self.0 = Some(
                header(line)
                    .ok_or("no header line naming host, time, method, url, response, bytes")?,
            );
            return Ok(None);
        };
        let get = |n: usize, bad: Bad| columns(line).nth(n).ok_or(bad);
        let status = status(get(at.response, "no response")?).ok_or("bad status")?;
        let mut request = Request {
            time_ms: seconds(get(at.time, "no time")?).ok_or("time is not a number")?,
            size: number_or_dash(get(at.bytes, "no bytes")?).ok_or("bytes are not a number")?,
            client: url::short_hash(get(at.host, "no host")?),
            status,
            method: Method::from_name(get(at.method, "no method")?),
            flags: Flags::default().with_if(Flags::CONDITIONAL, status == 304),
            ..Request::default()
        };
        url::describe(get(at.url, "no url")?, &mut request);
        Ok(Some(request))
    }

    pub(super) fn url<'l>(&self, line: &'l [u8]) -> Option<&'l [u8]> {
        columns(line).nth(self.0?.url)
    }
}

fn header(line: &[u8]) -> Option<Positions> {
    let find = |name: &[u8]| columns(line).position(|c| c.eq_ignore_ascii_case(name));
    Some(Positions {
        host: find(b"host")?,
        time: find(b"time")?,
        method: find(b"method")?,
        url: find(b"url")?,
        response: find(b"response")?,
        bytes: find(b"bytes")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_decides() {
        let mut c = Columns::default();
        assert!(c.parse(b"1\t2\t3").is_err());
        assert_eq!(
            c.parse(b"host\tlogname\ttime\tmethod\turl\tresponse\tbytes"),
            Ok(None)
        );
        let line = b"a.b\t-\t804571201\tGET\t/history/apollo/\t200\t6245\t\t";
        let r = c.parse(line).unwrap().unwrap();
        assert_eq!((r.time_ms, r.size, r.status), (804_571_201_000, 6245, 200));
        assert_eq!(c.url(line), Some(&b"/history/apollo/"[..]));
        assert_eq!(
            c.parse(b"a.b\t-\tx\tGET\t/\t200\t1"),
            Err("time is not a number")
        );
        assert_eq!(c.parse(b"a.b\t-"), Err("no response"));
    }
}
