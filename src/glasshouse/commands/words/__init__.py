"""What does each command say at the end, to people and to scripts?"""
