"""What can be learnt from a release?"""
