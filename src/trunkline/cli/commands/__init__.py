"""One module or folder per group of commands; each is imported only when it is used."""
