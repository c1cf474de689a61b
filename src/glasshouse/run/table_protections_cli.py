"""The commands that protect tables without a budget: protect round, suppress, cellkey."""
