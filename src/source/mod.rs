//! Where the next prompt comes from and where its result is booked.
