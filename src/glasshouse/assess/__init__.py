"""How bad, how good? What was found, summed up as rates, tables and headlines."""
