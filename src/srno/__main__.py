"""`python -m srno`, which is how torchrun starts it."""

from srno.cli import main

if __name__ == "__main__":  # worker processes import this module too
    main()
