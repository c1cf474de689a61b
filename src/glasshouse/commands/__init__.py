"""One question, one module: functions with typed keywords that return frozen results."""
