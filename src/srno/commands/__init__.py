"""One file per command: parse flags, call the library, print the result."""
