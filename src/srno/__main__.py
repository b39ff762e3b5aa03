"""`python -m srno`, which is how torchrun starts it."""

from srno.cli import main

main()
