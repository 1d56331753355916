//! Nothing. The program is `main.rs`; a package with a library can be depended on, and so the tests turn its features on.
