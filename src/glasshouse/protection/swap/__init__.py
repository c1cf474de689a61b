"""Which households trade places, and who lives where afterwards?"""
