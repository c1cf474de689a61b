"""How can data be protected? One function for each protection, and the register that lists them."""
