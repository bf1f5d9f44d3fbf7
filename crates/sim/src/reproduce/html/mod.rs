//! Writes the results of a reproduction as a single HTML page that contains its style, fonts and figures.

use std::{fmt::Write as _, path::Path};

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::{BAND, Claim, Comparison, Drawn, Reproduction, Section, Verdict, claim::digits, save};
use crate::{
    figure,
    report::{Align, Table},
    run::RunError,
};

/// Figures with more than this many points are embedded as PNG, which is smaller and faster to show.
const POINTS: usize = 2_000;

/// Returns the page. `folder` contains the figures as PNG.
///
/// # Errors
/// Returns an error if a figure cannot be drawn or read.
pub(super) fn page(all: &Reproduction, folder: &Path) -> Result<String, RunError> {
    let mut text = head();
    text += &tiles(all);
    // The asterisks in the cells of this table are Markdown, so they are removed.
    let verdicts = grid("All verdicts", &all.verdicts()).replace('*', "");
    let _ = write!(text, "<section class=\"verdicts\">{verdicts}</section>");
    text += "<nav>";
    for (number, section) in all.sections.iter().enumerate() {
        let _ = write!(
            text,
            "<a href=\"#s{number}\">{}</a>",
            escaped(&section.title)
        );
    }
    text += "</nav>\n";
    for (number, section) in all.sections.iter().enumerate() {
        text += &one(number, section, folder)?;
    }
    text += "<footer>Made by <code>foxy sim reproduce</code>. All times are simulated, so the same \
             command gives the same page on every machine. No constant of the models was fitted \
             to these results.</footer></div></body></html>\n";
    Ok(text)
}

fn head() -> String {
    let faces: String = figure::FACES
        .iter()
        .map(|(weight, bytes)| {
            format!(
                "@font-face{{font-family:Roboto;font-weight:{weight};src:url(data:font/ttf;base64,{})}}\n",
                STANDARD.encode(bytes)
            )
        })
        .collect();
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>The papers, running</title>\n<style>\n{faces}{}</style></head>\n<body>\n\
         <header><div class=\"wide\"><h1>The papers, running</h1>\
         <p>Published experiments on the disks of web proxies, done again on modelled drives and \
         file systems of their time. Each row has the published value, ours, and what the \
         comparison is worth.</p></div></header>\n<div class=\"wide\">\n",
        include_str!("page.css")
    )
}

fn tiles(all: &Reproduction) -> String {
    let count = |comparison: &[Comparison], met: bool| {
        all.claims()
            .filter(|c| comparison.contains(&c.comparison) && c.verdict() != Verdict::Shown)
            .filter(|c| !met || c.verdict() == Verdict::Met)
            .count()
    };
    let tile = |classes: &[Comparison], what: &str| {
        if count(classes, false) == 0 {
            return String::new();
        }
        format!(
            "<div class=\"tile\"><b>{} <small>of {}</small></b><span>{what}</span></div>",
            count(classes, true),
            count(classes, false)
        )
    };
    let mut text = String::from("<div class=\"tiles\">");
    let band = format!("within {:.0} % of a published value", 100.0 * BAND);
    text += &tile(&[Comparison::Band], &band);
    text += &tile(&[Comparison::Exact], "rules and arithmetic met exactly");
    text += &tile(&[Comparison::Input], "inputs as published (within a tenth)");
    text += &tile(
        &[Comparison::Shape, Comparison::Order],
        "comparisons of shape or order met",
    );
    text += "</div>";
    if all.scale > 1 {
        let _ = write!(
            text,
            "<p class=\"warn\">A quick look: memory, disks and numbers of operations were divided \
             by {}. Nothing here compares with the published values.</p>",
            all.scale
        );
    }
    text
}

fn one(number: usize, section: &Section, folder: &Path) -> Result<String, RunError> {
    let mut text = format!(
        "<section id=\"s{number}\"><h2>{}</h2><p class=\"about\">{}</p>\n",
        escaped(&section.title),
        escaped(&section.about)
    );
    if !section.claims.is_empty() {
        text += "<div class=\"scroll\"><table><thead><tr><th>source</th><th>value</th>\
                 <th class=\"n\">published</th><th class=\"n\">ours</th><th class=\"n\">ratio</th>\
                 <th></th><th>comparison</th><th>verdict</th></tr></thead><tbody>\n";
        section.claims.iter().for_each(|claim| text += &row(claim));
        text += "</tbody></table></div>\n";
    }
    for (heading, table) in &section.tables {
        text += &grid(heading, table);
    }
    if !section.figures.is_empty() {
        text += "<div class=\"figures\">\n";
        for drawn in &section.figures {
            text += &picture(drawn, folder)?;
        }
        text += "</div>\n";
    }
    if !section.notes.is_empty() {
        text += "<h3>Differences, and what is known about them</h3><div class=\"notes\">\n";
        for (heading, words) in &section.notes {
            let (heading, words) = (escaped(heading), escaped(words));
            let _ = writeln!(text, "<p><b>{heading}</b>{words}</p>");
        }
        text += "</div>\n";
    }
    Ok(text + "</section>\n")
}

