"""What is left when a command is killed, the disk is full, or a file cannot be read? Every call of the system, in turn.

A server that has imported everything forks a child for each run; the child counts its calls, and one of them goes
wrong (`inject`). Then the same command runs undisturbed, and must end as if nothing had happened (`judge`).

    python -m tests.faults [COMMAND...]     every call, with counts; all commands take hours of one core (audit: three)
"""
