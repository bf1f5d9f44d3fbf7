//! A video in which each second has one of four colours. The video is so large that no client fetches all of
//! it to show a few seconds. Each second has five frames of one colour, and padding.

/// The four frames of the video, one for each colour: red, green, blue, yellow. They are VP8 key frames of 32
/// by 32 pixels.
const FRAMES: [&str; 4] = [
    "5003009d012a200020003e6d349647a4232221280800800d896500b6f6800040e25e0000fef4beeffd8b396c0941ff\
     dce07fdce07fdce07f15901f8875740000",
    "9003009d012a200020003e6d349647a4232221280800800d896500cb5a807e000046bfd80000feedcedfff9b02b9ae\
     7dfefffd348f1a478d23e54cd43fd00000",
    "3003009d012a200020003e6d349647a4232221280800800d896500c812800040505000fef9d2cbffdce07fdce07fdc\
     e07f1d7f9af8817904d1f20000",
    "3003009d012a200020003e6d349647a4232221280800800d896500ca2e800040505000feee5e3fffba7affba7affba\
     7afe60ff22916305db0f000000",
];
/// Frames per second.
const RATE: u64 = 5;

/// Returns the letter of the colour in this second. The page uses the same letters.
pub(crate) fn colour(second: usize) -> char {
    ['r', 'g', 'b', 'y'][second * second % 7 % 4]
}

/// Returns a video of this many seconds, each about `second_bytes` long.
pub(crate) fn video(seconds: usize, second_bytes: usize) -> Vec<u8> {
    let clusters: Vec<_> = (0..seconds).map(|n| cluster(n, second_bytes)).collect();
    let info = element(
        &[0x15, 0x49, 0xa9, 0x66],
        &[
            number(&[0x2a, 0xd7, 0xb1], 1_000_000),
            element(&[0x44, 0x89], &(seconds as f64 * 1000.0).to_be_bytes()),
            element(&[0x4d, 0x80], b"test"),
            element(&[0x57, 0x41], b"test"),
        ]
        .concat(),
    );
    let size = [number(&[0xb0], 32), number(&[0xba], 32)].concat();
    let track = [
        number(&[0xd7], 1),
        number(&[0x73, 0xc5], 1),
        number(&[0x83], 1),
        element(&[0x86], b"V_VP8"),
        element(&[0xe0], &size),
    ];
    let track = element(&[0xae], &track.concat());
    let tracks = element(&[0x16, 0x54, 0xae, 0x6b], &track);
    // Numbers have a fixed length. So the length of the index is known before its contents.
    let start = info.len() + tracks.len() + cues(&clusters, 0).len();
    let body = [info, tracks, cues(&clusters, start), clusters.concat()].concat();
    [head(), element(&[0x18, 0x53, 0x80, 0x67], &body)].concat()
}

fn head() -> Vec<u8> {
    let parts = [
        number(&[0x42, 0x86], 1),
        number(&[0x42, 0xf7], 1),
        number(&[0x42, 0xf2], 4),
        number(&[0x42, 0xf3], 8),
        element(&[0x42, 0x82], b"webm"),
        number(&[0x42, 0x87], 2),
        number(&[0x42, 0x85], 2),
    ];
    element(&[0x1a, 0x45, 0xdf, 0xa3], &parts.concat())
}

/// Returns the video's index, which contains the position of each second. The first second is at `start`.
fn cues(clusters: &[Vec<u8>], start: usize) -> Vec<u8> {
    let (mut at, mut points) = (start as u64, Vec::new());
    for (second, cluster) in clusters.iter().enumerate() {
        let place = [number(&[0xf7], 1), number(&[0xf1], at)].concat();
        let point = [
            number(&[0xb3], second as u64 * 1000),
            element(&[0xb7], &place),
        ];
        points.extend(element(&[0xbb], &point.concat()));
        at += cluster.len() as u64;
    }
    element(&[0x1c, 0x53, 0xbb, 0x6b], &points)
}

fn cluster(second: usize, bytes: usize) -> Vec<u8> {
    let name = colour(second);
    let frame = ['r', 'g', 'b', 'y'].iter().position(|c| *c == name);
    let frame = bytes_of(FRAMES[frame.unwrap_or(0)]);
    let mut body = number(&[0xe7], second as u64 * 1000);
    for n in 0..RATE {
        let time = u16::try_from(n * 1000 / RATE).unwrap_or(0).to_be_bytes();
        let block = [&[0x81, time[0], time[1], 0x80], &frame[..]].concat();
        body.extend(element(&[0xa3], &block));
        body.extend(element(&[0xec], &vec![0; bytes / RATE as usize]));
    }
    element(&[0x1f, 0x43, 0xb6, 0x75], &body)
}

fn bytes_of(hex: &str) -> Vec<u8> {
    let digit = |b: u8| (b as char).to_digit(16).unwrap_or(0) as u8;
    let pairs = hex.as_bytes().chunks_exact(2);
    pairs
        .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
        .collect()
}

/// Returns an element of the file format WebM. Its length field takes eight bytes.
fn element(id: &[u8], body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u64 | 1 << 56).to_be_bytes();
    [id, &length, body].concat()
}

fn number(id: &[u8], value: u64) -> Vec<u8> {
    element(id, &value.to_be_bytes())
}
