//! The parser by which the simulated clients and the simulated origin read heads and bodies. It is simple,
//! and independent of Foxy's own parser.

use super::wire::Wire;

/// The head of a request or of an answer.
#[derive(Clone, Debug, Default)]
pub(super) struct Head {
    /// Method, if the head is of a request.
    pub(super) method: String,
    /// Target, if the head is of a request.
    pub(super) target: String,
    /// Status, if the head is of an answer.
    pub(super) status: u16,
    fields: Vec<(String, String)>,
}

impl Head {
    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.split("\r\n");
        let mut words = lines.next()?.split(' ');
        let (first, second) = (words.next()?, words.next()?);
        let fields = lines.filter(|line| !line.is_empty()).map(|line| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_ascii_lowercase(), value.trim().to_owned()))
        });
        Some(Self {
            method: first.to_owned(),
            target: second.to_owned(),
            status: second.parse().unwrap_or(0),
            fields: fields.collect::<Option<_>>()?,
        })
    }

    pub(super) fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.fields.iter();
        let found = fields.find(|(own, _)| own == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.field(name)?.parse().ok()
    }
}

/// Reads a head. The bytes after it stay in `buf`. Returns `None` if the peer ends the connection before the
/// end of the head, or sends an invalid head.
pub(super) async fn read_head(wire: &Wire, buf: &mut Vec<u8>) -> Option<Head> {
    loop {
        if let Some(end) = buf.windows(4).position(|four| four == b"\r\n\r\n") {
            let head: Vec<u8> = buf.drain(..end + 4).collect();
            return Head::parse(std::str::from_utf8(&head).ok()?);
        }
        more(wire, buf).await?;
    }
}

async fn more(wire: &Wire, buf: &mut Vec<u8>) -> Option<()> {
    let mut part = [0; 16 << 10];
    let n = wire.read(&mut part).await.ok().filter(|n| *n > 0)?;
    buf.extend_from_slice(&part[..n]);
    Some(())
}

/// Reads the body of an answer. Stops if it has read more than `most` bytes. Returns true if it has read the
/// complete body.
pub(super) async fn read_body(
    wire: &Wire,
    buf: &mut Vec<u8>,
    head: &Head,
    (most, body): (usize, &mut Vec<u8>),
) -> bool {
    if let Some(length) = head.number("content-length") {
        loop {
            let left = length as usize - body.len();
            let taken = left.min(buf.len());
            body.extend(buf.drain(..taken));
            if body.len() as u64 == length {
                return true;
            }
            if body.len() > most || more(wire, buf).await.is_none() {
                return false;
            }
        }
    }
    if head.field("transfer-encoding").is_none() {
        return read_to_end(wire, buf, (most, body)).await;
    }
    loop {
        match chunk(wire, buf, body).await {
            Some(0) => return true,
            Some(_) if body.len() <= most => {}
            _ => return false,
        }
    }
}

/// Returns true if the end of the connection marks the end of the body. Such a body is complete only if the
/// connection ends in an orderly way, without a reset.
pub(super) fn ends_with_connection(head: &Head) -> bool {
    head.field("content-length").is_none() && head.field("transfer-encoding").is_none()
}

async fn read_to_end(wire: &Wire, buf: &mut Vec<u8>, (most, body): (usize, &mut Vec<u8>)) -> bool {
    body.append(buf);
    let mut part = [0; 16 << 10];
    while body.len() <= most {
        match wire.read(&mut part).await {
            Ok(0) => return true,
            Ok(n) => body.extend_from_slice(&part[..n]),
            Err(_) => return false,
        }
    }
    false
}

/// Reads a chunk. Returns its length, which is 0 for the last chunk.
async fn chunk(wire: &Wire, buf: &mut Vec<u8>, body: &mut Vec<u8>) -> Option<usize> {
    let line = loop {
        match buf.windows(2).position(|two| two == b"\r\n") {
            Some(end) => break buf.drain(..end + 2).collect::<Vec<_>>(),
            None => more(wire, buf).await?,
        }
    };
    let text = std::str::from_utf8(&line).ok()?;
    let length = usize::from_str_radix(text.trim(), 16).ok()?;
    while buf.len() < length + 2 {
        if let Err(()) = more(wire, buf).await.ok_or(()) {
            // The chunk is truncated, but these bytes of the chunk were sent.
            let part = buf.len().min(length);
            body.extend(buf.drain(..part));
            return None;
        }
    }
    body.extend(buf.drain(..length));
    buf.drain(..2);
    Some(length)
}

/// Returns the first and the last byte of `bytes=A-B` or `bytes=A-`.
pub(super) fn range(text: &str) -> Option<(u64, u64)> {
    let (from, to) = text.strip_prefix("bytes=")?.split_once('-')?;
    let to = match to {
        "" => u64::MAX - 1,
        to => to.parse().ok()?,
    };
    Some((from.parse().ok()?, to))
}
