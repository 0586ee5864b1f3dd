//! Pieces of pictures. Horizontal places are parts of the width, so that a picture fits anywhere; heights are pixels.

use super::markup::Html;
use super::tone::Tone;

/// The patterns over colours, which pictures refer to.
pub(super) fn patterns(html: &mut Html) {
    html.raw(
        "<svg class=\"patterns\" width=\"0\" height=\"0\" aria-hidden=\"true\" focusable=\"false\"><defs>\
         <pattern id=\"hatch\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">\
         <rect class=\"cut\" width=\"1.6\" height=\"5\"/></pattern>\
         <pattern id=\"dots\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\">\
         <circle class=\"cut\" cx=\"2.5\" cy=\"2.5\" r=\"1.1\"/></pattern>\
         <pattern id=\"lines\" width=\"4\" height=\"4\" patternUnits=\"userSpaceOnUse\">\
         <rect class=\"cut\" width=\"4\" height=\"1.3\"/></pattern>\
         <pattern id=\"bars\" width=\"4\" height=\"4\" patternUnits=\"userSpaceOnUse\">\
         <rect class=\"cut\" width=\"1.3\" height=\"4\"/></pattern>\
         </defs></svg>\n",
    );
}

/// A part of a picture: its horizontal range (0 to 1), and its vertical range.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) top: f64,
    pub(super) height: f64,
}

/// A rectangle with a tooltip.
pub(super) fn rect(html: &mut Html, place: Place, class: &str, fill: Option<&str>, title: Option<&str>) {
    let x = percent(place.from);
    let width = percent((place.to - place.from).max(0.0));
    let (top, height) = (format!("{:.1}", place.top), format!("{:.1}", place.height.max(0.0)));
    let mut attributes =
        vec![("x", &*x), ("width", &*width), ("y", &*top), ("height", &*height), ("class", class)];
    attributes.extend(fill.map(|fill| ("fill", fill)));
    html.element("rect", &attributes, |html| {
        if let Some(title) = title {
            html.line("title", "", title);
        }
    });
}

/// A rectangle in the colour of a tone, with its pattern.
pub(super) fn toned(html: &mut Html, place: Place, tone: Tone, title: Option<&str>) {
    rect(html, place, tone.class(), None, title);
    if let Some(pattern) = tone.pattern() {
        rect(html, place, "over", Some(pattern), title);
    }
}

/// A sample of a tone, for a legend.
pub(super) fn sample(html: &mut Html, tone: Tone) {
    let attributes = [("class", "sample"), ("width", "16"), ("height", "12"), ("aria-hidden", "true")];
    let all = Place { from: 0.0, to: 1.0, top: 0.0, height: 12.0 };
    html.element("svg", &attributes, |html| toned(html, all, tone, None));
}

fn percent(part: f64) -> String {
    format!("{:.3}%", part.clamp(0.0, 1.0) * 100.0)
}
