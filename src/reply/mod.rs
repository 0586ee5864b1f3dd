//! What an agent said: filters, sigils, usage.
