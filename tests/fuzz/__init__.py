"""Does any file make us crash, hang or eat memory? Good files, harmed in ways that know their structure.

Each case follows from its kind and its seed, runs in a process of its own kind with little memory and little time, and
must end in one of two ways: the file is read, or it is refused in words that name it.
"""
