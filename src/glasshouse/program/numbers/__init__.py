"""What can every number be? Published numbers as variables, tied by equations; least and most of each, proved."""
