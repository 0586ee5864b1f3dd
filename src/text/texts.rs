//! Values with foreign texts, such as agents' output: each text can be replaced, to remove secrets.

use std::borrow::Cow;

/// The new text for a text; `None` keeps it.
pub type New<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A value with texts.
pub trait Texts {
    /// Replaces each text for which there is a new one. Kept texts are not copied.
    fn replace_texts(&mut self, new: New<'_>);
}

impl Texts for String {
    fn replace_texts(&mut self, new: New<'_>) {
        if let Some(text) = new(self) {
            *self = text;
        }
    }
}

impl Texts for Cow<'_, str> {
    fn replace_texts(&mut self, new: New<'_>) {
        if let Some(text) = new(self) {
            *self = Cow::Owned(text);
        }
    }
}

impl Texts for Cow<'_, [String]> {
    fn replace_texts(&mut self, new: New<'_>) {
        if self.iter().any(|text| new(text).is_some()) {
            self.to_mut().replace_texts(new);
        }
    }
}

impl<T: Texts> Texts for Option<T> {
    fn replace_texts(&mut self, new: New<'_>) {
        if let Some(texts) = self {
            texts.replace_texts(new);
        }
    }
}

impl<T: Texts> Texts for [T] {
    fn replace_texts(&mut self, new: New<'_>) {
        for texts in self {
            texts.replace_texts(new);
        }
    }
}

impl<T: Texts> Texts for &mut T {
    fn replace_texts(&mut self, new: New<'_>) {
        (**self).replace_texts(new);
    }
}
