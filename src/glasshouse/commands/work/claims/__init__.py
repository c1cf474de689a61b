"""What `glasshouse verify` needs besides the claims themselves: records beside units, data sets that were drawn."""
