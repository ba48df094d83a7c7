"""Who says what is relevant, when nobody has judged yet?"""