/// Column names that are longer than this (in bytes) are cut on a phone.
const NAME_MAX: usize = 40;

/// Returns a table as HTML. A table of claims has another form, because it compares values.
fn grid(heading: &str, table: &Table) -> String {
    let cell = |tag: &str, name: &str, text: &str, align: Align| {
        let class = if align == Align::Right {
            " class=\"n\""
        } else {
            ""
        };
        // On a phone a row is a card in which each value is shown with its column's name. Long names are cut.
        let name = if tag == "td" {
            let short = name.split_once(" (").filter(|_| name.len() > NAME_MAX);
            let name = short.map_or(name, |(short, _)| short);
            format!(" data-name=\"{}\"", escaped(name))
        } else {
            String::new()
        };
        format!("<{tag}{class}{name}>{}</{tag}>", escaped(text))
    };
    let mut text = format!(
        "<h3>{}</h3><div class=\"scroll grid\"><table><thead><tr>",
        escaped(heading)
    );
    for (name, align) in table.columns() {
        text += &cell("th", name, name, *align);
    }
    text += "</tr></thead><tbody>\n";
    for row in table.rows() {
        text += "<tr>";
        for (value, (name, align)) in row.iter().zip(table.columns()) {
            text += &cell("td", name, value, *align);
        }
        text += "</tr>\n";
    }
    text + "</tbody></table></div>\n"
}

fn row(claim: &Claim) -> String {
    let class = match claim.verdict() {
        Verdict::Met => "met",
        Verdict::Off => "off",
        Verdict::Shown => "shown",
    };
    let (bar, ratio) = if claim.ratio().is_finite() {
        // The scale goes from a quarter to four times the published value; the published value is
        // in the middle.
        let at = 50.0 + 25.0 * claim.ratio().max(1e-6).log2();
        let at = at.clamp(4.0, 96.0);
        let bar = format!(
            "<div class=\"bar\"><i class=\"dot-{class}\" style=\"left:{at:.1}%\"></i></div>"
        );
        (bar, format!("{:.2}", claim.ratio()))
    } else {
        (String::new(), "-".to_owned())
    };
    format!(
        "<tr><td class=\"s\">{}</td><td>{}</td><td class=\"n\" data-name=\"published\">{}</td>\
         <td class=\"n\" data-name=\"ours\">{}</td><td class=\"n {class}\" data-name=\"ratio\">{ratio}</td>\
         <td>{bar}</td><td><span class=\"tag\">{}</span></td><td class=\"{class}\">{}</td></tr>\n",
        escaped(&claim.source),
        escaped(&claim.what),
        claim.published_text(),
        digits(claim.ours),
        claim.comparison.name(),
        said(claim),
    )
}

/// The verdict, and the note that explains why a value is missed.
fn said(claim: &Claim) -> String {
    match (&claim.reason, claim.verdict()) {
        (Some(reason), Verdict::Off) => format!("missed: {}", escaped(reason)),
        (_, verdict) => verdict.name().to_owned(),
    }
}

fn picture(drawn: &Drawn, folder: &Path) -> Result<String, RunError> {
    let title = escaped(&drawn.figure.title);
    let body = if is_heavy(drawn) {
        let path = folder.join(&drawn.stem).with_extension("png");
        let bytes = std::fs::read(&path).map_err(|source| save::output(&path, source))?;
        let bytes = STANDARD.encode(bytes);
        format!("<img alt=\"{title}\" src=\"data:image/png;base64,{bytes}\">")
    } else {
        drawn.figure.svg()?
    };
    let caption = escaped(&drawn.caption);
    Ok(format!(
        "<figure>{body}<figcaption>{caption}</figcaption></figure>\n"
    ))
}

pub(super) fn is_heavy(drawn: &Drawn) -> bool {
    let points: usize = drawn.figure.series.iter().map(|s| s.points.len()).sum();
    !drawn.figure.maps.is_empty() || points > POINTS
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_marked_by_how_they_came_out() {
        let row_of = |ours, comparison| row(&Claim::new("t", "a < b", 100.0, ours, comparison));
        assert!(row_of(120.0, Comparison::Band).contains("dot-met"));
        assert!(row_of(140.0, Comparison::Band).contains("dot-off"));
        assert!(row_of(900.0, Comparison::Shape).contains("dot-off"));
        assert!(row_of(100.0, Comparison::Exact).contains("left:50.0%"));
        assert!(row_of(1.0, Comparison::Band).contains("a &lt; b"));
        let nothing = row(&Claim::new("t", "x", 0.0, 1.0, Comparison::Band));
        assert!(!nothing.contains("NaN") && nothing.contains(">-<"));
    }
}
