from hypothesis import settings

# A busy machine is no failure.
settings.register_profile("without deadlines", deadline=None)
settings.load_profile("without deadlines")
