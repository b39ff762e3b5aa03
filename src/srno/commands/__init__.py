"""One file per command: flags in, a plain function of the library called, words out."""
