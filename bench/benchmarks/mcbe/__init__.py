"""McBE: five tasks on instances of bias in Chinese."""
