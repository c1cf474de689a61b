"""Who should be moved elsewhere to be safe, and what does it cost?"""
