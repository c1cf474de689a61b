"""The command that adds noise to tables: protect noise."""
