//! What holds texts of others, such as agents and commands: each of these texts can be replaced, to take secrets out.

use std::borrow::Cow;

/// The new text for a text; `None`: it stays.
pub type New<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What holds texts.
pub trait Texts {
    /// Replaces each text for which there is a new one. Nothing is copied for those that stay.
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
