"""Which scopes hold for a request, and does a search keep to them?"""
