//! Foxy as a library: configuration, threads, admin.
