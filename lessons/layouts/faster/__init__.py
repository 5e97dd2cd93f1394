"""When are eight devices faster than one?"""
