"""How does a call run: in which thread, sync or async, for how long?"""
