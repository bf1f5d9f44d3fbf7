//! The three columns of webcachesim: sequence number, object id, size.

use super::Bad;
use super::words::{need, number, words};
use crate::Request;

pub(super) fn parse(line: &[u8]) -> Result<Request, Bad> {
    let mut fields = words(line);
    number(need(&mut fields, "empty")?).ok_or("sequence is not a number")?;
    let object = number(need(&mut fields, "no object id")?).ok_or("id is not a number")?;
    let size = number(need(&mut fields, "no size")?).ok_or("size is not a number")?;
    if fields.next().is_some() {
        return Err("more than three columns");
    }
    Ok(Request {
        object,
        size,
        ..Request::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_numbers_only() {
        let r = parse(b"1 7 68").unwrap();
        assert_eq!((r.object, r.size, r.time_ms), (7, 68, 0));
        assert_eq!(parse(b"1 7 68 9"), Err("more than three columns"));
        assert_eq!(parse(b"1 x 68"), Err("id is not a number"));
        assert_eq!(parse(b"1 7"), Err("no size"));
    }
}
