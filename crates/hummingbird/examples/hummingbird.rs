//! Shows how a caching proxy uses the library: it reads a file. If the file is missing, the proxy fetches and
//! stores the file, and gives a hint.
//!
//! `cargo run --release -p foxy-hummingbird --example hummingbird -- PATH`

use foxy_hummingbird::{Config, Error, Hummingbird};

/// Takes the place of a request to the origin.
fn fetch(url: &str) -> Vec<u8> {
    format!("the contents of {url}").into_bytes()
}

/// Serves one request of a visitor whose last page was `page`. Returns true for a hit.
fn request(fs: &Hummingbird, url: &str, page: Option<&str>) -> Result<bool, Error> {
    match fs.read_file(url.as_bytes()) {
        // The contents are lent until `file` goes out of scope.
        Ok(file) => return Ok(file.len() == fetch(url).len()),
        Err(Error::NotFound) => {}
        Err(error) => return Err(error),
    }
    fs.write_file(url.as_bytes(), fetch(url))?;
    if let Some(page) = page {
        fs.collocate_files(page.as_bytes(), url.as_bytes())?;
    }
    Ok(false)
}

fn main() -> Result<(), Error> {
    let Some(path) = std::env::args_os().nth(1) else {
        eprintln!("usage: hummingbird PATH");
        std::process::exit(2);
    };
    let fs = Hummingbird::open(&Config::on(path, 64 << 20))?;
    for visit in 0..2 {
        for site in 0..100 {
            let page = format!("http://site-{site}/");
            let mut hits = u32::from(request(&fs, &page, None)?);
            for image in 0..4 {
                let url = format!("{page}{image}.png");
                hits += u32::from(request(&fs, &url, Some(&page))?);
            }
            if site == 0 {
                println!("visit {visit}: {hits} of 5 were there");
            }
        }
    }
    fs.checkpoint()?;
    println!("{:#?}", fs.statistics());
    println!("all is durable: {}", fs.close());
    Ok(())
}
